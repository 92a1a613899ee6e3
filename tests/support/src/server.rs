//! Servers that a node reaches at its own loopback: an admission webhook (node 1 holds the API server),
//! an image registry. Only on the project's own cluster: `tests/cluster/in-node.sh` is the way in.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};

use serde_json::{Value, json};

use crate::cluster::root;
use crate::process::run;

/// The guard: the server ends with its stdin.
pub struct Server {
    child: Child,
    stdin: Option<ChildStdin>,
    /// Its port on the node's 127.0.0.1.
    pub port: u16,
    /// The certificate that a webhook serves, PEM.
    pub certificate: String,
}

impl Server {
    /// An admission webhook that answers a path with its denial (a `Status`), and `/slow` never.
    ///
    /// # Panics
    /// When it doesn't start.
    #[must_use]
    pub fn webhook(denials: &Value) -> Self {
        Self::start("1", denials)
    }

    /// A registry that wants a login for `secret/…`, never answers for `silent/…`, and has nothing else.
    ///
    /// # Panics
    /// When it doesn't start.
    #[must_use]
    pub fn registry(node: &str) -> Self {
        Self::start(node.trim_start_matches("node"), &json!({}))
    }

    fn start(node: &str, denials: &Value) -> Self {
        let made = run({
            let mut openssl = Command::new("openssl");
            openssl
                .args("req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2".split(' '));
            openssl.args("-subj /CN=test -addext subjectAltName=IP:127.0.0.1 -keyout - -out -".split(' '));
            openssl
        })
        .expect_code(0)
        .stdout;
        let at = made.find("-----BEGIN CERTIFICATE-----").expect("a certificate");
        let mut command = Command::new(root().join("tests/cluster/in-node.sh"));
        command.args([node, "python3", "-c", include_str!("server.py")]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("in-node.sh");
        let mut stdin = child.stdin.take().unwrap();
        writeln!(stdin, "{}", json!({"pem": made, "denials": denials})).unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port = line.trim().parse().unwrap_or_else(|_| panic!("the server of node {node} said {line:?}"));
        let certificate = made.get(at..).unwrap_or_default().to_owned();
        Self { child, stdin: Some(stdin), port, certificate }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let _ = self.child.wait();
    }
}
