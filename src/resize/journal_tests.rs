use podbench_contract::ids::{Gid, Uid};
use podbench_contract::resized::{Resource, Share};

use super::*;
use crate::spec::ephemeral::Plan;
use crate::spec::security::{NonRoot, Security};

fn line(raw: &str) -> Change {
    raw.parse().unwrap()
}

fn pod(limit: &str, env: Option<&str>) -> Pod {
    let seats: Vec<Value> = env.map(seat).into_iter().collect();
    pod_with(limit, seats)
}

/// A seat of `me` that says so.
fn seat(changes: &str) -> Value {
    let security =
        Security::Degraded { uid: NonRoot::new(Uid(7)).unwrap(), gid: Some(Gid(7)), seccomp: None };
    let mut seat = Plan::sample().container(SeatName::parse("podbench-1").unwrap(), &security);
    seat["env"].as_array_mut().unwrap().push(json!({"name": "PODBENCH_RESIZED_FROM", "value": changes}));
    seat
}

fn memory(settings: &Settings) -> Journal<'_> {
    let place = Place { context: "prod".into(), kubeconfig: "/home/u/.kube/config".into() };
    Journal { settings, place }
}

fn me() -> Caller {
    Caller { owner: Some("me".into()), key: None }
}

fn pod_with(limit: &str, seats: Vec<Value>) -> Pod {
    Pod::new(json!({
        "metadata": {"name": "api", "namespace": "demo", "uid": "u-1"},
        "spec": {"containers": [{"name": "app", "resources":
            {"requests": {"memory": "16Mi"}, "limits": {"memory": limit}}}], "ephemeralContainers": seats},
    }))
    .unwrap()
}

fn step(now: &str, to: &str) -> Step {
    let share = |limit: &str| Share { request: "16Mi".parse().unwrap(), limit: limit.parse().unwrap() };
    Step { resource: Resource::Memory, now: share(now), to: share(to) }
}

#[test]
fn a_second_resize_keeps_the_first_old_value_unless_somebody_else_was_there() {
    let home = tempfile::tempdir().unwrap();
    let settings = Settings::bare(home.path());
    remember(&memory(&settings), &pod("64Mi", None), &[line("app memory 16Mi:64Mi -> 16Mi:128Mi")]).unwrap();
    let again =
        first_values(&settings, &pod("128Mi", None), &me(), "app", &[step("128Mi", "256Mi")]).unwrap();
    assert_eq!(again, [line("app memory 16Mi:64Mi -> 16Mi:256Mi")]);
    let other =
        first_values(&settings, &pod("100Mi", None), &me(), "app", &[step("100Mi", "256Mi")]).unwrap();
    assert_eq!(other, [line("app memory 16Mi:100Mi -> 16Mi:256Mi")]);
}

#[test]
fn who_knows_what_is_there_now_is_believed() {
    let home = tempfile::tempdir().unwrap();
    let settings = Settings::bare(home.path());
    remember(&memory(&settings), &pod("64Mi", None), &[line("app memory 16Mi:64Mi -> 16Mi:128Mi")]).unwrap();
    let seat = "app memory 16Mi:64Mi -> 16Mi:256Mi";
    let [entry] = journalled(&pod("256Mi", Some(seat)), &settings, &me()).unwrap().try_into().unwrap();
    assert_eq!(entry.changes, [(line(seat), Source::Seat(SeatName::parse("podbench-1").unwrap()))]);
    let [entry] = journalled(&pod("128Mi", Some(seat)), &settings, &me()).unwrap().try_into().unwrap();
    assert_eq!(entry.changes[0].1, Source::Machine);
    assert_eq!(
        journalled(&pod("1Mi", Some("evil\u{1b}")), &Settings::bare("/nonexistent"), &me()).unwrap(),
        []
    );
}

#[test]
fn the_file_is_the_users_alone_and_is_gone_when_nothing_is_remembered() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = tempfile::tempdir().unwrap();
    let settings = Settings::bare(home.path());
    let pod = pod("64Mi", None);
    let before = remember(&memory(&settings), &pod, &[line("app memory 16Mi:64Mi -> 16Mi:128Mi")]).unwrap();
    let path = file(&settings, &pod);
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    put_back(&memory(&settings), &pod, &before);
    assert!(!path.exists());
    remember(&memory(&settings), &pod, &[line("app memory 16Mi:64Mi -> 16Mi:128Mi")]).unwrap();
    forget(&memory(&settings), &pod, "app").unwrap();
    assert!(!path.exists());
}

#[test]
fn a_strange_file_is_an_error_and_not_nothing() {
    let home = tempfile::tempdir().unwrap();
    let settings = Settings::bare(home.path());
    let pod = pod("64Mi", None);
    remember(&memory(&settings), &pod, &[line("app memory 16Mi:64Mi -> 16Mi:128Mi")]).unwrap();
    std::fs::write(file(&settings, &pod), "{\"schema\": \"podbench/resized/v1\", \"resized\": \"x\"}")
        .unwrap();
    assert!(journalled(&pod, &settings, &me()).is_err());
}

#[test]
fn a_strangers_text_is_no_old_value_whatever_it_knows() {
    let settings = Settings::bare("/nonexistent");
    let forged = "app memory 1Mi:1Mi -> 16Mi:128Mi";
    let mut colleague = seat(forged);
    for entry in colleague["env"].as_array_mut().unwrap() {
        if entry["name"] == "PODBENCH_OWNER" {
            entry["value"] = "you".into();
        }
    }
    let with = |field: &str, value: Value| {
        let mut planted = seat(forged);
        planted[field] = value;
        planted
    };
    let mut preload = seat(forged);
    preload["env"].as_array_mut().unwrap().push(json!({"name": "LD_PRELOAD", "value": "/x.so"}));
    for planted in [
        colleague,
        preload,
        with("command", json!(["sleep"])),
        with("lifecycle", json!({"postStart": {"exec": {}}})),
        with("volumeMounts", json!([{"name": "x", "mountPath": "/usr/local/bin"}])),
    ] {
        let pod = pod_with("128Mi", vec![planted]);
        assert_eq!(journalled(&pod, &settings, &me()).unwrap(), [], "{:#}", pod.value());
        let changes = first_values(&settings, &pod, &me(), "app", &[step("128Mi", "256Mi")]).unwrap();
        assert_eq!(changes, [line("app memory 16Mi:128Mi -> 16Mi:256Mi")]);
    }
    // A colleague who came later hides nothing of mine.
    let mut theirs = seat("app memory 16Mi:32Mi -> 16Mi:128Mi");
    theirs["name"] = "podbench-2".into();
    theirs["env"].as_array_mut().unwrap().retain(|e| e["name"] != "PODBENCH_OWNER");
    let pod = pod_with("128Mi", vec![seat("app memory 16Mi:64Mi -> 16Mi:128Mi"), theirs]);
    let [entry] = journalled(&pod, &settings, &me()).unwrap().try_into().unwrap();
    assert_eq!(entry.changes[0].0, line("app memory 16Mi:64Mi -> 16Mi:128Mi"));
}

#[test]
fn what_this_machine_remembers_says_which_cluster_it_is_about() {
    let home = tempfile::tempdir().unwrap();
    let settings = Settings::bare(home.path());
    let pod = pod("64Mi", None);
    remember(&memory(&settings), &pod, &[line("app memory 16Mi:64Mi -> 16Mi:128Mi")]).unwrap();
    std::fs::write(Layout::new(&settings).state().join("u-2.json"), "{").unwrap();
    std::fs::write(Layout::new(&settings).state().join(".u-3.jsonAbCdEf.tmp"), "{").unwrap();
    let (known, strange) = remembered(&settings);
    assert_eq!(known.len(), 1, "{known:?}");
    assert_eq!((known[0].uid.as_str(), known[0].pod.as_str()), ("u-1", "api"));
    assert_eq!(known[0].place, memory(&settings).place);
    assert!(strange.len() == 1 && strange[0].contains("u-2.json"), "{strange:?}");
}
