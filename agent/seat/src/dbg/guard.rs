//! What stays behind a debugger, so that nothing of it stays in the target.
//!
//! A gdb that is told to end takes its breakpoints out and lets go. One that is killed does not: what it
//! wrote into the text stays, and so do the debug registers, and either kills the target at the next pass.
//! And one whose user is gone isn't told by anybody, unless it has a terminal: it reads nothing while the
//! target runs, and a target in a breakpoint stands still for ever.
//!
//! The guard tells it, once nobody can hear it any more; and when gdb ends, however that comes, it puts
//! things right within milliseconds. It knows of that end by a socket whose other end gdb holds and never
//! uses.

use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use rustix::event::{PollFd, PollFlags, poll};

use super::breakpoints;
use crate::exec::{Program, spawn_on, timespec};
use crate::{out, proc};

/// How long the kernel may take to end a debugger and let go what it traced.
const LET_GO: Duration = Duration::from_secs(5);
/// How long a thread may take to stand still.
const STILL: Duration = Duration::from_millis(500);
/// How long a gdb that was told to end may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Starts one for these processes. What is answered is for gdb to hold: the guard acts when the last copy
/// of it is closed.
///
/// # Errors
/// It didn't start, or couldn't read what is in the target.
pub(crate) fn start(pids: &[u32]) -> io::Result<OwnedFd> {
    let words = std::iter::once("guard".to_owned()).chain(pids.iter().map(ToString::to_string));
    let (mut ours, theirs) = UnixStream::pair()?;
    let stdout = io::stdout().as_fd().try_clone_to_owned()?;
    let stderr = io::stderr().as_fd().try_clone_to_owned()?;
    spawn_on(&Program::verb(words), [theirs.into(), stdout, stderr])?;
    ours.read_exact(&mut [0u8; 1])?;
    let held = OwnedFd::from(ours);
    // gdb is to inherit it.
    rustix::io::fcntl_setfd(&held, rustix::io::FdFlags::empty())?;
    Ok(held)
}

/// The hidden verb: stdin is the socket, stdout what gdb speaks on.
pub(crate) fn run(pids: &[u32]) -> u8 {
    // Out of reach of what ends gdb: a terminal that closes, ctrl-C, a session that is ended.
    let _ = nix::unistd::setsid();
    let _ = SigSet::all().thread_block();
    // Who started this becomes the debugger.
    let debugger = nix::unistd::getppid();
    let before: Vec<Before> = pids.iter().map(|pid| Before::of(*pid)).collect();
    if rustix::io::write(io::stdin(), b".").is_err() {
        return podbench_contract::exit::FAILED;
    }
    outlive(debugger);
    before.iter().for_each(Before::restore);
    podbench_contract::exit::OK
}

/// Waits for the debugger's end, and asks for it when nobody hears the debugger any more.
fn outlive(debugger: Pid) {
    let (stdin, stdout) = (io::stdin(), io::stdout());
    let mut asked: Option<Instant> = None;
    loop {
        let mut fds = vec![PollFd::new(&stdin, PollFlags::IN)];
        let wait = match asked {
            // Nothing is asked of it: errors are told all the same.
            None => {
                fds.push(PollFd::new(&stdout, PollFlags::empty()));
                None
            }
            Some(since) => Some(timespec(PATIENCE.saturating_sub(since.elapsed()))),
        };
        match poll(&mut fds, wait.as_ref()) {
            Ok(0) => {
                let _ = kill(debugger, Signal::SIGKILL);
                return;
            }
            Err(rustix::io::Errno::INTR) => continue,
            Err(_) => return,
            Ok(_) => {}
        }
        if fds.first().is_some_and(|fd| !fd.revents().is_empty()) {
            return;
        }
        if asked.is_none() {
            let _ = kill(debugger, Signal::SIGTERM);
            asked = Some(Instant::now());
        }
    }
}

/// A process as it was before the debugger.
struct Before {
    pid: u32,
    /// Its start: a pid may be somebody else's later.
    began: Option<u64>,
    stopped: bool,
    traps: breakpoints::Traps,
}

impl Before {
    fn of(pid: u32) -> Self {
        Self {
            pid,
            began: proc::began(pid),
            stopped: state(pid) == Some('T'),
            // What is there already is somebody else's, a tracer of the kernel's for one.
            traps: breakpoints::find(pid).unwrap_or_default(),
        }
    }

    fn restore(&self) {
        // The kernel closes the files of a process that ends before it lets its tracees go.
        let end = Instant::now() + LET_GO;
        while is_ending(tracer(self.pid)) && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(1));
        }
        // Ended meanwhile; or the next debugger has it, and has a guard of its own.
        if self.began.is_none() || proc::began(self.pid) != self.began || tracer(self.pid) != 0 {
            return;
        }
        let left = breakpoints::find(self.pid).map(|mut traps| {
            traps.retain(|at, _| !self.traps.contains_key(at));
            traps
        });
        match left.and_then(|left| breakpoints::put_back(self.pid, &left)) {
            Ok(0) => {}
            Ok(count) => {
                out::note(&format!("the debugger left {count} breakpoints in {}: taken out", self.pid));
            }
            Err(e) => out::note(&format!("what a debugger left in {} isn't known: {e}", self.pid)),
        }
        for thread in proc::threads(self.pid) {
            clear_debug_registers(thread);
        }
        if !self.stopped
            && state(self.pid) == Some('T')
            && let Ok(pid) = i32::try_from(self.pid)
        {
            let _ = kill(Pid::from_raw(pid), Signal::SIGCONT);
        }
    }
}

fn state(pid: u32) -> Option<char> {
    proc::status(pid)?.state
}

/// Who traces it; 0: nobody.
fn tracer(pid: u32) -> u32 {
    proc::status(pid).and_then(|s| s.tracer).unwrap_or_default()
}

/// A process that ends has let go of its program before anything else.
fn is_ending(pid: u32) -> bool {
    let program = std::fs::read_link(format!("/proc/{pid}/exe"));
    pid != 0 && program.is_err_and(|e| e.kind() == io::ErrorKind::NotFound)
}

/// A hardware breakpoint outlives its debugger as well. A thread that holds none stands still for
/// microseconds.
fn clear_debug_registers(thread: u32) {
    let Ok(thread) = i32::try_from(thread).map(Pid::from_raw) else { return };
    if ptrace::seize(thread, Options::empty()).is_err() {
        return;
    }
    if ptrace::interrupt(thread).is_ok() && stands_still(thread) {
        registers::clear(thread);
        let _ = ptrace::detach(thread, None);
    }
    // Else the end of this process lets it go.
}

fn stands_still(thread: Pid) -> bool {
    let end = Instant::now() + STILL;
    while Instant::now() < end {
        match waitpid(thread, Some(WaitPidFlag::WNOHANG | WaitPidFlag::__WALL)) {
            Ok(WaitStatus::StillAlive) => std::thread::sleep(Duration::from_micros(200)),
            Ok(WaitStatus::Exited(..) | WaitStatus::Signaled(..)) | Err(_) => return false,
            Ok(_) => return true,
        }
    }
    false
}

#[cfg(target_arch = "x86_64")]
mod registers {
    use nix::sys::ptrace;
    use nix::unistd::Pid;

    /// `offsetof(struct user, u_debugreg[7])`: the register that arms the others.
    const CONTROL: usize = 848 + 7 * 8;

    pub(super) fn clear(thread: Pid) {
        let control = std::ptr::without_provenance_mut(CONTROL);
        if ptrace::read_user(thread, control).is_ok_and(|armed| armed != 0) {
            let _ = ptrace::write_user(thread, control, 0);
        }
    }
}

/// Elsewhere they are a register set that no safe interface reaches.
#[cfg(not(target_arch = "x86_64"))]
mod registers {
    pub(super) const fn clear(_: nix::unistd::Pid) {}
}
