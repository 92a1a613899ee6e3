//! `--wait-start`: a target that doesn't run yet, or that starts again and again.

use std::time::{Duration, Instant};

use podbench_test_support::namespace::Namespace;
use podbench_test_support::person::alias;

use crate::world::{person, text, world};

/// A pod of Debian's shell: an init container and a container that run these lines.
fn pod(ns: &Namespace, name: &str, init: Option<&str>, line: &str) {
    let container = |name: &str, line: &str| {
        serde_json::json!({
            "name": name, "image": "podbench.test/debian:1", "imagePullPolicy": "Never", "command": ["sh", "-c", line],
        })
    };
    let inits: Vec<_> = init.iter().map(|line| container("migrate", line)).collect();
    let pod = serde_json::json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": ns.name},
        "spec": {"terminationGracePeriodSeconds": 1, "initContainers": inits, "containers": [container("app", line)]},
    });
    ns.cluster.apply(&pod.to_string());
}

#[test]
fn a_target_that_initialises_is_waited_for_and_its_seat_is_landed_at_once() {
    let ns = Namespace::scratch("wait-init");
    pod(&ns, "slow", Some("until [ -e /dev/shm/go ]; do sleep 0.2; done"), "sleep 600");
    ns.kubectl(&[
        "wait",
        "--for=jsonpath={.status.initContainerStatuses[0].state.running}",
        "pod/slow",
        "--timeout=60s",
    ])
    .expect_code(0);
    let person = person(&ns);
    // Without the flag nothing is written, and the flag is what it says to try.
    let said = person.podbench(&["attach", "slow"]).expect_code(2);
    assert!(said.stderr.contains("--wait-start"), "{}", said.stderr);
    assert!(ns.seats("slow").is_empty());
    let report = std::thread::scope(|s| {
        let attach = s.spawn(|| person.attach(&["slow", "--wait-start=2m"]));
        std::thread::sleep(Duration::from_secs(2));
        assert!(!attach.is_finished(), "it didn't wait");
        assert!(ns.seats("slow").is_empty(), "a name was spent while it waited");
        ns.exec("slow", "migrate", &["touch", "/dev/shm/go"]).expect_code(0);
        attach.join().unwrap()
    });
    assert_eq!(ns.seats("slow"), ["podbench-1"]);
    assert_eq!(text(&report, "/rung/measured"), "degraded", "{report:#}");
    person.ssh(&[&alias(&report), "true"]).expect_code(0);
}

#[test]
fn a_target_that_crashes_is_caught_at_its_next_start_and_the_seat_goes_with_it() {
    let ns = Namespace::scratch("wait-crash");
    pod(&ns, "short", None, "sleep 8; exit 7");
    ns.kubectl(&[
        "wait",
        "--for=jsonpath={.status.containerStatuses[0].state.waiting.reason}=CrashLoopBackOff",
        "pod/short",
        "--timeout=90s",
    ])
    .expect_code(0);
    let person = person(&ns);
    let report = person.attach(&["short", "--wait-start"]);
    assert_eq!(report.pointer("/supports/liveAttach/ok"), Some(&true.into()), "{report:#}");
    let said = report["warnings"].to_string();
    assert!(said.contains("exit code 7") && said.contains("a restart ends the seat"), "{said}");
}

#[test]
fn a_target_that_lives_for_a_moment_burns_one_name_and_no_more() {
    let (ns, person) = world("wait-moment", &["crash"]);
    let attach = || person.podbench(&["attach", "crash", "--wait-start=2m"]);
    let mut said = attach();
    if said.code == 124 {
        // A kubelet that is busy reports no start of a container that has ended by then.
        assert!(said.stderr.contains("nothing was written"), "{}", said.stderr);
        said = attach();
    }
    let said = said.expect_code(2);
    assert!(said.stderr.contains("ended before the seat could start"), "{}", said.stderr);
    assert!(said.stderr.contains("the name podbench-1 is burnt"), "{}", said.stderr);
    assert_eq!(ns.seats("crash"), ["podbench-1"], "no rung changes that the target is gone");
}

#[test]
fn a_wait_ends_at_its_deadline_with_what_it_saw_last() {
    let (ns, person) = world("wait-late", &["stuck-init"]);
    let began = Instant::now();
    let said = person.podbench(&["attach", "stuck-init", "--wait-start=3"]).expect_code(124);
    assert!(began.elapsed() < Duration::from_secs(30));
    for word in ["within the 3 s of --wait-start", "init container migrate", "try:"] {
        assert!(said.stderr.contains(word), "`{word}` is missing in:\n{}", said.stderr);
    }
    assert!(ns.seats("stuck-init").is_empty());
    let said = person.podbench(&["attach", "stuck-init", "--dry-run", "--wait-start=60"]).expect_code(2);
    assert!(said.stderr.contains("nothing was written"), "a rehearsal doesn't wait: {}", said.stderr);
}
