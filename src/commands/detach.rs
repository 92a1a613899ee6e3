//! `podbench detach`: ends the caller's seats in a pod, and takes back what podbench wrote for them on
//! this disk. The cluster first: a stanza goes when its seat is known to have ended.

use std::path::PathBuf;

use podbench_contract::ids::SeatName;
use podbench_contract::text::escape;

use super::pick::{self, Exact, Picked};
use super::{Answer, Done, Session, explain, seats};
use crate::cli;
use crate::error::{Failure, Kind};
use crate::kubectl::{self, Context};
use crate::pod::{Pod, State as Said, target};
use crate::report::style::Style;
use crate::report::undo::{self as wire, Detach, Outcome, Removed};
use crate::resize::{self, Remembered};
use crate::seat::inventory::{Caller, Inventory, Seat};
use crate::shell::word;
use crate::ssh::inventory::{self as disk, Mode, Place, Stanza, Stanzas, Taken};

/// Ends them.
///
/// # Errors
/// When the pod or a seat isn't what was asked for, or the cluster says no.
pub(super) fn run(args: &cli::Detach, session: &Session<'_>) -> Result<Done, Failure> {
    let Stanzas { known, unread } = disk::stanzas(session.settings);
    let (remembered, strange) = resize::remembered(session.settings);
    let asked = args.pod.pod.as_deref().map(pick::bare);
    let is_known = |name: &&str| {
        known.iter().any(|s| s.owner.pod == **name) || remembered.iter().any(|r| r.pod == **name)
    };
    let exact = asked.filter(is_known);
    let found = match exact {
        Some(name) => pick::exactly(session, name),
        None => pick::pod_of(session, args.pod.pod.as_deref(), !args.pod.no_prompt, pick::Of::Seats)
            .map(|picked| Exact::Pod(Box::new(picked))),
    };
    match found.map_err(|failure| failure.because("nothing was taken back"))? {
        Exact::Pod(mut picked) => {
            picked.warnings.extend(unread.into_iter().chain(strange));
            live(args, session, *picked, &known)
        }
        Exact::Gone { context, words } => {
            let pod = asked.unwrap_or_default();
            gone(args, session, &context, (pod, &words), &known, &remembered)
        }
    }
}

fn live(
    args: &cli::Detach,
    session: &Session<'_>,
    mut picked: Picked,
    known: &[Stanza],
) -> Result<Done, Failure> {
    let caller = seats::caller(session, picked.owner.clone());
    let (running, mut told) = {
        let pod = &picked.pod;
        if let Some(name) = &args.pod.target {
            target::choose(pod, Some(name), &[]).map_err(|no| explain::no_target(session, pod, &no))?;
        }
        let inventory = Inventory::of(pod);
        let selected = select(args, session, pod, &inventory, &caller)?;
        sort(args, pod, &selected)
    };
    let mut failure = not_started(&told);
    if !args.dry_run {
        let ended = seats::end(session, &mut picked.pod, &running);
        told.extend(ended.seats);
        failure = ended.failure.or(failure);
    }
    told.sort_by_key(|s| SeatName::parse(&s.seat));
    let is_gone = told.iter().any(|s| s.outcome == Outcome::PodGone);
    let interrupted = failure.as_ref().is_some_and(|f| f.kind == Kind::Interrupted);
    let (resized, not_restored) = match is_gone || interrupted {
        true => (Vec::new(), None),
        false => give_back(args, session, &mut picked.pod, &caller, &told),
    };
    failure = failure.or(not_restored);
    if told.is_empty() {
        picked.warnings.extend(others(&picked.pod));
    }
    let pod = &picked.pod;
    let place = Place::new(session.settings, session.cluster, &picked.context.name)?;
    let over = |s: &Stanza| {
        let outcome = told.iter().find(|t| s.leads_to(pod.uid(), &t.seat)).map(|t| t.outcome);
        match outcome {
            Some(outcome) => outcome != Outcome::Left,
            // Beyond what was asked for, only what leads nowhere.
            None => {
                let here = s.owner.pod_uid == pod.uid() || s.is_at(&place, pod.namespace(), pod.name());
                !is_narrowed(args) && here && seats::dead_end(s, pod).is_some()
            }
        }
    };
    let (over, rest): (Vec<Stanza>, Vec<Stanza>) = known.iter().cloned().partition(over);
    let left =
        |s: &&Stanza| told.iter().any(|t| t.outcome == Outcome::Left && s.leads_to(pod.uid(), &t.seat));
    let kept =
        rest.iter().filter(left).map(|s| seats::kept(s, "its seat isn't known to have ended")).collect();
    let forgotten: Vec<PathBuf> = resize::remembered(session.settings)
        .0
        .into_iter()
        .filter(|one| is_gone && one.uid == pod.uid())
        .map(|one| one.file)
        .collect();
    let (removed, not_removed) = take_back(session, args, &over, &forgotten);
    failure = failure.or(not_removed);
    finish(
        session,
        Detach {
            schema: wire::DETACH,
            dry_run: args.dry_run,
            context: picked.context.name.clone(),
            namespace: pod.namespace().to_owned(),
            pod: pod.name().to_owned(),
            pod_uid: Some(pod.uid().to_owned()),
            seats: told,
            resized,
            removed,
            kept,
            calls: session.calls(),
            warnings: picked.warnings,
        },
        failure,
    )
}

/// After the seats: a seat lives in the memory that was made for it. Not for a single seat that was named.
fn give_back(
    args: &cli::Detach,
    session: &Session<'_>,
    pod: &mut Pod,
    caller: &Caller,
    told: &[wire::Seat],
) -> (Vec<wire::Resized>, Option<Failure>) {
    if !args.seats.is_empty() {
        return (Vec::new(), None);
    }
    let (mode, outcome) = match args.dry_run {
        true => (kubectl::Mode::DryRun, Outcome::WouldEnd),
        false => (kubectl::Mode::Store, Outcome::Ended),
    };
    let ends: Vec<String> = told.iter().filter(|t| t.outcome == outcome).map(|t| t.seat.clone()).collect();
    super::give_back::give_back(session, pod, caller, args.pod.target.as_deref(), (mode, &ends))
}

/// Who finds nothing of their own is told whose seats run.
fn others(pod: &Pod) -> Vec<String> {
    let running = Inventory::of(pod).seats.into_iter().filter(|s| s.container.is_running());
    running
        .map(|s| match s.owner {
            Some(owner) => format!("{} runs, and it is {owner}'s", s.name),
            None => format!("{} runs, and it names no owner", s.name),
        })
        .collect()
}

fn is_narrowed(args: &cli::Detach) -> bool {
    args.pod.target.is_some() || !args.seats.is_empty()
}

/// The seats that are meant: those that were named, else all of the caller's.
fn select<'i, 'p>(
    args: &cli::Detach,
    session: &Session<'_>,
    pod: &Pod,
    inventory: &'i Inventory<'p>,
    caller: &Caller,
) -> Result<Vec<&'i Seat<'p>>, Failure> {
    let wanted = |s: &&Seat<'_>| args.pod.target.as_deref().is_none_or(|t| t == s.target);
    if args.seats.is_empty() {
        return Ok(inventory.seats.iter().filter(|s| s.is_of(caller)).filter(wanted).collect());
    }
    let mut selected: Vec<&Seat<'_>> = Vec::new();
    for name in &args.seats {
        let shown = escape(name, 80);
        let Some(seat) = inventory.seat(name) else {
            let lookalike = inventory.lookalikes.iter().find(|l| l.container.name() == name);
            let have: Vec<String> = inventory.seats.iter().map(|s| s.name.to_string()).collect();
            let failure = match lookalike {
                // Never, whatever is forced: nobody knows what would be ended.
                Some(other) => Failure::input(format!("{shown} isn't a seat of podbench's: {}", other.why)),
                None => Failure::input(format!("pod {} has no seat {shown}", pod.name())),
            };
            return Err(match have.is_empty() {
                true => failure.because("there is none in this pod"),
                false => failure.because(format!("seats there: {}", have.join(", "))),
            });
        };
        if !seat.is_of(caller) && !args.force {
            let whose = match &seat.owner {
                Some(owner) => format!("{shown} is {owner}'s"),
                None => format!("{shown} names no owner, and its key isn't yours"),
            };
            return Err(Failure::input(whose)
                .because("what they run in it would end with it")
                .hint(session.again(&format!("{} --seat {} --force", pod.name(), word(name)))));
        }
        if !selected.iter().any(|s| s.name == seat.name) {
            selected.push(seat);
        }
    }
    Ok(selected.into_iter().filter(wanted).collect())
}

const NOT_STARTED: &str =
    "it hasn't started, and only a seat that runs can be asked to end; it goes with its pod";

/// One that hasn't started may do so yet: it isn't taken back.
fn not_started(told: &[wire::Seat]) -> Option<Failure> {
    let left = told.iter().find(|seat| seat.outcome == Outcome::Left)?;
    Some(Failure::cluster(format!("{} is left", left.seat)).because(NOT_STARTED))
}

/// Those that can be asked to end, and what is known of the others.
fn sort(args: &cli::Detach, pod: &Pod, selected: &[&Seat<'_>]) -> (Vec<SeatName>, Vec<wire::Seat>) {
    let (mut running, mut told) = (Vec::new(), Vec::new());
    for seat in selected {
        match seat.container.state() {
            Said::Running if args.dry_run => told.push(seats::undone(pod, seat.name, Outcome::WouldEnd)),
            Said::Running => running.push(seat.name),
            Said::Terminated { .. } => told.push(seats::undone(pod, seat.name, Outcome::EndedBefore)),
            Said::Waiting { .. } | Said::Unknown => {
                let left = seats::undone(pod, seat.name, Outcome::Left);
                told.push(wire::Seat { why: Some(NOT_STARTED.to_owned()), ..left });
            }
        }
    }
    (running, told)
}

/// The pod isn't there any more, as the server says: what is on this disk for it leads nowhere.
fn gone(
    args: &cli::Detach,
    session: &Session<'_>,
    context: &Context,
    (pod, words): (&str, &str),
    known: &[Stanza],
    remembered: &[Remembered],
) -> Result<Done, Failure> {
    let place = Place::new(session.settings, session.cluster, &context.name)?;
    let namespace = session.kubectl.namespace().unwrap_or(&context.namespace);
    let named = |s: &&Stanza| args.seats.is_empty() || args.seats.contains(&s.owner.seat);
    let over: Vec<Stanza> =
        known.iter().filter(|s| s.is_at(&place, namespace, pod)).filter(named).cloned().collect();
    let forgotten: Vec<PathBuf> = remembered
        .iter()
        .filter(|r| !is_narrowed(args) && r.place == place && r.namespace == namespace && r.pod == pod)
        .map(|r| r.file.clone())
        .collect();
    if over.is_empty() && forgotten.is_empty() {
        return Err(Failure::input(words.to_owned())
            .because("nothing on this machine leads to a pod of that name there")
            .hint(session.command(&["get", "pods"]))
            .hint(session.bare_verb("clean")));
    }
    let mut told: Vec<wire::Seat> = Vec::new();
    for owner in over.iter().map(|s| &s.owner) {
        let seat = escape(&owner.seat, 80);
        if told.iter().any(|t| t.seat == seat) {
            continue;
        }
        told.push(wire::Seat {
            namespace: namespace.to_owned(),
            pod: pod.to_owned(),
            seat,
            target: None,
            owner: None,
            outcome: Outcome::PodGone,
            why: None,
            instead: None,
            state: None,
        });
    }
    let (removed, failure) = take_back(session, args, &over, &forgotten);
    finish(
        session,
        Detach {
            schema: wire::DETACH,
            dry_run: args.dry_run,
            context: context.name.clone(),
            namespace: namespace.to_owned(),
            pod: pod.to_owned(),
            pod_uid: None,
            seats: told,
            resized: Vec::new(),
            removed,
            kept: Vec::new(),
            calls: session.calls(),
            warnings: Vec::new(),
        },
        failure,
    )
}

/// What goes from this disk, and what of it the disk refused.
fn take_back(
    session: &Session<'_>,
    args: &cli::Detach,
    over: &[Stanza],
    forgotten: &[PathBuf],
) -> (Removed, Option<Failure>) {
    let mut taken = Taken::default();
    let done = disk::take_back(session.settings, over, mode(args), &mut taken)
        .and_then(|()| disk::remove_all(session.settings, forgotten, mode(args), &mut taken));
    (taken.into(), done.err())
}

const fn mode(args: &cli::Detach) -> Mode {
    if args.dry_run { Mode::DryRun } else { Mode::Remove }
}

fn finish(session: &Session<'_>, report: Detach, failure: Option<Failure>) -> Result<Done, Failure> {
    session.ui.clear();
    let text = wire::detach(&report, Style::stdout(session.settings));
    Ok(Done { answer: Answer::Value(super::to_value(&report)?, text), failure })
}

#[cfg(test)]
#[path = "detach_tests.rs"]
mod tests;
