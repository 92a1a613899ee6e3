//! A condition: how it is made. The rest of its file (what is expected) is none of the guest's business.

use serde::{Deserialize, Serialize};

/// How one condition is made.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Condition {
    /// Its file's name.
    pub(crate) name: String,
    /// Yama's `ptrace_scope`.
    pub(crate) yama: u32,
    /// What the target is to the seat.
    pub(crate) relation: Relation,
    /// What is done to the seat.
    pub(crate) seat: Setup,
    /// What is done to the target.
    pub(crate) target: Setup,
}

/// What the target is to whoever attaches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Relation {
    /// Another process, as in a pod.
    #[default]
    Beside,
    /// A program that the debugger started.
    StartedByTheDebugger,
    /// Traced by somebody else.
    Traced,
    /// One of the kernel's own threads.
    KernelThread,
    /// Ended and not yet reaped.
    Ended,
    /// The seat's own process.
    Itself,
}

/// What is done to a process before it runs.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Setup {
    /// Its ids, uid and gid alike; 0 without.
    pub(crate) uid: u32,
    /// Another gid.
    pub(crate) gid: Option<u32>,
    /// Another real uid.
    pub(crate) real_uid: Option<u32>,
    /// Its capabilities; without, all of root's and none of another's.
    pub(crate) caps: Option<Capabilities>,
    /// An AppArmor profile; with a leading `&` it is stacked.
    pub(crate) apparmor: Option<String>,
    /// A SELinux type.
    pub(crate) selinux: Option<String>,
    /// What a seccomp filter answers to ptrace.
    pub(crate) seccomp: Option<Answer>,
    /// In a Landlock domain.
    pub(crate) landlock: bool,
    /// In a user namespace of its own.
    pub(crate) userns: Option<Userns>,
    /// `PR_SET_NO_NEW_PRIVS`.
    pub(crate) no_new_privs: bool,
    /// `PR_SET_DUMPABLE` 0.
    pub(crate) undumpable: bool,
    /// `PR_SET_PTRACER` any.
    pub(crate) any_tracer: bool,
    /// Changed its ids without an exec.
    pub(crate) no_exec: bool,
    /// Runs a file with `cap_net_bind_service`.
    pub(crate) file_capability: bool,
}

/// Capability sets that pods have.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Capabilities {
    /// None.
    None,
    /// A container's default set.
    Container,
    /// That and `CAP_SYS_PTRACE`.
    ContainerAndPtrace,
    /// `CAP_SYS_PTRACE` alone.
    Ptrace,
}

impl Capabilities {
    pub(crate) const fn bits(self) -> u64 {
        const CONTAINER: u64 = 0xa804_25fb;
        const PTRACE: u64 = 1 << 19;
        match self {
            Self::None => 0,
            Self::Container => CONTAINER,
            Self::ContainerAndPtrace => CONTAINER | PTRACE,
            Self::Ptrace => PTRACE,
        }
    }
}

/// What a seccomp filter answers.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum Answer {
    /// 1
    Eperm,
    /// 13
    Eacces,
    /// 38
    Enosys,
    /// SIGSYS
    Kill,
}

/// How the ids of a new user namespace are mapped.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Userns {
    /// The process' own id is root in it, and no other id exists.
    Root,
}
