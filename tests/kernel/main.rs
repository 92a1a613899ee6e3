//! Which mechanism says no to ptrace, on real kernels: each condition is made in a virtual machine,
//! a debugger tries there, and the shipped agent reports. `./dev test kernel` builds and runs it.
//!
//! - [`conditions`]: a file each; what is expected stands in it, from how it is made
//! - [`vm`], [`cpio`]: a boot
//! - [`table`]: the generated part of `docs/capreport.md`
#![allow(clippy::disallowed_methods, reason = "tests start programs and read the environment")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stderr,
    missing_docs
)]

mod conditions;
mod cpio;
mod table;
mod vm;

use std::collections::BTreeMap;
use std::sync::OnceLock;

use conditions::{Boot, Condition};
use serde_json::Value;
use vm::KERNELS;

/// What one kernel said.
pub(crate) struct Machine {
    /// `uname -r`.
    pub(crate) release: String,
    /// What its boots said beside the conditions.
    pub(crate) boots: Vec<Value>,
    /// What was said of each condition.
    pub(crate) said: BTreeMap<String, Value>,
}

/// Both kernels, booted once for every test here, two machines at a time.
fn machines() -> &'static [Machine] {
    static MACHINES: OnceLock<Option<Vec<Machine>>> = OnceLock::new();
    let booted = MACHINES.get_or_init(|| {
        let home = vm::home();
        let conditions = conditions::all();
        std::thread::scope(|scope| {
            let running = KERNELS.map(|version| scope.spawn(|| machine(&home, version, &conditions)));
            let ended: Vec<Option<Machine>> = running.into_iter().map(|thread| thread.join().ok()).collect();
            ended.into_iter().collect()
        })
    });
    booted.as_deref().expect("a kernel didn't do its work: see above")
}

fn machine(home: &std::path::Path, version: &str, conditions: &[Condition]) -> Machine {
    let lines: Vec<Value> = [Boot::Apparmor, Boot::Selinux]
        .into_iter()
        .flat_map(|boot| {
            let of_it: Vec<&Condition> = conditions.iter().filter(|c| c.boot == boot).collect();
            vm::run(home, version, boot, &of_it)
        })
        .collect();
    let (said, boots): (Vec<_>, Vec<_>) = lines.into_iter().partition(|line| line.get("condition").is_some());
    let release =
        boots.iter().find_map(|line| line.pointer("/boot/kernel")).unwrap().as_str().unwrap().to_owned();
    let name = |line: &Value| line["condition"].as_str().unwrap().to_owned();
    Machine { release, boots, said: said.into_iter().map(|line| (name(&line), line)).collect() }
}

/// An attempt as the conditions spell it.
fn attempt(value: &Value) -> String {
    match (value.as_str(), value["errno"].as_i64(), value["signal"].as_i64()) {
        (Some(word), ..) => word.to_owned(),
        (_, Some(1), _) => "EPERM".to_owned(),
        (_, Some(3), _) => "ESRCH".to_owned(),
        (_, Some(13), _) => "EACCES".to_owned(),
        (_, Some(38), _) => "ENOSYS".to_owned(),
        (_, Some(errno), _) => format!("errno {errno}"),
        (_, _, Some(signal)) => format!("signal {signal}"),
        (None, None, None) => format!("not an attempt: {value}"),
    }
}

/// The blockers that the agent named, as the conditions spell them. The list is there when it is
/// empty too: without one there was no report.
fn named(report: &Value) -> Vec<String> {
    let Some(blockers) = report["blockers"].as_array() else { return vec!["no list".to_owned()] };
    blockers
        .iter()
        .map(|b| {
            let kind = b["kind"].as_str().unwrap();
            if b["certain"] == true { kind.to_owned() } else { format!("{kind}?") }
        })
        .collect()
}

/// Each condition's differences from what its file expects, all in one failure.
fn every(differs: impl Fn(&Condition, &Value) -> Vec<String>) {
    let mut wrong = Vec::new();
    for machine in machines() {
        for condition in conditions::all() {
            let line = &machine.said[&condition.name];
            let differences = match line.get("failed") {
                Some(why) => vec![format!("it couldn't be made: {}", why.as_str().unwrap())],
                None => differs(&condition, line),
            };
            let name = &condition.name;
            wrong.extend(differences.into_iter().map(|d| format!("{} {name}: {d}", machine.release)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn each_condition_is_real_a_debugger_gets_from_the_kernel_what_its_file_expects() {
    every(|condition, line| {
        let got = line["kernel"].as_str().unwrap();
        let expected = &condition.expect.attach;
        if got == expected { Vec::new() } else { vec![format!("a debugger got {got}, not {expected}")] }
    });
}

#[test]
fn each_verdict_is_right_and_each_blocker_is_named_in_the_order_in_which_they_bite() {
    every(|condition, line| {
        let agent = &line["agent"];
        let report = &agent["report"];
        let expect = &condition.expect;
        let got = (
            report["verdict"].as_str().unwrap_or("no verdict").to_owned(),
            named(report),
            attempt(&report["probes"]["child"]),
        );
        let wanted = (expect.verdict.clone(), expect.blockers.clone(), expect.child.clone());
        let mut wrong = Vec::new();
        if got != wanted {
            wrong.push(format!("capreport said {got:?}, not {wanted:?}\n    {}", words(report)));
        }
        let exit = match expect.verdict.as_str() {
            "liveAttach" => 0,
            "readOnly" => 10,
            "launchOnly" => 15,
            "nothing" => 20,
            other => panic!("{}: no verdict is called {other}", condition.name),
        };
        if agent["exit"] != exit {
            wrong.push(format!("capreport ended with {}, not {exit}", agent["exit"]));
        }
        wrong
    });
}

fn words(report: &Value) -> String {
    format!("{} probes {}", report["blockers"], report["probes"])
}

/// What lifts each blocker, and who can, is said for every one of them.
#[test]
fn each_blocker_says_what_was_read_what_lifts_it_and_who_can() {
    every(|_, line| {
        let empty = |b: &Value, key: &str| b[key].as_str().is_none_or(str::is_empty);
        let Some(blockers) = line["agent"]["report"]["blockers"].as_array() else {
            return vec![format!("capreport listed no blockers: {line}")];
        };
        blockers
            .iter()
            .filter(|b| {
                empty(b, "detail") || empty(b, "remedy") || b["who"].as_array().is_none_or(Vec::is_empty)
            })
            .map(|b| format!("{b} leaves something out"))
            .collect()
    });
}

/// The target counts its own stops; a debugger that stops it once shows that it can count.
#[test]
fn a_probe_killed_at_any_step_leaves_the_target_running_and_never_stopped() {
    for machine in machines() {
        let harm = machine.boots.iter().find_map(|line| line.get("harm")).unwrap();
        let release = &machine.release;
        assert_eq!(harm["stopsByProbes"], 0, "{release}: {harm}");
        assert_eq!((&harm["tracerLeft"], &harm["capreport"]), (&"0".into(), &0.into()), "{release}: {harm}");
        assert!(harm["state"].as_str().unwrap().starts_with(['R', 'S']), "{release}: {harm}");
        assert!(harm["steps"].as_u64().unwrap() > 10, "{release}: {harm}");
        assert!(harm["killedWhileHolding"].as_u64().unwrap() > 0, "{release}: {harm}");
        assert_eq!(
            (&harm["debugger"], &harm["stopsByDebugger"]),
            (&0.into(), &1.into()),
            "{release}: {harm}"
        );
    }
}

#[test]
fn the_page_of_capreport_shows_what_these_kernels_answered() {
    table::check(machines());
}

/// The closed set: a kind that no condition makes has never been seen to be named.
#[test]
fn every_kind_of_blocker_is_the_first_of_some_condition() {
    let all = conditions::all();
    for condition in &all {
        assert!(!condition.made.is_empty(), "{}", condition.name);
        let works = condition.expect.verdict == "liveAttach";
        assert_eq!(works, condition.expect.blockers.is_empty(), "{}", condition.name);
    }
    for kind in [
        "capability",
        "uid",
        "gid",
        "yama",
        "seccomp",
        "lsm",
        "user-namespace",
        "not-dumpable",
        "already-traced",
        "unknown",
    ] {
        let first = |c: &&Condition| c.expect.blockers.first().is_some_and(|b| b == kind);
        assert!(all.iter().any(|c| first(&c)), "no condition has {kind} as its first blocker");
    }
}
