//! What `list`, `status`, `detach` and `clean` share: a seat's value, whose it is, how it is ended.

use std::thread;
use std::time::{Duration, Instant};

use podbench_contract::ids::SeatName;
use podbench_contract::session::stop_argv;
use podbench_contract::text::escape;

use super::Session;
use crate::error::Failure;
use crate::kubectl::Error;
use crate::kubectl::line::Line;
use crate::kubectl::refusal::Refusal;
use crate::pod::Pod;
use crate::report::seats::{self as wire, NotOurs, Stale, State};
use crate::report::undo;
use crate::seat::inventory::{Caller, Inventory, Seat};
use crate::seat::stop::{self, KUBELET, Waited};
use crate::ssh::{self, inventory::Stanza};

/// Who is asking. Their key counts only where the server doesn't say.
pub(super) fn caller(session: &Session<'_>, owner: Option<String>) -> Caller {
    let key = match owner {
        Some(_) => None,
        None => ssh::keys::find(session.settings, None).ok().map(|identity| identity.public),
    };
    Caller { owner, key }
}

/// A seat's value.
pub(super) fn value(inventory: &Inventory<'_>, seat: &Seat<'_>, caller: &Caller) -> wire::Seat {
    wire::Seat {
        seat: seat.name.to_string(),
        target: seat.target.to_owned(),
        state: State::of(&seat.container),
        rung: seat.rung,
        owner: seat.owner.clone(),
        mine: seat.is_of(caller),
        image: escape(seat.container.image(), 300),
        untrusted: seat.untrusted.clone(),
        superseded_by: inventory.superseded(seat).map(|s| s.to_string()),
    }
}

/// What looks like a seat of a pod's and isn't.
pub(super) fn not_ours(pod: &Pod, inventory: &Inventory<'_>) -> Vec<NotOurs> {
    let one = |other: &crate::seat::inventory::Lookalike<'_>| NotOurs {
        namespace: pod.namespace().to_owned(),
        pod: pod.name().to_owned(),
        container: other.container.name().to_owned(),
        why: other.why.clone(),
        state: State::of(&other.container),
    };
    inventory.lookalikes.iter().map(one).collect()
}

/// A stanza that leads nowhere.
pub(super) fn stale(stanza: &Stanza, why: impl Into<String>) -> Stale {
    Stale {
        alias: stanza.alias.clone(),
        config: stanza.file.display().to_string(),
        namespace: escape(&stanza.owner.namespace, 80),
        pod: escape(&stanza.owner.pod, 260),
        seat: escape(&stanza.owner.seat, 80),
        why: why.into(),
    }
}

/// A stanza that stays.
pub(super) fn kept(stanza: &Stanza, why: impl Into<String>) -> undo::Kept {
    undo::Kept { alias: stanza.alias.clone(), config: stanza.file.display().to_string(), why: why.into() }
}

/// Why a stanza about this pod leads nowhere; `None`: it may lead somewhere.
pub(super) fn dead_end(stanza: &Stanza, pod: &Pod) -> Option<String> {
    if stanza.owner.pod_uid != pod.uid() {
        return Some("its pod is gone, and another has its name".to_owned());
    }
    match pod.container(&stanza.owner.seat) {
        None => Some(format!("the pod has no {}", escape(&stanza.owner.seat, 80))),
        Some(seat) => match State::of(&seat) {
            state if state.name == "ended" => Some(format!("its seat has {}", state.text())),
            _ => None,
        },
    }
}

/// How many seats of a pod are entered at once: each is a kubectl and a stream through the API server.
pub(super) const SEATS: usize = 8;

/// Asks about each, so many at once; the answers are in the order of what was asked about.
pub(super) fn side_by_side<T: Sync, R: Send>(
    items: &[T],
    most: usize,
    ask: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let mut answers = Vec::new();
    for some in items.chunks(most.max(1)) {
        thread::scope(|scope| {
            let ask = &ask;
            let threads: Vec<_> = some.iter().map(|item| scope.spawn(move || ask(item))).collect();
            for thread in threads {
                answers.push(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            }
        });
    }
    answers
}

/// What became of seats that were asked to end.
pub(super) struct Ended {
    /// Each of them.
    pub(super) seats: Vec<undo::Seat>,
    /// Told after the answer, where one is left.
    pub(super) failure: Option<Failure>,
}

/// How long the kubelet's word is waited for where the exec failed in a way that may have been the
/// seat's own end.
const PERHAPS: Duration = Duration::from_secs(6);

/// Ends these seats of a pod, side by side: one exec each, and the kubelet's word for all of them.
/// `pod` becomes the newest one that was seen. On ctrl-C what is known by then is told.
pub(super) fn end(session: &Session<'_>, pod: &mut Pod, seats: &[SeatName]) -> Ended {
    let kubectl = session.kubectl;
    if seats.is_empty() {
        return Ended { seats: Vec::new(), failure: None };
    }
    session.progress("ending seats");
    let (name, uid) = (pod.name().to_owned(), pod.uid().to_owned());
    let watch = kubectl.watch_pod_until(&name, "until the seats have ended").ok();
    let asked = side_by_side(seats, SEATS, |seat| (*seat, stop::ask(kubectl, &name, *seat)));
    let reached: Vec<SeatName> = asked
        .iter()
        .filter(|(_, answer)| answer.as_ref().err().is_none_or(may_have_ended))
        .map(|(s, _)| *s)
        .collect();
    let limit = if asked.iter().any(|(_, answer)| answer.is_ok()) { KUBELET } else { PERHAPS };
    let interrupted = asked.iter().any(|(_, answer)| matches!(answer, Err(Error::Interrupted)));
    let waited = match reached.is_empty() {
        _ if interrupted => Err(Error::Interrupted),
        true => Ok(Waited::Ended),
        false => stop::until_ended(kubectl, watch, pod, &reached, Instant::now() + limit),
    };
    let mut ended = Ended { seats: Vec::new(), failure: None };
    for (seat, answer) in asked {
        let gone = waited == Ok(Waited::Gone) && reached.contains(&seat);
        let (outcome, why) = if gone {
            (undo::Outcome::PodGone, None)
        } else if pod.uid() == uid && stop::has_ended(pod, seat) {
            (undo::Outcome::Ended, None)
        } else {
            let failure = left(&answer, waited.as_ref().err(), seat);
            let why = failure.message.clone();
            let failure = failure.hint(command(session, pod, seat));
            ended.failure = ended.failure.or(Some(failure));
            (undo::Outcome::Left, Some(why))
        };
        let instead = (outcome == undo::Outcome::Left).then(|| command(session, pod, seat));
        ended.seats.push(undo::Seat { why, instead, ..undone(pod, seat, outcome) });
    }
    session.ui.clear();
    ended
}

/// A seat of this pod, as `detach` and `clean` tell of it.
pub(super) fn undone(pod: &Pod, seat: SeatName, outcome: undo::Outcome) -> undo::Seat {
    let inventory = Inventory::of(pod);
    let found = inventory.seat(&seat.to_string());
    undo::Seat {
        namespace: pod.namespace().to_owned(),
        pod: pod.name().to_owned(),
        seat: seat.to_string(),
        target: found.map(|s| s.target.to_owned()),
        owner: found.and_then(|s| s.owner.clone()),
        outcome,
        why: None,
        instead: None,
        state: found.map(|s| State::of(&s.container)),
    }
}

/// May the error be the seat's end, which takes the exec along?
fn may_have_ended(error: &Error) -> bool {
    let says_so = |refusal: &Refusal| {
        matches!(refusal, Refusal::Exited(_) | Refusal::NoContainer(_) | Refusal::NotFound(_))
    };
    error.is_lost() || matches!(error, Error::Refused(refusal) if says_so(refusal))
}

fn left(answer: &Result<(), Error>, wait: Option<&Error>, seat: SeatName) -> Failure {
    match (answer, wait) {
        (Err(Error::Refused(Refusal::Exited(code))), _) => {
            Failure::cluster(format!("{seat} was asked to end, and its agent answered with exit code {code}"))
        }
        (Err(error), _) => Failure::from(error.clone()).because(format!("{seat} wasn't ended")),
        (Ok(()), Some(error)) => Failure::from(error.clone())
            .because(format!("{seat} was asked to end, and nobody says whether it has")),
        (Ok(()), None) => Failure::new(
            crate::error::Kind::Deadline,
            format!(
                "{seat} was asked to end, and the kubelet hasn't said within {} s that it has",
                KUBELET.as_secs()
            ),
        ),
    }
}

/// What ends a seat, for somebody who may.
pub(super) fn command(session: &Session<'_>, pod: &Pod, seat: SeatName) -> String {
    let seat = seat.to_string();
    let argv = stop_argv();
    let mut rest = vec![pod.name(), "-c", &seat, "--"];
    rest.extend(argv);
    session.kubectl.line(&Line::within(pod.namespace(), &["exec"], &rest))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]
        #[test]
        fn so_many_are_asked_at_once_and_no_more_and_answers_keep_their_order(items in prop::collection::vec(0_u32..99, 0..20), most in 0_usize..6) {
            let (now, peak) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let answers = side_by_side(&items, most, |item| {
                peak.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                std::thread::yield_now();
                now.fetch_sub(1, Ordering::SeqCst);
                item + 1
            });
            prop_assert_eq!(answers, items.iter().map(|i| i + 1).collect::<Vec<_>>());
            prop_assert!(peak.load(Ordering::SeqCst) <= most.max(1));
        }
    }
}
