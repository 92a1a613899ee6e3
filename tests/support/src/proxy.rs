//! A lossy way to the API server: kubectl → here → the real one, with faults that can be switched
//! while connections are open.
//!
//! kubectl speaks TLS to it (a certificate of its own, in the rewritten kubeconfig) and it speaks
//! TLS to the API server, because client-go sends no token over plain HTTP. Each connection carries
//! one request: a `Connection: close` is added to everything but an upgrade, so that a fault which
//! knows what is asked never has to find the next request in a stream.
//!
//! Loopback only. A bounded number of threads, one a connection; dropping the guard ends them all.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use serde_json::Value;

use crate::proxy_pipe;

/// What a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// An exec that asks for a websocket.
    Websocket,
    /// An exec that asks for SPDY.
    Spdy,
    /// A write to `ephemeralcontainers` that isn't stored.
    Rehearse,
    /// One that is.
    Store,
    /// A change of a container's resources, stored or not.
    Resize,
    /// A watch.
    Watch,
    /// Everything else.
    Other,
}

impl Kind {
    /// An exec, over whichever protocol.
    #[must_use]
    pub const fn is_exec(self) -> bool {
        matches!(self, Self::Websocket | Self::Spdy)
    }
}

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From kubectl.
    Up,
    /// To kubectl.
    Down,
}

/// How slow a direction is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Throttle {
    /// Bytes per second of each connection; `None` is as many as come.
    pub rate: Option<u64>,
    /// How much later each byte arrives.
    pub latency: Duration,
}

impl Throttle {
    /// 1 Mbit/s, each way late by 100 ms: a round trip takes 200 ms.
    pub const SLOW_LINK: Self = Self { rate: Some(125_000), latency: Duration::from_millis(100) };
}

/// What a gateway says instead of passing a request on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The HTTP status and its words, such as `403 Forbidden`.
    pub status: &'static str,
    /// The body, as text.
    pub body: &'static str,
}

impl Refusal {
    /// Such as a corporate gateway sends.
    #[must_use]
    pub const fn new(status: &'static str, body: &'static str) -> Self {
        Self { status, body }
    }
}

/// A connection that is reset in the middle.
#[derive(Clone, Copy, Debug)]
pub struct Cut {
    /// Of these requests.
    pub of: fn(Kind) -> bool,
    /// Bytes of this direction are counted: `Up` with 0 resets before the server hears of the
    /// request, `Down` with 0 swallows its answer.
    pub way: Way,
    /// After so many bytes.
    pub after: u64,
    /// So often, then no more.
    pub times: u64,
}

/// What takes connections and doesn't answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sink {
    /// Nothing does.
    #[default]
    None,
    /// Everything: not even TLS is spoken.
    Connections,
    /// An exec is taken and nothing comes back, as with a kubelet whose tunnel hangs.
    Exec,
}

/// Everything that is wrong with the way now.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// A connection without a byte for so long is reset, as a load balancer does.
    pub idle: Option<Duration>,
    /// From kubectl.
    pub up: Throttle,
    /// To kubectl.
    pub down: Throttle,
    /// Connections are reset in the middle.
    pub cut: Option<Cut>,
    /// The answer to an exec over a websocket.
    pub websocket: Option<Refusal>,
    /// The answer to an exec over SPDY.
    pub spdy: Option<Refusal>,
    /// What doesn't answer.
    pub sink: Sink,
    /// Nobody listens.
    pub dead: bool,
}

/// What went through so far.
#[derive(Clone, Debug, Default)]
pub struct Traffic {
    /// Bytes of requests, inside TLS.
    pub up: u64,
    /// Bytes of answers.
    pub down: u64,
    /// Requests, those that were refused too.
    pub requests: BTreeMap<Kind, u64>,
    /// Connections that were cut.
    pub cuts: u64,
}

impl Traffic {
    /// How many requests were of this kind.
    #[must_use]
    pub fn of(&self, kind: Kind) -> u64 {
        self.requests.get(&kind).copied().unwrap_or_default()
    }

    /// Bytes both ways.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.up + self.down
    }
}

/// What the connections share.
pub(crate) struct Shared {
    pub(crate) faults: Mutex<Faults>,
    pub(crate) traffic: Mutex<Traffic>,
    /// Connections of an older generation are reset.
    pub(crate) generation: AtomicU64,
    pub(crate) ended: AtomicU64,
    pub(crate) server: SocketAddr,
    pub(crate) server_name: ServerName<'static>,
    pub(crate) downstream: Arc<ServerConfig>,
    pub(crate) upstream: Arc<ClientConfig>,
    open: AtomicUsize,
}

/// A connection more than these is closed at once.
const MOST_CONNECTIONS: usize = 64;
/// How often a thread looks up to see whether something was switched.
pub(crate) const LOOK: Duration = Duration::from_millis(20);

/// The guard.
pub struct Proxy {
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
    kubeconfig: String,
}

impl Proxy {
    /// Starts one before the cluster that a kubeconfig (as JSON, with a token) names.
    ///
    /// # Panics
    /// When the kubeconfig isn't such a one, or no port can be had.
    #[must_use]
    #[track_caller]
    pub fn before(kubeconfig: &str) -> Self {
        let mut config: Value = serde_json::from_str(kubeconfig).expect("a kubeconfig as JSON");
        let cluster = config.pointer_mut("/clusters/0/cluster").expect("a cluster in the kubeconfig");
        let url = cluster["server"].as_str().expect("a server").to_owned();
        let server = url.strip_prefix("https://").expect("https").trim_end_matches('/');
        let server: SocketAddr = server.parse().expect("an address and a port");
        let authority = STANDARD
            .decode(cluster["certificate-authority-data"].as_str().expect("certificate-authority-data"))
            .expect("base64");
        let own = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let address = listener.local_addr().unwrap();
        cluster["server"] = format!("https://{address}").into();
        cluster["certificate-authority-data"] = STANDARD.encode(own.cert.pem()).into();
        let shared = Arc::new(Shared {
            faults: Mutex::default(),
            traffic: Mutex::default(),
            generation: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            server,
            server_name: ServerName::from(server.ip()),
            downstream: Arc::new(downstream(&own)),
            upstream: Arc::new(upstream(&authority)),
            open: AtomicUsize::new(0),
        });
        let accepting = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || accept(&shared, listener, address))
        };
        Self { shared, accepting: Some(accepting), kubeconfig: config.to_string() }
    }

    /// The kubeconfig whose server is this proxy.
    #[must_use]
    pub fn kubeconfig(&self) -> &str {
        &self.kubeconfig
    }

    /// From now on these faults, for open connections too; [`Traffic`] goes on counting.
    ///
    /// # Panics
    /// When a thread of the proxy has panicked.
    pub fn set(&self, faults: Faults) {
        *self.shared.faults.lock().unwrap() = faults;
    }

    /// Resets every connection that is open now.
    pub fn kill_all(&self) {
        self.shared.generation.fetch_add(1, Ordering::Relaxed);
    }

    /// What went through so far.
    ///
    /// # Panics
    /// When a thread of the proxy has panicked.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        self.shared.traffic.lock().unwrap().clone()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.ended.store(1, Ordering::Relaxed);
        self.kill_all();
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
    }
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

pub(crate) fn downstream(own: &rcgen::CertifiedKey<rcgen::KeyPair>) -> ServerConfig {
    let key = PrivateKeyDer::try_from(own.signing_key.serialize_der()).expect("a key");
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![own.cert.der().clone()], key)
        .expect("its own certificate");
    // No HTTP/2: a request has its connection to itself.
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config
}

fn upstream(authority: &[u8]) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(authority) {
        roots.add(certificate.expect("PEM")).expect("a certificate authority");
    }
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config
}

/// Accepts until the guard is dropped. While the way is dead its port is closed; the same one is
/// opened again.
fn accept(shared: &Arc<Shared>, listener: TcpListener, address: SocketAddr) {
    let mut listening = Some(listener);
    let mut threads: Vec<JoinHandle<()>> = Vec::new();
    while shared.ended.load(Ordering::Relaxed) == 0 {
        if shared.faults.lock().unwrap().dead {
            listening = None;
        } else if listening.is_none() {
            listening = TcpListener::bind(address).ok();
        }
        threads.retain(|t| !t.is_finished());
        let Some(stream) = listening.as_ref().and_then(next) else {
            if listening.is_none() {
                thread::sleep(LOOK);
            }
            continue;
        };
        if shared.open.load(Ordering::Relaxed) >= MOST_CONNECTIONS {
            continue;
        }
        let generation = shared.generation.load(Ordering::Relaxed);
        shared.open.fetch_add(1, Ordering::Relaxed);
        let shared = Arc::clone(shared);
        threads.push(thread::spawn(move || {
            proxy_pipe::carry(&shared, stream, generation);
            shared.open.fetch_sub(1, Ordering::Relaxed);
        }));
    }
    for thread in threads {
        let _ = thread.join();
    }
}

/// The next connection, if one comes soon.
fn next(listener: &TcpListener) -> Option<TcpStream> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let soon = Timespec::try_from(LOOK).ok()?;
    let ready = poll(&mut [PollFd::new(listener, PollFlags::IN)], Some(&soon)).ok()?;
    (ready > 0).then(|| listener.accept().ok().map(|(stream, _)| stream)).flatten()
}
