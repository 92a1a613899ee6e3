//! What a seat leaves in the customer's pod while it runs, and after: nothing that isn't its own.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::Duration;

use podbench_contract::session;
use podbench_test_support::namespace::Namespace;
use podbench_test_support::person::alias;
use podbench_test_support::process::eventually;

use crate::world::{restricted, text};

#[derive(Clone, Debug)]
struct Process {
    pid: u32,
    ppid: u32,
    state: char,
    command: String,
}

/// Every process in the pod's PID namespace, as the seat sees it, without the asking `ps`.
fn processes(ns: &Namespace, pod: &str, seat: &str) -> Vec<Process> {
    let listed = ns.exec(pod, seat, &["ps", "-e", "-ww", "-o", "pid=,ppid=,state=,args="]).text();
    let one = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let pid = words.next()?.parse().ok()?;
        let ppid = words.next()?.parse().ok()?;
        let state = words.next()?.chars().next()?;
        Some(Process { pid, ppid, state, command: words.collect::<Vec<_>>().join(" ") })
    };
    listed.lines().filter_map(one).filter(|p| !p.command.starts_with("ps -e")).collect()
}

fn agent(all: &[Process]) -> u32 {
    let argv = session::agent_argv().join(" ");
    all.iter().find(|p| p.command == argv).unwrap_or_else(|| panic!("no agent among {all:#?}")).pid
}

fn signals(ns: &Namespace, pod: &str, seat: &str) -> BTreeMap<String, u64> {
    let json = ns.exec(pod, seat, &["curl", "-s", "localhost:8080/signals"]).json();
    serde_json::from_value(json).unwrap()
}

/// Zombies, and processes of the seat whose parent is neither the agent (or below it) nor the runtime (0).
fn strays(all: &[Process]) -> Vec<Process> {
    let agent = agent(all);
    let stray = |p: &&Process| p.state == 'Z' || (p.ppid == 1 && p.pid != agent);
    all.iter().filter(stray).cloned().collect()
}

#[test]
fn after_a_hundred_connects_killed_kubectls_and_daemons_there_is_no_zombie_and_no_orphan() {
    let (ns, person) = restricted("zombies", &["odd-ids"]);
    let report = person.attach(&["odd-ids"]);
    let (alias, seat) = (alias(&report), text(&report, "/seat/name").to_owned());
    let cold = ["-o", "ControlMaster=no", "-o", "ControlPath=none"];
    let connect = |command: &str| {
        let mut args = cold.to_vec();
        args.extend([alias.as_str(), command]);
        person.ssh(&args)
    };
    for _ in 0..100 {
        connect("true").expect_code(0);
    }
    // Connections whose kubectl is killed in the middle of a stream.
    for _ in 0..5 {
        let mut args = cold.to_vec();
        args.extend([alias.as_str(), "cat /dev/zero"]);
        let mut ssh =
            person.ssh_command("ssh", &args).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(700));
        let children =
            std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", ssh.id())).unwrap_or_default();
        for pid in children.split_ascii_whitespace() {
            let _ = std::process::Command::new("kill").args(["-9", pid]).status();
        }
        let _ = ssh.kill();
        let _ = ssh.wait();
    }
    // Children that outlive their connection: one that stays, and several that end later.
    connect("setsid sleep 4321 </dev/null >/dev/null 2>&1 &").expect_code(0);
    for _ in 0..5 {
        connect("setsid sleep 1 </dev/null >/dev/null 2>&1 & (sleep 0.5 &) ; true").expect_code(0);
    }
    let all = eventually("no zombie and no orphan within 60 s", Duration::from_secs(60), || {
        let all = processes(&ns, "odd-ids", &seat);
        let quiet = !all
            .iter()
            .any(|p| p.command.contains("sshd") || p.command == "sleep 1" || p.command.contains("/dev/zero"));
        (quiet && strays(&all).is_empty()).then_some(all)
    });
    let daemon = all.iter().find(|p| p.command == "sleep 4321").expect("the daemon still runs");
    assert_eq!(daemon.ppid, agent(&all), "a daemon lives on under the agent: {all:#?}");
    assert_eq!(signals(&ns, "odd-ids", &seat), BTreeMap::new(), "the application's PID 1 got signals");

    // Told to end, the agent takes everything of the seat with it.
    ns.exec("odd-ids", &seat, &[session::AGENT, "agent", "--stop"]);
    eventually("the seat's container has ended", Duration::from_secs(20), || {
        let pod = ns.get("pod", "odd-ids");
        pod.pointer("/status/ephemeralContainerStatuses/0/state/terminated").cloned()
    });
    // A second seat is the witness.
    let witness = person.attach(&["odd-ids"]);
    let second = text(&witness, "/seat/name");
    assert_ne!(second, seat, "an ended seat isn't reused");
    let left = processes(&ns, "odd-ids", second);
    assert!(!left.iter().any(|p| p.command.contains("4321") || p.state == 'Z'), "{left:#?}");
    assert_eq!(left.iter().filter(|p| p.command.contains("podbench agent")).count(), 1, "{left:#?}");
    assert_eq!(signals(&ns, "odd-ids", second), BTreeMap::new());
}

#[test]
fn an_idle_agent_is_small_and_sleeps() {
    let (ns, person) = restricted("idle", &["odd-ids"]);
    let report = person.attach(&["odd-ids"]);
    let seat = text(&report, "/seat/name");
    let pid = agent(&processes(&ns, "odd-ids", seat));
    let read = || {
        let status = ns.exec("odd-ids", seat, &["cat", &format!("/proc/{pid}/status")]).text();
        let field = |name: &str| -> u64 {
            let line =
                status.lines().find(|l| l.starts_with(name)).unwrap_or_else(|| panic!("{name} in {status}"));
            line.split_ascii_whitespace().nth(1).unwrap().parse().unwrap()
        };
        (field("VmRSS:"), field("voluntary_ctxt_switches:"))
    };
    let (rss, before) = read();
    std::thread::sleep(Duration::from_secs(5));
    let (_, after) = read();
    assert!(rss <= 3 * 1024, "the agent takes {rss} kB");
    assert_eq!(before, after, "an idle agent woke up");
}

#[test]
fn signal_masks_are_clear_in_a_session() {
    let (_ns, person) = restricted("mask", &["odd-ids"]);
    let alias = alias(&person.attach(&["odd-ids"]));
    let blocked = person.ssh(&[&alias, "grep SigBlk /proc/self/status"]).text();
    assert!(blocked.ends_with("0000000000000000"), "{blocked}");
}
