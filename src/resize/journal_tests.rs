use podbench_contract::resized::{Resource, Share};

use super::*;

fn line(raw: &str) -> Change {
    raw.parse().unwrap()
}

fn pod(limit: &str, env: Option<&str>) -> Pod {
    let mut seats = Vec::new();
    if let Some(value) = env {
        seats.push(json!({"name": "podbench-1", "command": agent_argv(),
                          "env": [{"name": "PODBENCH_RESIZED_FROM", "value": value}]}));
    }
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
    remember(&settings, &pod("64Mi", None), &[line("app memory 16Mi:64Mi -> 16Mi:128Mi")]).unwrap();
    let again = first_values(&settings, &pod("128Mi", None), "app", &[step("128Mi", "256Mi")]).unwrap();
    assert_eq!(again, [line("app memory 16Mi:64Mi -> 16Mi:256Mi")]);
    let other = first_values(&settings, &pod("100Mi", None), "app", &[step("100Mi", "256Mi")]).unwrap();
    assert_eq!(other, [line("app memory 16Mi:100Mi -> 16Mi:256Mi")]);
}

#[test]
fn who_knows_what_is_there_now_is_believed() {
    let home = tempfile::tempdir().unwrap();
    let settings = Settings::bare(home.path());
    remember(&settings, &pod("64Mi", None), &[line("app memory 16Mi:64Mi -> 16Mi:128Mi")]).unwrap();
    let seat = "app memory 16Mi:64Mi -> 16Mi:256Mi";
    let [entry] = journalled(&pod("256Mi", Some(seat)), &settings).unwrap().try_into().unwrap();
    assert_eq!(entry.changes, [(line(seat), Source::Seat(SeatName::parse("podbench-1").unwrap()))]);
    let [entry] = journalled(&pod("128Mi", Some(seat)), &settings).unwrap().try_into().unwrap();
    assert_eq!(entry.changes[0].1, Source::Machine);
    assert_eq!(journalled(&pod("1Mi", Some("evil\u{1b}")), &Settings::bare("/nonexistent")).unwrap(), []);
}

#[test]
fn the_file_is_the_users_alone_and_is_gone_when_nothing_is_remembered() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = tempfile::tempdir().unwrap();
    let settings = Settings::bare(home.path());
    let pod = pod("64Mi", None);
    let before = remember(&settings, &pod, &[line("app memory 16Mi:64Mi -> 16Mi:128Mi")]).unwrap();
    let path = file(&settings, &pod);
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    put_back(&settings, &pod, &before);
    assert!(!path.exists());
    remember(&settings, &pod, &[line("app memory 16Mi:64Mi -> 16Mi:128Mi")]).unwrap();
    forget(&settings, &pod, "app").unwrap();
    assert!(!path.exists());
}

#[test]
fn a_strange_file_is_an_error_and_not_nothing() {
    let home = tempfile::tempdir().unwrap();
    let settings = Settings::bare(home.path());
    let pod = pod("64Mi", None);
    remember(&settings, &pod, &[line("app memory 16Mi:64Mi -> 16Mi:128Mi")]).unwrap();
    std::fs::write(file(&settings, &pod), "{\"schema\": \"podbench/resized/v1\", \"resized\": \"x\"}")
        .unwrap();
    assert!(journalled(&pod, &settings).is_err());
}
