//! Processes: the launcher's home for them. `ssh::run` starts the user's ssh through it.
//!
//! A run's first call may keep the terminal, because a credential plugin may prompt there. Every
//! other call gets a process group of its own and no stdin, so that ending it ends its plugins
//! too: a plugin that holds the pipe would otherwise keep us waiting long after its parent is gone.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// What is started.
#[derive(Clone, Debug)]
pub struct Spawn {
    /// The arguments after the program's name.
    pub args: Vec<OsString>,
    /// Variables beyond the inherited ones.
    pub env: Vec<(&'static str, &'static str)>,
    /// What its stdin says; `None` is an empty one.
    pub stdin: Option<String>,
    /// Keep the terminal: stdin and the process group are ours.
    pub terminal: bool,
}

/// What a process has to say.
#[derive(Debug, PartialEq, Eq)]
pub enum Said {
    /// Bytes on stdout.
    Out(Vec<u8>),
    /// Bytes on stderr.
    Err(Vec<u8>),
    /// It ended: its exit code, or `None` for a signal. Nothing follows.
    End(Option<i32>),
    /// Nothing in the given time.
    Nothing,
    /// The user wants to stop.
    Interrupted,
}

/// A process that was started. Dropping it ends it, and everything that it started.
pub trait Process: Send {
    /// Waits until it says something, at most so long.
    fn next(&mut self, wait: Duration) -> Said;
    /// Ends it and its children.
    fn kill(&mut self);
}

/// Starts processes: for real, or from a script in a test.
pub trait Runner: Send + Sync {
    /// Starts one.
    ///
    /// # Errors
    /// When there is no such program, or it can't be started.
    fn start(&self, spawn: &Spawn) -> io::Result<Box<dyn Process>>;
}

/// Did the user press ctrl-C? Cheap to ask and to share.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Listens to SIGINT and SIGTERM. A second one ends podbench at once: files that others read
    /// are renamed into place, so nothing is half-written then either.
    ///
    /// # Errors
    /// When the handler can't be installed.
    pub fn listen() -> io::Result<Self> {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&flag))?;
            signal_hook::flag::register(signal, Arc::clone(&flag))?;
        }
        Ok(Self(flag))
    }

    /// Has it happened?
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Runs a real program.
#[derive(Clone, Debug)]
pub struct Real {
    /// The program.
    pub program: PathBuf,
    /// Variables beyond the inherited ones, for every call: another `KUBECONFIG`.
    pub env: Vec<(&'static str, OsString)>,
    /// Asked while waiting.
    pub interrupt: Interrupt,
}

impl Runner for Real {
    fn start(&self, spawn: &Spawn) -> io::Result<Box<dyn Process>> {
        let stdin = match (&spawn.stdin, spawn.terminal) {
            (Some(_), _) => Stdio::piped(),
            (None, true) => Stdio::inherit(),
            (None, false) => Stdio::null(),
        };
        let (process, stdin) = self.launch(spawn, stdin)?;
        if let (Some(text), Some(mut stdin)) = (spawn.stdin.clone(), stdin) {
            // A kubectl that refuses its arguments closes its stdin; its exit says so, not this.
            thread::spawn(move || drop(stdin.write_all(text.as_bytes())));
        }
        Ok(Box::new(process))
    }
}

impl Real {
    fn launch(&self, spawn: &Spawn, stdin: Stdio) -> io::Result<(RealProcess, Option<ChildStdin>)> {
        #[expect(clippy::disallowed_methods, reason = "the launcher's home for processes")]
        let mut command = Command::new(&self.program);
        command.args(&spawn.args).envs(self.env.iter().cloned()).envs(spawn.env.iter().copied());
        command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
        #[cfg(unix)]
        if !spawn.terminal {
            std::os::unix::process::CommandExt::process_group(&mut command, 0);
        }
        let mut child = command.spawn()?;
        let stdin = child.stdin.take();
        // Few and bounded: what a hostile seat sends is never held in memory, it waits in the pipe.
        let (tx, rx) = sync_channel(8);
        if let Some(out) = child.stdout.take() {
            pump(out, tx.clone(), Pumped::Out);
        }
        if let Some(err) = child.stderr.take() {
            pump(err, tx, Pumped::Err);
        }
        let process = RealProcess {
            child,
            own_group: !spawn.terminal,
            said: rx,
            held: VecDeque::new(),
            exited: None,
            interrupt: self.interrupt.clone(),
        };
        Ok((process, stdin))
    }
}

enum Pumped {
    Out(Vec<u8>),
    Err(Vec<u8>),
}

fn pump(mut from: impl Read + Send + 'static, to: SyncSender<Pumped>, wrap: fn(Vec<u8>) -> Pumped) {
    thread::spawn(move || {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            match from.read(&mut buffer) {
                Ok(0) => break,
                Ok(n) => {
                    if to.send(wrap(buffer.get(..n).unwrap_or_default().to_vec())).is_err() {
                        break;
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
    });
}

struct RealProcess {
    child: Child,
    own_group: bool,
    said: Receiver<Pumped>,
    held: VecDeque<Said>,
    exited: Option<(Option<i32>, Instant)>,
    interrupt: Interrupt,
}

/// How often a wait looks up to see whether the user wants to stop or the process is gone.
const LOOK: Duration = Duration::from_millis(40);
/// How long a pipe is listened to after its process ended: a plugin's daemon may hold it for ever.
const LINGER: Duration = Duration::from_millis(500);

impl Process for RealProcess {
    fn next(&mut self, wait: Duration) -> Said {
        if let Some(said) = self.held.pop_front() {
            return said;
        }
        let until = Instant::now() + wait;
        loop {
            if self.interrupt.is_set() {
                return Said::Interrupted;
            }
            let slice = until.saturating_duration_since(Instant::now()).min(LOOK);
            match self.said.recv_timeout(slice) {
                Ok(Pumped::Out(bytes)) => return Said::Out(bytes),
                Ok(Pumped::Err(bytes)) => return Said::Err(bytes),
                Err(RecvTimeoutError::Disconnected) => {
                    if let Some(code) = self.poll() {
                        return Said::End(code);
                    }
                    thread::sleep(Duration::from_millis(1));
                }
                Err(RecvTimeoutError::Timeout) => {
                    let lingering = self.exited.is_some_and(|(_, at)| at.elapsed() > LINGER);
                    if let (Some(code), true) = (self.poll(), lingering) {
                        return Said::End(code);
                    }
                }
            }
            if Instant::now() >= until {
                return Said::Nothing;
            }
        }
    }

    fn kill(&mut self) {
        if self.exited.is_some() || self.poll().is_some() {
            return;
        }
        #[cfg(unix)]
        if self.own_group
            && let Some(group) = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw)
        {
            // The child leads its group and isn't reaped yet, so the number is still its own.
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        let _ = self.child.kill();
        for _ in 0..100 {
            if self.poll().is_some() {
                return;
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
}

impl RealProcess {
    fn poll(&mut self) -> Option<Option<i32>> {
        if self.exited.is_none()
            && let Ok(Some(status)) = self.child.try_wait()
        {
            self.exited = Some((status.code(), Instant::now()));
        }
        self.exited.map(|(code, _)| code)
    }
}

impl Drop for RealProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
