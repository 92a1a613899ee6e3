//! From readings to a verdict and the blockers: total functions, the same on both sides.
//!
//! Four unrelated mechanisms refuse ptrace with the same `EPERM`. What tells them apart was
//! measured on real kernels: a seize of a pid that can't exist shows a seccomp
//! filter, a child of the probe's own shows Yama 2 and 3, `EACCES` is only ever a labelled LSM, the
//! owner of `/proc/PID/status` shows a target that isn't dumpable, and Landlock shows nowhere.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::exit;
use crate::ids::{Gid, Uid};
use crate::measurement::{Ids, Measurement, Process};
use crate::reading::{Attempt, Errno, Reading};
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
    r.root.is_ok() && r.maps.is_ok() && r.environ.is_ok()
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

/// One mechanism that stands between the seat and the target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blocker {
    /// Which.
    pub kind: Kind,
    /// What was read that says so.
    pub detail: String,
    /// What would lift it, and who can.
    pub remedy: String,
}

/// Every mechanism that stands between the seat and attaching, the one that answered first. Empty
/// when attaching works or wasn't tried.
#[must_use]
pub fn blockers(m: &Measurement) -> Vec<Blocker> {
    let seize = m.probes.seize;
    match seize {
        Attempt::Ok | Attempt::NotTried => return Vec::new(),
        Attempt::Errno(_) | Attempt::Signal(_) => {}
    }
    // The order in which the kernel asks, as measured: a seccomp filter answers before the kernel's
    // own check; the credential check comes before Yama, and Yama before the labelled modules.
    let mut found: Vec<Blocker> =
        [seccomp(m), already_traced(m)].into_iter().flatten().chain(credentials(m)).collect();
    found.extend([yama(m), lsm(m)].into_iter().flatten());
    if found.is_empty() {
        found.push(unknown(m));
    }
    found
}

/// The mechanism that answered.
#[must_use]
pub fn primary(m: &Measurement) -> Option<Blocker> {
    blockers(m).into_iter().next()
}

fn blocker(kind: Kind, detail: impl Into<String>, remedy: impl Into<String>) -> Blocker {
    Blocker { kind, detail: detail.into(), remedy: remedy.into() }
}

fn has_capability(m: &Measurement) -> bool {
    m.seat.cap_eff.value().is_some_and(|c| c.has_sys_ptrace())
}

fn seccomp(m: &Measurement) -> Option<Blocker> {
    let answer = match m.probes.nobody {
        Attempt::Ok | Attempt::NotTried | Attempt::Errno(Errno::ESRCH) => return None,
        other => other,
    };
    Some(blocker(
        Kind::Seccomp,
        format!("a seccomp filter answers ptrace itself: {answer} even for a pid that can't exist"),
        "a seccomp profile that allows ptrace (RuntimeDefault does since kernel 4.8): the pod's owner",
    ))
}

fn already_traced(m: &Measurement) -> Option<Blocker> {
    let tracer = m.target.as_ref()?.tracer.value().copied().filter(|pid| *pid != 0)?;
    Some(blocker(
        Kind::AlreadyTraced,
        format!("process {tracer} already traces the target, and a process has one tracer"),
        "end the other debugger",
    ))
}

/// Ids, capabilities, user namespace, dumpable: what the kernel's credential check looks at.
fn credentials(m: &Measurement) -> Vec<Blocker> {
    let Some(target) = &m.target else { return Vec::new() };
    let mut found = Vec::new();
    let foreign_namespace = match (m.seat.uid_map.value(), target.uid_map.value()) {
        (Some(own), Some(theirs)) => squeeze(own) != squeeze(theirs),
        _ => false,
    };
    let has = has_capability(m);
    if foreign_namespace {
        found.push(blocker(
            Kind::UserNamespace,
            "the target lives in another user namespace, where the seat's capabilities count for nothing",
            "a seat in the same user namespace: land it with the pod's own hostUsers setting",
        ));
    }
    if has && !foreign_namespace {
        return found;
    }
    const FULL: &str = "CAP_SYS_PTRACE: podbench attach POD --new --max-rung full";
    match (differs(&target.uids, &m.seat.uids), differs(&target.gids, &m.seat.gids)) {
        // A seat at root's ids is the full rung, and `--target-uid 0` asks for none.
        (Some((uid, own)), _) if uid.is_root() => found.push(blocker(
            if own.is_root() { Kind::Capability } else { Kind::Uid },
            format!("the seat runs as uid {own}, the target as uid {uid}, and the kernel compares them"),
            FULL,
        )),
        (Some((uid, own)), _) if own.is_root() => found.push(blocker(
            Kind::Capability,
            format!("the seat is root without CAP_SYS_PTRACE, and the target runs as uid {uid}"),
            format!(
                "CAP_SYS_PTRACE, or a seat at the target's uid: podbench attach POD --new --target-uid {uid}"
            ),
        )),
        (Some((uid, own)), _) => found.push(blocker(
            Kind::Uid,
            format!("the seat runs as uid {own}, the target as uid {uid}, and the kernel compares them"),
            format!("a seat at the target's uid: podbench attach POD --new --target-uid {uid}"),
        )),
        (None, Some((gid, own))) => found.push(blocker(
            Kind::Gid,
            format!(
                "the seat runs with gid {own}, the target with gid {gid}, and the kernel compares both ids"
            ),
            format!("a seat with the target's gid: podbench attach POD --new --target-gid {gid}"),
        )),
        (None, None) => {
            if let (Some(own), Some(theirs)) = (m.seat.cap_prm.value(), target.cap_prm.value())
                && !own.covers(*theirs)
            {
                found.push(blocker(
                    Kind::Capability,
                    format!(
                        "the target holds capabilities that the seat doesn't (CapPrm {theirs} against {own})"
                    ),
                    "CAP_SYS_PTRACE: podbench attach POD --new --max-rung full",
                ));
            } else if let Some(owner) = not_dumpable(target) {
                found.push(blocker(
                    Kind::NotDumpable,
                    format!("the target isn't dumpable: its /proc files belong to uid {owner}"),
                    "CAP_SYS_PTRACE: podbench attach POD --new --max-rung full",
                ));
            }
        }
    }
    found
}

/// The target's id where one of the three the kernel compares isn't the seat's, and the seat's own.
fn differs<T: Copy + PartialEq>(target: &Reading<Ids<T>>, seat: &Reading<Ids<T>>) -> Option<(T, T)> {
    let (target, seat) = (target.value()?, seat.value()?);
    // The kernel compares the tracer's file-system id with the target's effective, saved and real one.
    if target.all(seat.fs) { None } else { Some((target.effective, seat.effective)) }
}

fn not_dumpable(target: &Process) -> Option<Uid> {
    let owner = *target.owner.value()?;
    let uid = target.uid()?;
    (owner != uid).then_some(owner)
}

fn squeeze(map: &str) -> String {
    map.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn yama(m: &Measurement) -> Option<Blocker> {
    let scope = *m.node.yama.value()?;
    let detail = format!("Yama's ptrace_scope is {scope} on this node");
    match scope {
        0 => None,
        1 | 2 if has_capability(m) => None,
        1 => Some(blocker(
            Kind::Yama,
            format!("{detail}: only a parent may trace"),
            "CAP_SYS_PTRACE: podbench attach POD --new --max-rung full; or prctl(PR_SET_PTRACER) in the target",
        )),
        2 => Some(blocker(
            Kind::Yama,
            format!("{detail}: only CAP_SYS_PTRACE may trace"),
            "CAP_SYS_PTRACE: podbench attach POD --new --max-rung full",
        )),
        _ => Some(blocker(
            Kind::Yama,
            format!("{detail}: nobody may trace, and only a reboot changes that"),
            "another node, or a node admin who boots this one with ptrace_scope 2 or less",
        )),
    }
}

fn lsm(m: &Measurement) -> Option<Blocker> {
    let label = m.seat.label.value().filter(|l| !l.is_empty() && *l != "unconfined")?;
    let denied = m.probes.seize.errno() == Some(Errno::EACCES);
    // `deny capability sys_ptrace` answers EPERM with the bit still in CapEff: by elimination.
    let by_elimination = has_capability(m)
        && m.probes.seize.errno() == Some(Errno::EPERM)
        && seccomp(m).is_none()
        && already_traced(m).is_none()
        && credentials(m).is_empty()
        && yama(m).is_none();
    (denied || by_elimination).then(|| {
        let theirs = m.target.as_ref().and_then(|t| t.label.value()).map_or("an unreadable label", |l| l.as_str());
        blocker(
            Kind::Lsm,
            format!("the security module says no: the seat runs as `{label}`, the target as `{theirs}`"),
            "a profile with a ptrace rule for that peer, or Unconfined for the seat: the namespace's or node's admin",
        )
    })
}

fn unknown(m: &Measurement) -> Blocker {
    // Only what was read or tried is excluded.
    let mut excluded = Vec::new();
    if m.probes.nobody == Attempt::Errno(Errno::ESRCH) {
        excluded.push("seccomp");
    }
    if let Some(target) = &m.target {
        if target.tracer.value().is_some() {
            excluded.push("another tracer");
        }
        if has_capability(m) {
            excluded.push("a missing capability");
        } else if target.uids.value().is_some() && target.gids.value().is_some() {
            excluded.push("ids");
        }
    }
    match m.node.yama {
        Reading::Read(_) => excluded.push("Yama"),
        Reading::Denied(Errno::ENOENT) => excluded.push("Yama (this kernel has none)"),
        Reading::Denied(_) | Reading::NotTried => {}
    }
    if m.target.is_none() {
        return blocker(
            Kind::Unknown,
            "no process of the target was found",
            "podbench pids in the seat shows what is there",
        );
    }
    blocker(
        Kind::Unknown,
        match excluded.as_slice() {
            [] => format!("{} from the kernel, and nothing else could be read", m.probes.seize),
            excluded => format!("{} from the kernel, and it isn't {}", m.probes.seize, excluded.join(", ")),
        },
        "a Landlock domain shows nowhere in /proc: ask who starts the target",
    )
}

/// The target's ids as measured, where both are known.
#[must_use]
pub fn target_ids(m: &Measurement) -> Option<(Uid, Gid)> {
    let target = m.target.as_ref()?;
    Some((target.uid()?, target.gid()?))
}

#[cfg(test)]
mod tests;
