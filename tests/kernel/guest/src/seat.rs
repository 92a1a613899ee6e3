//! The seat: the condition is done to it, then a debugger of the rig's own attaches, for what the
//! kernel really answers, and the shipped agent reports.

use std::io::Read as _;
use std::process::{Command, Stdio};

use nix::sys::ptrace;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use serde_json::{Value, json};

use crate::condition::{Condition, Relation};
use crate::{setup, started};

/// The shipped agent.
pub(crate) const AGENT: &str = "/podbench";

/// The verb: prints one JSON line. `pid`: the target, where it isn't of the seat's own making.
pub(crate) fn run(condition: &Condition, pid: Option<i32>) {
    setup::apply(&condition.seat);
    // Its own files must be its own, or `/proc/self` in here is root's.
    set_dumpable_behavior(DumpableBehavior::Dumpable).unwrap();
    let (answer, report) = match condition.relation {
        Relation::StartedByTheDebugger => {
            let mut launcher =
                started(Command::new("/init").args(["launch", &serde_json::to_string(condition).unwrap()]));
            let target: i32 = launcher.line().parse().unwrap();
            let answer = launcher.line();
            (answer, report(target))
        }
        Relation::Itself => {
            let own = i32::try_from(std::process::id()).unwrap();
            (attach(own), report(own))
        }
        Relation::Beside | Relation::Traced | Relation::KernelThread | Relation::Ended => {
            let pid = pid.unwrap();
            (attach(pid), report(pid))
        }
    };
    println!("{}", json!({ "condition": condition.name, "kernel": answer, "agent": report }));
}

/// What a debugger of the seat's gets: attached with a stop, and let go.
fn attach(pid: i32) -> String {
    use std::os::unix::process::ExitStatusExt as _;
    let status =
        Command::new("/init").args(["attach", &pid.to_string()]).stdin(Stdio::null()).status().unwrap();
    match (status.code(), status.signal()) {
        (Some(0), _) => "ok".to_owned(),
        (Some(code), _) => name(code),
        (None, signal) => format!("signal {}", signal.unwrap()),
    }
}

fn name(errno: i32) -> String {
    format!("{:?}", nix::errno::Errno::from_raw(errno))
}

/// The verb: attaches as debuggers do; its exit code is the errno.
pub(crate) fn attach_verb(pid: i32) -> u8 {
    match hold(Pid::from_raw(pid)) {
        Ok(()) => 0,
        Err(e) => u8::try_from(e as i32).unwrap(),
    }
}

fn hold(pid: Pid) -> nix::Result<()> {
    ptrace::seize(pid, ptrace::Options::empty())?;
    ptrace::interrupt(pid)?;
    let stopped = waitpid(pid, Some(nix::sys::wait::WaitPidFlag::__WALL))?;
    assert!(matches!(stopped, WaitStatus::PtraceEvent(..) | WaitStatus::Stopped(..)), "{stopped:?}");
    ptrace::detach(pid, None)
}

/// The verb: starts a target and attaches to it, as a debugger does that starts what it debugs.
pub(crate) fn launch(condition: &Condition) {
    let target = started(Command::new("/init").args(["target", &serde_json::to_string(condition).unwrap()]));
    let pid = i32::try_from(target.child.id()).unwrap();
    println!("{pid}");
    println!("{}", hold(Pid::from_raw(pid)).map_or_else(|e| name(e as i32), |()| "ok".to_owned()));
    // Until the seat has looked at it as well.
    let _ = std::io::stdin().lock().read(&mut [0u8; 1]);
}

/// What the shipped agent says of a process. A machine that is too busy for a probe to end in time
/// makes the agent say "not tried", which is true and tells nothing: then it is asked again.
fn report(pid: i32) -> Value {
    const PROBES: [&str; 3] = ["seize", "nobody", "child"];
    let mut said = report_once(pid);
    for _ in 0..3 {
        let probes = &said["report"]["probes"];
        if PROBES.iter().all(|probe| probes[probe] != "notTried") {
            break;
        }
        said = report_once(pid);
    }
    said
}

fn report_once(pid: i32) -> Value {
    let start = std::time::Instant::now();
    let said = Command::new(AGENT)
        .args(["capreport", "--json", &pid.to_string()])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let ms = u64::try_from(start.elapsed().as_millis()).unwrap();
    let text = String::from_utf8_lossy(&said.stdout).into_owned();
    let report = serde_json::from_str::<Value>(&text).unwrap_or_else(|e| {
        json!({ "unreadable": e.to_string(), "stdout": text, "stderr": String::from_utf8_lossy(&said.stderr) })
    });
    json!({ "exit": said.status.code(), "ms": ms, "report": report })
}
