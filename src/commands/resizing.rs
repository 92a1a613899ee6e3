//! `attach --resize`: what was typed, and what the report says of it.

use podbench_contract::resized::{Resource, Share};

use super::Session;
use crate::cli;
use crate::error::Failure;
use crate::kubectl::Mode;
use crate::pod::Pod;
use crate::report::attach as wire;
use crate::resize::plan::Wish;
use crate::resize::{self, State};
use crate::seat::inventory::Caller;
use crate::spec::ephemeral::Plan;

/// Resizes the target where that was asked for; the seat's plan takes the old values with it.
///
/// # Errors
/// Ctrl-C alone.
pub(super) fn before_seat(
    args: &cli::Attach,
    session: &Session<'_>,
    (pod, caller): (&mut Pod, &Caller),
    plan: &mut Plan,
    warnings: &mut Vec<String>,
) -> Result<Option<wire::Resized>, Failure> {
    let typed = [(Resource::Memory, args.resize), (Resource::Cpu, args.resize_cpu)];
    let wishes: Vec<Wish> =
        typed.into_iter().filter_map(|(resource, size)| Some(Wish { resource, size: size? })).collect();
    if wishes.is_empty() {
        return Ok(None);
    }
    let mode = if args.is_dry_run() { Mode::DryRun } else { Mode::Store };
    let outcome =
        resize::before_seat(session, pod, caller, &plan.target, &wishes, mode).map_err(|failure| {
            failure.because("the target may be resized already").hint(undo(session, pod.name()))
        })?;
    warnings.extend(outcome.warnings);
    let Some(resized) = outcome.resized else { return Ok(None) };
    if resized.state != State::Rehearsed {
        plan.resized.clone_from(&resized.changes);
    }
    let shares = |share: fn(&podbench_contract::resized::Change) -> Share| {
        let of = |resource| {
            let change = resized.changes.iter().find(|c| c.resource == resource).map(share)?;
            Some(wire::Share { request: change.request.to_string(), limit: change.limit.to_string() })
        };
        wire::Shares { memory: of(Resource::Memory), cpu: of(Resource::Cpu) }
    };
    let (state, why) = match &resized.state {
        State::Actual => (wire::ResizeState::Actual, None),
        State::Pending(words) => (wire::ResizeState::Pending, Some(words.clone())),
        State::Rehearsed => (wire::ResizeState::Rehearsed, None),
    };
    Ok(Some(wire::Resized {
        container: resized.container.clone(),
        from: shares(|c| c.from),
        to: shares(|c| c.to),
        state,
        why,
        undo: undo(session, pod.name()),
    }))
}

fn undo(session: &Session<'_>, pod: &str) -> String {
    session.verb("detach", pod)
}

/// A failure that comes after a resize says that it was done.
pub(super) fn kept(resized: Option<&wire::Resized>, failure: Failure) -> Failure {
    match resized.filter(|r| r.state != wire::ResizeState::Rehearsed) {
        Some(r) => {
            failure.because(format!("{} is resized all the same: {}", r.container, r.values())).hint(&r.undo)
        }
        None => failure,
    }
}
