//! What `--resize` changed in a pod, given back by `detach`: where nobody's seat runs beside the container
//! any more, and the change is the caller's.

use super::Session;
use crate::error::Failure;
use crate::kubectl::Mode;
use crate::pod::Pod;
use crate::report::undo::{GivenBack, Resized};
use crate::resize::{Journalled, Restored, journalled, restore};
use crate::seat::inventory::{Caller, Inventory};

/// Gives back what is the caller's; `pod` is kept at its newest. `target`: of this container alone.
/// `ends`: seats that a dry run would end. Where the cluster can't be asked, or this machine's own file
/// can't be read, that is the failure, told after what was done.
pub(super) fn give_back(
    session: &Session<'_>,
    pod: &mut Pod,
    caller: &Caller,
    target: Option<&str>,
    (mode, ends): (Mode, &[String]),
) -> (Vec<Resized>, Option<Failure>) {
    let entries = match journalled(pod, session.settings, caller) {
        Ok(entries) => entries,
        Err(failure) => return (Vec::new(), Some(failure)),
    };
    let (mut told, mut failure) = (Vec::new(), None);
    for entry in entries {
        if target.is_some_and(|t| t != entry.container) {
            continue;
        }
        let one = match user(pod, &entry.container, ends) {
            Some(seat) => Resized {
                outcome: GivenBack::Kept,
                why: Some(format!("{seat} still runs beside it")),
                ..resized(&entry)
            },
            None => match restore(session, pod, &entry, mode) {
                Ok(restored) => of(&entry, restored),
                Err(no) => {
                    let why = Some(no.message.clone());
                    failure = failure.or(Some(no));
                    Resized { outcome: GivenBack::Unknown, why, ..resized(&entry) }
                }
            },
        };
        if let (GivenBack::Refused, Some(why)) = (one.outcome, &one.why) {
            let words = format!("{} keeps what --resize made of it: {why}", one.container);
            failure = failure.or(Some(Failure::cluster(words).hint(session.again(pod.name()))));
        }
        told.push(one);
    }
    (told, failure)
}

/// A seat that runs beside the container, whosever it is.
fn user(pod: &Pod, container: &str, ends: &[String]) -> Option<String> {
    let inventory = Inventory::of(pod);
    let running = inventory.seats.iter().filter(|s| s.container.is_running() && s.target == container);
    running.map(|s| s.name.to_string()).find(|name| !ends.contains(name))
}

fn resized(entry: &Journalled) -> Resized {
    Resized {
        container: entry.container.clone(),
        outcome: GivenBack::Nothing,
        changes: entry.changes.iter().map(|(change, _)| change.to_string()).collect(),
        why: None,
    }
}

fn of(entry: &Journalled, restored: Restored) -> Resized {
    let (outcome, changes, why) = match restored {
        Restored::Done { changes, left } => (GivenBack::Restored, changes, left),
        Restored::Would { changes, left } => (GivenBack::WouldRestore, changes, left),
        Restored::Pending { changes, reason } => (GivenBack::Pending, changes, Some(reason)),
        Restored::NothingToDo { why } => (GivenBack::Nothing, Vec::new(), Some(why)),
        Restored::Refused { reason } => (GivenBack::Refused, Vec::new(), Some(reason)),
    };
    let changes = changes.iter().map(ToString::to_string).collect();
    let why = why.map(|why| podbench_contract::text::escape(&why, 500));
    Resized { container: entry.container.clone(), outcome, changes, why }
}
