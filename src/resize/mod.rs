//! `--resize`: the target's memory or processor time, changed in place through `pods/resize`. Opt-in,
//! before the seat, and never fatal: what isn't done is one warning. What was there before is written
//! down before anything is changed, and [`restore`](restore::restore) gives it back.
//!
//! - [`mod@plan`]: from what was asked to what is written: QoS class, `LimitRange`s, requests
//! - [`ranges`]: what the namespace's `LimitRange`s allow
//! - [`qos`]: a pod's QoS class, which no resize may change
//! - [`write`](mod@write): the patch, its conflicts, and what a refusal means
//! - [`follow`]: until the kubelet has done it, or says why it doesn't
//! - [`journal`]: what was changed, from seats' environments and `~/.podbench/state`
//! - [`mod@restore`]: the way back

pub mod follow;
pub mod journal;
pub mod plan;
pub mod qos;
pub mod ranges;
pub mod restore;
pub mod write;

use podbench_contract::quantity::Quantity;
use podbench_contract::resized::{Change, Resource, Share};
use serde_json::Value;

use self::follow::End;
use self::journal::Journal;
use self::plan::{No, Step, Wish};
use self::ranges::Range;
use self::write::{Change as Patch, Put};
use crate::commands::Session;
use crate::error::Failure;
use crate::kubectl::{Error, Mode, Started};
use crate::pod::{Container, Kind, Pod};
use crate::seat::conflict;
use crate::seat::inventory::Caller;

pub use journal::{Journalled, Remembered, journalled, remembered};
pub use restore::{Restored, restore};

/// What a container has now of a resource; `None` where it isn't limited, or in a spelling that
/// nobody knows.
#[must_use]
pub fn share(container: &Container<'_>, resource: Resource) -> Option<Share> {
    let limit = amount(container.spec, "limits", resource)?;
    let request = amount(container.spec, "requests", resource).unwrap_or(Quantity::ZERO);
    Some(Share { request, limit })
}

/// One amount of a `resources` object's owner.
fn amount(owner: &Value, list: &str, resource: Resource) -> Option<Quantity> {
    owner.get("resources")?.get(list)?.get(resource.as_str())?.as_str()?.parse().ok()
}

/// The container that a change is about, where it can have been resized at all.
fn resizable<'p>(pod: &'p Pod, name: &str) -> Option<Container<'p>> {
    pod.container(name).filter(|c| matches!(c.kind, Kind::Regular | Kind::Sidecar))
}

/// How a resize ended that wasn't refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// It is in force.
    Actual,
    /// It is stored, and the kubelet hasn't done it yet: its words.
    Pending(String),
    /// `--dry-run`: the server would store it.
    Rehearsed,
}

/// A resize that was done, or would be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resized {
    /// The container.
    pub container: String,
    /// Each resource, from what it was before podbench first changed it.
    pub changes: Vec<Change>,
    /// How far it is.
    pub state: State,
}

/// What came of `--resize`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// What was resized, now or by an earlier run that asked for the same.
    pub resized: Option<Resized>,
    /// What wasn't, and why: one line each.
    pub warnings: Vec<String>,
}

impl Outcome {
    fn not(why: impl std::fmt::Display) -> Self {
        let why = why.to_string().replace('\n', " ");
        Self { resized: None, warnings: vec![format!("not resized: {why}")] }
    }
}

/// Resizes the target. `pod` is kept at its newest, so that the seat's write meets no conflict.
///
/// # Errors
/// Ctrl-C alone: everything else that stands in the way is a warning.
pub fn before_seat(
    session: &Session<'_>,
    pod: &mut Pod,
    caller: &Caller,
    target: &str,
    wishes: &[Wish],
    mode: Mode,
) -> Result<Outcome, Failure> {
    match attempt(session, pod, caller, target, wishes, mode) {
        Ok(outcome) => Ok(outcome),
        Err(Error::Interrupted) => Err(Error::Interrupted.into()),
        Err(error) => Ok(Outcome::not(error)),
    }
}

fn attempt(
    session: &Session<'_>,
    pod: &mut Pod,
    caller: &Caller,
    target: &str,
    wishes: &[Wish],
    mode: Mode,
) -> Result<Outcome, Error> {
    let ranges = match session.kubectl.limit_ranges().and_then(Started::finish) {
        Ok(list) => Range::read(&list),
        Err(Error::Interrupted) => return Err(Error::Interrupted),
        // Without the right to read them the server is who says it.
        Err(_) => Vec::new(),
    };
    let mut conflicts = 0;
    loop {
        let steps = match plan::plan(pod, target, wishes, &ranges) {
            Ok(steps) => steps,
            Err(no) => return Ok(not(session, pod, &no)),
        };
        let changes = match journal::first_values(session.settings, pod, caller, target, &steps) {
            Ok(changes) => changes,
            Err(failure) => return Ok(Outcome::not(unwritten(&failure))),
        };
        if steps.iter().all(Step::is_nothing) {
            return Ok(already(target, &steps, changes));
        }
        let patch = Patch::new(target, &steps);
        if mode == Mode::DryRun {
            match write::put(session.kubectl, pod, &patch, mode)? {
                Put::Stored => {
                    let state = State::Rehearsed;
                    let resized = Some(Resized { container: target.to_owned(), changes, state });
                    return Ok(Outcome { resized, warnings: Vec::new() });
                }
                Put::Conflict if conflict::again(session.kubectl, pod, &mut conflicts)? => continue,
                Put::Conflict => return Ok(Outcome::not(write::BUSY)),
                Put::Refused(why) | Put::Lost(why) => return Ok(Outcome::not(why)),
            }
        }
        // First, so that nothing that is changed is ever forgotten, whatever comes after.
        let (memory, before) = match Journal::of(session).and_then(|memory| {
            let before = journal::remember(&memory, pod, &changes)?;
            Ok((memory, before))
        }) {
            Ok(before) => before,
            Err(failure) => return Ok(Outcome::not(unwritten(&failure))),
        };
        session.progress("resizing the target");
        let watch = session.kubectl.watch_pod_until(pod.name(), "until the resize is in force").ok();
        let why = match write::put(session.kubectl, pod, &patch, mode)? {
            Put::Stored => {
                let end = match follow::until_done(session.kubectl, watch, pod, &patch) {
                    Err(Error::Interrupted) => return Err(Error::Interrupted),
                    // Stored, and nobody can say how far it is.
                    Err(error) => End::Late(error.to_string()),
                    Ok(end) => end,
                };
                match settled(session, pod, target, &steps, end)? {
                    Ok(state) => {
                        let resized = Some(Resized { container: target.to_owned(), changes, state });
                        return Ok(Outcome { resized, warnings: Vec::new() });
                    }
                    Err(why) => why,
                }
            }
            Put::Conflict if conflict::again(session.kubectl, pod, &mut conflicts)? => {
                journal::put_back(&memory, pod, &before);
                continue;
            }
            Put::Conflict => write::BUSY.to_owned(),
            Put::Refused(why) => why,
            // The old values stay remembered.
            Put::Lost(why) => {
                let undo = session.verb("detach", pod.name());
                return Ok(Outcome::not(format!(
                    "{why}; it may be stored all the same, and `{undo}` gives the old values back"
                )));
            }
        };
        journal::put_back(&memory, pod, &before);
        return Ok(Outcome::not(why));
    }
}

fn unwritten(failure: &Failure) -> String {
    format!("the old values can't be written down: {}", failure.message)
}

fn not(session: &Session<'_>, pod: &Pod, no: &No) -> Outcome {
    let mut outcome = Outcome::not(no);
    if let No::WouldRestart(_) = no {
        let get = session.command(&["get", "pod", pod.name(), "-o", "yaml"]);
        if let Some(warning) = outcome.warnings.first_mut() {
            *warning = format!("{warning} ({get} shows its resizePolicy)");
        }
    }
    outcome
}

/// Nothing to write: an earlier run did it, or nobody had to.
fn already(target: &str, steps: &[Step], changes: Vec<Change>) -> Outcome {
    let changes: Vec<Change> = changes.into_iter().filter(|c| c.from != c.to).collect();
    if !changes.is_empty() {
        let resized = Resized { container: target.to_owned(), changes, state: State::Actual };
        return Outcome { resized: Some(resized), warnings: Vec::new() };
    }
    let has: Vec<String> = steps.iter().map(|s| format!("{} {}", s.resource, s.to)).collect();
    Outcome::not(format!("{target} has {} already", has.join(", ")))
}

/// What the kubelet's answer amounts to: a state, or why it was taken back.
fn settled(
    session: &Session<'_>,
    pod: &mut Pod,
    target: &str,
    steps: &[Step],
    end: End,
) -> Result<Result<State, String>, Error> {
    let why = match end {
        End::Actual => return Ok(Ok(State::Actual)),
        // Taken by the kubelet, and on its way.
        End::Late(words) => return Ok(Ok(State::Pending(words))),
        End::Infeasible(words) | End::Deferred(words) | End::Failing(words) => words,
    };
    let back: Vec<Step> = steps.iter().map(Step::back).collect();
    let patch = Patch::new(target, &back);
    let undone = write::put_unless_changed(session.kubectl, pod, &back, &patch);
    let no = match undone {
        Ok(Put::Stored) => return Ok(Err(format!("{why}; the values from before are back"))),
        Ok(Put::Conflict) => {
            let said = "and somebody else has changed the resources meanwhile, so they stay";
            return Ok(Err(format!("{why}; {said}")));
        }
        Ok(Put::Refused(no) | Put::Lost(no)) => no,
        Err(Error::Interrupted) => return Err(Error::Interrupted),
        Err(error) => error.to_string(),
    };
    // It is stored, so it is remembered.
    let by_hand = patch.command(session, pod);
    Ok(Ok(State::Pending(format!(
        "{why}; the values from before couldn't be put back ({no}), and this does it: {by_hand}"
    ))))
}

#[cfg(test)]
mod tests;
