//! Where things are in a seat, what is run there, and what the agent's socket understands.
//!
//! One function makes the command that carries an ssh connection, so both ends agree on it.

use crate::ids::{ContainerId, Uid};
use crate::keys::PublicKey;

/// The in-pod program, as the image installs it.
pub const AGENT: &str = "/usr/local/bin/podbench";
/// sshd re-executes itself and insists on an absolute path.
pub const SSHD: &str = "/usr/sbin/sshd";
/// PATH of a session: sshd passes none of the image's environment on.
pub const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// How long `measure` waits for the agent's start-up steps, in milliseconds. They take 0.1 s; on a node
/// that twenty seats start on at once they were seen to take four.
pub const START_LIMIT_MS: u64 = 10_000;
/// How long `session` waits for the agent to take it, in milliseconds; then it runs sshd itself.
pub const TAKE_LIMIT_MS: u64 = 1_000;

/// The command of a seat's container.
#[must_use]
pub const fn agent_argv() -> [&'static str; 2] {
    [AGENT, "agent"]
}

/// What `kubectl exec` runs for one ssh connection.
#[must_use]
pub const fn session_argv() -> [&'static str; 2] {
    [AGENT, "session"]
}

/// What `kubectl exec` runs to end a seat: everything that is the seat's, the agent last.
#[must_use]
pub const fn stop_argv() -> [&'static str; 3] {
    [AGENT, "agent", "--stop"]
}

/// sshd for one connection on fds 0, 1 and 2.
#[must_use]
pub fn sshd_argv(config: &str) -> Vec<String> {
    // -i: the exec's own stdin and stdout are the connection.
    // -e keeps fd 2 open: without it sshd points fd 2 at /dev/null, and in a direct exec the
    //    runtime takes the closed stderr for the end of the whole stream (tests/e2e, spikes/s1-exec-fd2).
    // LogLevel=ERROR: no byte on stderr from a healthy connection.
    [SSHD, "-i", "-e", "-f", config, "-o", "LogLevel=ERROR"].map(str::to_owned).to_vec()
}

/// What `kubectl exec` runs to measure a seat. `cid`: the target's id now, which may be another than
/// when the seat's spec was written. `authorize`: one more key that may log in. `probe`: try ptrace.
#[must_use]
pub fn measure_argv(cid: Option<&ContainerId>, authorize: Option<&PublicKey>, probe: bool) -> Vec<String> {
    let mut argv = vec![AGENT.to_owned(), "measure".to_owned(), "--json".to_owned()];
    if let Some(cid) = cid {
        argv.push(format!("--cid={cid}"));
    }
    if let Some(key) = authorize {
        argv.push(format!("--authorize={key}"));
    }
    if !probe {
        argv.push("--no-probe".to_owned());
    }
    argv
}

/// The folders that may be a seat's runtime folder (0700, the seat's own), best first.
///
/// `/run/podbench` is the image's, world-writable and sticky. With a read-only root filesystem only
/// `/dev/shm` can be written; it is shared by the pod's containers, so the seat's mount namespace
/// (the inode number of `/proc/self/ns/mnt`) is in the name.
#[must_use]
pub fn runtime_dirs(uid: Uid, mount_namespace: u64) -> [String; 2] {
    [format!("/run/podbench/{uid}"), format!("/dev/shm/podbench-{uid}-{mount_namespace}")]
}

/// Files of the runtime folder.
pub mod file {
    /// The agent's socket.
    pub const SOCKET: &str = "agent.sock";
    /// sshd's configuration.
    pub const SSHD_CONFIG: &str = "sshd_config";
    /// The host's private key; its public half ends in `.pub`.
    pub const HOST_KEY: &str = "ssh_host_ed25519_key";
    /// The keys handed to this seat, and no others.
    pub const AUTHORIZED_KEYS: &str = "authorized_keys";
    /// passwd and group records of a seat whose root filesystem is read-only.
    pub const PASSWD: &str = "passwd";
    /// See [`PASSWD`].
    pub const GROUP: &str = "group";
}

/// What the agent's socket understands: verbs, never an argv. One line a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Run sshd on the three descriptors that come with the line, and answer its exit code.
    Session,
    /// Answer the state as one JSON line.
    State,
    /// Let one more key log in.
    Authorize(PublicKey),
    /// End every process of the seat, the agent last.
    Stop,
}

impl Request {
    /// The longest line the agent reads, in bytes.
    pub const LONGEST: usize = 10_000;

    /// The line, with its end.
    #[must_use]
    pub fn encode(&self) -> String {
        match self {
            Self::Session => "session\n".to_owned(),
            Self::State => "state\n".to_owned(),
            Self::Authorize(key) => format!("authorize {key}\n"),
            Self::Stop => "stop\n".to_owned(),
        }
    }

    /// Reads a line; `None` is not a request.
    #[must_use]
    pub fn decode(line: &str) -> Option<Self> {
        match line.strip_suffix('\n')? {
            "session" => Some(Self::Session),
            "state" => Some(Self::State),
            "stop" => Some(Self::Stop),
            other => PublicKey::parse(other.strip_prefix("authorize ")?).ok().map(Self::Authorize),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_a_verb_and_nothing_that_could_run() {
        for request in [Request::Session, Request::State, Request::Stop] {
            assert_eq!(Request::decode(&request.encode()), Some(request));
        }
        for bad in ["session", "session /bin/sh\n", "authorize x\n", "\n", "SESSION\n", "stop\nstop\n"] {
            assert_eq!(Request::decode(bad), None, "{bad:?}");
        }
    }
}
