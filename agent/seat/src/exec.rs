//! The one home for starting programs.
//!
//! A child inherits the blocked signal mask of the agent, and safe Rust can't reset it in the
//! child, so every program is started through the hidden verb `exec` of this very binary, which
//! clears the mask, takes a process session of its own and becomes the program. That also lets a
//! deadline end the program together with everything it started.

use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal, killpg};
use nix::unistd::Pid;
use podbench_contract::exit;
use rustix::event::{PollFd, PollFlags, poll};

/// The longest output that is kept of one stream, in bytes; the rest is read and dropped.
const LONGEST: usize = 256 * 1024;

/// What to start.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    argv: Vec<String>,
    env: Vec<(String, String)>,
    how: How,
}

#[derive(Clone, Copy, Debug)]
enum How {
    /// Somebody else's program, through the verb `exec`.
    Foreign,
    /// A hidden verb of this binary.
    Verb,
}

impl Program {
    /// A program by its argv.
    pub(crate) fn new<const N: usize>(argv: [&str; N]) -> Self {
        Self::from_argv(argv.map(str::to_owned).to_vec())
    }

    /// A program by an argv made elsewhere.
    pub(crate) const fn from_argv(argv: Vec<String>) -> Self {
        Self { argv, env: Vec::new(), how: How::Foreign }
    }

    /// A hidden verb of this binary, started by the agent: with a clear signal mask like any other.
    pub(crate) fn itself<const N: usize>(argv: [&str; N]) -> Self {
        Self::from_argv(std::iter::once(own_path()).chain(argv.map(str::to_owned)).collect())
    }

    /// A hidden verb of this binary, started where no signal is blocked.
    pub(crate) fn verb(argv: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { argv: argv.into_iter().map(Into::into).collect(), env: Vec::new(), how: How::Verb }
    }

    /// The same with more variables.
    pub(crate) fn with_env(mut self, env: &[(String, String)]) -> Self {
        self.env.extend_from_slice(env);
        self
    }

    fn command(&self) -> Command {
        let mut command = new(&own_path());
        match self.how {
            How::Foreign => command.args(["exec", "--"]),
            How::Verb => &mut command,
        };
        command.args(&self.argv).envs(self.env.iter().map(|(k, v)| (k, v)));
        command
    }
}

#[expect(clippy::disallowed_methods, reason = "this module is where processes are started")]
fn new(program: &str) -> Command {
    Command::new(program)
}

/// This binary, wherever it lies; also after its file was replaced.
fn own_path() -> String {
    let link = std::fs::read_link("/proc/self/exe").ok().and_then(|p| p.into_os_string().into_string().ok());
    link.filter(|path| !path.ends_with(" (deleted)")).unwrap_or_else(|| "/proc/self/exe".to_owned())
}

/// What a program left behind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Output {
    /// Its exit code, where it exited.
    pub(crate) code: Option<i32>,
    /// The signal that ended it.
    pub(crate) signal: Option<i32>,
    /// Did the deadline end it?
    pub(crate) late: bool,
    /// Its stdout.
    pub(crate) stdout: String,
    /// Its stderr.
    pub(crate) stderr: String,
}

impl Output {
    /// Did it exit with 0?
    pub(crate) fn ok(&self) -> bool {
        self.code == Some(0)
    }

    /// Why it failed, one line: the last line it said, else how it ended.
    pub(crate) fn why(&self) -> String {
        let said = self.stderr.lines().rev().map(str::trim).find(|l| !l.is_empty());
        match (said, self.late, self.code, self.signal) {
            (_, true, ..) => "it didn't end in time".to_owned(),
            (Some(said), ..) => said.to_owned(),
            (None, _, Some(code), _) => format!("it ended with {code}"),
            (None, _, None, Some(signal)) => format!("it was killed by signal {signal}"),
            (None, ..) => "it didn't start".to_owned(),
        }
    }
}

/// Runs programs side by side with stdin closed and waits for all of them, at most `limit`. What
/// didn't start has the reason as its stderr.
pub(crate) fn run_all(programs: &[Program], limit: Duration) -> Vec<Output> {
    let deadline = Instant::now() + limit;
    let running: Vec<Result<Running, io::Error>> = programs.iter().map(Running::start).collect();
    running
        .into_iter()
        .map(|started| match started {
            Ok(running) => running.finish(deadline),
            Err(e) => Output { stderr: e.to_string(), ..Output::default() },
        })
        .collect()
}

/// Runs one program; see [`run_all`].
pub(crate) fn run(program: &Program, limit: Duration) -> Output {
    run_all(std::slice::from_ref(program), limit).pop().unwrap_or_default()
}

struct Running {
    child: Child,
}

impl Running {
    fn start(program: &Program) -> io::Result<Self> {
        let mut command = program.command();
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Ok(Self { child: command.spawn()? })
    }

    fn finish(mut self, deadline: Instant) -> Output {
        let mut out = Sink::new(self.child.stdout.take().map(OwnedFd::from));
        let mut err = Sink::new(self.child.stderr.take().map(OwnedFd::from));
        let mut late = false;
        while out.pipe.is_some() || err.pipe.is_some() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                late = true;
                break;
            }
            let mut fds: Vec<PollFd<'_>> = [&out, &err]
                .into_iter()
                .filter_map(|sink| Some(PollFd::from_borrowed_fd(sink.pipe.as_ref()?.as_fd(), PollFlags::IN)))
                .collect();
            match poll(&mut fds, Some(&timespec(left))) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(_) => break,
            }
            out.take();
            err.take();
        }
        let status = self.end(deadline, late);
        late |=
            status.is_none_or(|s| s.signal() == Some(Signal::SIGKILL as i32)) && Instant::now() >= deadline;
        Output {
            code: status.and_then(|s| s.code()),
            signal: status.and_then(|s| s.signal()),
            late,
            stdout: out.text(),
            stderr: err.text(),
        }
    }

    /// Waits for the end; past the deadline the program and its process session are killed.
    fn end(&mut self, deadline: Instant, late: bool) -> Option<ExitStatus> {
        while !late && Instant::now() < deadline {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) => std::thread::sleep(Duration::from_micros(300)),
                Err(_) => return None,
            }
        }
        if let Ok(pid) = i32::try_from(self.child.id()) {
            let _ = killpg(Pid::from_raw(pid), Signal::SIGKILL);
        }
        let _ = self.child.kill();
        self.child.wait().ok()
    }
}

/// Collects one stream without ever blocking on it.
struct Sink {
    pipe: Option<std::fs::File>,
    got: Vec<u8>,
}

impl Sink {
    fn new(pipe: Option<OwnedFd>) -> Self {
        let pipe = pipe.filter(|fd| rustix::io::ioctl_fionbio(fd, true).is_ok());
        Self { pipe: pipe.map(std::fs::File::from), got: Vec::new() }
    }

    fn take(&mut self) {
        let mut buffer = [0u8; 8192];
        while let Some(pipe) = &mut self.pipe {
            match pipe.read(&mut buffer) {
                Ok(0) => self.pipe = None,
                Ok(n) => {
                    let room = LONGEST.saturating_sub(self.got.len());
                    self.got.extend(buffer.iter().take(n.min(room)));
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => self.pipe = None,
            }
        }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.got).into_owned()
    }
}

/// The spelling of a duration that poll takes.
pub(crate) fn timespec(duration: Duration) -> rustix::event::Timespec {
    rustix::event::Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(duration.subsec_nanos()),
    }
}

/// Starts a program on three descriptors and answers its pid, which is its process group too. Who
/// starts one reaps it: the agent's reaper owns every wait.
pub(crate) fn spawn_on(program: &Program, fds: [OwnedFd; 3]) -> io::Result<u32> {
    let [stdin, stdout, stderr] = fds;
    let mut command = program.command();
    command.stdin(stdin).stdout(stdout).stderr(stderr);
    Ok(command.spawn()?.id())
}

/// Starts a program whose stdout is a pipe, and answers its reading end. Who starts one reaps it.
pub(crate) fn spawn_reading(program: &Program) -> io::Result<OwnedFd> {
    let mut command = program.command();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let pipe = command.spawn()?.stdout.take().ok_or_else(|| io::Error::other("no pipe"))?;
    Ok(pipe.into())
}

/// Starts a child of one's own to hold on to: it ends when its stdin closes.
pub(crate) fn spawn_child(program: &Program) -> io::Result<Child> {
    let mut command = program.command();
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    command.spawn()
}

/// Runs a program with our own streams, in our session: ctrl-C is its as well. Did it exit with 0?
///
/// # Errors
/// It didn't start.
pub(crate) fn run_here(argv: &[String]) -> io::Result<bool> {
    let (program, args) = argv.split_first().ok_or_else(|| io::Error::other("nothing to run"))?;
    Ok(new(program).args(args).status()?.success())
}

/// The hidden verb `exec`: clears the signal mask, takes a process session and becomes the program.
pub(crate) fn become_program(argv: &[String]) -> u8 {
    let _ = SigSet::empty().thread_set_mask();
    // Not when it leads its process group already: then it is a group of its own.
    let _ = nix::unistd::setsid();
    replace(argv, &[])
}

/// Becomes the program in place, with the same session, mask and descriptors.
pub(crate) fn replace(argv: &[String], env: &[(String, String)]) -> u8 {
    let Some((program, args)) = argv.split_first() else {
        crate::out::note("exec: nothing to run");
        return exit::USAGE;
    };
    let error = new(program).args(args).envs(env.iter().map(|(k, v)| (k, v))).exec();
    crate::out::note(&format!("{program}: {error}"));
    // As a shell answers: 127 not found, 126 found and not run.
    if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_failed_is_told_by_its_last_line_and_else_by_its_end() {
        let said = Output { code: Some(1), stderr: "one\ntwo\n\n".into(), ..Output::default() };
        assert_eq!(said.why(), "two");
        assert_eq!(Output { code: Some(3), ..Output::default() }.why(), "it ended with 3");
        assert_eq!(Output { signal: Some(31), ..Output::default() }.why(), "it was killed by signal 31");
        assert_eq!(Output { late: true, ..said }.why(), "it didn't end in time");
    }
}
