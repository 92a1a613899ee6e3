//! The probe and its target: a probe is killed before each of its system calls in turn, and the
//! target must not have noticed. A debugger that does stop it shows that the target would notice.

use std::process::{Command, Stdio};

use nix::sys::ptrace;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::condition::Condition;
use crate::{Running, seat, started};

/// A probe makes about a hundred system calls; one that makes this many is running wild.
const MOST: usize = 2000;

/// Kills a probe at each step, and says what the target counted.
pub(crate) fn run() -> Value {
    let condition = serde_json::to_string(&Condition::default()).unwrap();
    let mut target = started(Command::new("/init").args(["target", &condition]));
    let pid = target.child.id();
    let (mut steps, mut after_seize) = (0, 0);
    while steps < MOST {
        let reached = probe_to(pid, steps);
        after_seize += usize::from(reached == Reached::Holding);
        if reached == Reached::End {
            break;
        }
        steps += 1;
    }
    let whole = Command::new(seat::AGENT)
        .args(["capreport", "--json", &pid.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .unwrap();
    let probed = stops(&mut target);
    let tracer = field(pid, "TracerPid:");
    let debugger = Command::new("/init").args(["attach", &pid.to_string()]).status().unwrap();
    json!({
        "harm": {
            "steps": steps, "killedWhileHolding": after_seize, "capreport": whole.code(), "stopsByProbes": probed,
            "tracerLeft": tracer, "state": field(pid, "State:"), "debugger": debugger.code(),
            "stopsByDebugger": stops(&mut target) - probed,
        }
    })
}

fn stops(target: &mut Running) -> u64 {
    target.ask().parse().unwrap()
}

fn field(pid: u32, name: &str) -> String {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    status.lines().find_map(|l| l.strip_prefix(name)).unwrap().trim().to_owned()
}

#[derive(PartialEq, Eq)]
enum Reached {
    /// Killed before it held the target.
    Before,
    /// Killed while it held the target.
    Holding,
    /// It ended first.
    End,
}

/// Runs a probe to its system call number `steps` and kills it there.
#[expect(clippy::zombie_processes, reason = "its tracer waits for it by pid, and sees its stops so")]
fn probe_to(target: u32, steps: usize) -> Reached {
    let child = Command::new("/init").args(["traced-probe", &target.to_string()]).spawn().unwrap();
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap());
    let next = |status| matches!(status, WaitStatus::Stopped(..) | WaitStatus::PtraceSyscall(_));
    // The exec stops it first.
    assert!(next(waitpid(pid, None).unwrap()));
    // Each call stops it twice, going in and coming out.
    for _ in 0..=steps {
        ptrace::syscall(pid, None).unwrap();
        if !next(waitpid(pid, Some(WaitPidFlag::__WALL)).unwrap()) {
            return Reached::End;
        }
    }
    let holding = field(target, "TracerPid:") == child.id().to_string();
    kill(pid, Signal::SIGKILL).unwrap();
    waitpid(pid, Some(WaitPidFlag::__WALL)).unwrap();
    if holding { Reached::Holding } else { Reached::Before }
}

/// The verb: becomes the agent's probe, traced by whoever started it.
pub(crate) fn traced_probe(target: &str) -> u8 {
    use std::os::unix::process::CommandExt as _;
    ptrace::traceme().unwrap();
    let error = Command::new(seat::AGENT).args(["probe-seize", target]).exec();
    panic!("{}: {error}", seat::AGENT)
}
