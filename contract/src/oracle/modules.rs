//! Seccomp, Yama, AppArmor and SELinux, another tracer, and what shows nowhere.

use super::credentials::{FULL, FULL_WHO, lifted_by_capability, needs_capability};
use super::evidence::{Evidence, is_initial};
use super::{Blocker, Kind, Who, blocker};
use crate::reading::{Attempt, Errno, Reading};

pub(super) fn seccomp(seen: &Evidence<'_>) -> Option<Blocker> {
    seen.filtered.then(|| {
        let answer = seen.m.probes.nobody;
        blocker(
            Kind::Seccomp,
            &[Who::NamespaceOwner],
            format!("a seccomp filter answers ptrace itself: {answer} even for a pid that can't exist"),
            "a seccomp profile that allows ptrace (RuntimeDefault does since kernel 4.8): the pod's owner",
        )
    })
}

pub(super) fn already_traced(seen: &Evidence<'_>) -> Option<Blocker> {
    let tracer = seen.target.tracer.value().copied().filter(|pid| *pid != 0)?;
    Some(blocker(
        Kind::AlreadyTraced,
        &[Who::User],
        format!("process {tracer} already traces the target, and a process has one tracer"),
        "end the other debugger",
    ))
}

pub(super) fn yama(seen: &Evidence<'_>, credentials: &[Blocker]) -> Option<Blocker> {
    if seen.attach_passes || seen.module_answered() {
        return None;
    }
    let scope = match &seen.m.node.yama {
        Reading::Read(scope) => *scope,
        Reading::Denied(Errno::ENOENT) => return None,
        Reading::Denied(_) | Reading::NotTried => return unread(seen),
    };
    let detail = format!("Yama's ptrace_scope is {scope} on this node");
    match scope {
        0 => None,
        // The capability lifts it, held already or to come.
        1 | 2 if seen.capable || lifted_by_capability(credentials) => None,
        1 => Some(blocker(
            Kind::Yama,
            &FULL_WHO,
            format!("{detail}: only a parent may trace"),
            format!("{FULL}; or prctl(PR_SET_PTRACER) in the target"),
        )),
        2 => Some(blocker(Kind::Yama, &FULL_WHO, format!("{detail}: only CAP_SYS_PTRACE may trace"), FULL)),
        3.. => Some(blocker(
            Kind::Yama,
            &[Who::NodeAdmin],
            format!("{detail}: nobody may trace, and only a reboot changes that"),
            "another node, or a node admin who boots this one with ptrace_scope 2 or less",
        )),
    }
}

/// Yama's setting can't be read: what a fresh child and the reads say instead.
fn unread(seen: &Evidence<'_>) -> Option<Blocker> {
    if seen.errno() != Some(Errno::EPERM) || !seen.read_passes {
        return None;
    }
    let own_child = seen.child() == Some(Errno::EPERM);
    let alone = seen.confined().is_none() && already_traced(seen).is_none();
    (own_child || alone).then(|| Blocker {
        certain: own_child,
        ..blocker(
            Kind::Yama,
            &[Who::User, Who::NamespaceOwner, Who::NodeAdmin],
            if own_child {
                "not even a child of the seat's own may be traced: that is Yama's ptrace_scope 2 or 3, which can't be read here"
            } else {
                "the target can be read and not traced, as with Yama's ptrace_scope 1, which can't be read here"
            },
            FULL,
        )
    })
}

pub(super) fn lsm(seen: &Evidence<'_>, credentials: &[Blocker], yama: bool) -> Option<Blocker> {
    let label =
        seen.m.seat.label.value().filter(|l| !l.is_empty()).map_or("an unreadable label", String::as_str);
    let theirs = seen.target.label.value().map_or("an unreadable label", String::as_str);
    let who = [Who::NamespaceOwner, Who::NodeAdmin];
    let rule = "a profile with a ptrace rule for that peer, or Unconfined for the seat: the namespace's or node's admin";
    let says_no = || {
        let detail =
            format!("the security module says no: the seat runs as `{label}`, the target as `{theirs}`");
        blocker(Kind::Lsm, &who, detail, rule)
    };
    if seen.module_answered() {
        return Some(says_no());
    }
    if seen.child() == Some(Errno::EACCES) {
        let detail = format!(
            "the security module says no even to a child of the seat's own: the seat runs as `{label}`"
        );
        return Some(blocker(Kind::Lsm, &who, detail, rule));
    }
    // What is left is a module that wasn't reached, or that withholds a capability: for a seat that
    // runs under no profile there is neither.
    seen.confined()?;
    if withheld(seen, credentials) {
        return Some(blocker(
            Kind::Lsm,
            &who,
            format!(
                "the security module withholds CAP_SYS_PTRACE, which CapEff shows: the seat runs as `{label}`"
            ),
            "a profile that allows capability sys_ptrace, or Unconfined for the seat: the namespace's or node's admin",
        ));
    }
    let behind = seen.filtered || yama || !credentials.is_empty();
    if !behind || seen.attach_passes {
        return None;
    }
    if seen.read_denied && credentials.is_empty() {
        return Some(says_no());
    }
    let differ = seen.target.label.value().is_some_and(|theirs| theirs != label);
    // Where AppArmor lets the seat read that peer its rule is for tracing too, as a rule; SELinux
    // gates reads otherwise.
    let read_by_apparmor = seen.read_passes && label.ends_with(')');
    (differ && !read_by_apparmor).then(|| Blocker {
        certain: false,
        ..blocker(
            Kind::Lsm,
            &who,
            format!(
                "the security module may say no next: the seat runs as `{label}`, the target as `{theirs}`, \
                 and a profile usually lets trace its own kind alone"
            ),
            rule,
        )
    })
}

/// `CapEff` shows the capability, it is needed, and yet the check failed: with `deny capability
/// sys_ptrace`, or a SELinux type without it.
fn withheld(seen: &Evidence<'_>, credentials: &[Blocker]) -> bool {
    seen.capable
        && credentials.is_empty()
        && seen.errno() == Some(Errno::EPERM)
        && !seen.past_credentials()
        && needs_capability(seen)
}

/// The seat may not even read the target, and nothing that shows explains it.
pub(super) fn hidden(seen: &Evidence<'_>, credentials: &[Blocker], yama: bool, lsm: bool) -> Option<Blocker> {
    let unexplained = seen.read_denied && credentials.is_empty() && !seen.module_answered();
    // A labelled module that says no and wasn't reached explains it as well.
    let explained = lsm && (yama || seen.filtered || withheld(seen, credentials));
    (unexplained && !explained).then(|| unknown(seen))
}

pub(super) fn no_target() -> Blocker {
    blocker(
        Kind::Unknown,
        &[Who::User],
        "no process of the target was found",
        "podbench pids in the seat shows what is there",
    )
}

pub(super) fn never(why: &str) -> Blocker {
    blocker(
        Kind::Unknown,
        &[Who::User],
        why,
        "another process: podbench pids in the seat shows what is there",
    )
}

/// Nothing that shows explains it: only what was read or tried is excluded.
pub(super) fn unknown(seen: &Evidence<'_>) -> Blocker {
    let (m, target) = (seen.m, seen.target);
    let mut excluded = Vec::new();
    if m.probes.nobody == Attempt::Errno(Errno::ESRCH) {
        excluded.push("seccomp");
    }
    if target.tracer.value().is_some() {
        excluded.push("another tracer");
    }
    if seen.capable {
        excluded.push("a missing capability");
    } else if target.uids.value().is_some() && target.gids.value().is_some() {
        excluded.push("ids");
    }
    match m.node.yama {
        // It may well stand behind.
        Reading::Read(_) if seen.read_denied => excluded.push("Yama, which lets read"),
        Reading::Read(_) => excluded.push("Yama"),
        Reading::Denied(Errno::ENOENT) => excluded.push("Yama (this kernel has none)"),
        Reading::Denied(_) | Reading::NotTried => {}
    }
    if m.seat.label.value().is_some() && seen.confined().is_none() {
        excluded.push("a security label");
    }
    let mut detail = match excluded.as_slice() {
        [] => format!("{} from the kernel, and nothing else could be read", m.probes.seize),
        excluded => format!("{} from the kernel, and it isn't {}", m.probes.seize, excluded.join(", ")),
    };
    // What shows nowhere, and can't be excluded.
    if m.seat.user_ns.value().is_some() && target.user_ns.value().is_none() && !is_initial(&m.seat) {
        detail.push_str("; a user namespace with the same map isn't excluded");
    }
    if !seen.capable && target.uid().is_some_and(crate::ids::Uid::is_root) {
        detail.push_str("; a root process that isn't dumpable looks like any other");
    }
    blocker(
        Kind::Unknown,
        &[Who::NodeAdmin],
        detail,
        "a Landlock domain around the seat shows nowhere in /proc: ask who runs the node",
    )
}
