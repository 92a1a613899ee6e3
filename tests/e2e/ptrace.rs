//! What the report says of attaching, against a debugger that tries it: each kind of target, from each
//! rung.

use std::time::Duration;

use podbench_test_support::namespace::Namespace;
use podbench_test_support::person::Person;
use podbench_test_support::pods::pod;
use podbench_test_support::process::eventually;
use serde_json::{Value, json};

use crate::world::{number, person, text};

/// A profile that answers ptrace itself, on every node of the project's own cluster; its name.
pub fn deny_ptrace(ns: &Namespace) -> &'static str {
    const NAME: &str = "podbench-e2e-deny-ptrace.json";
    let profile = json!({"defaultAction": "SCMP_ACT_ALLOW",
        "syscalls": [{"names": ["ptrace"], "action": "SCMP_ACT_ERRNO", "errnoRet": 1}]});
    let state = ns.cluster.kubeconfig().parent().unwrap();
    for node in ["node1", "node2"] {
        let folder = state.join(node).join("kubelet/seccomp");
        std::fs::create_dir_all(&folder).expect("this test needs the project's own cluster");
        std::fs::write(folder.join(NAME), profile.to_string()).unwrap();
    }
    NAME
}

/// What somebody in this seat can really read of the target.
fn reads(ns: &Namespace, pod: &str, report: &Value) -> bool {
    let proc = format!("/proc/{}", number(report, "/target/pid"));
    let script = format!("ls {proc}/root/ && head -c 1 {proc}/maps && head -c 1 {proc}/environ");
    ns.exec(pod, text(report, "/seat/name"), &["sh", "-c", &script]).code == 0
}

/// Does a debugger in this seat really attach?
fn attaches(ns: &Namespace, pod: &str, report: &Value) -> bool {
    let gdb =
        format!("/usr/bin/gdb -q -nx -batch -ex 'attach {}' -ex detach 2>&1", number(report, "/target/pid"));
    ns.exec(pod, text(report, "/seat/name"), &["sh", "-c", &gdb]).stdout.contains("detached")
}

/// The rung that was landed and the blockers, after a debugger and a reader got what the report said.
pub fn judged(ns: &Namespace, person: &Person, pod: &str, args: &[&str]) -> String {
    let report = person.attach(&[&[pod, "--new", "--no-correct-ids"], args].concat());
    let works = attaches(ns, pod, &report);
    assert_eq!(report.pointer("/supports/liveAttach/ok"), Some(&works.into()), "{pod} {args:?}: {report:#}");
    let read = report.pointer("/supports/readOnly/ok");
    assert_eq!(read, Some(&reads(ns, pod, &report).into()), "{pod} {args:?}: {report:#}");
    let blockers: Vec<&str> =
        report["blockers"].as_array().unwrap().iter().map(|blocker| text(blocker, "/kind")).collect();
    assert_eq!(works, blockers.is_empty(), "{pod} {args:?}: {report:#}");
    format!("{}: {}", text(&report, "/rung/name"), blockers.join(", "))
}

#[test]
fn each_kind_of_target_is_judged_from_each_rung_as_a_debugger_finds_it() {
    let ns = Namespace::scratch("ptrace");
    let profile = deny_ptrace(&ns);
    let mut denied = pod("denied", 1234, 2000);
    denied["spec"]["securityContext"]["seccompProfile"] =
        json!({"type": "Localhost", "localhostProfile": profile});
    let mut unconfined = pod("unconfined", 1234, 2000);
    unconfined["spec"]["securityContext"]["seccompProfile"] = json!({"type": "Unconfined"});
    // Who may not read a program's file may not read its memory either.
    let mut undumpable = pod("undumpable", 1234, 2000);
    let container = &mut undumpable["spec"]["containers"][0];
    container["image"] = "podbench.test/debian:1".into();
    container["command"] =
        json!(["sh", "-c", "cp /zooapp /tmp/app && chmod 0111 /tmp/app && exec /tmp/app -port 8080"]);
    ns.pods(&[denied, unconfined, undumpable]);
    ns.zoo(&["odd-ids", "root", "filecap", "userns"]);
    let person = person(&ns);
    let table = [
        // Runtime's default profile; ids of its own.
        ("odd-ids", "full", "full: "),
        ("odd-ids", "degraded", "degraded: "),
        ("odd-ids", "seat", "seat: uid"),
        ("unconfined", "full", "full: "),
        ("unconfined", "degraded", "degraded: "),
        // The degraded rung takes over the target's own profile.
        ("denied", "degraded", "degraded: seccomp"),
        ("root", "full", "full: "),
        ("root", "seat", "seat: uid"),
        // Equal ids, and a target that holds a capability; one that the kernel made not dumpable.
        ("filecap", "full", "full: "),
        ("filecap", "degraded", "degraded: capability"),
        ("undumpable", "full", "full: "),
        ("undumpable", "degraded", "degraded: not-dumpable"),
        // Root of a user namespace that both are in.
        ("userns", "full", "full: "),
        ("userns", "seat", "seat: uid"),
    ];
    let found: Vec<String> = table
        .iter()
        .map(|(pod, rung, _)| format!("{pod} {rung}: {}", judged(&ns, &person, pod, &["--max-rung", rung])))
        .collect();
    let expected: Vec<String> =
        table.iter().map(|(pod, rung, what)| format!("{pod} {rung}: {what}")).collect();
    assert_eq!(found, expected);
}

/// `/proc` has no reading for it: a socket is opened, as tcpdump would.
#[test]
fn a_seat_that_may_capture_traffic_is_told_from_one_that_may_not() {
    let ns = Namespace::scratch("packets");
    ns.zoo(&["odd-ids"]);
    let person = person(&ns);
    let capture = "gdb -q -nx -batch -ex 'python import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW); print(\"captures\")' 2>&1";
    for (rung, packets, word) in
        [("full", true, "packet socket ok"), ("degraded", false, "packet socket EPERM")]
    {
        let report = person.attach(&["odd-ids", "--new", "--max-rung", rung]);
        let seat = text(&report, "/seat/name");
        let said = ns.exec("odd-ids", seat, &["sh", "-c", capture]).stdout;
        assert_eq!(said.contains("captures"), packets, "{rung}: {said}");
        let told = ns.exec("odd-ids", seat, &["podbench", "capreport"]).stdout;
        assert!(told.contains(word), "{rung}: {told}");
    }
}

#[test]
fn a_target_that_somebody_else_debugs_is_told_as_such() {
    let ns = Namespace::scratch("traced");
    ns.zoo(&["odd-ids"]);
    let person = person(&ns);
    let first = person.attach(&["odd-ids"]);
    let pid = number(&first, "/target/pid");
    let gdb = format!("setsid gdb -batch -p {pid} -ex 'shell sleep 60' >/dev/null 2>&1 </dev/null &");
    ns.exec("odd-ids", text(&first, "/seat/name"), &["sh", "-c", &gdb]).expect_code(0);
    let traced = format!("grep -q '^TracerPid:[[:space:]]*[1-9]' /proc/{pid}/status");
    eventually("the target is traced", Duration::from_secs(20), || {
        (ns.exec("odd-ids", text(&first, "/seat/name"), &["sh", "-c", &traced]).code == 0).then_some(())
    });
    assert!(judged(&ns, &person, "odd-ids", &[]).ends_with(": already-traced"));
}
