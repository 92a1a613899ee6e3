//! What the kernel answers to ptrace and to a packet socket, each asked by one short-lived process of its own.
//!
//! A running tracee can't be let go by `PTRACE_DETACH`; the tracer's exit lets it go. So a probe
//! seizes, without interrupt, and ends at once: the target is never stopped, and a seccomp filter
//! that kills takes the probe and nobody else.

use std::io::{Read as _, Write as _};
use std::time::Duration;

use nix::sys::ptrace::{self, Options};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use podbench_contract::measurement::Probes;
use podbench_contract::reading::Attempt;

use crate::exec::{Output, Program, run_all, spawn_child};

/// The kernel's `PID_MAX_LIMIT`: a pid is always less.
const NOBODY: i32 = 4_194_304;
/// A probe takes a millisecond, and one that takes this long is stuck. On a node that has no time to
/// give a second was too little (seen on emulated kernels): what could be measured wasn't.
const LIMIT: Duration = Duration::from_secs(3);
/// A probe's exit code where it had no chance to ask. No errno is that high.
const UNASKED: u8 = 200;

/// Runs the probes side by side. `target`: the process to ask about, where there is one.
pub(crate) fn all(target: Option<u32>, probes: &mut Probes) {
    let seize = |pid: String| Program::verb(["probe-seize", &pid]);
    let mut programs =
        vec![seize(NOBODY.to_string()), Program::verb(["probe-child"]), Program::verb(["probe-packets"])];
    programs.extend(target.map(|pid| seize(pid.to_string())));
    let mut said = run_all(&programs, LIMIT).into_iter().map(|o| attempt(&o));
    let mut next = || said.next().unwrap_or_default();
    (probes.nobody, probes.child, probes.packets, probes.seize) = (next(), next(), next(), next());
}

fn attempt(said: &Output) -> Attempt {
    match (said.code, said.signal, said.late) {
        (Some(0), ..) => Attempt::Ok,
        (Some(code), ..) if code < i32::from(UNASKED) => {
            Attempt::Errno(podbench_contract::reading::Errno(code))
        }
        (_, Some(signal), false) => Attempt::Signal(signal),
        (..) => Attempt::NotTried,
    }
}

/// Takes what a killed probe left to us, so that it isn't left to the application.
pub(crate) fn reap() {
    while matches!(
        waitpid(None, Some(WaitPidFlag::WNOHANG)),
        Ok(WaitStatus::Exited(..) | WaitStatus::Signaled(..))
    ) {}
}

/// The hidden verb: seizes a process and ends, with the errno as its exit code.
pub(crate) fn seize(pid: i32) -> u8 {
    code(ptrace::seize(Pid::from_raw(pid), Options::empty()))
}

fn code(done: nix::Result<()>) -> u8 {
    match done {
        Ok(()) => 0,
        Err(e) => u8::try_from(e as i32).ok().filter(|c| *c < UNASKED).unwrap_or(UNASKED),
    }
}

/// The hidden verb: seizes a child of its own, a fresh process that nobody else holds.
pub(crate) fn child() -> u8 {
    let Ok(mut child) = spawn_child(&Program::verb(["probe-hold"])) else { return UNASKED };
    // It says when it runs: before that it is still this very program's copy.
    let mut ready = [0u8; 1];
    let runs = child.stdout.as_mut().is_some_and(|out| out.read_exact(&mut ready).is_ok());
    let answer = match i32::try_from(child.id()) {
        Ok(pid) if runs => code(ptrace::seize(Pid::from_raw(pid), Options::empty())),
        Ok(_) | Err(_) => UNASKED,
    };
    let _ = child.kill();
    let _ = child.wait();
    answer
}

/// The hidden verb: opens what a capture of traffic opens.
pub(crate) fn packets() -> u8 {
    code(socket(AddressFamily::Packet, SockType::Raw, SockFlag::empty(), None).map(drop))
}

/// The hidden verb: says that it runs, and waits to be killed or left.
pub(crate) fn hold() -> u8 {
    let mut stdout = std::io::stdout().lock();
    let said = stdout.write_all(b".").and_then(|()| stdout.flush());
    let _ = said.and_then(|()| std::io::stdin().lock().read(&mut [0u8; 1]));
    0
}

#[cfg(test)]
mod tests {
    use podbench_contract::reading::Errno;

    use super::*;

    #[test]
    fn an_exit_is_an_errno_a_death_is_a_signal_and_a_late_one_says_nothing() {
        let exit = |code| Output { code: Some(code), ..Output::default() };
        assert_eq!(attempt(&exit(0)), Attempt::Ok);
        assert_eq!(attempt(&exit(1)), Attempt::Errno(Errno::EPERM));
        assert_eq!(attempt(&exit(i32::from(UNASKED))), Attempt::NotTried);
        let killed = Output { signal: Some(31), ..Output::default() };
        assert_eq!(attempt(&killed), Attempt::Signal(31));
        assert_eq!(attempt(&Output { late: true, signal: Some(9), ..Output::default() }), Attempt::NotTried);
        assert_eq!(attempt(&Output::default()), Attempt::NotTried, "it didn't start");
    }

    #[test]
    fn a_pid_that_cannot_exist_is_nobodys() {
        assert_eq!(i32::from(seize(NOBODY)), nix::errno::Errno::ESRCH as i32);
    }
}
