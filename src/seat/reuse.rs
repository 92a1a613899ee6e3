//! Which running seat is as good as a new one. A seat's name and owner are strings that anyone who
//! may add ephemeral containers may have written, so only a container that podbench itself would
//! have written is entered.

use std::fmt;

use podbench_contract::env;
use podbench_contract::ids::{Gid, SeatName, Uid};
use podbench_contract::keys::PublicKey;
use podbench_contract::rung::Rung;
use serde_json::Value;

use super::inventory::{Caller, Inventory};
use crate::pod::ids::Ids;
use crate::pod::{Container, Kind, Pod};
use crate::spec::ephemeral::Plan;
use crate::spec::security::rung_of;

/// What a seat must be to be entered.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted {
    /// `--max-rung`.
    pub ceiling: Option<Rung>,
    /// `--require`.
    pub require: Option<Rung>,
    /// `--target-uid`, or the target's uid as it was measured.
    pub uid: Option<Uid>,
    /// `--target-gid`, likewise.
    pub gid: Option<Gid>,
}

/// A seat that can be entered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its name.
    pub name: SeatName,
    /// The rung that its spec is.
    pub rung: Rung,
}

/// A running seat of the caller's that isn't entered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unused {
    /// Its name.
    pub name: SeatName,
    /// Why not.
    pub why: String,
}

impl fmt::Display for Unused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} runs and isn't used: {}", self.name, self.why)
    }
}

/// The running seat to enter, and why others of the same owner can't be: the one on the highest
/// rung, and of those the newest, since a corrected seat is newer than the one that it corrects.
#[must_use]
pub fn find(pod: &Pod, plan: &Plan, target: Ids, wanted: Wanted) -> (Option<Found>, Vec<Unused>) {
    let mut notes = Vec::new();
    // What a patch makes of a container, only a rehearsal shows: see `twin`.
    if plan.patch.is_some() {
        return (None, notes);
    }
    let mut seats: Vec<(SeatName, Container<'_>)> = pod
        .containers()
        .into_iter()
        .filter(|c| c.kind == Kind::Ephemeral && c.is_running())
        .filter_map(|c| Some((SeatName::parse(c.name())?, c)))
        .collect();
    seats.sort_by_key(|(name, _)| *name);
    let mut best: Option<Found> = None;
    for (name, seat) in seats {
        if let Some(why) = plan.differs(&seat) {
            // Somebody else's seat is no news.
            if env::OWNER.parse(seat.env(env::OWNER.name).as_deref()) == plan.owner {
                notes.push(Unused { name, why });
            }
            continue;
        }
        let rung = rung_of(seat.spec.get("securityContext"), target.uid);
        if unfit(&seat, rung, wanted) {
            continue;
        }
        if plan.owner.is_none() && !lets_in(&seat, &plan.key) {
            notes.push(Unused { name, why: "it names no owner, and its key isn't yours".to_owned() });
            continue;
        }
        if best.as_ref().is_none_or(|b| rung >= b.rung) {
            best = Some(Found { name, rung });
        }
    }
    (best, notes)
}

/// What differs between two runs that land the same seat.
const VARIES: [&str; 4] = [env::PUBKEY.name, env::TARGET_CID.name, env::RESIZED_FROM.name, env::REASON.name];

/// The running seat that is to the letter what the server would store now. Where a policy changes
/// seats on their way in (a mirror's image, a proxy's variables), none is what we author, and each
/// attach would spend another name. Keys may differ, and the target's id (it is asked anew), and what a
/// run was told about itself.
#[must_use]
pub fn twin(pod: &Pod, plan: &Plan, rung: Rung, stored: &Value) -> Option<Found> {
    let bare = |spec: &Value| -> Option<Value> {
        let mut spec = spec.clone();
        let fields = spec.as_object_mut()?;
        fields.remove("name");
        let varies = |e: &Value| e.get("name").and_then(Value::as_str).is_some_and(|n| VARIES.contains(&n));
        if let Some(list) = fields.get_mut("env").and_then(Value::as_array_mut) {
            list.retain(|e| !varies(e));
        }
        Some(spec)
    };
    let wanted = bare(stored)?;
    let seats = pod.containers().into_iter().filter(|c| c.kind == Kind::Ephemeral && c.is_running());
    seats
        .filter(|c| bare(c.spec).is_some_and(|spec| spec == wanted))
        // Without an owner, the key says whose it is.
        .filter(|c| plan.owner.is_some() || lets_in(c, &plan.key))
        .filter_map(|c| Some(Found { name: SeatName::parse(c.name())?, rung }))
        .max_by_key(|found| found.name)
}

/// The running seat of this owner that looks at this target, on the highest rung and of those the
/// newest, as in [`find`], but whatever its image: for a verb that lands nothing. Only one that is as
/// podbench authors seats: whoever may add containers may have written its name and its owner.
///
/// Where the server doesn't say who asks (`owner` is `None`), no seat has an owner, and each is
/// anybody's: the key that a seat was landed with is then what says whose it is.
#[must_use]
pub fn mine(pod: &Pod, target: &str, owner: Option<&str>, key: &PublicKey) -> Option<SeatName> {
    let caller = Caller { owner: owner.map(str::to_owned), key: Some(key.clone()) };
    let inventory = Inventory::of(pod);
    let seats = inventory.of_caller_beside(target, &caller).filter(|seat| seat.untrusted.is_none());
    seats.map(|seat| (seat.rung, seat.name)).max().map(|(_, name)| name)
}

/// Was it landed with this key?
fn lets_in(seat: &Container<'_>, key: &PublicKey) -> bool {
    let theirs = env::PUBKEY.parse(seat.env(env::PUBKEY.name).as_deref());
    theirs.as_ref().map(PublicKey::bare) == Some(key.bare())
}

fn unfit(seat: &Container<'_>, rung: Rung, wanted: Wanted) -> bool {
    let id = |field: &str| seat.security(field).and_then(Value::as_u64);
    let root = rung == Rung::Full;
    wanted.ceiling.is_some_and(|ceiling| rung > ceiling)
        || wanted.require.is_some_and(|require| rung < require)
        || (!root && wanted.uid.is_some_and(|uid| id("runAsUser") != Some(uid.0.into())))
        || (!root && wanted.gid.is_some_and(|gid| id("runAsGroup") != Some(gid.0.into())))
}

#[cfg(test)]
#[path = "reuse_tests.rs"]
mod tests;
