//! `podbench ssh-config`: the stanza of the caller's running seat, again. The cluster is only read.

use serde_json::json;

use super::{Answer, Done, Session, assemble, explain, pick};
use crate::cli;
use crate::error::Failure;
use crate::kubectl::Error;
use crate::pod::target;
use crate::seat::measure::{Question, Unmeasured, measure};
use crate::seat::reuse;
use crate::ssh;

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
        return Err(Failure::input(format!(
            "no seat of yours runs beside {} in pod {}",
            target.name,
            pod.name()
        ))
        .hint(session.verb("attach", pod.name())));
    };
    let id = pod.container(&target.name).and_then(|c| c.id());
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
    let way = assemble::ssh(&args.ssh, session, &identity, &picked, (seat, true), Some(&measured))?;
    if let Some(text) = way.printed {
        return Ok(Answer::Text(text).into());
    }
    if way.ssh.alias.is_none() {
        let failure = Failure::cluster(way.ssh.why.unwrap_or_default());
        let failure = way.ssh.instead.into_iter().fold(failure, Failure::hint);
        return Err(failure.hint(session.kubectl.enter(pod.namespace(), pod.name(), &seat.to_string())));
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
