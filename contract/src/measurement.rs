//! The wire: everything `podbench measure` answers, in one reply.
//!
//! It carries raw readings; whoever prints recomputes the verdict with [`crate::oracle`], so an
//! old seat can't argue with a new launcher. Structs only grow, unknown fields are ignored, and
//! `tests/golden/wire/` keeps one file for every version ever shipped.

use serde::{Deserialize, Serialize};

use crate::ids::{ContainerId, Gid, Uid};
use crate::reading::{Attempt, Reading};

/// The value of [`Measurement::schema`].
pub const SCHEMA: &str = "podbench/measure/v1";

/// What one seat measured of itself, its node and its target.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Measurement {
    /// [`SCHEMA`].
    pub schema: String,
    /// The version of the agent that answers.
    pub version: String,
    /// How long `measure` waited for the agent's start-up steps, in milliseconds.
    pub waited_ms: u64,
    /// Start-up steps that failed, in their order. Empty is good.
    pub failures: Vec<Failure>,
    /// The seat's own process.
    pub seat: Process,
    /// The login that sshd will accept.
    pub login: Login,
    /// The seat's home folder.
    pub home: String,
    /// The seat's sshd.
    pub sshd: Sshd,
    /// The node's kernel.
    pub node: Node,
    /// The process a debugger would attach to, if one was found.
    pub target: Option<Process>,
    /// How the target's processes were told from others.
    pub attribution: Attribution,
    /// What was tried on the target.
    pub probes: Probes,
    /// Memory in the pod's cgroup.
    pub memory: Memory,
    /// Debuggers on the seat's PATH, by program name.
    pub debuggers: Vec<String>,
    /// ssh connections that are open now. `None`: no agent said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sessions: Option<u32>,
}

/// A start-up step that failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Failure {
    /// The step's name.
    pub step: String,
    /// What went wrong, one line.
    pub why: String,
}

/// Real, effective, saved and file-system id of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ids<T> {
    /// Real.
    pub real: T,
    /// Effective.
    pub effective: T,
    /// Saved.
    pub saved: T,
    /// File system.
    pub fs: T,
}

impl<T: Copy + PartialEq> Ids<T> {
    /// All three that ptrace compares are `id`.
    #[must_use]
    pub fn all(&self, id: T) -> bool {
        self.real == id && self.effective == id && self.saved == id
    }
}

/// A capability set; on the wire 16 hex digits, as the kernel prints it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Caps(pub u64);

impl Caps {
    /// The number of `CAP_SYS_PTRACE`.
    const SYS_PTRACE: u32 = 19;

    /// Is `CAP_SYS_PTRACE` in it?
    #[must_use]
    pub const fn has_sys_ptrace(self) -> bool {
        self.0 & (1 << Self::SYS_PTRACE) != 0
    }

    /// Does it hold all of `other`?
    #[must_use]
    pub const fn covers(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Parses the kernel's hex spelling.
    #[must_use]
    pub fn parse(hex: &str) -> Option<Self> {
        u64::from_str_radix(hex.trim(), 16).ok().map(Self)
    }
}

impl std::fmt::Display for Caps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl From<Caps> for String {
    fn from(caps: Caps) -> Self {
        caps.to_string()
    }
}

impl TryFrom<String> for Caps {
    type Error = String;
    fn try_from(hex: String) -> Result<Self, String> {
        Self::parse(&hex).ok_or_else(|| "a capability set is hexadecimal".to_owned())
    }
}

/// One process, as `/proc/PID` shows it to the seat.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Process {
    /// Its pid in the seat's PID namespace.
    pub pid: u32,
    /// `Name:` of `status`. Whatever the process wrote there.
    pub name: String,
    /// `State:`, its letter.
    pub state: Reading<char>,
    /// `Uid:`.
    pub uids: Reading<Ids<Uid>>,
    /// `Gid:`.
    pub gids: Reading<Ids<Gid>>,
    /// `CapPrm:`.
    pub cap_prm: Reading<Caps>,
    /// `CapEff:`.
    pub cap_eff: Reading<Caps>,
    /// `CapBnd:`.
    pub cap_bnd: Reading<Caps>,
    /// `NoNewPrivs:`.
    pub no_new_privs: Reading<bool>,
    /// `Seccomp:` (0 off, 1 strict, 2 filter). Mode 2 is the normal state of a container and proves nothing.
    pub seccomp: Reading<u32>,
    /// `TracerPid:`; 0 is none.
    pub tracer: Reading<u32>,
    /// `attr/current`: the security label, without its trailing NUL or newline.
    pub label: Reading<String>,
    /// `uid_map`. Another text than the seat's own is another user namespace; the same proves nothing.
    pub uid_map: Reading<String>,
    /// The owner of `status`: root's while `Uid:` says otherwise means that the process isn't dumpable.
    pub owner: Reading<Uid>,
    /// The inode number of its user namespace; gated by `PTRACE_MODE_READ`.
    pub user_ns: Reading<u64>,
    /// Is it one of the kernel's own threads (`PF_KTHREAD` in `stat`)?
    pub kernel_thread: Reading<bool>,
}

/// The login that sshd will accept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Login {
    /// What NSS calls the seat's uid (`getent passwd UID`).
    pub name: Option<String>,
    /// Why there is none.
    pub why: Option<String>,
}

/// The seat's sshd.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Sshd {
    /// The path of its configuration.
    pub config: String,
    /// The host's public key, one line.
    pub host_key: Option<String>,
    /// A round trip inside the seat: configuration test, banner, key exchange, authentication.
    pub round_trip: RoundTrip,
}

/// How far a connection to the seat's own sshd came, from inside the seat.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RoundTrip {
    /// The whole way.
    pub ok: bool,
    /// The last stage that was reached: `config`, `banner`, `kex`, `auth`.
    pub stage: String,
    /// What the failing program said, one line.
    pub why: Option<String>,
    /// It was ended because it took too long: nothing failed, and nobody knows whether it works.
    pub late: bool,
    /// Its wall time in milliseconds.
    pub ms: u64,
}

/// The node's kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Node {
    /// `uname -r`.
    pub kernel: Reading<String>,
    /// `uname -m`.
    pub machine: String,
    /// `/proc/sys/kernel/yama/ptrace_scope`; absent means that the kernel has no Yama.
    pub yama: Reading<u32>,
    /// `/sys/kernel/security/lsm`; absent or denied in most containers.
    pub lsm: Reading<String>,
}

/// How the target's processes were told from others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Attribution {
    /// By what.
    pub by: By,
    /// The container id that was looked for.
    pub container_id: Option<ContainerId>,
    /// How many live processes are the target's.
    pub processes: usize,
}

/// By what the target's processes were told from others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum By {
    /// The target's container id stands in `/proc/PID/cgroup`.
    ContainerId,
    /// No cgroup line carries an id, or none was known: what isn't the seat's own, nor a seat's, nor pause.
    Elimination,
    /// Nothing was found.
    #[default]
    Nothing,
}

/// What was tried. Nothing here stops the target: `PTRACE_SEIZE` without interrupt, from a process
/// whose exit is the release.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Probes {
    /// `PTRACE_SEIZE` of the target.
    pub seize: Attempt,
    /// `PTRACE_SEIZE` of a pid that can't exist: `ESRCH` unless a seccomp filter answers first.
    pub nobody: Attempt,
    /// `PTRACE_SEIZE` of a child of the probe's own.
    pub child: Attempt,
    /// A raw `AF_PACKET` socket, with which traffic is captured; nothing is read from it.
    pub packets: Attempt,
    /// Reads of the target's `/proc` files.
    pub reads: Reads,
}

/// Reads of the target's `/proc` files. The first three are gated by `PTRACE_MODE_READ` and count
/// for the verdict; the rest is told and not counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Reads {
    /// `root/` can be listed or entered.
    pub root: Attempt,
    /// `maps` can be read.
    pub maps: Attempt,
    /// `environ` can be read.
    pub environ: Attempt,
    /// `cmdline` can be read.
    pub cmdline: Attempt,
    /// `status` can be read.
    pub status: Attempt,
    /// `fd/` can be listed.
    pub fd: Attempt,
    /// `exe` can be resolved.
    pub exe: Attempt,
    /// `mem` can be opened (gated by `PTRACE_MODE_ATTACH`).
    pub mem: Attempt,
}

/// Memory in the cgroup that the kernel would enforce.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Memory {
    /// Bytes in use.
    pub used: Reading<u64>,
    /// The limit in bytes; `u64::MAX` is none.
    pub limit: Reading<u64>,
    /// `pod`, or `container` where only the seat's own cgroup can be seen.
    pub scope: String,
    /// Bytes in use by the target's container, as its own file system shows its cgroup.
    pub target_used: Reading<u64>,
    /// The target container's limit in bytes; `u64::MAX` is none.
    pub target_limit: Reading<u64>,
}

impl Measurement {
    /// Reads a reply's payload, and refuses what a seat can't have measured: every text that goes
    /// anywhere but a person's eyes must match its pattern, or it is dropped and said to be.
    ///
    /// # Errors
    /// When it isn't JSON of this shape.
    pub fn parse(payload: &[u8]) -> Result<Self, serde_json::Error> {
        let mut m: Self = serde_json::from_slice(payload)?;
        m.distrust();
        Ok(m)
    }

    fn distrust(&mut self) {
        use crate::text::{escape, is_login, is_path, is_version};
        if !is_version(&self.version) {
            self.version = String::new();
        }
        if let Some(name) = self.login.name.take() {
            if is_login(&name) {
                self.login.name = Some(name);
            } else {
                self.login.why =
                    Some(format!("the seat answered a login that isn't one: {}", escape(&name, 60)));
            }
        }
        self.login.why = self.login.why.take().map(|w| escape(&w, 300));
        if !is_path(&self.home) {
            self.home = String::new();
        }
        if !is_path(&self.sshd.config) {
            self.sshd.config = String::new();
        }
        self.sshd.host_key =
            self.sshd.host_key.take().and_then(|k| crate::keys::PublicKey::parse(&k).ok()).map(|k| k.bare());
        self.sshd.round_trip.stage = escape(&self.sshd.round_trip.stage, 20);
        self.sshd.round_trip.why = self.sshd.round_trip.why.take().map(|w| escape(&w, 300));
        self.failures.truncate(32);
        for failure in &mut self.failures {
            failure.step = escape(&failure.step, 40);
            failure.why = escape(&failure.why, 300);
        }
        self.debuggers.truncate(16);
        for name in &mut self.debuggers {
            *name = escape(name, 40);
        }
        self.node.machine = escape(&self.node.machine, 20);
        self.memory.scope = escape(&self.memory.scope, 20);
        for reading in [&mut self.node.kernel, &mut self.node.lsm] {
            *reading = std::mem::take(reading).map(|s| escape(&s, 200));
        }
        self.seat.distrust();
        if let Some(target) = &mut self.target {
            target.distrust();
        }
    }
}

impl Process {
    fn distrust(&mut self) {
        use crate::text::{escape, escape_lines};
        self.name = escape(&self.name, 64);
        self.label = std::mem::take(&mut self.label).map(|s| escape(&s, 200));
        self.uid_map = std::mem::take(&mut self.uid_map).map(|s| escape_lines(&s, 2000));
    }

    /// Its effective uid.
    #[must_use]
    pub fn uid(&self) -> Option<Uid> {
        self.uids.value().map(|ids| ids.effective)
    }

    /// Its effective gid.
    #[must_use]
    pub fn gid(&self) -> Option<Gid> {
        self.gids.value().map(|ids| ids.effective)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_reply_reaches_neither_an_ssh_config_nor_a_terminal() {
        let reply = r#"{"version":"1\n","login":{"name":"root\nProxyCommand touch /tmp/x"},
            "home":"/x\u001b[2J","sshd":{"config":"-oProxyCommand=x","hostKey":"ssh-ed25519 AAAA\nevil"},
            "target":{"pid":1,"name":"\u001b]0;x\u0007"},"future":{"a":1}}"#;
        let m = Measurement::parse(reply.as_bytes()).unwrap();
        assert_eq!((m.version.as_str(), m.home.as_str(), m.sshd.config.as_str()), ("", "", ""));
        assert_eq!((m.login.name, m.sshd.host_key), (None, None));
        assert!(m.login.why.unwrap().contains("isn't one"));
        assert!(!m.target.unwrap().name.contains('\u{1b}'));
    }

    #[test]
    fn what_was_not_measured_says_so_on_the_wire() {
        let json = serde_json::to_value(Measurement::default()).unwrap();
        assert_eq!(json.pointer("/node/yama").unwrap(), "notTried");
        assert_eq!(json.pointer("/probes/reads/maps").unwrap(), "notTried");
        let read = Reading::Read(Caps(0x80000));
        assert_eq!(serde_json::to_string(&read).unwrap(), r#"{"read":"0000000000080000"}"#);
        assert_eq!(
            serde_json::to_string(&Attempt::Errno(crate::reading::Errno::EPERM)).unwrap(),
            r#"{"errno":1}"#
        );
    }
}
