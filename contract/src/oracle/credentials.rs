//! Ids, capabilities, user namespace, dumpable: what the kernel's credential check looks at.
//!
//! `CAP_SYS_PTRACE` isn't needed where the ids match, the target is dumpable and the seat's
//! permitted set covers the target's; a target that runs a file with capabilities breaks both.

use super::evidence::{Evidence, Space};
use super::{Blocker, Kind, Who, blocker};
use crate::ids::Uid;
use crate::measurement::{Ids, Process};
use crate::reading::Reading;

/// A seat with the capability, which the namespace has to admit.
pub(super) const FULL: &str = "CAP_SYS_PTRACE: podbench attach POD --new --max-rung full";
pub(super) const FULL_WHO: [Who; 2] = [Who::User, Who::NamespaceOwner];

/// What the credential check says no to.
pub(super) fn blockers(seen: &Evidence<'_>) -> Vec<Blocker> {
    if seen.past_credentials() {
        return Vec::new();
    }
    match seen.space {
        Space::Same | Space::Below if seen.capable => Vec::new(),
        Space::Same | Space::Below => without_capability(seen),
        Space::Foreign => {
            let mut found = vec![blocker(
                Kind::UserNamespace,
                &[Who::User, Who::NamespaceOwner],
                "the target lives in another user namespace, where the seat's capabilities count for nothing",
                "a seat in the same user namespace: land it with the pod's own hostUsers setting",
            )];
            // In the target's namespace the capability would be enough.
            if !seen.capable {
                found.extend(without_capability(seen));
            }
            found
        }
    }
}

/// Would the check say no to this seat if it held no `CAP_SYS_PTRACE`?
pub(super) fn needs_capability(seen: &Evidence<'_>) -> bool {
    !without_capability(seen).is_empty()
}

/// Does what lifts one of these give the seat `CAP_SYS_PTRACE`? That lifts Yama 1 and 2 as well.
pub(super) fn lifted_by_capability(found: &[Blocker]) -> bool {
    found.iter().any(|b| b.remedy == FULL)
}

fn without_capability(seen: &Evidence<'_>) -> Vec<Blocker> {
    let (seat, target) = (&seen.m.seat, seen.target);
    let uid = differs(&target.uids, &seat.uids);
    let gid = differs(&target.gids, &seat.gids);
    match (uid, gid) {
        (Some((uid, own)), gid) => vec![wrong_uid(seen, uid, own, gid.map(|(gid, _)| gid))],
        (None, Some((gid, own))) => vec![blocker(
            Kind::Gid,
            &[Who::User],
            format!(
                "the seat runs with gid {own}, the target with gid {gid}, and the kernel compares both ids"
            ),
            format!("a seat with the target's gid: podbench attach POD --new --target-gid {gid}"),
        )],
        (None, None) => {
            let found: Vec<_> = [not_dumpable(target), fewer(seen)].into_iter().flatten().collect();
            if found.is_empty() && seen.space == Space::Below {
                return vec![blocker(
                    Kind::Capability,
                    &FULL_WHO,
                    "the target lives in a user namespace below the seat's, and the seat neither owns it nor holds CAP_SYS_PTRACE",
                    FULL,
                )];
            }
            found
        }
    }
}

fn wrong_uid(seen: &Evidence<'_>, uid: Uid, own: Uid, gid: Option<crate::ids::Gid>) -> Blocker {
    let compares =
        format!("the seat runs as uid {own}, the target as uid {uid}, and the kernel compares them");
    let flags = match gid {
        Some(gid) => format!("--target-uid {uid} --target-gid {gid}"),
        None => format!("--target-uid {uid}"),
    };
    // A seat at root's ids is the full rung, and `--target-uid 0` asks for none.
    if uid.is_root() {
        let kind = if own.is_root() { Kind::Capability } else { Kind::Uid };
        return blocker(kind, &FULL_WHO, compares, FULL);
    }
    if own.is_root() {
        // At the target's ids Yama would still say no.
        let yama = seen.m.node.yama.value().is_some_and(|scope| *scope > 0);
        let remedy = if yama {
            FULL.to_owned()
        } else {
            format!("CAP_SYS_PTRACE, or a seat at the target's uid: podbench attach POD --new {flags}")
        };
        return blocker(
            Kind::Capability,
            &FULL_WHO,
            format!("the seat is root without CAP_SYS_PTRACE, and the target runs as uid {uid}"),
            remedy,
        );
    }
    let remedy = format!("a seat at the target's uid: podbench attach POD --new {flags}");
    blocker(Kind::Uid, &[Who::User], compares, remedy)
}

/// The target's id where one of the three the kernel compares isn't the seat's, and the seat's own.
fn differs<T: Copy + PartialEq>(target: &Reading<Ids<T>>, seat: &Reading<Ids<T>>) -> Option<(T, T)> {
    let (target, seat) = (target.value()?, seat.value()?);
    // ptrace compares the tracer's real id with the target's effective, saved and real one.
    if target.all(seat.real) { None } else { Some((target.effective, seat.real)) }
}

fn not_dumpable(target: &Process) -> Option<Blocker> {
    let owner = *target.owner.value()?;
    (owner != target.uid()?).then(|| {
        blocker(
            Kind::NotDumpable,
            &FULL_WHO,
            format!("the target isn't dumpable: its /proc files belong to uid {owner}"),
            FULL,
        )
    })
}

fn fewer(seen: &Evidence<'_>) -> Option<Blocker> {
    let (own, theirs) = (seen.m.seat.cap_prm.value()?, seen.target.cap_prm.value()?);
    (!own.covers(*theirs)).then(|| {
        blocker(
            Kind::Capability,
            &FULL_WHO,
            format!("the target holds capabilities that the seat doesn't (CapPrm {theirs} against {own})"),
            FULL,
        )
    })
}
