//! The walk down the rungs: an outcome goes in, the next step comes out. No I/O; every decision is
//! a total function, so a new outcome or refusal doesn't compile until someone decides about it.

use podbench_contract::ids::{Gid, Uid};
use podbench_contract::rung::Rung;
use serde_json::Value;

use crate::kubectl::refusal::{Refusal, allowed_uid};
use crate::pod::ids::Ids;
use crate::report::attach::{Channel, Outcome as StepOutcome, Step};
use crate::spec::rewrite::Rewrite;
use crate::spec::security::{NonRoot, Security};

/// What the order and the pre-skips depend on.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// The target's ids: from flags, the pod, or the node.
    pub target: Ids,
    /// Other uids live in the target's PID namespace.
    pub shares_pids: bool,
    /// `--max-rung`.
    pub ceiling: Option<Rung>,
    /// `--require`: a lower rung would cost a name for nothing.
    pub require: Option<Rung>,
    /// The target container's own seccomp profile.
    pub seccomp: Option<Value>,
    /// `--dry-run`: every rung is rehearsed, none is landed.
    pub rehearse_only: bool,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Send this with `dryRun=All`, and tell with [`Ladder::rehearsed`] or [`Ladder::refused`].
    Rehearse(Security),
    /// Store it, and tell with [`Ladder::landed`], [`Ladder::refused`] or [`Ladder::node_refused`].
    Land(Security),
    /// A seat runs on this rung.
    Done(Rung),
    /// Nothing is left, or nothing further can help.
    End(End),
}

/// Why the walk ended without a seat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// Every rung was skipped, withdrawn or refused; the steps say why.
    Exhausted,
    /// Likewise, of the rungs that `--require` leaves.
    Unmet(Rung),
    /// `--dry-run`: this rung would land.
    WouldLand(Rung),
    /// The pod itself, or containers that are in it already, can't pass: no seat of any kind can.
    /// Empty: the pod's own settings.
    Offenders(Vec<String>, Refusal),
    /// A mutating policy is newer than a container that is in the pod already.
    Frozen(String, Refusal),
    /// The refusal has nothing to do with the rung.
    Refused(Refusal),
    /// The node's trouble has nothing to do with the rung.
    Node(Trouble),
}

/// Why a stored seat doesn't run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The kubelet refuses the container's configuration: `CreateContainerConfigError`, or
    /// `CreateContainerError`.
    Config(Words),
    /// The target ended before the seat could start: there is no PID namespace to enter.
    Target(Words),
    /// The image can't be had, or its name isn't one.
    Image(Words),
    /// The image holds no agent that can be started.
    Start(Words),
    /// It started and ended.
    Ended(Words),
    /// It didn't start in the time it had.
    Late(Words),
    /// The pod was deleted meanwhile.
    Gone(Words),
}

/// A kubelet's reason and message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words {
    /// Such as `ImagePullBackOff`.
    pub reason: String,
    /// What else it says.
    pub message: String,
}

impl std::fmt::Display for Words {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.reason.is_empty(), self.message.is_empty()) {
            (false, false) => write!(f, "{}: {}", self.reason, self.message),
            (false, true) => f.write_str(&self.reason),
            (true, _) => f.write_str(&self.message),
        }
    }
}

impl Trouble {
    /// The kubelet's words.
    #[must_use]
    pub const fn words(&self) -> &Words {
        match self {
            Self::Config(w)
            | Self::Target(w)
            | Self::Image(w)
            | Self::Start(w)
            | Self::Ended(w)
            | Self::Late(w)
            | Self::Gone(w) => w,
        }
    }
}

/// The walk.
#[derive(Clone, Debug)]
pub struct Ladder {
    facts: Facts,
    left: Vec<Rung>,
    now: Option<Security>,
    seat: (Uid, Gid),
    seat_retried: bool,
    would_land: Option<Rung>,
    steps: Vec<Step>,
    refusals: Vec<Refusal>,
    warnings: Vec<String>,
}

/// The order in which the rungs are tried, best first.
///
/// A target that is known not to run as root is reached by its own ids, which need nothing from
/// admission and put no root container beside it. Where its PID namespace holds others too, only
/// the capability reaches them all.
#[must_use]
pub fn order(facts: &Facts) -> [Rung; 3] {
    let known = facts.target.uid.is_some_and(|uid| !uid.is_root());
    if facts.ceiling.is_none() && known && !facts.shares_pids {
        [Rung::Degraded, Rung::Full, Rung::Seat]
    } else {
        [Rung::Full, Rung::Degraded, Rung::Seat]
    }
}

impl Ladder {
    /// A walk at its start.
    #[must_use]
    pub fn new(facts: Facts) -> Self {
        let mut left = order(&facts).to_vec();
        left.reverse();
        Self {
            facts,
            left,
            now: None,
            seat: (Uid::SEAT, Gid::SEAT),
            seat_retried: false,
            would_land: None,
            steps: Vec::new(),
            refusals: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// A walk of this rung and no other: for a seat that corrects one which runs already.
    #[must_use]
    pub fn only(mut self, rung: Rung) -> Self {
        self.left = vec![rung];
        self
    }

    /// What was walked, in its order.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Who said no, in the order of the walk.
    #[must_use]
    pub fn refusals(&self) -> &[Refusal] {
        &self.refusals
    }

    /// What a person should know about the rung that landed, one line each.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Goes to the next rung that isn't skipped.
    pub fn advance(&mut self) -> Next {
        self.now = None;
        while let Some(rung) = self.left.pop() {
            match self.author(rung) {
                Ok(security) => {
                    self.now = Some(security.clone());
                    return Next::Rehearse(security);
                }
                Err(why) => self.step(rung, StepOutcome::Skipped, Channel::Launcher, why, None),
            }
        }
        let none = self.facts.require.map_or(End::Exhausted, End::Unmet);
        Next::End(self.would_land.map_or(none, End::WouldLand))
    }

    /// The security context of a rung, or why it isn't tried: no call and no name are spent on it.
    fn author(&self, rung: Rung) -> Result<Security, String> {
        if let Some(ceiling) = self.facts.ceiling
            && rung > ceiling
        {
            return Err(format!("--max-rung {ceiling}"));
        }
        if let Some(require) = self.facts.require
            && rung < require
        {
            return Err(format!("--require {require}"));
        }
        let seccomp = self.facts.seccomp.clone();
        match rung {
            Rung::Full => Ok(Security::Full),
            Rung::Degraded => {
                let uid = self.facts.target.uid.ok_or(
                    "neither the pod nor the node says which uid the target runs as; --target-uid does",
                )?;
                let uid = NonRoot::new(uid)
                    .ok_or("the target runs as root, and a seat of this rung is one that doesn't")?;
                Ok(Security::Degraded { uid, gid: self.facts.target.gid, seccomp })
            }
            Rung::Seat => {
                let uid = NonRoot::new(self.seat.0).ok_or("the server names no uid but root's")?;
                Ok(Security::Seat { uid, gid: self.seat.1, seccomp })
            }
        }
    }

    /// The rehearsal passed; this is what would be stored.
    pub fn rehearsed(&mut self, rewrite: &Rewrite) -> Next {
        let Some(now) = self.now.clone() else { return Next::End(End::Exhausted) };
        let rung = now.rung();
        if let Some(why) = self.worthless(rung, rewrite) {
            self.step(rung, StepOutcome::Withdrawn, Channel::Rehearsal, why, None);
            return self.advance();
        }
        if self.facts.rehearse_only {
            self.would_land = self.would_land.or(Some(rung));
            self.step(
                rung,
                StepOutcome::WouldLand,
                Channel::Rehearsal,
                "the rehearsal passed".to_owned(),
                None,
            );
            return self.advance();
        }
        Next::Land(now)
    }

    /// Why a seat of this rung, stored like that, would be worth less than the next rung.
    fn worthless(&self, rung: Rung, rewrite: &Rewrite) -> Option<String> {
        if rewrite.non_root_forced {
            return Some(
                "a policy adds runAsNonRoot: true beside uid 0, which the kubelet would refuse".to_owned(),
            );
        }
        // A root target, or one whose uid nobody knows, has no lower rung that reaches it.
        let lower_reaches = self.facts.target.uid.is_some_and(|uid| !uid.is_root());
        match (rung, &rewrite.ids_changed) {
            (Rung::Full, Some(ids)) => {
                Some(format!("a policy stores {ids}, where SYS_PTRACE is worth nothing"))
            }
            (Rung::Degraded, Some(ids)) => Some(format!("a policy stores {ids}, which aren't the target's")),
            // With SYS_PTRACE and a target that no lower rung reaches, it is worth having without ssh.
            (Rung::Full, None) if rewrite.login_lost && (rewrite.ptrace_stripped || lower_reaches) => Some(
                "a policy drops capabilities, and root without SETUID, SETGID and SYS_CHROOT can't run sshd"
                    .to_owned(),
            ),
            (Rung::Full, None) if rewrite.ptrace_stripped && lower_reaches => Some(
                "a policy strips SYS_PTRACE; root without it reaches less than the target's own ids"
                    .to_owned(),
            ),
            (Rung::Full | Rung::Degraded, None) | (Rung::Seat, _) => None,
        }
    }

    /// A seat runs. `stored` is what the write was answered with.
    pub fn landed(&mut self, stored: &Rewrite) -> Next {
        let Some(now) = self.now.take() else { return Next::End(End::Exhausted) };
        let rung = now.rung();
        if stored.ptrace_stripped {
            self.warnings.push(
                "a policy removed SYS_PTRACE from the seat: it is root without the capability".to_owned(),
            );
        }
        if let Some(ids) = &stored.ids_changed {
            self.warnings.push(format!("a policy changed the seat's ids: {ids}"));
        }
        self.warnings.extend(stored.notes.iter().map(|n| format!("a policy changed the seat: {n}")));
        self.step(rung, StepOutcome::Landed, Channel::Kubelet, "running".to_owned(), None);
        Next::Done(rung)
    }

    /// The API server said no, to the rehearsal or to the write. `own`: the name that was tried.
    pub fn refused(&mut self, channel: Channel, refusal: Refusal, own: &str) -> Next {
        let Some(now) = self.now.clone() else { return Next::End(End::Exhausted) };
        let rung = now.rung();
        self.step(rung, StepOutcome::Refused, channel, refusal.words(), None);
        self.refusals.push(refusal.clone());
        match after(&refusal, own) {
            After::NextRung => {
                if let Some(uid) = allowed_uid(&refusal.words()).filter(|uid| *uid != self.seat.0) {
                    self.seat = (uid, Gid::SEAT);
                    if rung == Rung::Seat && !self.seat_retried {
                        self.seat_retried = true;
                        self.left.push(Rung::Seat);
                    }
                }
                self.advance()
            }
            After::End(end) => Next::End(end),
        }
    }

    /// The node said no, after the write: the name is burnt.
    pub fn node_refused(&mut self, trouble: Trouble, burnt: &str) -> Next {
        let Some(now) = self.now.clone() else { return Next::End(End::Exhausted) };
        let reason = trouble.words().to_string();
        self.step(now.rung(), StepOutcome::Refused, Channel::Kubelet, reason, Some(burnt.to_owned()));
        match trouble {
            // What a kubelet refuses about uid, runAsNonRoot or seccomp may pass on another rung.
            Trouble::Config(_) => self.advance(),
            Trouble::Target(_)
            | Trouble::Image(_)
            | Trouble::Start(_)
            | Trouble::Ended(_)
            | Trouble::Late(_)
            | Trouble::Gone(_) => Next::End(End::Node(trouble)),
        }
    }

    fn step(
        &mut self,
        rung: Rung,
        outcome: StepOutcome,
        channel: Channel,
        reason: String,
        burnt: Option<String>,
    ) {
        self.steps.push(Step { rung, outcome, channel, reason, burnt });
    }
}

enum After {
    NextRung,
    End(End),
}

/// Is a refusal about the rung, or about something that no rung changes?
fn after(refusal: &Refusal, own: &str) -> After {
    match refusal {
        Refusal::PodSecurity { offenders, .. } => {
            let others: Vec<String> = offenders.iter().filter(|n| *n != own).cloned().collect();
            if others.is_empty() && !offenders.is_empty() {
                After::NextRung
            } else {
                After::End(End::Offenders(others, refusal.clone()))
            }
        }
        Refusal::Frozen { container, .. } => After::End(End::Frozen(container.clone(), refusal.clone())),
        // A policy that refuses this rung may admit another: they mostly judge ids and capabilities.
        Refusal::Policy { .. }
        | Refusal::WebhookDenied { .. }
        | Refusal::Constraint(_)
        | Refusal::Quota(_)
        | Refusal::Invalid(_)
        | Refusal::Forbidden(_) => After::NextRung,
        // Nobody said no to the seat.
        Refusal::Rbac(_)
        | Refusal::WebhookFailed { .. }
        | Refusal::Conflict
        | Refusal::NotFound(_)
        | Refusal::NoSubresource(_)
        | Refusal::Unreachable(_)
        | Refusal::Slow(_)
        | Refusal::Credentials(_)
        | Refusal::Kubeconfig(_)
        | Refusal::NoProgram(_)
        | Refusal::NoContainer(_)
        | Refusal::Node(_)
        | Refusal::Upgrade(_)
        | Refusal::Cut(_)
        | Refusal::Exited(_) => After::End(End::Refused(refusal.clone())),
    }
}

#[cfg(test)]
#[path = "ladder_tests.rs"]
mod tests;
