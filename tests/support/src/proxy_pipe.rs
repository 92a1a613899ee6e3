//! One connection of the proxy: reads the head of the one request that it carries, decides, and
//! then carries bytes both ways as the faults allow.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustls::{ClientConnection, Connection, ServerConnection};

use crate::proxy::{Faults, Kind, LOOK, Refusal, Shared, Sink, Way};
use crate::proxy_lane::Lane;

/// How a connection ends.
pub(crate) enum End {
    /// As its two ends wanted.
    Closed,
    /// By a reset, which both ends see.
    Reset,
}

impl From<io::Error> for End {
    fn from(_: io::Error) -> Self {
        Self::Reset
    }
}

/// One end: a socket and the TLS on it.
pub(crate) struct Side {
    pub(crate) socket: TcpStream,
    pub(crate) tls: Connection,
}

impl Side {
    pub(crate) fn new(socket: TcpStream, tls: Connection) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        socket.set_nodelay(true)?;
        Ok(Self { socket, tls })
    }

    /// What has come; `None` when nothing more will.
    pub(crate) fn take(&mut self) -> Result<Option<Vec<u8>>, End> {
        let mut ended = false;
        match self.tls.read_tls(&mut self.socket) {
            Ok(0) => ended = true,
            Ok(_) => {}
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
            Err(e) => return Err(e.into()),
        }
        self.tls.process_new_packets().map_err(|_| End::Reset)?;
        let mut bytes = Vec::new();
        match self.tls.reader().read_to_end(&mut bytes) {
            Ok(_) => ended = true,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
            // No goodbye of TLS: the other end is gone all the same.
            Err(_) => ended = true,
        }
        Ok(if ended && bytes.is_empty() { None } else { Some(bytes) })
    }

    pub(crate) fn give(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.tls.writer().write_all(bytes)?;
        self.flush()
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut self.socket) {
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    pub(crate) fn flags(&self, room: bool) -> PollFlags {
        let mut flags = PollFlags::empty();
        flags.set(PollFlags::IN, room || self.tls.is_handshaking());
        flags.set(PollFlags::OUT, self.tls.wants_write());
        flags
    }

    /// Says goodbye and waits a moment for it to leave.
    pub(crate) fn close(&mut self) {
        self.tls.send_close_notify();
        let end = Instant::now() + Duration::from_secs(2);
        while self.flush().is_ok() && self.tls.wants_write() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = self.socket.shutdown(std::net::Shutdown::Write);
    }

    /// A close of this socket is a reset from now on.
    fn abort(&self) {
        let _ = rustix::net::sockopt::set_socket_linger(&self.socket, Some(Duration::ZERO));
    }
}

/// Carries a connection to its end.
pub(crate) fn carry(shared: &Shared, stream: TcpStream, generation: u64) {
    let Ok(tls) = ServerConnection::new(shared.downstream.clone()) else { return };
    let Ok(client) = Side::new(stream, Connection::Server(tls)) else { return };
    let mut pipe = Pipe {
        shared,
        generation,
        client,
        server: None,
        kind: Kind::Other,
        up: Lane::new(),
        down: Lane::new(),
        heard: Instant::now(),
    };
    let end = pipe.run();
    match (end, &mut pipe.server) {
        (Err(End::Reset) | Ok(End::Reset), server) => {
            pipe.client.abort();
            if let Some(server) = server {
                server.abort();
            }
        }
        (_, server) => {
            pipe.client.close();
            if let Some(server) = server {
                server.close();
            }
        }
    }
}

struct Pipe<'s> {
    shared: &'s Shared,
    generation: u64,
    client: Side,
    /// Connected once it is known what is asked.
    server: Option<Side>,
    kind: Kind,
    up: Lane,
    down: Lane,
    /// When the last byte came, from either end.
    heard: Instant,
}

impl Pipe<'_> {
    fn run(&mut self) -> Result<End, End> {
        let mut head = Vec::new();
        let end = loop {
            let faults = self.faults()?;
            if faults.sink != Sink::Connections {
                match self.client.take()? {
                    Some(bytes) => head.extend(bytes),
                    None => return Ok(End::Closed),
                }
                self.client.flush()?;
            }
            if let Some(at) = head.windows(4).position(|w| w == b"\r\n\r\n") {
                break at + 4;
            }
            if head.len() > MOST_HEAD {
                return Ok(End::Reset);
            }
            self.wait(faults.sink != Sink::Connections, false, None);
        };
        let rest = head.split_off(end);
        let request = Request::parse(&head);
        self.kind = request.kind();
        self.heard = Instant::now();
        *self.shared.traffic.lock().unwrap().requests.entry(self.kind).or_default() += 1;
        let faults = self.faults()?;
        let refusal = match self.kind {
            Kind::Websocket => faults.websocket.as_ref(),
            Kind::Spdy => faults.spdy.as_ref(),
            _ => None,
        };
        if let Some(refusal) = refusal {
            self.client.give(&answer(refusal))?;
            return Ok(End::Closed);
        }
        self.up.push(self.heard, &request.forwarded(), faults.up);
        self.up.push(self.heard, &rest, faults.up);
        self.relay()
    }

    fn relay(&mut self) -> Result<End, End> {
        loop {
            let faults = self.faults()?;
            let silent =
                faults.sink == Sink::Connections || (faults.sink == Sink::Exec && self.kind.is_exec());
            if !silent && self.server.is_none() {
                self.server = Some(connect(self.shared)?);
            }
            let now = Instant::now();
            if faults.idle.is_some_and(|idle| now.duration_since(self.heard) > idle) {
                self.shared.traffic.lock().unwrap().cuts += 1;
                return Ok(End::Reset);
            }
            if self.up.has_room() {
                match self.client.take()? {
                    Some(bytes) => self.took(Way::Up, &bytes, now, &faults),
                    None => self.up.ended = true,
                }
            }
            if silent {
                if self.up.ended {
                    return Ok(End::Closed);
                }
                self.wait(self.up.has_room(), false, None);
                continue;
            }
            if self.down.has_room()
                && let Some(server) = &mut self.server
            {
                match server.take()? {
                    Some(bytes) => self.took(Way::Down, &bytes, now, &faults),
                    None => self.down.ended = true,
                }
            }
            self.deliver(Way::Up)?;
            self.deliver(Way::Down)?;
            if self.up.is_done() || self.down.is_done() {
                return Ok(End::Closed);
            }
            let due = [self.up.due(), self.down.due()].into_iter().flatten().min();
            self.wait(self.up.has_room(), self.down.has_room(), due);
        }
    }

    /// The faults of now. A connection of an older generation ends.
    fn faults(&self) -> Result<Faults, End> {
        if self.shared.generation.load(Ordering::Relaxed) != self.generation {
            return Err(End::Reset);
        }
        Ok(self.shared.faults.lock().unwrap().clone())
    }

    fn took(&mut self, way: Way, bytes: &[u8], now: Instant, faults: &Faults) {
        if bytes.is_empty() {
            return;
        }
        self.heard = now;
        match way {
            Way::Up => self.up.push(now, bytes, faults.up),
            Way::Down => self.down.push(now, bytes, faults.down),
        }
    }

    /// Passes on what is due, as long as the other end takes it.
    fn deliver(&mut self, way: Way) -> Result<(), End> {
        loop {
            let (lane, to) = match way {
                Way::Up => (&mut self.up, self.server.as_mut()),
                Way::Down => (&mut self.down, Some(&mut self.client)),
            };
            let Some(to) = to else { return Ok(()) };
            to.flush()?;
            let before = lane.moved;
            let Some(bytes) = (!to.tls.wants_write()).then(|| lane.pop(Instant::now())).flatten() else {
                return Ok(());
            };
            let cut = self.cut(way, before, bytes.len() as u64);
            let whole = cut.and_then(|n| usize::try_from(n).ok()).unwrap_or(bytes.len());
            let to = if way == Way::Up { self.server.as_mut() } else { Some(&mut self.client) };
            if let Some(to) = to {
                to.give(bytes.get(..whole).unwrap_or_default())?;
            }
            let mut traffic = self.shared.traffic.lock().unwrap();
            *(if way == Way::Up { &mut traffic.up } else { &mut traffic.down }) += whole as u64;
            if cut.is_some() {
                return Err(End::Reset);
            }
        }
    }

    /// How many bytes go on before a reset, where one of these is the last to go. A cut that another
    /// connection has used up is none.
    fn cut(&self, way: Way, before: u64, more: u64) -> Option<u64> {
        let mut faults = self.shared.faults.lock().unwrap();
        let cut = faults.cut.as_mut().filter(|cut| cut.way == way && cut.times > 0 && (cut.of)(self.kind))?;
        if before + more <= cut.after {
            return None;
        }
        cut.times -= 1;
        self.shared.traffic.lock().unwrap().cuts += 1;
        Some(cut.after.saturating_sub(before))
    }

    /// Until something can be done, or for a moment.
    fn wait(&self, client_room: bool, server_room: bool, due: Option<Instant>) {
        let soon = due.map_or(LOOK, |due| due.saturating_duration_since(Instant::now()).min(LOOK));
        let Ok(soon) = Timespec::try_from(soon) else { return };
        let mut fds = vec![PollFd::new(&self.client.socket, self.client.flags(client_room))];
        if let Some(server) = &self.server {
            fds.push(PollFd::new(&server.socket, server.flags(server_room)));
        }
        let _ = poll(&mut fds, Some(&soon));
    }
}

fn connect(shared: &Shared) -> Result<Side, End> {
    let socket = TcpStream::connect_timeout(&shared.server, Duration::from_secs(5))?;
    let tls =
        ClientConnection::new(shared.upstream.clone(), shared.server_name.clone()).map_err(|_| End::Reset)?;
    Ok(Side::new(socket, Connection::Client(tls))?)
}

fn answer(refusal: &Refusal) -> Vec<u8> {
    let Refusal { status, body } = refusal;
    format!(
        "HTTP/1.1 {status}\r\nServer: gateway\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

const MOST_HEAD: usize = 64 << 10;

/// The head of a request.
struct Request {
    lines: Vec<String>,
}

impl Request {
    fn parse(head: &[u8]) -> Self {
        let text = String::from_utf8_lossy(head);
        Self { lines: text.trim_end_matches("\r\n").split("\r\n").map(str::to_owned).collect() }
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.lines.iter().skip(1).find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then_some(value.trim())
        })
    }

    fn kind(&self) -> Kind {
        let first = self.lines.first().map(String::as_str).unwrap_or_default();
        let mut words = first.split(' ');
        let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let protocol = self.header("Upgrade").unwrap_or_default().to_ascii_lowercase();
        match (method, protocol.as_str()) {
            (_, "websocket") if path.ends_with("/exec") => Kind::Websocket,
            (_, upgrade) if path.ends_with("/exec") && upgrade.starts_with("spdy/") => Kind::Spdy,
            ("PUT", _) if path.ends_with("/ephemeralcontainers") && query.contains("dryRun=All") => {
                Kind::Rehearse
            }
            ("PUT", _) if path.ends_with("/ephemeralcontainers") => Kind::Store,
            ("PATCH", _) if path.ends_with("/resize") => Kind::Resize,
            ("GET", _) if query.split('&').any(|q| q == "watch=true" || q == "watch=1") => Kind::Watch,
            _ => Kind::Other,
        }
    }

    /// As it goes on: without a second request behind it, unless it becomes a stream.
    fn forwarded(&self) -> Vec<u8> {
        let upgrade = self.header("Upgrade").is_some();
        let is_connection =
            |l: &&String| l.split_once(':').is_some_and(|(key, _)| key.eq_ignore_ascii_case("connection"));
        let mut lines: Vec<&str> =
            self.lines.iter().filter(|l| upgrade || !is_connection(l)).map(String::as_str).collect();
        if !upgrade {
            lines.push("Connection: close");
        }
        (lines.join("\r\n") + "\r\n\r\n").into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(head: &str) -> Kind {
        Request::parse(head.as_bytes()).kind()
    }

    #[test]
    fn requests_are_told_apart_by_what_is_asked() {
        let exec = "/api/v1/namespaces/a/pods/b/exec?command=x&stdout=true HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\n";
        assert_eq!(kind(&format!("GET {exec}Upgrade: websocket\r\n\r\n")), Kind::Websocket);
        assert_eq!(kind(&format!("POST {exec}Upgrade: SPDY/3.1\r\n\r\n")), Kind::Spdy);
        let put = "PUT /api/v1/namespaces/a/pods/b/ephemeralcontainers";
        assert_eq!(kind(&format!("{put}?dryRun=All HTTP/1.1\r\n\r\n")), Kind::Rehearse);
        assert_eq!(kind(&format!("{put}?timeout=25s HTTP/1.1\r\n\r\n")), Kind::Store);
        assert_eq!(
            kind("GET /api/v1/namespaces/a/pods?fieldSelector=x&watch=true HTTP/1.1\r\n\r\n"),
            Kind::Watch
        );
        assert_eq!(
            kind("PATCH /api/v1/namespaces/a/pods/b/resize?timeout=25s HTTP/1.1\r\n\r\n"),
            Kind::Resize
        );
        assert_eq!(kind("GET /api/v1/namespaces/a/pods/exec HTTP/1.1\r\n\r\n"), Kind::Other);
    }

    #[test]
    fn only_an_upgrade_keeps_its_connection() {
        let plain =
            Request::parse(b"GET / HTTP/1.1\r\nConnection: keep-alive\r\nHost: x\r\n\r\n").forwarded();
        assert_eq!(
            String::from_utf8(plain).unwrap(),
            "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        );
        let upgrade = b"GET / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
        assert_eq!(Request::parse(upgrade).forwarded(), upgrade);
    }
}
