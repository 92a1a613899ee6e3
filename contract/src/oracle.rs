//! From readings to a verdict and the blockers: total functions, the same on both sides.
//!
//! Unrelated mechanisms refuse ptrace with the same `EPERM`. What tells them apart was measured on
//! real kernels, and `tests/kernel` measures it again: a seize of a pid that can't exist shows a
//! seccomp filter, a child of the prober's own shows Yama 2 and 3, a read that only
//! `PTRACE_MODE_READ` gates shows whether ids and capabilities are enough, the owner of
//! `/proc/PID/status` shows a target that isn't dumpable, `uid_map` another user namespace, and
//! `EACCES` is only ever a labelled security module. Landlock shows nowhere.
//!
//! - `evidence`: what the readings prove before any mechanism is named
//! - `credentials`: ids, capabilities, user namespace, dumpable
//! - `modules`: seccomp, Yama, AppArmor and SELinux, another tracer, and what shows nowhere

mod credentials;
mod evidence;
mod modules;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::exit;
use crate::ids::{Gid, Uid};
use crate::measurement::{Measurement, Process};
use crate::reading::Attempt;
use crate::rung::Rung;

/// What a debugger can do from this seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Verdict {
    /// Attach to the running target.
    LiveAttach,
    /// Read its root, maps and environment, not attach.
    ReadOnly,
    /// Only debug what it starts itself.
    LaunchOnly,
    /// Nothing.
    Nothing,
    /// Nothing was probed.
    NotMeasured,
}

impl Verdict {
    /// `capreport`'s exit code.
    #[must_use]
    pub const fn exit(self) -> u8 {
        match self {
            Self::LiveAttach => exit::OK,
            Self::ReadOnly => exit::READ_ONLY,
            Self::LaunchOnly => exit::LAUNCH_ONLY,
            Self::Nothing | Self::NotMeasured => exit::NOTHING,
        }
    }
}

/// The verdict of a measurement.
#[must_use]
pub fn verdict(m: &Measurement) -> Verdict {
    let p = &m.probes;
    if p.seize.is_ok() {
        Verdict::LiveAttach
    } else if can_read(m) {
        Verdict::ReadOnly
    } else if p.child.is_ok() {
        Verdict::LaunchOnly
    } else if p.seize.is_tried() || p.child.is_tried() {
        Verdict::Nothing
    } else {
        Verdict::NotMeasured
    }
}

/// All three reads that `PTRACE_MODE_READ` gates have landed.
#[must_use]
pub fn can_read(m: &Measurement) -> bool {
    let r = &m.probes.reads;
    // A kernel thread's files can be read and are empty.
    m.target.as_ref().is_none_or(|t| untraceable(t).is_none())
        && r.root.is_ok()
        && r.maps.is_ok()
        && r.environ.is_ok()
}

/// The rung that the seat's own ids and capabilities amount to, whatever was asked for.
///
/// A root seat beside a root target without `CAP_SYS_PTRACE` matches the target's ids: degraded.
#[must_use]
pub fn measured_rung(m: &Measurement) -> Option<Rung> {
    let seat = &m.seat;
    if seat.cap_eff.value()?.has_sys_ptrace() {
        return Some(Rung::Full);
    }
    let target = m.target.as_ref();
    match (seat.uid()?, seat.gid()?, target.and_then(Process::uid), target.and_then(Process::gid)) {
        (uid, gid, Some(tu), Some(tg)) if uid == tu && gid == tg => Some(Rung::Degraded),
        (..) => Some(Rung::Seat),
    }
}

/// The mechanism that says no. A closed set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// `CAP_SYS_PTRACE` is needed and missing.
    Capability,
    /// The seat's uid isn't the target's.
    Uid,
    /// The seat's gid isn't the target's.
    Gid,
    /// Yama's `ptrace_scope`.
    Yama,
    /// A seccomp filter answers ptrace itself.
    Seccomp,
    /// A labelled security module: AppArmor or SELinux.
    Lsm,
    /// The target lives in another user namespace.
    UserNamespace,
    /// The target isn't dumpable.
    NotDumpable,
    /// Somebody else traces the target.
    AlreadyTraced,
    /// None of the above explains it.
    Unknown,
}

impl Kind {
    /// The word for it in JSON and reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Capability => "capability",
            Self::Uid => "uid",
            Self::Gid => "gid",
            Self::Yama => "yama",
            Self::Seccomp => "seccomp",
            Self::Lsm => "lsm",
            Self::UserNamespace => "user-namespace",
            Self::NotDumpable => "not-dumpable",
            Self::AlreadyTraced => "already-traced",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Who can lift a blocker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Who {
    /// Whoever lands the seat.
    User,
    /// Who decides what the namespace admits and how its pods are written.
    NamespaceOwner,
    /// Who configures the node.
    NodeAdmin,
}

impl Who {
    /// In words, as a report says it to the user.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::User => "you",
            Self::NamespaceOwner => "the namespace's owner",
            Self::NodeAdmin => "the node's admin",
        }
    }
}

/// One mechanism that stands between the seat and the target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blocker {
    /// Which.
    pub kind: Kind,
    /// What was read that says so.
    pub detail: String,
    /// What would lift it, and who can.
    pub remedy: String,
    /// Who can lift it; several where each has a part in it.
    #[serde(default)]
    pub who: Vec<Who>,
    /// Measured. Where it isn't, the mechanism may stand behind the first one: nothing in `/proc` tells.
    #[serde(default)]
    pub certain: bool,
}

/// Every mechanism that stands between the seat and attaching: the one that answered first, then
/// each that would bite once those before it are lifted. Empty when attaching works or wasn't tried.
#[must_use]
pub fn blockers(m: &Measurement) -> Vec<Blocker> {
    match m.probes.seize {
        Attempt::Ok | Attempt::NotTried => return Vec::new(),
        Attempt::Errno(_) | Attempt::Signal(_) => {}
    }
    let Some(target) = &m.target else { return vec![modules::no_target()] };
    if let Some(why) = untraceable(target) {
        return vec![modules::never(why)];
    }
    let seen = evidence::Evidence::of(m, target);
    let credentials = credentials::blockers(&seen);
    let yama = modules::yama(&seen, &credentials);
    let lsm = modules::lsm(&seen, &credentials, yama.is_some());
    let hidden = modules::hidden(&seen, &credentials, yama.is_some(), lsm.is_some());
    // The order in which the kernel asks, as measured: a filter answers before the kernel's own check,
    // which looks at credentials, then asks Landlock, Yama and the labelled modules; only then does it
    // find another tracer.
    let mut found: Vec<Blocker> = modules::seccomp(&seen).into_iter().chain(credentials).collect();
    found.extend([hidden, yama, lsm, modules::already_traced(&seen)].into_iter().flatten());
    if found.is_empty() {
        found.push(modules::unknown(&seen));
    }
    found
}

/// The mechanism that answered.
#[must_use]
pub fn primary(m: &Measurement) -> Option<Blocker> {
    blockers(m).into_iter().next()
}

/// Why nobody could ever trace this process, where that is so.
fn untraceable(target: &Process) -> Option<&'static str> {
    if target.kernel_thread.value() == Some(&true) {
        return Some("the target is a thread of the kernel's own, which nobody can trace");
    }
    let ended = target.state.value().is_some_and(|state| matches!(state, 'Z' | 'X' | 'x'));
    ended.then_some(
        "the target has ended and waits for its parent to take its exit code: nothing is left to trace",
    )
}

fn blocker(kind: Kind, who: &[Who], detail: impl Into<String>, remedy: impl Into<String>) -> Blocker {
    Blocker { kind, detail: detail.into(), remedy: remedy.into(), who: who.to_vec(), certain: true }
}

/// The target's ids as measured, where both are known.
#[must_use]
pub fn target_ids(m: &Measurement) -> Option<(Uid, Gid)> {
    let target = m.target.as_ref()?;
    Some((target.uid()?, target.gid()?))
}

#[cfg(test)]
mod tests;
