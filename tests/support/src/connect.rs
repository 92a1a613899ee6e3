//! A forward proxy as companies have them: it answers CONNECT, spoken to plainly or over TLS.
//!
//! Wherever a client asks to be connected to, it is connected to the one server: a name that nothing
//! resolves then leads there by this proxy alone, so that a connection proves that it was used. It
//! matters, because Go never asks a proxy for a loopback address.
//!
//! Loopback only, for as many connections as a test makes.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustls::{Connection, ServerConfig, ServerConnection};
use serde_json::Value;

use crate::proxy::{LOOK, downstream};
use crate::proxy_pipe::Side;

/// More than any test makes.
const MOST_CONNECTIONS: usize = 400;

/// The proxy.
pub struct Forward {
    /// What `HTTPS_PROXY` or `proxy-url` say.
    pub url: String,
    /// The certificate that it shows, PEM; nothing where it is spoken to plainly.
    certificate: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Forward {
    /// One that is spoken to plainly.
    ///
    /// # Panics
    /// When no port can be had.
    #[must_use]
    pub fn http(server: SocketAddr) -> Self {
        let (asked, listener) = (Arc::default(), listener());
        let url = format!("http://{}", listener.local_addr().unwrap());
        let noted = Arc::clone(&asked);
        each(listener, move |client| carry(client, server, &noted));
        Self { url, certificate: String::new(), asked }
    }

    /// One that is spoken to over TLS.
    ///
    /// # Panics
    /// When no port can be had.
    #[must_use]
    pub fn https(server: SocketAddr) -> Self {
        let plain = Self::http(server);
        let behind: SocketAddr = plain.url.trim_start_matches("http://").parse().unwrap();
        let own = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
        let tls = Arc::new(downstream(&own));
        let listener = listener();
        let url = format!("https://{}", listener.local_addr().unwrap());
        each(listener, move |client| unwrap(client, &tls, behind));
        Self { url, certificate: own.cert.pem(), ..plain }
    }

    /// Adds its certificate to a kubeconfig's: kubectl believes a proxy by the cluster's authorities.
    ///
    /// # Panics
    /// When the kubeconfig has no `certificate-authority-data`.
    pub fn trusted_by(&self, config: &mut Value) {
        let known = &mut config["clusters"][0]["cluster"]["certificate-authority-data"];
        let before = STANDARD.decode(known.as_str().expect("certificate-authority-data")).expect("base64");
        *known = STANDARD.encode([&before, self.certificate.as_bytes()].concat()).into();
    }

    /// `HOST:PORT` of each connection so far, as the client asked for it.
    ///
    /// # Panics
    /// When a thread of the proxy has panicked.
    #[must_use]
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

fn listener() -> TcpListener {
    TcpListener::bind(("127.0.0.1", 0)).expect("a free port")
}

/// Does this for each connection, in a thread of its own.
fn each<F: Fn(TcpStream) -> Option<()> + Send + Sync + 'static>(listener: TcpListener, what: F) {
    let what = Arc::new(what);
    std::thread::spawn(move || {
        for client in listener.incoming().flatten().take(MOST_CONNECTIONS) {
            let what = Arc::clone(&what);
            std::thread::spawn(move || what(client));
        }
    });
}

fn carry(mut client: TcpStream, server: SocketAddr, asked: &Mutex<Vec<String>>) -> Option<()> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && head.len() < 4096 && client.read(&mut byte).ok()? == 1 {
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let target = head.strip_prefix("CONNECT ")?.split(' ').next()?;
    let mut server = TcpStream::connect(server).ok()?;
    client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").ok()?;
    asked.lock().ok()?.push(target.to_owned());
    let (mut from, mut to) = (client.try_clone().ok()?, server.try_clone().ok()?);
    let up = std::thread::spawn(move || {
        let _ = std::io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Write);
    });
    let _ = std::io::copy(&mut server, &mut client);
    let _ = client.shutdown(Shutdown::Both);
    up.join().ok()
}

/// Takes the TLS off, and carries what is inside to `behind`.
fn unwrap(client: TcpStream, tls: &Arc<ServerConfig>, behind: SocketAddr) -> Option<()> {
    let tls = ServerConnection::new(Arc::clone(tls)).ok()?;
    let mut client = Side::new(client, Connection::Server(tls)).ok()?;
    let mut plain = TcpStream::connect(behind).ok()?;
    let look = Timespec::try_from(LOOK).ok()?;
    let mut buffer = vec![0; 16 << 10];
    let mut more = true;
    loop {
        let (here, there) = {
            let back = if client.tls.wants_write() { PollFlags::empty() } else { PollFlags::IN };
            let ends = &mut [PollFd::new(&client.socket, client.flags(more)), PollFd::new(&plain, back)];
            poll(ends, Some(&look)).ok()?;
            (ends[0].revents(), ends[1].revents())
        };
        if more && !here.is_empty() {
            match client.take().ok()? {
                Some(bytes) => plain.write_all(&bytes).ok()?,
                None => {
                    more = false;
                    let _ = plain.shutdown(Shutdown::Write);
                }
            }
        }
        client.flush().ok()?;
        if there.is_empty() {
            continue;
        }
        match plain.read(&mut buffer).ok()? {
            0 => {
                client.close();
                return Some(());
            }
            n => client.give(&buffer[..n]).ok()?,
        }
    }
}
