use podbench_contract::ids::{Gid, Uid};
use podbench_contract::keys::PublicKey;
use serde_json::{Value, json};

use super::*;
use crate::cli::Verb;
use crate::error::Kind;
use crate::kubectl::Kubectl;
use crate::kubectl::fake::{self, Calls, Says, fails, ok};
use crate::settings::{Cluster, Settings};
use crate::spec::ephemeral::Plan;
use crate::spec::security::{NonRoot, Security};
use crate::ssh::{Identity, SshSeat, install};
use crate::ui::Ui;

const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKHEChAgLwFqB3pJzkGm2E7VJ0sL9hVYx4kq0J3j5m1p me";
const UID: &str = "0b7f3c52-6f9c-4b43-9d1f-0d6e0b0c9a11";

/// A seat's spec: number, owner.
fn spec(n: u32, owner: &str) -> Value {
    spec_beside(n, owner, "app")
}

fn spec_beside(n: u32, owner: &str, target: &str) -> Value {
    let plan = Plan {
        target: target.into(),
        owner: Some(owner.into()),
        key: PublicKey::parse(KEY).unwrap(),
        ..Plan::sample()
    };
    let security =
        Security::Degraded { uid: NonRoot::new(Uid(7)).unwrap(), gid: Some(Gid(7)), seccomp: None };
    plan.container(SeatName::parse(&format!("podbench-{n}")).unwrap(), &security)
}

/// The pod; `ended`: numbers of seats that have.
fn pod(specs: &[Value], ended: &[u32]) -> Value {
    let status = |s: &Value| {
        let over = ended.iter().any(|n| s["name"] == format!("podbench-{n}"));
        let state = if over { json!({"terminated": {"exitCode": 0}}) } else { json!({"running": {}}) };
        json!({"name": s["name"], "state": state})
    };
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "api", "namespace": "demo", "uid": UID},
        "spec": {"containers": [{"name": "app"}, {"name": "side"}], "ephemeralContainers": specs},
        "status": {"ephemeralContainerStatuses": specs.iter().map(status).collect::<Vec<_>>()},
    })
}

/// A machine with the ssh hosts of these seats.
struct Rig {
    _temp: tempfile::TempDir,
    settings: Settings,
    cluster: Cluster,
}

impl Rig {
    fn new(seats: &[u32]) -> Self {
        let temp = tempfile::tempdir().unwrap();
        let settings = Settings::bare(temp.path());
        let cluster = Cluster { kubectl: "/usr/bin/kubectl".into(), ..Cluster::default() };
        let public = PublicKey::parse(KEY).unwrap();
        for n in seats {
            let seat = SshSeat {
                context: "ctx".into(),
                namespace: "demo".into(),
                pod: "api".into(),
                pod_uid: UID.into(),
                seat: SeatName::parse(&format!("podbench-{n}")).unwrap(),
                login: "podbench".into(),
                host_key: public.clone(),
                sshd_config: "/run/podbench/7/sshd_config".into(),
                alias: None,
            };
            let identity = Identity { file: "/home/me/.ssh/id".into(), public: public.clone() };
            install(&settings, &cluster, &identity, &seat).unwrap();
        }
        Self { _temp: temp, settings, cluster }
    }

    fn detach(&self, kubectl: &Kubectl, args: &[&str]) -> Result<Done, Failure> {
        let words = ["podbench", "detach"].iter().chain(args).map(Into::into);
        let Verb::Detach(args) = crate::cli::parse(words).unwrap().verb else { panic!("another verb") };
        let (settings, cluster) = (&self.settings, &self.cluster);
        run(
            &args,
            &Session {
                settings,
                cluster,
                kubectl,
                verb: crate::commands::Running::Detach,
                ui: Ui::new(settings),
            },
        )
    }

    fn hosts(&self) -> usize {
        disk::stanzas(&self.settings).known.len()
    }
}

/// A cluster in which `me` asks, with this pod before and after an exec, which answers so.
fn cluster(before: Value, after: Value, exec: fn() -> Says) -> (Kubectl, Calls) {
    let asked = std::sync::atomic::AtomicBool::new(false);
    fake::kubectl(move |line, _| match line {
        l if l.contains("whoami") => ok(json!({"status": {"userInfo": {"username": "me"}}})),
        l if l.contains("config view") => ok(
            json!({"current-context": "ctx", "contexts": [{"name": "ctx", "context": {"namespace": "demo"}}]}),
        ),
        l if l.contains(" exec ") || l.starts_with("exec ") => {
            asked.store(true, std::sync::atomic::Ordering::Relaxed);
            exec()
        }
        l if l.contains("--watch") => fails(
            "Error from server (Forbidden): pods \"api\" is forbidden: User \"me\" cannot watch resource \"pods\" in API group \"\" in the namespace \"demo\"",
        ),
        _ if asked.load(std::sync::atomic::Ordering::Relaxed) => ok(&after),
        _ => ok(&before),
    })
}

fn report(done: &Done) -> &Value {
    match &done.answer {
        Answer::Value(value, _) => value,
        other => panic!("{other:?}"),
    }
}

fn outcomes(done: &Done) -> Vec<String> {
    let seats = report(done)["seats"].as_array().unwrap();
    seats
        .iter()
        .map(|s| format!("{} {}", s["seat"].as_str().unwrap(), s["outcome"].as_str().unwrap()))
        .collect()
}

#[test]
fn mine_end_and_their_ssh_hosts_go_and_somebody_elses_stay() {
    let rig = Rig::new(&[1, 2]);
    let specs = [spec(1, "me"), spec(2, "you")];
    let (kubectl, calls) = cluster(pod(&specs, &[]), pod(&specs, &[1]), || ok(""));
    let done = rig.detach(&kubectl, &["api"]).unwrap();
    assert_eq!(outcomes(&done), ["podbench-1 ended"]);
    assert!(done.failure.is_none());
    assert_eq!(rig.hosts(), 1, "the colleague's seat runs, and so does the way to it");
    let execs = calls.lock().unwrap().iter().filter(|(line, _)| line.contains("--stop")).count();
    assert_eq!(execs, 1, "nobody else's seat is entered");
}

#[test]
fn a_denied_exec_leaves_everything_and_says_the_command_for_it() {
    let rig = Rig::new(&[1]);
    let specs = [spec(1, "me")];
    let (kubectl, _) = cluster(pod(&specs, &[]), pod(&specs, &[]), || {
        fails(
            "Error from server (Forbidden): pods \"api\" is forbidden: User \"me\" cannot create resource \"pods/exec\" in API group \"\" in the namespace \"demo\"",
        )
    });
    let done = rig.detach(&kubectl, &["api"]).unwrap();
    assert_eq!((outcomes(&done), rig.hosts()), (vec!["podbench-1 left".to_owned()], 1));
    let failure = done.failure.unwrap();
    assert_eq!(failure.kind, Kind::Cluster);
    assert!(failure.hints.iter().any(|h| h.ends_with("podbench-1 -- /usr/local/bin/podbench agent --stop")));
    assert_eq!(report(&Done { answer: done.answer, failure: None })["kept"].as_array().unwrap().len(), 1);
}

#[test]
fn an_unreachable_server_leaves_what_is_on_the_disk() {
    let rig = Rig::new(&[1]);
    let specs = [spec(1, "me")];
    let down =
        || fails("Unable to connect to the server: dial tcp 127.0.0.1:6443: connect: connection refused");
    let (kubectl, _) = cluster(pod(&specs, &[]), pod(&specs, &[]), down);
    let done = rig.detach(&kubectl, &["api"]).unwrap();
    assert_eq!((outcomes(&done), rig.hosts()), (vec!["podbench-1 left".to_owned()], 1));
    assert_eq!(done.failure.unwrap().kind.exit(), 2);
    let (kubectl, _) = fake::kubectl(move |_, _| down());
    assert_eq!(rig.detach(&kubectl, &["api"]).unwrap_err().kind.exit(), 2);
    assert_eq!(rig.hosts(), 1);
}

#[test]
fn an_exec_that_the_seats_own_end_took_along_is_no_failure() {
    let rig = Rig::new(&[1]);
    let specs = [spec(1, "me")];
    let cut = || fails("command terminated with exit code 137");
    let (kubectl, _) = cluster(pod(&specs, &[]), pod(&specs, &[1]), cut);
    let done = rig.detach(&kubectl, &["api"]).unwrap();
    assert_eq!((outcomes(&done), rig.hosts()), (vec!["podbench-1 ended".to_owned()], 0));
    assert!(done.failure.is_none());
}

#[test]
fn a_pod_that_is_gone_leaves_only_the_disk_and_a_namesakes_part_is_not_taken() {
    let rig = Rig::new(&[1]);
    let gone = |line: &str| match line {
        l if l.contains("whoami") => ok(json!({"status": {"userInfo": {"username": "me"}}})),
        l if l.contains("config view") => ok(
            json!({"current-context": "ctx", "contexts": [{"name": "ctx", "context": {"namespace": "demo"}}]}),
        ),
        l if l.contains("get pod api ") => fails("Error from server (NotFound): pods \"api\" not found"),
        // A pod whose name has the other's in it: never the one that was meant.
        l if l.contains("get pods") => {
            let mut other = pod(&[spec(1, "me")], &[]);
            other["metadata"]["name"] = json!("api-canary");
            ok(json!({"items": [other]}))
        }
        other => panic!("{other}"),
    };
    let (kubectl, _) = fake::kubectl(move |line, _| gone(line));
    let before = rig.detach(&kubectl, &["api", "--dry-run"]).unwrap();
    assert_eq!((outcomes(&before), rig.hosts()), (vec!["podbench-1 podGone".to_owned()], 1));
    let done = rig.detach(&kubectl, &["api"]).unwrap();
    assert_eq!((outcomes(&done), rig.hosts()), (vec!["podbench-1 podGone".to_owned()], 0));
    assert_eq!(report(&done)["removed"], report(&before)["removed"], "a dry run tells what is then done");
}

#[test]
fn another_clusters_pod_of_the_same_name_is_no_proof_that_a_pod_is_gone() {
    let rig = Rig::new(&[1]);
    let (kubectl, _) = fake::kubectl(|line, _| match line {
        l if l.contains("whoami") => ok(json!({"status": {"userInfo": {"username": "me"}}})),
        l if l.contains("config view") => {
            ok(json!({"current-context": "b", "contexts": [{"name": "b", "context": {"namespace": "demo"}}]}))
        }
        _ => fails("Error from server (NotFound): pods \"api\" not found"),
    });
    assert_eq!(rig.detach(&kubectl, &["api"]).unwrap_err().kind, Kind::Input);
    assert_eq!(rig.hosts(), 1);
}

#[test]
fn somebody_elses_seat_ends_by_name_and_force_and_a_lookalike_never() {
    let rig = Rig::new(&[]);
    let mut fake = spec(3, "me");
    fake["command"] = json!(["sleep", "1000"]);
    let specs = [spec(1, "me"), spec(2, "you"), fake];
    let run = |args: &[&str]| {
        let (kubectl, calls) = cluster(pod(&specs, &[]), pod(&specs, &[1, 2, 3]), || ok(""));
        let done = rig.detach(&kubectl, args);
        let execs = calls.lock().unwrap().iter().filter(|(line, _)| line.contains("--stop")).count();
        (done, execs)
    };
    let (no, execs) = run(&["api", "--seat", "podbench-2"]);
    let no = no.unwrap_err();
    assert_eq!((no.message.as_str(), execs), ("podbench-2 is you's", 0));
    assert!(no.hints[0].contains("--force"));
    let (done, execs) = run(&["api", "--seat", "podbench-2", "--force"]);
    assert_eq!((outcomes(&done.unwrap()), execs), (vec!["podbench-2 ended".to_owned()], 1));
    for name in ["podbench-3", "podbench-9", "app"] {
        let (no, execs) = run(&["api", "--seat", name, "--force"]);
        assert_eq!((no.unwrap_err().kind, execs), (Kind::Input, 0), "{name}");
    }
}

#[test]
fn a_second_run_finds_nothing_and_is_no_failure() {
    let rig = Rig::new(&[1]);
    let specs = [spec(1, "me")];
    let (kubectl, _) = cluster(pod(&specs, &[1]), pod(&specs, &[1]), || panic!("an ended seat is entered"));
    let first = rig.detach(&kubectl, &["api"]).unwrap();
    assert_eq!((outcomes(&first), rig.hosts()), (vec!["podbench-1 endedBefore".to_owned()], 0));
    let second = rig.detach(&kubectl, &["api"]).unwrap();
    let Answer::Value(value, text) = &second.answer else { panic!("no value") };
    assert!(second.failure.is_none() && text.contains("nothing to take back in demo/api"), "{text}");
    assert_eq!(value["schema"], "podbench/detach/v1");
}

#[test]
fn a_target_or_a_name_narrows_it_and_nothing_else_is_touched() {
    let specs = [spec(1, "me"), spec_beside(2, "me", "side"), spec(3, "me")];
    let run = |args: &[&str]| {
        let rig = Rig::new(&[1, 2, 3]);
        // The first has ended already; its ssh host goes only where it is meant.
        let (kubectl, _) = cluster(pod(&specs, &[1]), pod(&specs, &[1, 2, 3]), || ok(""));
        let done = rig.detach(&kubectl, args).unwrap();
        (outcomes(&done), rig.hosts())
    };
    let (side, hosts) = run(&["api", "-c", "side"]);
    assert_eq!((side, hosts), (vec!["podbench-2 ended".to_owned()], 2));
    let (named, hosts) = run(&["api", "--seat", "podbench-3"]);
    assert_eq!((named, hosts), (vec!["podbench-3 ended".to_owned()], 2));
    assert_eq!(run(&["api"]).1, 0);
}

#[test]
fn an_exec_that_is_cut_in_the_middle_is_settled_by_the_kubelets_word() {
    let eof: fn() -> Says = || fails("error: unexpected EOF");
    let reset = || fails("error: read tcp 10.0.0.1:1: connection reset by peer");
    for cut in [eof, reset] {
        let rig = Rig::new(&[1]);
        let specs = [spec(1, "me")];
        let (kubectl, _) = cluster(pod(&specs, &[]), pod(&specs, &[1]), cut);
        let done = rig.detach(&kubectl, &["api"]).unwrap();
        assert_eq!((outcomes(&done), rig.hosts()), (vec!["podbench-1 ended".to_owned()], 0));
        assert!(done.failure.is_none());
    }
}

/// A state file of a pod.
fn state(rig: &Rig, uid: &str, content: &str) -> std::path::PathBuf {
    let folder = rig.settings.config_dir.join("state");
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join(format!("{uid}.json"));
    std::fs::write(&file, content).unwrap();
    file
}

#[test]
fn a_state_file_that_is_none_of_podbenchs_spoils_no_report_and_is_named() {
    let rig = Rig::new(&[1]);
    let specs = [spec(1, "me")];
    state(&rig, UID, "{");
    let (kubectl, _) = cluster(pod(&specs, &[]), pod(&specs, &[1]), || ok(""));
    let done = rig.detach(&kubectl, &["api"]).unwrap();
    assert_eq!((outcomes(&done), rig.hosts()), (vec!["podbench-1 ended".to_owned()], 0));
    let failure = done.failure.unwrap();
    assert!(failure.kind == Kind::Disk && failure.hints[0].starts_with("rm "), "{failure:?}");
}

#[test]
fn ctrl_c_in_the_middle_tells_what_is_known_and_takes_no_more_back() {
    let rig = Rig::new(&[1]);
    let specs = [spec(1, "me")];
    let interrupted = || Says { interrupted: true, ..fake::stays("", "") };
    let (kubectl, _) = cluster(pod(&specs, &[]), pod(&specs, &[]), interrupted);
    let done = rig.detach(&kubectl, &["api"]).unwrap();
    assert_eq!((outcomes(&done), rig.hosts()), (vec!["podbench-1 left".to_owned()], 1));
    assert_eq!(done.failure.unwrap().kind, Kind::Interrupted);
}

#[test]
fn a_seat_that_has_not_started_is_left_and_that_is_a_failure() {
    let rig = Rig::new(&[1]);
    let mut waiting = pod(&[spec(1, "me")], &[]);
    waiting["status"]["ephemeralContainerStatuses"][0]["state"] =
        json!({"waiting": {"reason": "ImagePullBackOff"}});
    let (kubectl, _) = cluster(waiting.clone(), waiting, || panic!("it can't be entered"));
    let done = rig.detach(&kubectl, &["api"]).unwrap();
    assert_eq!((outcomes(&done), rig.hosts()), (vec!["podbench-1 left".to_owned()], 1));
    assert_eq!(done.failure.unwrap().kind.exit(), 2);
}

#[test]
fn what_a_gone_pod_had_before_a_resize_is_forgotten_with_or_without_an_ssh_host() {
    for hosts in [&[1][..], &[]] {
        let rig = Rig::new(hosts);
        let place = Place::new(&rig.settings, &rig.cluster, "ctx").unwrap();
        let content = |context: &str| {
            let value = json!({"schema": "podbench/resized/v1", "context": context, "kubeconfig": place.kubeconfig,
                               "namespace": "demo", "pod": "api", "resized": "app memory 1Mi:2Mi -> 1Mi:3Mi"});
            value.to_string()
        };
        let here = state(&rig, UID, &content("ctx"));
        let elsewhere = state(&rig, "u-2", &content("other"));
        let (kubectl, _) = fake::kubectl(|line, _| match line {
            l if l.contains("whoami") => ok(json!({"status": {"userInfo": {"username": "me"}}})),
            l if l.contains("config view") => ok(
                json!({"current-context": "ctx", "contexts": [{"name": "ctx", "context": {"namespace": "demo"}}]}),
            ),
            _ => fails("Error from server (NotFound): pods \"api\" not found"),
        });
        let done = rig.detach(&kubectl, &["po/api"]).unwrap();
        assert!(done.failure.is_none() && !here.exists() && elsewhere.exists(), "{:?}", report(&done));
    }
}
