//! The agent's loop: signals, socket, sessions and the seat's end in one poll, and one reaper.
//!
//! There is a timeout only while something is pending, so an idle seat doesn't wake. Every child is
//! waited for here and nowhere else, ours or adopted.

use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use podbench_contract::exit;
use podbench_contract::measurement::RoundTrip;
use podbench_contract::session::file;
use rustix::event::{PollFd, PollFlags, poll};

use super::check::{self, Running};
use super::ensure::Seat;
use super::peer;
use super::protocol::{Reply, State};
use super::sessions::{Connection, Ending, Phase};
use super::stop::{Progress, Stop};
use crate::exec::timespec;
use crate::proc::Own;
use crate::runtime::Runtime;

/// More connections than this wait in the socket's queue.
const CONNECTIONS: usize = 256;
/// Between two looks at what is left.
const TICK: Duration = Duration::from_millis(50);

/// Blocks the signals that the loop reads from a descriptor. Before any child is started.
pub(crate) fn block_signals() -> nix::Result<SignalFd> {
    let mut set = SigSet::empty();
    for signal in [Signal::SIGCHLD, Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        set.add(signal);
    }
    set.thread_block()?;
    SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)
}

/// Listens on the runtime folder's socket: a path in a closed folder, never an abstract name, which
/// the whole network namespace could reach.
pub(crate) fn listen(runtime: &Runtime) -> io::Result<UnixListener> {
    let path = runtime.path(file::SOCKET);
    let _ = std::fs::remove_file(&path);
    let listener = UnixListener::bind(path)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// The agent once its steps are done.
pub(crate) struct Server {
    pub(super) seat: Seat,
    pub(super) state: State,
    own: Own,
    listener: Option<UnixListener>,
    signals: SignalFd,
    pub(super) connections: Vec<Connection>,
    pub(super) endings: Vec<Ending>,
    pub(super) check: Option<Running>,
    pub(super) stop: Option<Stop>,
    /// After a failed accept (no descriptor left) the socket rests, or the loop would spin.
    rest: Option<Instant>,
}

/// What the poll saw.
struct Ready {
    signals: bool,
    accept: bool,
    check: bool,
    connections: Vec<PollFlags>,
}

impl Server {
    /// Starts the seat's own connection beside the loop.
    pub(crate) fn new(seat: Seat, state: State, listener: Option<UnixListener>, signals: SignalFd) -> Self {
        let mut server = Self {
            seat,
            state,
            own: Own::read(),
            listener,
            signals,
            connections: Vec::new(),
            endings: Vec::new(),
            check: None,
            stop: None,
            rest: None,
        };
        let config = !server.state.sshd.config.is_empty();
        if let (Some(runtime), Some(login), true) = (&server.seat.runtime, &server.state.login.name, config) {
            match Running::start(runtime.dir(), login, &server.seat.overlay, Instant::now()) {
                Ok(check) => server.check = Some(check),
                Err(e) => server.finish_check(check::failed(&e.to_string())),
            }
        }
        server
    }

    /// Runs until the seat is told to end.
    pub(crate) fn run(mut self) -> u8 {
        loop {
            let ready = self.wait();
            // First, while the connections still stand as the poll saw them.
            self.serve(&ready.connections);
            if ready.signals {
                self.read_signals();
                self.reap();
            }
            if ready.check
                && let Some(trip) = self.check.as_mut().and_then(Running::read)
            {
                self.finish_check(trip);
            }
            if ready.accept {
                self.accept();
            }
            self.keep_time();
            if self.ended() {
                return exit::OK;
            }
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let connections = self.connections.iter().filter_map(Connection::deadline);
        let endings = self.endings.iter().map(Ending::deadline);
        let check = self.check.iter().map(Running::deadline);
        let tick = self.stop.iter().map(|_| Instant::now() + TICK);
        connections.chain(endings).chain(check).chain(tick).chain(self.rest).min()
    }

    fn wait(&self) -> Ready {
        let listening = self.rest.is_none() && self.connections.len() < CONNECTIONS;
        let listener = self.listener.as_ref().filter(|_| listening);
        let mut fds = vec![PollFd::from_borrowed_fd(self.signals.as_fd(), PollFlags::IN)];
        for connection in &self.connections {
            // Once it has asked, only its going away is of interest, which poll always tells.
            let events = match connection.phase {
                Phase::Asking { .. } => PollFlags::IN,
                Phase::AwaitingState | Phase::Session { .. } | Phase::AwaitingStop => PollFlags::empty(),
            };
            fds.push(PollFd::from_borrowed_fd(connection.stream.as_fd(), events));
        }
        fds.extend(listener.map(|l| PollFd::from_borrowed_fd(l.as_fd(), PollFlags::IN)));
        fds.extend(self.check.iter().map(|c| PollFd::from_borrowed_fd(c.as_fd(), PollFlags::IN)));
        let timeout = self.deadline().map(|at| timespec(at.saturating_duration_since(Instant::now())));
        // An interrupted or failed poll saw nothing.
        let polled = poll(&mut fds, timeout.as_ref()).is_ok();
        let mut seen = fds.iter().map(|fd| if polled { fd.revents() } else { PollFlags::empty() });
        Ready {
            signals: seen.next().is_some_and(|f| !f.is_empty()),
            connections: seen.by_ref().take(self.connections.len()).collect(),
            accept: listener.is_some() && seen.next().is_some_and(|f| !f.is_empty()),
            check: self.check.is_some() && seen.next().is_some_and(|f| !f.is_empty()),
        }
    }

    fn read_signals(&mut self) {
        while let Ok(Some(info)) = self.signals.read_signal() {
            let end = [Signal::SIGTERM, Signal::SIGINT]
                .iter()
                .any(|s| u32::try_from(*s as i32) == Ok(info.ssi_signo));
            if end {
                self.begin_stop(None);
            }
        }
    }

    /// The one place where children are waited for.
    fn reap(&mut self) {
        loop {
            let (pid, code) = match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(pid, code)) => (pid, u8::try_from(code & 0xff).unwrap_or(u8::MAX)),
                Ok(WaitStatus::Signaled(pid, signal, _)) => {
                    (pid, u8::try_from(128 + signal as i32).unwrap_or(u8::MAX))
                }
                Ok(WaitStatus::StillAlive) | Err(Errno::ECHILD) => return,
                Ok(_) | Err(Errno::EINTR) => continue,
                Err(_) => return,
            };
            let Ok(pid) = u32::try_from(pid.as_raw()) else { continue };
            self.endings.retain(|ending| ending.pid != pid);
            if let Some(at) = self.connections.iter().position(|c| c.sshd() == Some(pid)) {
                let mut connection = self.connections.swap_remove(at);
                let _ = connection.reply(&Reply::Exit(code));
            }
        }
    }

    fn accept(&mut self) {
        while self.connections.len() < CONNECTIONS {
            let Some(listener) = &self.listener else { return };
            match listener.accept() {
                Ok((stream, _)) => self.admit(stream),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => {
                    self.rest = Some(Instant::now() + TICK);
                    return;
                }
            }
        }
    }

    fn admit(&mut self, stream: UnixStream) {
        if stream.set_nonblocking(true).is_err() {
            return;
        }
        match peer::admit(&stream, self.own.mount_namespace) {
            Ok(peer) => {
                let mut connection = Connection::new(stream, peer, Instant::now());
                if connection.reply(&Reply::Hello).is_ok() {
                    self.connections.push(connection);
                }
            }
            Err(why) => {
                let _ = io::Write::write_all(&mut &stream, Reply::Refused(why).encode().as_bytes());
            }
        }
    }

    /// Serves every connection that the poll saw something of.
    fn serve(&mut self, seen: &[PollFlags]) {
        // From the back: a connection that is done is swapped with the last one, already served.
        for (at, flags) in seen.iter().enumerate().rev() {
            if flags.is_empty() || at >= self.connections.len() {
                continue;
            }
            let mut connection = self.connections.swap_remove(at);
            if self.step(&mut connection, *flags) {
                self.connections.push(connection);
                let last = self.connections.len() - 1;
                self.connections.swap(at, last);
            }
        }
    }

    /// Keeps the outcome, and answers those who waited for it.
    fn finish_check(&mut self, trip: RoundTrip) {
        self.check = None;
        self.state.sshd.round_trip = trip;
        let line = self.state_line();
        self.connections.retain_mut(|connection| match connection.phase {
            Phase::AwaitingState => {
                let _ = connection.answer(&line);
                false
            }
            Phase::Asking { .. } | Phase::Session { .. } | Phase::AwaitingStop => true,
        });
    }

    /// Does what a deadline asks for.
    fn keep_time(&mut self) {
        let now = Instant::now();
        self.rest = self.rest.filter(|at| *at > now);
        self.connections.retain(|c| c.deadline().is_none_or(|at| at > now));
        for ending in &mut self.endings {
            ending.act(now);
        }
        if self.check.as_ref().is_some_and(|c| c.deadline() <= now) {
            self.finish_check(check::late());
        }
    }

    /// Begins the seat's end. Nobody can connect any more.
    pub(super) fn begin_stop(&mut self, asked_by: Option<u32>) {
        self.listener = None;
        match &mut self.stop {
            Some(stop) => stop.leave(asked_by),
            None => self.stop = Some(Stop::begin(&self.own, asked_by, Instant::now())),
        }
    }

    /// Looks at what is left of the seat; true when the agent itself may end.
    fn ended(&mut self) -> bool {
        let Some(stop) = &mut self.stop else { return false };
        let waits = |c: &Connection| matches!(c.phase, Phase::AwaitingStop);
        match stop.look(&self.own, Instant::now()) {
            Progress::Going => false,
            Progress::Over { left } => {
                if let Some(runtime) = &self.seat.runtime {
                    // On the pod's shared memory it would outlive the seat.
                    runtime.remove();
                }
                for connection in self.connections.iter_mut().filter(|c| waits(c)) {
                    let _ = connection.reply(&Reply::Stopped { left });
                }
                false
            }
            Progress::Told { late } => late || !self.connections.iter().any(waits),
        }
    }
}
