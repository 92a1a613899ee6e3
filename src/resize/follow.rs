//! From stored to in force. Bounded: what the kubelet can't do at once and doesn't explain is waited
//! for some seconds, and nothing hangs.

use std::time::{Duration, Instant};

use podbench_contract::resized::Resource;
use podbench_contract::text::escape;
use serde_json::Value;

use super::write::Change;
use super::{amount, resizable};
use crate::kubectl::{Error, Kubectl, Watch};
use crate::pod::Pod;
use crate::seat::follow::{Follow, Seen};

/// How long the whole may take. A cgroup is written in a fraction of a second.
const LIMIT: Duration = Duration::from_secs(15);
/// How long the kubelet may say "not now", or fail: it tries again by itself, now or tomorrow night.
const PATIENCE: Duration = Duration::from_secs(3);

/// How it ended; with the kubelet's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// It is in force.
    Actual,
    /// The node will never do it.
    Infeasible(String),
    /// The node can't do it now.
    Deferred(String),
    /// The kubelet tries, and fails.
    Failing(String),
    /// It wasn't done in time, and nobody says why.
    Late(String),
}

/// What one look at the pod says.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Judged {
    Actual,
    Infeasible(String),
    Deferred(String),
    Failing(String),
    Wait,
}

/// Follows a change that was stored. `pod` is what the write answered, and is kept at its newest.
///
/// # Errors
/// Ctrl-C, or the pod can be neither watched nor read.
pub fn until_done(
    kubectl: &Kubectl,
    watch: Option<Watch<'_>>,
    pod: &mut Pod,
    change: &Change,
) -> Result<End, Error> {
    let generation = generation(pod.value(), "/metadata/generation");
    let deadline = Instant::now() + LIMIT;
    let mut trouble: Option<Instant> = None;
    let mut follow = Follow::new(kubectl, watch);
    loop {
        let seen = judge(pod, change, generation);
        match &seen {
            Judged::Actual => return Ok(End::Actual),
            Judged::Infeasible(words) => return Ok(End::Infeasible(words.clone())),
            Judged::Deferred(_) | Judged::Failing(_) => {
                trouble.get_or_insert_with(Instant::now);
            }
            Judged::Wait => trouble = None,
        }
        let until = trouble.map_or(deadline, |at| deadline.min(at + PATIENCE));
        if Instant::now() >= until {
            return Ok(match seen {
                Judged::Deferred(words) => End::Deferred(words),
                Judged::Failing(words) => End::Failing(words),
                Judged::Actual | Judged::Infeasible(_) | Judged::Wait => End::Late(late(pod)),
            });
        }
        // The watch begins with what was there before the write, which isn't the newest.
        let mut new = pod.clone();
        match follow.next(&mut new, until)? {
            Seen::Gone => return Ok(End::Late(format!("pod {} was deleted", pod.name()))),
            Seen::Pod if self::generation(new.value(), "/metadata/generation") >= generation => *pod = new,
            Seen::Pod | Seen::Late => {}
        }
    }
}

fn generation(value: &Value, pointer: &str) -> Option<u64> {
    value.pointer(pointer).and_then(Value::as_u64)
}

fn late(pod: &Pod) -> String {
    format!("the kubelet of node {} hasn't done it within {} s", pod.node(), LIMIT.as_secs())
}

/// A condition of this write, not of an earlier one: its reason and its words.
fn condition(pod: &Pod, kind: &str, wanted: Option<u64>) -> Option<(String, String)> {
    let condition = pod.condition(kind)?;
    let stale = match (generation(condition, "/observedGeneration"), wanted) {
        (Some(seen), Some(wanted)) => seen < wanted,
        // Servers before 1.34 don't say.
        (None, _) | (_, None) => false,
    };
    let text = |field: &str| escape(condition.get(field).and_then(Value::as_str).unwrap_or_default(), 500);
    (text("status") == "True" && !stale).then(|| (text("reason"), text("message")))
}

fn judge(pod: &Pod, change: &Change, wanted: Option<u64>) -> Judged {
    let words = |reason: &str, message: String| {
        if message.is_empty() { reason.to_owned() } else { format!("{reason}: {message}") }
    };
    if let Some((reason, message)) = condition(pod, "PodResizePending", wanted) {
        let said = format!("the node says {}", words(&reason, message));
        return if reason == "Infeasible" { Judged::Infeasible(said) } else { Judged::Deferred(said) };
    }
    if let Some((reason, message)) = condition(pod, "PodResizeInProgress", wanted) {
        if reason == "Error" {
            return Judged::Failing(format!("the node says {}", words(&reason, message)));
        }
        return Judged::Wait;
    }
    let observed = generation(pod.value(), "/status/observedGeneration");
    if observed.is_some_and(|seen| wanted.is_some_and(|wanted| seen < wanted)) {
        return Judged::Wait;
    }
    let Some(container) = resizable(pod, &change.container) else { return Judged::Wait };
    let done = container.status.is_some_and(|status| {
        change.steps.iter().all(|step| {
            let has = |list: &str, r: Resource| amount(status, list, r);
            has("limits", step.resource) == Some(step.to.limit)
                && has("requests", step.resource).is_none_or(|request| request == step.to.request)
        })
    });
    if done { Judged::Actual } else { Judged::Wait }
}

#[cfg(test)]
#[path = "follow_tests.rs"]
mod tests;
