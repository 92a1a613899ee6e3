//! What ended a seat.

use crate::pod::{Container, Pod, State as Said};
use crate::report::seats::{State, time};
use crate::report::time::seconds;
use crate::seat::inventory::{Caller, Inventory, Seat};

/// How far apart the kubelet may write the ends of two containers that ended as one.
const TOGETHER: u64 = 5;

/// What ended a seat: a target that ends takes its PID namespace along, and every seat in it.
pub(in crate::commands) fn cause(pod: &Pod, seat: &Seat<'_>, state: &State) -> Option<String> {
    let code = state.exit_code?;
    let ended = seconds(state.finished_at.as_deref()?)?;
    if code == 0 {
        return Some("it ended with exit code 0, as after `podbench detach`".to_owned());
    }
    let target = pod.container(seat.target)?;
    let exits = exits(&target);
    let apart = |exit: &State| Some(seconds(exit.finished_at.as_deref()?)?.abs_diff(ended));
    let cause = exits.iter().filter(|e| apart(e).is_some_and(|a| a <= TOGETHER)).min_by_key(|e| apart(e));
    if let Some(exit) = cause {
        let reason = exit.reason.as_deref().map(|r| format!(" ({r})")).unwrap_or_default();
        return Some(format!(
            "terminated with its target: {} ended with exit code {}{reason} at {}",
            seat.target,
            exit.exit_code.unwrap_or(-1),
            exit.finished_at.as_deref().unwrap_or_default(),
        ));
    }
    let later = exits.iter().any(|e| e.finished_at.as_deref().and_then(seconds).is_some_and(|at| at > ended));
    (code == 137).then(|| {
        if later {
            format!("killed; {} has ended again since, and the kubelet keeps only its last exit", seat.target)
        } else {
            format!(
                "killed, and not by the end of {}: by the kernel for want of memory, or by somebody",
                seat.target
            )
        }
    })
}

/// How a container ended, as far as the kubelet remembers.
fn exits(container: &Container<'_>) -> Vec<State> {
    let now = matches!(container.state(), Said::Terminated { .. }).then(|| State::of(container));
    now.into_iter().chain(last_exit(container)).collect()
}

pub(in crate::commands) fn last_exit(container: &Container<'_>) -> Option<State> {
    let last = container.last_exit()?;
    let at = |field: &str| time(container.status?.pointer(&format!("/lastState/terminated/{field}"))?);
    Some(State {
        name: "ended",
        exit_code: Some(last.code),
        reason: (!last.reason.is_empty()).then_some(last.reason),
        message: None,
        started_at: at("startedAt"),
        finished_at: at("finishedAt"),
    })
}

/// The caller's newest seat beside this target, where it has ended otherwise than by `podbench detach`:
/// one line, for whoever lands the next one.
pub(in crate::commands) fn before(pod: &Pod, target: &str, caller: &Caller) -> Option<String> {
    let inventory = Inventory::of(pod);
    let seat = inventory.seats.iter().rfind(|s| s.target == target && s.is_of(caller))?;
    let state = State::of(&seat.container);
    let code = state.exit_code.filter(|code| seat.has_ended() && *code != 0)?;
    let cause = cause(pod, seat, &state).unwrap_or_else(|| format!("it ended with exit code {code}"));
    Some(format!("your seat {} is gone: {cause}", seat.name))
}

#[cfg(test)]
#[path = "ended_tests.rs"]
mod tests;
