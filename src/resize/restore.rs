//! The way back: what podbench changed, and nobody since, gets its old values.

use podbench_contract::resized::Change;

use super::follow::{self, End};
use super::journal::{self, Journal, Journalled};
use super::plan::Step;
use super::write::{self, Change as Patch, Put};
use super::{resizable, share};
use crate::commands::Session;
use crate::error::Failure;
use crate::kubectl::{Error, Mode};
use crate::pod::Pod;
use crate::seat::conflict;

/// What became of a restore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Restored {
    /// The old values are in force. `left`: what isn't ours to restore.
    Done {
        /// What was given back.
        changes: Vec<Change>,
        /// What somebody else changed since, and stays.
        left: Option<String>,
    },
    /// A dry run: the server would take them.
    Would {
        /// What would be given back.
        changes: Vec<Change>,
        /// As above.
        left: Option<String>,
    },
    /// The old values are stored, and the kubelet hasn't done it yet.
    Pending {
        /// What was given back.
        changes: Vec<Change>,
        /// The kubelet's words.
        reason: String,
    },
    /// They are back already, somebody else changed them since, or the container is gone.
    NothingToDo {
        /// Which of these.
        why: String,
    },
    /// Somebody said no, or nobody answered: it stays as podbench made it, and is remembered.
    Refused {
        /// Their words, and what is missing, or why there is no answer.
        reason: String,
    },
}

/// Gives a container its old values back. `pod` is kept at its newest. What was restored, or is nobody's
/// business any more, this machine forgets.
///
/// # Errors
/// When the cluster can't be asked, on ctrl-C, and when this machine's file can't be written.
pub fn restore(
    session: &Session<'_>,
    pod: &mut Pod,
    entry: &Journalled,
    mode: Mode,
) -> Result<Restored, Failure> {
    let memory = Journal::of(session)?;
    let mut conflicts = 0;
    let (changes, left, patch) = loop {
        let (steps, changes, left) = sort(pod, entry);
        if steps.is_empty() {
            if mode == Mode::Store {
                journal::forget(&memory, pod, &entry.container)?;
            }
            let why = left.unwrap_or_else(|| format!("{} has its old values already", entry.container));
            return Ok(Restored::NothingToDo { why });
        }
        let patch = Patch::new(&entry.container, &steps);
        match write::put(session.kubectl, pod, &patch, mode)? {
            Put::Stored => break (changes, left, patch),
            Put::Conflict if conflict::again(session.kubectl, pod, &mut conflicts)? => {}
            Put::Conflict => return Ok(Restored::Refused { reason: write::BUSY.to_owned() }),
            Put::Refused(reason) => return Ok(Restored::Refused { reason }),
            Put::Lost(why) => {
                let reason = format!("{why}; the old values may be stored all the same");
                return Ok(Restored::Refused { reason });
            }
        }
    };
    if mode == Mode::DryRun {
        return Ok(Restored::Would { changes, left });
    }
    let watch = session.kubectl.watch_pod_until(pod.name(), "until the old values are in force").ok();
    let end = follow::until_done(session.kubectl, watch, pod, &patch);
    // Stored either way: what is wanted is in the pod's spec.
    journal::forget(&memory, pod, &entry.container)
        .map_err(|failure| failure.because(format!("{} has its old values again", entry.container)))?;
    Ok(match end {
        Ok(End::Actual) => Restored::Done { changes, left },
        Ok(End::Infeasible(reason) | End::Deferred(reason) | End::Failing(reason) | End::Late(reason)) => {
            Restored::Pending { changes, reason }
        }
        Err(Error::Interrupted) => return Err(Error::Interrupted.into()),
        Err(error) => Restored::Pending { changes, reason: error.to_string() },
    })
}

/// What is still as podbench made it, and a sentence about what isn't.
fn sort(pod: &Pod, entry: &Journalled) -> (Vec<Step>, Vec<Change>, Option<String>) {
    let Some(container) = resizable(pod, &entry.container) else {
        return (
            Vec::new(),
            Vec::new(),
            Some(format!("the pod has no container {} any more", entry.container)),
        );
    };
    let (mut steps, mut ours, mut left) = (Vec::new(), Vec::new(), Vec::new());
    for (change, _) in &entry.changes {
        let now = share(&container, change.resource);
        if now == Some(change.to) && change.from != change.to {
            steps.push(Step { resource: change.resource, now: change.to, to: change.from });
            ours.push(change.clone());
        } else if now != Some(change.from) {
            let now = now.map_or_else(|| "without a limit".to_owned(), |share| share.to_string());
            left.push(format!(
                "{}'s {} is {now}, and podbench set {}: somebody else has changed it since, so it stays",
                change.container, change.resource, change.to
            ));
        }
    }
    (steps, ours, (!left.is_empty()).then(|| left.join("; ")))
}
