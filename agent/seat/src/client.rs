//! How the verbs talk to the agent: one connection, one line, one answer.

use std::io::{self, BufRead as _, BufReader, IoSlice, Read as _};
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use podbench_contract::exit;
use podbench_contract::session::{Request, file};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

use crate::agent::protocol::Reply;
use crate::agent::stop;
use crate::out;
use crate::runtime::Runtime;

/// Between two tries to find the agent's socket.
const RETRY: Duration = Duration::from_millis(2);
/// How long an agent that is there already has to say so.
const GREETING: Duration = Duration::from_millis(200);
/// The longest answer that is read: a state has a few kilobytes.
const LONGEST: u64 = 256 * 1024;
/// How long `stop` waits: past the agent's own patience with what it ends.
const STOP_LIMIT: Duration = Duration::from_secs(15);

/// A connection to this seat's agent.
pub(crate) struct Client {
    stream: BufReader<UnixStream>,
}

impl Client {
    /// Connects, and waits until the agent greets: at most `limit` in all. While the seat is starting
    /// there is no socket yet, and then its start-up steps are still running.
    ///
    /// Nothing is sent before the greeting. Descriptors in the queue of an agent that hangs would keep
    /// their streams open for as long as it does.
    pub(crate) fn connect(limit: Duration) -> io::Result<Self> {
        let deadline = Instant::now() + limit;
        let stream = find(deadline)?;
        // A read timeout of nothing is an error.
        Self::greeted(stream, deadline.saturating_duration_since(Instant::now()).max(RETRY))
    }

    /// Does an agent of this seat answer already?
    pub(crate) fn answers() -> bool {
        find(Instant::now()).and_then(|stream| Self::greeted(stream, GREETING)).is_ok()
    }

    fn greeted(stream: UnixStream, limit: Duration) -> io::Result<Self> {
        let mut client = Self { stream: BufReader::new(stream) };
        match client.reply(Some(limit))? {
            Reply::Hello => Ok(client),
            Reply::Refused(why) => Err(io::Error::new(io::ErrorKind::PermissionDenied, why)),
            Reply::Taken | Reply::Exit(_) | Reply::Done | Reply::Stopped { .. } => {
                Err(io::Error::other("the agent doesn't greet"))
            }
        }
    }

    /// Sends a request, with descriptors where it takes some.
    pub(crate) fn send(&self, request: &Request, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
        let line = request.encode();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
            return Err(io::Error::other("no room for the descriptors"));
        }
        let bytes = line.as_bytes();
        let sent = sendmsg(self.stream.get_ref(), &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL)?;
        if sent == bytes.len() { Ok(()) } else { Err(io::Error::other("the request was cut")) }
    }

    /// Waits for the next line of the answer, at most `limit`; `None` waits for ever.
    pub(crate) fn line(&mut self, limit: Option<Duration>) -> io::Result<String> {
        self.stream.get_ref().set_read_timeout(limit)?;
        let mut line = String::new();
        let got = (&mut self.stream).take(LONGEST).read_line(&mut line).map_err(|e| match e.kind() {
            io::ErrorKind::WouldBlock => io::Error::new(io::ErrorKind::TimedOut, "no answer in time"),
            _ => e,
        })?;
        if got == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the agent hung up"));
        }
        if !line.ends_with('\n') {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the agent's answer was cut"));
        }
        Ok(line)
    }

    /// Waits for a reply that isn't a state.
    pub(crate) fn reply(&mut self, limit: Option<Duration>) -> io::Result<Reply> {
        let line = self.line(limit)?;
        Reply::decode(&line).ok_or_else(|| io::Error::other("the agent's answer isn't one"))
    }

    /// Says that nothing is waited for any more. An answer that was on its way is still there to read.
    pub(crate) fn give_up(&self) {
        let _ = self.stream.get_ref().shutdown(std::net::Shutdown::Both);
    }
}

fn find(deadline: Instant) -> io::Result<UnixStream> {
    loop {
        let mut last = io::Error::new(io::ErrorKind::NotFound, "there is no runtime folder of this seat");
        for runtime in Runtime::existing() {
            match UnixStream::connect(runtime.path(file::SOCKET)) {
                Ok(stream) => return Ok(stream),
                Err(e) => last = e,
            }
        }
        if Instant::now() >= deadline {
            return Err(last);
        }
        std::thread::sleep(RETRY);
    }
}

/// `podbench stop`.
pub(crate) fn stop() -> u8 {
    let answer = Client::connect(Duration::from_secs(1)).and_then(|mut client| {
        client.send(&Request::Stop, &[])?;
        client.reply(Some(STOP_LIMIT))
    });
    match answer {
        Ok(Reply::Stopped { left: 0 }) => exit::OK,
        Ok(Reply::Stopped { left }) => {
            out::note(&format!("{left} processes of this seat didn't end"));
            exit::FAILED
        }
        Ok(Reply::Refused(why)) => {
            out::note(&format!("the agent refused: {why}"));
            exit::USAGE
        }
        Ok(Reply::Hello | Reply::Taken | Reply::Done | Reply::Exit(_)) => {
            out::note("the agent answered something else");
            exit::FAILED
        }
        // It took the connection, so it is there, and it hangs or somebody stopped it.
        Err(e) if e.kind() == io::ErrorKind::TimedOut => {
            out::note(&format!(
                "the agent doesn't answer ({e}), so it is killed with all that is the seat's"
            ));
            match stop::without_agent() {
                0 => exit::OK,
                left => {
                    out::note(&format!("{left} processes of this seat didn't end"));
                    exit::FAILED
                }
            }
        }
        Err(e) => {
            out::note(&format!("no agent answers: {e}"));
            exit::FAILED
        }
    }
}
