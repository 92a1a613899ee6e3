//! Landing: each rung is rehearsed, compared, written with the resourceVersion kept, and waited for.

use std::cell::Cell;
use std::time::{Duration, Instant};

use podbench_contract::ids::SeatName;
use podbench_contract::rung::Rung;
use serde_json::Value;

use super::reuse::{self, Found};
use super::{conflict, wait};
use crate::kubectl::refusal::{Refusal, Right};
use crate::kubectl::{Error, Kubectl, Mode, Started};
use crate::ladder::{End, Ladder, Next};
use crate::pod::Pod;
use crate::report::attach::Channel;
use crate::spec::ephemeral::Plan;
use crate::spec::rewrite::{Rewrite, stored};
use crate::spec::security::Security;

/// How a walk ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Walked {
    /// A seat runs.
    Landed(SeatName, Rung),
    /// One ran already that is what would have been stored.
    Running(Found),
    /// None does; with `--dry-run`, the name that the next one would have.
    Ended(End, SeatName),
}

/// What a walk needs besides the ladder.
pub struct Landing<'k> {
    /// The cluster.
    pub kubectl: &'k Kubectl,
    /// How long a stored seat may take to run.
    pub timeout: Duration,
    /// Set from the moment in which a seat may be stored, whatever comes after.
    pub written: Cell<Option<SeatName>>,
    /// May a seat be entered that runs already? Not with `--new`.
    pub reuse: bool,
}

impl<'k> Landing<'k> {
    /// Nothing is written yet, and whatever runs already isn't entered.
    #[must_use]
    pub const fn new(kubectl: &'k Kubectl, timeout: Duration) -> Self {
        Self { kubectl, timeout, written: Cell::new(None), reuse: false }
    }

    /// A seat that runs already and is what would be stored is entered instead, where `reuse` says so.
    #[must_use]
    pub fn reusing(self, reuse: bool) -> Self {
        Self { reuse, ..self }
    }

    /// Walks the ladder until a seat runs or nothing is left. `pod` is kept at its newest.
    ///
    /// # Errors
    /// When a call failed in a way that says nothing about the seat: ctrl-C, a deadline, no kubectl.
    pub fn walk(&self, pod: &mut Pod, plan: &mut Plan, ladder: &mut Ladder) -> Result<Walked, Error> {
        let kubectl = self.kubectl;
        // Beside the first rehearsal: a seat that its user may not enter spends a name for nothing.
        let mut enter = Some(kubectl.may(pod.namespace(), "create", EXEC)?);
        let mut next = ladder.advance();
        loop {
            next = match next {
                Next::Rehearse(security) => match put(kubectl, pod, plan, &security, Mode::DryRun) {
                    Ok(put) => {
                        let next = ladder.rehearsed(&put.rewrite());
                        if let (Next::Land(security), Some(stored), true) = (&next, put.stored(), self.reuse)
                            && let Some(found) = reuse::twin(pod, plan, security.rung(), stored)
                        {
                            return Ok(Walked::Running(found));
                        }
                        next
                    }
                    Err(Put::Refused(refusal, name)) => {
                        let refusal = settle(kubectl, pod, plan, refusal)?;
                        ladder.refused(Channel::Rehearsal, refusal, &name.to_string())
                    }
                    Err(Put::Failed(error)) => return Err(error),
                },
                Next::Land(security) => {
                    if let Some(review) = enter.take()
                        && let Some(refusal) = no_entry(kubectl, pod, plan, review.finish())?
                    {
                        return Ok(Walked::Ended(End::Refused(refusal), next_name(pod)));
                    }
                    match self.land(pod, plan, ladder, &security)? {
                        Ok(landed) => return Ok(landed),
                        Err(next) => next,
                    }
                }
                Next::Done(rung) => return Ok(Walked::Landed(next_name(pod), rung)),
                Next::End(end) => {
                    // It has had the whole rehearsal's time; without an answer nothing is known.
                    let allowed = enter.take().map(|review| review.finish_within(REVIEW));
                    let refusal = match (&end, allowed) {
                        // Where something says no already, that is what is told.
                        (End::WouldLand(_) | End::Unmet(_), Some(answer)) => {
                            no_entry(kubectl, pod, plan, answer)?
                        }
                        _ => None,
                    };
                    return Ok(Walked::Ended(refusal.map_or(end, End::Refused), next_name(pod)));
                }
            };
        }
    }

    /// Stores one rung and waits for it; the inner error is the ladder's next step.
    fn land(
        &self,
        pod: &mut Pod,
        plan: &mut Plan,
        ladder: &mut Ladder,
        security: &Security,
    ) -> Result<Result<Walked, Next>, Error> {
        // Started first: what the kubelet does between the write's answer and the watch's start
        // would otherwise be asked for again.
        let watch = self.kubectl.watch_pod(pod.name()).ok();
        self.written.set(Some(next_name(pod)));
        match put(self.kubectl, pod, plan, security, Mode::Store) {
            Ok(put) => {
                self.written.set(Some(put.name));
                let deadline = Instant::now() + self.timeout;
                let target = (plan.target.as_str(), plan.target_id.as_ref());
                match wait::until_running(self.kubectl, watch, pod, put.name, target, deadline)? {
                    None => {
                        ladder.landed(&put.rewrite());
                        Ok(Ok(Walked::Landed(put.name, security.rung())))
                    }
                    Some(trouble) => Ok(Err(ladder.node_refused(trouble, &put.name.to_string()))),
                }
            }
            Err(Put::Refused(refusal, name)) => {
                drop(watch);
                self.written.set(None);
                let refusal = settle(self.kubectl, pod, plan, refusal)?;
                Ok(Err(ladder.refused(Channel::Admission, refusal, &name.to_string())))
            }
            // Nobody said no: the write may have arrived, and its answer didn't.
            Err(Put::Failed(error)) => Err(error),
        }
    }
}

const EXEC: &str = "pods/exec";
/// How much longer than its rehearsals a dry run waits for the access review.
const REVIEW: Duration = Duration::from_secs(3);

/// May the user enter a seat at all? Until 1.35 an exec over websockets needed `get` and no
/// `create`.
fn no_entry(
    kubectl: &Kubectl,
    pod: &Pod,
    plan: &Plan,
    review: Result<bool, Error>,
) -> Result<Option<Refusal>, Error> {
    let answered = |answer: Result<bool, Error>| match answer {
        Err(Error::Interrupted) => Err(Error::Interrupted),
        // A server that doesn't answer this question answers the exec.
        other => Ok(other.unwrap_or(true)),
    };
    if answered(review)? {
        return Ok(None);
    }
    let old = || -> Result<bool, Error> {
        let minor = kubectl.server_minor()?.finish();
        Ok(minor.is_ok_and(|minor| minor < 35)
            && answered(kubectl.may(pod.namespace(), "get", EXEC)?.finish())?)
    };
    Ok(if old()? { None } else { Some(Refusal::Rbac(lacks(pod, plan, "create", EXEC))) })
}

fn lacks(pod: &Pod, plan: &Plan, verb: &str, resource: &str) -> Right {
    Right {
        user: plan.owner.clone().unwrap_or_else(|| "the user".to_owned()),
        verb: verb.to_owned(),
        resource: resource.to_owned(),
        group: String::new(),
        namespace: Some(pod.namespace().to_owned()),
    }
}

fn next_name(pod: &Pod) -> SeatName {
    let taken = pod.taken_names();
    SeatName::next_free(taken.iter().map(String::as_str))
}

/// A write that was answered.
struct Answered {
    name: SeatName,
    sent: Value,
    pod: Value,
}

impl Answered {
    /// What the server made of the container. An answer without it says nothing.
    fn rewrite(&self) -> Rewrite {
        self.stored().map_or_else(Rewrite::default, |got| Rewrite::compare(&self.sent, got))
    }

    fn stored(&self) -> Option<&Value> {
        stored(&self.pod, &self.name.to_string())
    }
}

enum Put {
    Refused(Refusal, SeatName),
    Failed(Error),
}

/// Writes the pod with one more seat. After a conflict the pod is read again, the name picked anew
/// and the object rebuilt.
fn put(
    kubectl: &Kubectl,
    pod: &mut Pod,
    plan: &mut Plan,
    security: &Security,
    mode: Mode,
) -> Result<Answered, Put> {
    let mut conflicts = 0;
    loop {
        let name = next_name(pod);
        let sent = plan.container(name, security);
        let body = pod.with_ephemeral(sent.clone());
        let answer = kubectl.put_ephemeral(pod.namespace(), pod.name(), &body, mode, security.rung());
        match answer.and_then(Started::finish) {
            Ok(pod) => return Ok(Answered { name, sent, pod }),
            Err(Error::Refused(Refusal::Conflict)) => {
                if !conflict::again(kubectl, pod, &mut conflicts).map_err(Put::Failed)? {
                    return Err(Put::Refused(Refusal::Conflict, name));
                }
                plan.target_id = pod.container(&plan.target).and_then(|c| c.id());
            }
            Err(error) if mode == Mode::Store && error.is_lost() => return Err(Put::Failed(error)),
            Err(Error::Refused(refusal)) => return Err(Put::Refused(refusal, name)),
            Err(error) => return Err(Put::Failed(error)),
        }
    }
}

/// A `(Forbidden)` that names neither RBAC nor a policy is settled by asking.
fn settle(kubectl: &Kubectl, pod: &Pod, plan: &Plan, refusal: Refusal) -> Result<Refusal, Error> {
    if !matches!(refusal, Refusal::Forbidden(_)) {
        return Ok(refusal);
    }
    const RESOURCE: &str = "pods/ephemeralcontainers";
    match kubectl.may(pod.namespace(), "update", RESOURCE)?.finish() {
        Ok(false) => Ok(Refusal::Rbac(lacks(pod, plan, "update", RESOURCE))),
        Ok(true) => Ok(refusal),
        Err(Error::Interrupted) => Err(Error::Interrupted),
        // Nobody knows; the words that came first stand.
        Err(_) => Ok(refusal),
    }
}

#[cfg(test)]
#[path = "land_tests.rs"]
mod tests;
