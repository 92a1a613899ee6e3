//! Why there is no seat: one sentence of what happened in the words of whoever said no, one of why,
//! one command.
//!
//! - [`ended`]: which exit took a seat that has ended
//! - [`remedy`]: what helps where every rung was refused
//! - [`rights`]: what else is missing, where one right is
//! - [`unstarted`]: why a seat that is stored doesn't run

pub(super) mod ended;
mod remedy;
pub(super) mod rights;
mod unstarted;

use std::time::Duration;

use podbench_contract::ids::SeatName;
use podbench_contract::rung::Rung;
use podbench_contract::text::escape_lines;

use super::{Running, Session};
use crate::cli;
use crate::error::{Failure, Kind};
use crate::kubectl::refusal::Refusal;
use crate::kubectl::{Error, Started};
use crate::ladder::End;
use crate::pod::state::{NotNow, Stopped, node_trouble};
use crate::pod::target::{NoSuch, choose};
use crate::pod::{Pod, State};
use crate::report::attach::{Attach, Step};
use crate::report::text;
use crate::seat::measure::Unmeasured;
use crate::seat::reuse::Found;
use crate::spec::ephemeral::Plan;
use crate::spec::mounts::NoMount;

/// `-c` names nothing.
pub(super) fn no_target(session: &Session<'_>, pod: &Pod, no: &NoSuch) -> Failure {
    // Never a sidecar that happens to be listed first.
    let first = no
        .like
        .clone()
        .or_else(|| choose(pod, None, &session.settings.config.of(None).sidecars).ok().map(|c| c.name));
    let mut failure = Failure::input(format!("pod {} has no container `{}`", pod.name(), no.asked))
        .because(format!("its containers: {}", no.have.join(", ")));
    if let Some(name) = first {
        failure = failure.hint(session.again(&format!("{} -c {name}", pod.name())));
    }
    failure
}

/// `--mount` names what can't be mounted.
pub(super) fn no_mount(session: &Session<'_>, pod: &Pod, no: &NoMount) -> Failure {
    let failure = Failure::input(no.to_string());
    match no {
        NoMount::Undeclared { have, .. } => failure
            .because("a pod's volumes are fixed when it is made, so a seat can only mount what it declares")
            .because(if have.is_empty() {
                "it declares none".to_owned()
            } else {
                format!("it declares {}", have.join(", "))
            }),
        NoMount::SubPath { .. } => {
            failure.because("mounted whole, it would be another tree at the same path")
        }
        NoMount::NoPath { asked, .. } => {
            failure.hint(session.again(&format!("{} --mount {asked}:/mnt/{asked}", pod.name())))
        }
    }
}

/// Nothing can start beside the target now.
pub(super) fn not_now(session: &Session<'_>, pod: &Pod, no: &NotNow) -> Failure {
    let name = pod.name();
    let nothing = "nothing was written";
    match no {
        NotNow::Static => Failure::cluster(format!("pod {name} is a static pod"))
            .because(format!("the kubelet of node {} made it from a file, and the API server can't add a container to it; {nothing}", pod.node()))
            .hint(session.command(&["logs", name, "--all-containers", "--tail=50"])),
        NotNow::Completed(phase) => Failure::cluster(format!("pod {name} is completed ({phase}): nothing runs in it"))
            .because(format!("a seat looks at a running process; {nothing}"))
            .hint(session.command(&["logs", name, "--all-containers", "--tail=50"])),
        NotNow::Deleted => Failure::cluster(format!("pod {name} is being deleted"))
            .because(format!("a seat would go with it; {nothing}"))
            .hint(session.command(&["get", "pods"])),
        NotNow::Windows => Failure::cluster(format!("pod {name} runs Windows containers"))
            .because(format!("a seat is a Linux container; {nothing}"))
            .hint(session.command(&["describe", "pod", name])),
        NotNow::Unscheduled(why) => Failure::cluster(format!("pod {name} has no node yet: {why}"))
            .because(format!("nothing runs in it; {nothing}"))
            .hint(session.command(&["describe", "pod", name]))
            .hint(session.again(&format!("{name} --wait-start"))),
        NotNow::Target(stopped) => target_stopped(session, pod, stopped),
    }
}

fn target_stopped(session: &Session<'_>, pod: &Pod, stopped: &Stopped) -> Failure {
    let name = pod.name();
    let Stopped { container, waits_for, reason, message, restarts, last, ended } = stopped;
    let waits = if waits_for == container {
        format!("container {container} of pod {name} doesn't run: {reason}")
    } else {
        format!(
            "container {container} of pod {name} waits for the init container {waits_for}, which is {reason}"
        )
    };
    let mut failure = Failure::cluster(waits);
    if !message.is_empty() {
        failure = failure.because(message.clone());
    }
    if *restarts > 0 || last.is_some() {
        let exit =
            last.as_ref().map_or_else(String::new, |l| format!(", last exit code {} ({})", l.code, l.reason));
        failure = failure.because(format!("restarted {restarts} times{exit}"));
    }
    let ran = last.is_some() || pod.container(waits_for).is_some_and(|c| c.id().is_some());
    if ran && let Some(tail) = log_tail(session, name, waits_for) {
        failure = failure.because(format!("its last words:\n{tail}"));
    }
    failure = failure
        .because("a seat lives and dies with its target, and its name would be burnt: nothing was written");
    let waiting = pod.container(waits_for).map(|c| c.state());
    let hint = match (waiting, last) {
        (_, Some(_)) if waits_for == container => {
            session.command(&["logs", name, "-c", waits_for, "--previous"])
        }
        // It never ran, so it has no log.
        (Some(State::Waiting { .. } | State::Unknown) | None, None) => {
            session.command(&["describe", "pod", name])
        }
        (Some(State::Running | State::Terminated { .. }), _) | (_, Some(_)) => {
            session.command(&["logs", name, "-c", waits_for])
        }
    };
    failure = failure.hint(hint);
    if !ended && matches!(session.verb, Running::Attach) {
        failure = failure.hint(session.again(&format!("{name} -c {container} --wait-start")));
    }
    // An init container that goes on for ever can be looked at itself.
    let running = pod.container(waits_for).is_some_and(|c| c.is_running());
    if running && !ended {
        failure = failure.hint(session.again(&format!("{name} -c {waits_for}")));
    }
    failure
}

/// What a wait for the target's start waits for, on one line.
pub(super) fn waiting(target: &str, no: &NotNow) -> String {
    match no {
        NotNow::Unscheduled(why) => format!("waiting for {target} to start: {why}"),
        NotNow::Target(stopped) if stopped.waits_for != stopped.container => {
            format!(
                "waiting for {target} to start: init container {} is {}",
                stopped.waits_for, stopped.reason
            )
        }
        NotNow::Target(stopped) => format!("waiting for {target} to start: {}", stopped.reason),
        NotNow::Static | NotNow::Completed(_) | NotNow::Deleted | NotNow::Windows => {
            format!("waiting for {target}")
        }
    }
}

/// The target hasn't started in the time that `--wait-start` gave it.
pub(super) fn late_start(session: &Session<'_>, pod: &Pod, no: &NotNow, limit: Duration) -> Failure {
    let now = not_now(session, pod, no);
    let mut failure = Failure::new(
        Kind::Deadline,
        format!("the target hasn't started within the {} s of --wait-start", limit.as_secs()),
    )
    .because(now.message);
    failure.causes.extend(now.causes);
    failure.hints.extend(now.hints);
    failure
}

/// The end of a container's log; allowed to fail, because reading logs is a right of its own.
pub(super) fn log_tail(session: &Session<'_>, pod: &str, container: &str) -> Option<String> {
    let text = session.kubectl.log_tail(pod, container, 10).and_then(Started::finish).ok()?;
    let lines: Vec<String> = text.lines().map(|l| format!("  {}", escape_lines(l, 200))).collect();
    let tail = lines.get(lines.len().saturating_sub(10)..).unwrap_or_default();
    (!tail.is_empty()).then(|| tail.join("\n"))
}

/// A pod that looks as if its node had gone: settled by asking for the node, where that is allowed.
pub(super) fn dead_node(session: &Session<'_>, pod: &Pod) -> Result<Option<Failure>, Failure> {
    let why = match session.kubectl.get("node", pod.node(), "does the node answer")?.finish() {
        Ok(node) => match node_trouble(&node) {
            Some(why) => why,
            None => return Ok(None),
        },
        Err(Error::Interrupted) => return Err(Error::Interrupted.into()),
        Err(_) => "the pod is marked not ready while its containers are".to_owned(),
    };
    Ok(Some(
        Failure::cluster(format!("node {} doesn't answer: {why}", pod.node()))
            .because("nothing can be started on it, nor reached; nothing was written")
            .hint(session.bare(&["describe", "node", pod.node()])),
    ))
}

/// A target that was restarted takes its seats with it.
pub(super) fn restarts(pod: &Pod, target: &str) -> Vec<String> {
    let Some(container) = pod.container(target) else { return Vec::new() };
    match (container.restarts(), container.last_exit()) {
        (n, Some(last)) if n > 0 => vec![format!(
            "{target} was restarted {n} times, last after exit code {} ({}); a restart ends the seat",
            last.code, last.reason
        )],
        _ => Vec::new(),
    }
}

/// A seat that is entered though more was asked for: a name is only spent when somebody says so.
pub(super) fn below_ceiling(ceiling: Option<Rung>, found: &Found) -> Option<String> {
    let ceiling = ceiling.filter(|c| found.rung < *c)?;
    Some(format!(
        "{} was running already, on the {} rung; with --new, {ceiling} is tried",
        found.name, found.rung
    ))
}

/// A call was cut off in the middle of the walk. `written`: a seat that may be stored.
pub(super) fn cut_off(session: &Session<'_>, pod: &Pod, written: Option<SeatName>, error: Error) -> Failure {
    let gone = matches!(error, Error::Refused(Refusal::NotFound(_)));
    let failure = Failure::from(error);
    if gone {
        let failure = failure.hint(session.command(&["get", "pods"]));
        return match written {
            Some(name) => failure.because(pod_gone(pod, name)),
            None => failure.because("nothing was written"),
        };
    }
    match written {
        // The write may have been answered after nobody listened any more.
        Some(name) => failure
            .because(format!("{name} may be stored; the next attach enters it where it runs"))
            .hint(session.again(pod.name())),
        None => failure.because("nothing was written"),
    }
}

/// The walk of a corrected seat was cut off: the first seat stays.
pub(super) fn uncorrected(written: Option<SeatName>, error: &Error) -> String {
    let stored = written.map_or_else(
        || "nothing was written".to_owned(),
        |name| format!("{name} may be stored; the next attach enters it where it runs"),
    );
    format!(
        "the target's ids aren't what the pod says, and a seat with the measured ones wasn't landed: {error}; {stored}"
    )
}

/// Is a seat that can't be asked like that out of reach, and not only silent?
pub(super) const fn is_unreachable(error: &Error) -> bool {
    match error {
        Error::Interrupted | Error::Deadline { .. } | Error::Start { .. } => true,
        Error::Refused(refusal) => match refusal {
            Refusal::Rbac(_)
            | Refusal::Forbidden(_)
            | Refusal::Unreachable(_)
            | Refusal::Slow(_)
            | Refusal::Credentials(_)
            | Refusal::Kubeconfig(_)
            | Refusal::Node(_)
            | Refusal::NoContainer(_)
            | Refusal::NotFound(_)
            | Refusal::WebhookFailed { .. }
            | Refusal::WebhookDenied { .. }
            | Refusal::Policy { .. }
            | Refusal::Cut(_)
            | Refusal::Upgrade(_) => true,
            // An image whose agent has no such verb, or none at all: the seat runs all the same.
            Refusal::NoProgram(_)
            | Refusal::Exited(_)
            | Refusal::PodSecurity { .. }
            | Refusal::Frozen { .. }
            | Refusal::Quota(_)
            | Refusal::Constraint(_)
            | Refusal::Conflict
            | Refusal::Invalid(_)
            | Refusal::NoSubresource(_) => false,
        },
        Error::Failed { .. } | Error::TooMuch { .. } | Error::Answer { .. } => false,
    }
}

/// The seat runs, as far as anybody knows, and can't be reached.
pub(super) fn unreachable(
    session: &Session<'_>,
    pod: &Pod,
    plan: &Plan,
    seat: SeatName,
    error: Error,
) -> Failure {
    let interrupted = error == Error::Interrupted;
    let cut = matches!(error, Error::Refused(Refusal::Node(_) | Refusal::Upgrade(_)));
    let gone = matches!(error, Error::Refused(Refusal::NoContainer(_) | Refusal::NotFound(_)));
    let deadline = matches!(error, Error::Deadline { .. });
    let transport = matches!(error, Error::Refused(Refusal::Upgrade(_) | Refusal::Cut(_)));
    let failure = Failure::from(error);
    let entered = format!("{seat} is in the pod; the next attach enters it where it runs");
    if interrupted {
        return failure.because(entered).hint(session.again(pod.name()));
    }
    if (gone || cut) && is_gone(session, pod) {
        return failure.because(pod_gone(pod, seat)).hint(session.command(&["get", "pods"]));
    }
    if gone {
        return match ending(session, pod, &plan.target, seat) {
            Some((why, true)) => Failure::cluster(why).hint(session.again(pod.name())),
            Some((why, false)) => {
                let failure = Failure::cluster(why).because(text::burnt(&seat.to_string()));
                unstarted::ended(session, pod, plan, &seat.to_string(), failure)
            }
            None => failure.because(entered).hint(session.again(pod.name())),
        };
    }
    // The server names the kubelet by its address, which tells a person nothing.
    let failure = if cut { failure.because(format!("the pod is on node {}", pod.node())) } else { failure };
    let failure = if deadline {
        failure.because(format!("the way to node {} may be broken", pod.node())).hint(session.bare(&[
            "get",
            "node",
            pod.node(),
        ]))
    } else {
        failure
    };
    let failure = failure.because(entered);
    if transport { failure.hint(session.again(pod.name())) } else { failure }
}

fn pod_gone(pod: &Pod, seat: SeatName) -> String {
    format!("pod {} is gone, and {seat} with it", pod.name())
}

/// Is there no such pod any more, or another of the same name?
fn is_gone(session: &Session<'_>, pod: &Pod) -> bool {
    match session.kubectl.get_pod(pod.name()).and_then(Started::finish) {
        Ok(now) => now.pointer("/metadata/uid").is_some_and(|uid| uid != pod.uid()),
        Err(Error::Refused(Refusal::NotFound(_))) => true,
        Err(_) => false,
    }
}

/// Why a seat that ran is gone, and whether its target's restart took it.
fn ending(session: &Session<'_>, pod: &Pod, target: &str, seat: SeatName) -> Option<(String, bool)> {
    let value = session.kubectl.get_pod(pod.name()).and_then(Started::finish).ok()?;
    let now = Pod::new(value).ok()?;
    let name = seat.to_string();
    let State::Terminated { reason, code, .. } = now.container(&name)?.state() else { return None };
    let before = pod.container(target).map_or(0, |c| c.restarts());
    let target = now.container(target)?;
    let cause = match target.last_exit() {
        Some(last) if target.restarts() > before => {
            format!(
                "; {} was restarted after exit code {} ({}), and a seat goes with its target",
                target.name(),
                last.code,
                last.reason
            )
        }
        _ => String::new(),
    };
    Some((format!("{seat} ended: exit code {code} ({reason}){cause}"), !cause.is_empty()))
}

/// The walk ended without a seat.
pub(super) fn ended(
    session: &Session<'_>,
    pod: &Pod,
    plan: &Plan,
    end: &End,
    steps: &[Step],
    refusals: &[Refusal],
) -> Failure {
    let name = pod.name();
    let failure = match end {
        End::WouldLand(_) => Failure::new(Kind::Bug, "a rehearsal was taken for a refusal"),
        End::Exhausted => Failure::cluster(format!("no seat can be landed in pod {name}")),
        End::Unmet(rung) => {
            Failure::new(Kind::Require, format!("--require {rung}: no such seat can be landed in pod {name}"))
        }
        End::Offenders(others, refusal) => {
            let what = if others.is_empty() {
                "Pod Security judges the whole pod, and the pod's own settings don't pass it: no seat of any kind can be added".to_owned()
            } else {
                format!(
                    "Pod Security judges the whole pod, and {} in it {} it: no seat of any kind can be added until the pod is replaced",
                    others.join(", "),
                    if others.len() == 1 { "violates" } else { "violate" },
                )
            };
            Failure::cluster(refusal.words())
                .because(what)
                .hint(session.bare(&["get", "namespace", pod.namespace(), "--show-labels"]))
        }
        End::Frozen(container, refusal) => Failure::cluster(refusal.words())
            .because(format!("a mutating policy that is newer than {container} would change it, and nobody may: no seat can be added until the pod is replaced"))
            .hint(session.bare(&["get", "mutatingadmissionpolicies,mutatingwebhookconfigurations"])),
        End::Refused(refusal) => return refused(session, pod, refusal),
        End::Node(trouble) => unstarted::explain(session, pod, plan, trouble, steps),
    };
    match (end, steps.split_last()) {
        (End::Exhausted, _) => remedy::exhausted(session, pod, plan, refusals, remedy::steps(failure, steps)),
        (End::Unmet(rung), _) => {
            let tried: Vec<Step> = steps.iter().filter(|step| step.rung >= *rung).cloned().collect();
            remedy::steps(failure, &tried).hint(session.again(&format!("{name} --dry-run")))
        }
        // The last step's words are the message.
        (
            End::WouldLand(_) | End::Offenders(..) | End::Frozen(..) | End::Refused(_) | End::Node(_),
            Some((last, before)),
        ) => {
            let failure = remedy::steps(failure, before);
            match &last.burnt {
                Some(burnt) => failure.because(text::burnt(burnt)),
                None => failure,
            }
        }
        (_, None) => failure,
    }
}

fn refused(session: &Session<'_>, pod: &Pod, refusal: &Refusal) -> Failure {
    let failure = Failure::from(Error::Refused(refusal.clone()));
    match refusal {
        Refusal::Conflict => failure
            .because("the pod was written by somebody else each time podbench tried")
            .hint(session.again(pod.name())),
        Refusal::NoSubresource(_) => failure
            .because("this server has no ephemeral containers: they came with Kubernetes 1.25")
            .hint(session.bare(&["version"])),
        Refusal::PodSecurity { .. }
        | Refusal::Frozen { .. }
        | Refusal::Policy { .. }
        | Refusal::WebhookDenied { .. }
        | Refusal::WebhookFailed { .. }
        | Refusal::Quota(_)
        | Refusal::Constraint(_)
        | Refusal::Rbac(_)
        | Refusal::Forbidden(_)
        | Refusal::Invalid(_)
        | Refusal::Unreachable(_)
        | Refusal::Slow(_)
        | Refusal::Credentials(_)
        | Refusal::Kubeconfig(_)
        | Refusal::NoProgram(_)
        | Refusal::NoContainer(_)
        | Refusal::Node(_)
        | Refusal::Upgrade(_)
        | Refusal::Cut(_)
        | Refusal::Exited(_) => failure,
        Refusal::NotFound(_) => failure.hint(session.command(&["get", "pods"])),
    }
}

/// The seat runs, and what it may do isn't known: a report of question marks is no success.
pub(super) fn unmeasured(session: &Session<'_>, report: &Attach, why: &Unmeasured) -> Failure {
    let (pod, seat) = (&report.pod.name, &report.seat.name);
    Failure::cluster(format!("{seat} runs, but it couldn't be measured: {why}"))
        .because("a later attach measures the same seat again and writes nothing")
        .hint(session.again(pod))
        .hint(session.command(&["logs", pod, "-c", seat, "--tail=20"]))
}

/// What there is of what `--require` asks for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Got {
    /// The seat's own answer.
    Measured(Option<Rung>),
    /// `--dry-run`: the rung that would land.
    Would(Rung),
}

/// `--require`, where it isn't met.
pub(super) fn required(
    session: &Session<'_>,
    rung: Rung,
    pod: &str,
    got: &Got,
    args: &cli::Attach,
) -> Option<Failure> {
    let got = match *got {
        Got::Measured(Some(m)) | Got::Would(m) if m >= rung => return None,
        Got::Measured(Some(m)) => format!("the seat measures {m}"),
        Got::Measured(None) => "nothing was measured".to_owned(),
        Got::Would(m) => format!("the seat would measure {m}"),
    };
    let mut failure = Failure::new(Kind::Require, format!("--require {rung}: {got}"));
    if args.max_rung.is_none_or(|ceiling| ceiling < rung) {
        failure = failure.hint(session.again(&format!("{pod} --new --max-rung {rung} --require {rung}")));
    }
    Some(failure)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_correction_that_fails_after_its_write_names_the_seat_that_may_be_stored() {
        let error = Error::TooMuch { most: 7 };
        let said = |written: Option<&str>| uncorrected(written.and_then(SeatName::parse), &error);
        let stored = said(Some("podbench-2"));
        assert!(
            stored.contains("podbench-2 may be stored") && stored.contains(&error.to_string()),
            "{stored}"
        );
        let nothing = said(None);
        assert!(nothing.contains("nothing was written") && !nothing.contains('\n'), "{nothing}");
    }
}
