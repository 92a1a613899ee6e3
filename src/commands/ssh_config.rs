//! `podbench ssh-config`: the stanza of the caller's running seat, again. The cluster is only read.

use podbench_contract::ids::SeatName;
use serde_json::json;

use super::{Answer, Done, Session, assemble, explain, pick};
use crate::cli;
use crate::error::Failure;
use crate::kubectl::Error;
use crate::pod::{Kind, Pod, target};
use crate::report::attach as wire;
use crate::seat::inventory::{Caller, Inventory};
use crate::seat::measure::{Question, Unmeasured, measure};
use crate::seat::reuse;
use crate::ssh::{self, Identity};

/// Finds the seat, measures it, writes or prints its stanza.
///
/// # Errors
/// When there is no such seat, or it can't be entered by ssh.
pub fn run(args: &cli::SshConfig, session: &Session<'_>) -> Result<Done, Failure> {
    let identity = ssh::keys::find(session.settings, args.ssh.identity.as_deref())?;
    ssh::check(session.settings, session.cluster, !args.ssh.print_config)?;
    let picked = pick::pod(session, args.pod.pod.as_deref(), !args.pod.no_prompt)?;
    let pod = &picked.pod;
    let asked = args.pod.target.as_deref();
    let sidecars = session.defaults(&picked.context.name).sidecars;
    let target = target::choose(pod, asked, &sidecars).map_err(|no| explain::no_target(session, pod, &no))?;
    let Some(seat) = reuse::mine(pod, &target.name, picked.owner.as_deref(), &identity.public) else {
        return Err(nothing_runs(session, &picked, &target.name, &identity));
    };
    let way = stanza(&args.ssh, session, &identity, &picked, &target.name, seat)?;
    if let Some(text) = way.printed {
        return Ok(Answer::Text(text).into());
    }
    if way.ssh.alias.is_none() {
        return Err(closed(session, &picked, seat, way.ssh));
    }
    let text = format!(
        "{}\n{}",
        way.ssh.config.as_deref().unwrap_or_default(),
        way.ssh.alias.as_ref().map(|alias| format!("ssh {alias}\n")).unwrap_or_default()
    );
    let warnings: Vec<&String> = picked.warnings.iter().chain(&way.warnings).collect();
    let value = json!({
        "schema": "podbench/ssh-config/v1",
        "context": picked.context.name,
        "namespace": pod.namespace(),
        "pod": pod.name(),
        "seat": seat.to_string(),
        "ssh": way.ssh,
        "warnings": warnings,
    });
    Ok(Answer::Value(value, text).into())
}

/// Nothing of this owner's runs beside this target, or nothing that is as podbench authors it.
pub(super) fn nothing_runs(
    session: &Session<'_>,
    picked: &pick::Picked,
    target: &str,
    identity: &Identity,
) -> Failure {
    let pod = picked.pod.name();
    let caller = Caller { owner: picked.owner.clone(), key: Some(identity.public.clone()) };
    let inventory = Inventory::of(&picked.pod);
    let failure = Failure::input(format!("no seat of yours runs beside {target} in pod {pod}"));
    inventory
        .of_caller_beside(target, &caller)
        .filter_map(|seat| Some(format!("{} isn't used: {}", seat.name, seat.untrusted.as_ref()?)))
        .fold(failure, Failure::because)
        .hint(session.verb("attach", &beside(&picked.pod, target)))
}

/// A pod and a container of it as words of attach's, with the container only where there are several.
fn beside(pod: &Pod, target: &str) -> String {
    let several = pod.containers().iter().filter(|c| c.kind != Kind::Ephemeral).count() > 1;
    if several { format!("{} -c {target}", pod.name()) } else { pod.name().to_owned() }
}

/// Measures a seat that runs, lets the key in, and writes or prints its stanza.
pub(super) fn stanza(
    args: &cli::SshArgs,
    session: &Session<'_>,
    identity: &ssh::Identity,
    picked: &pick::Picked,
    target: &str,
    seat: SeatName,
) -> Result<assemble::Way, Failure> {
    let pod = &picked.pod;
    let id = pod.container(target).and_then(|c| c.id());
    let question = Question {
        pod: pod.name(),
        seat,
        target: id.as_ref(),
        authorize: Some(&identity.public),
        probe: false,
    };
    let measured = measure(session.kubectl, question).map_err(|e| match e {
        Unmeasured::Exec(error @ (Error::Refused(_) | Error::Interrupted)) => error.into(),
        other => Failure::cluster(format!("{seat} couldn't be measured: {other}")),
    })?;
    assemble::ssh(args, session, identity, picked, (seat, true), Some(&measured))
}

/// The seat runs, and ssh can't enter it.
pub(super) fn closed(
    session: &Session<'_>,
    picked: &pick::Picked,
    seat: SeatName,
    way: wire::Ssh,
) -> Failure {
    let failure = Failure::cluster(way.why.unwrap_or_default());
    let failure = way.instead.into_iter().fold(failure, Failure::hint);
    failure.hint(session.kubectl.enter(picked.pod.namespace(), picked.pod.name(), &seat.to_string()))
}
