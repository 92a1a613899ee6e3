//! One connection to the agent's socket, from its first byte to its end.
//!
//! Nothing here waits: the loop asks when a socket or a deadline is ready. A client that is slow,
//! silent or gone holds up nobody.

use std::io::{self, IoSliceMut, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use podbench_contract::session::Request;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, recvmsg};
use rustix::process::{Pid, Signal, kill_process_group};

use super::peer::Peer;
use super::protocol::Reply;

/// How long a client may take to say what it wants.
const ASKING: Duration = Duration::from_secs(2);
/// After its client is gone, an sshd has this long to see that its streams ended.
const NOTICE: Duration = Duration::from_millis(500);
/// And after SIGTERM this long before SIGKILL.
const GRACE: Duration = Duration::from_secs(3);

/// Where a connection stands.
#[derive(Debug)]
pub(crate) enum Phase {
    /// Its line is still coming.
    Asking {
        /// What came of it.
        line: Vec<u8>,
        /// Descriptors that came along.
        fds: Vec<OwnedFd>,
        /// When it is given up.
        until: Instant,
    },
    /// It wants the state, which isn't complete yet.
    AwaitingState,
    /// Its sshd runs.
    Session {
        /// sshd's pid and process group.
        pid: u32,
    },
    /// It asked for the end, or was told of it.
    AwaitingStop,
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Connection {
    /// The socket, non-blocking.
    pub(crate) stream: UnixStream,
    /// Who is there.
    pub(crate) peer: Peer,
    /// Where it stands.
    pub(crate) phase: Phase,
}

/// What came of reading.
#[derive(Debug)]
pub(crate) enum Heard {
    /// Not all of it yet.
    More,
    /// A request, with the descriptors that came along.
    Request(Request, Vec<OwnedFd>),
    /// Nothing that is understood.
    Nonsense,
    /// The peer is gone.
    Gone,
}

impl Connection {
    /// A connection that was just accepted and whose peer may ask.
    pub(crate) fn new(stream: UnixStream, peer: Peer, now: Instant) -> Self {
        Self { stream, peer, phase: Phase::Asking { line: Vec::new(), fds: Vec::new(), until: now + ASKING } }
    }

    /// Reads what is there of the request.
    pub(crate) fn hear(&mut self) -> Heard {
        let Phase::Asking { line, fds, .. } = &mut self.phase else { return Heard::More };
        let mut bytes = [0u8; 2048];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
        let got = match recvmsg(&self.stream, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags) {
            Ok(got) => got,
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => return Heard::More,
            Err(_) => return Heard::Gone,
        };
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(came) = message {
                fds.extend(came);
            }
        }
        if got.bytes == 0 {
            return Heard::Gone;
        }
        line.extend(bytes.iter().take(got.bytes));
        if fds.len() > 3 || got.flags.contains(ReturnFlags::CTRUNC) || line.len() > Request::LONGEST {
            return Heard::Nonsense;
        }
        if line.last() != Some(&b'\n') {
            return Heard::More;
        }
        match std::str::from_utf8(line).ok().and_then(Request::decode) {
            Some(request) => Heard::Request(request, std::mem::take(fds)),
            None => Heard::Nonsense,
        }
    }

    /// Answers; a client that doesn't take its answer loses it.
    pub(crate) fn answer(&mut self, text: &str) -> io::Result<()> {
        self.stream.write_all(text.as_bytes())
    }

    /// Answers a reply.
    pub(crate) fn reply(&mut self, reply: &Reply) -> io::Result<()> {
        self.answer(&reply.encode())
    }

    /// When it is given up, where that has a time.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        match self.phase {
            Phase::Asking { until, .. } => Some(until),
            Phase::AwaitingState | Phase::Session { .. } | Phase::AwaitingStop => None,
        }
    }

    /// The sshd that runs for it.
    pub(crate) fn sshd(&self) -> Option<u32> {
        match self.phase {
            Phase::Session { pid } => Some(pid),
            Phase::Asking { .. } | Phase::AwaitingState | Phase::AwaitingStop => None,
        }
    }
}

/// An sshd whose client is gone: told to end, then made to.
#[derive(Debug)]
pub(crate) struct Ending {
    /// sshd's pid and process group.
    pub(crate) pid: u32,
    next: Instant,
    signal: Signal,
}

impl Ending {
    /// Starts the clock.
    pub(crate) fn new(pid: u32, now: Instant) -> Self {
        Self { pid, next: now + NOTICE, signal: Signal::TERM }
    }

    /// When there is something to do.
    pub(crate) const fn deadline(&self) -> Instant {
        self.next
    }

    /// Does what is due. The pid is still sshd's: it hasn't been reaped.
    pub(crate) fn act(&mut self, now: Instant) {
        if now < self.next {
            return;
        }
        if let Some(group) = i32::try_from(self.pid).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(group, self.signal);
        }
        self.next = now + GRACE;
        self.signal = Signal::KILL;
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;

    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

    use super::*;

    fn pair() -> (Connection, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        (Connection::new(ours, Peer { pid: 7 }, Instant::now()), theirs)
    }

    fn send(to: &UnixStream, text: &[u8], fds: usize) {
        let file = std::fs::File::open("/dev/null").unwrap();
        let fds = vec![file.as_fd(); fds];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() {
            assert!(control.push(SendAncillaryMessage::ScmRights(&fds)));
        }
        sendmsg(to, &[io::IoSlice::new(text)], &mut control, SendFlags::empty()).unwrap();
    }

    #[test]
    fn a_request_in_pieces_is_one_request_with_its_descriptors() {
        let (mut connection, client) = pair();
        assert!(matches!(connection.hear(), Heard::More), "nothing came yet and nothing waits");
        send(&client, b"sess", 3);
        assert!(matches!(connection.hear(), Heard::More));
        send(&client, b"ion\n", 0);
        match connection.hear() {
            Heard::Request(Request::Session, fds) => assert_eq!(fds.len(), 3),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn more_descriptors_than_a_session_has_are_refused() {
        let (mut connection, client) = pair();
        send(&client, b"session\n", 8);
        assert!(matches!(connection.hear(), Heard::Nonsense));
        let (mut connection, client) = pair();
        send(&client, b"s", 3);
        assert!(matches!(connection.hear(), Heard::More));
        send(&client, b"ession\n", 1);
        assert!(matches!(connection.hear(), Heard::Nonsense));
    }

    #[test]
    fn a_line_without_an_end_is_cut_off() {
        let (mut connection, mut client) = pair();
        let mut heard = Heard::More;
        for _ in 0..20 {
            client.write_all(&[b'x'; 1000]).unwrap();
            heard = connection.hear();
            if !matches!(heard, Heard::More) {
                break;
            }
        }
        assert!(matches!(heard, Heard::Nonsense), "{heard:?}");
    }

    #[test]
    fn a_peer_that_left_is_gone() {
        let (mut connection, client) = pair();
        drop(client);
        assert!(matches!(connection.hear(), Heard::Gone));
        assert!(connection.reply(&Reply::Taken).is_err(), "nothing is started for a client that gave up");
    }

    #[test]
    fn a_client_that_gave_up_is_not_told_that_it_was_taken() {
        let (mut connection, client) = pair();
        client.shutdown(std::net::Shutdown::Both).unwrap();
        assert!(connection.reply(&Reply::Taken).is_err());
    }
}
