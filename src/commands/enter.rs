//! The way into the caller's seat, for the verbs that use it at once: the one that runs, else one that
//! is landed as `attach` lands it.

use std::path::PathBuf;

use serde_json::Value;

use super::attach::{self, Local};
use super::{Answer, Running, Session, explain, pick, ssh_config};
use crate::cli::{self, ClusterArgs, SeatArgs};
use crate::error::{Failure, Kind};
use crate::kubectl::run::Interrupt;
use crate::pod::target;
use crate::seat::reuse;
use crate::settings::{Cluster, Settings};
use crate::ssh::run::{Host, OpenSsh};
use crate::ssh::{self, Identity};
use crate::ui::Ui;

/// What is settled before the cluster is touched.
pub(super) struct Here {
    /// The key that may log in.
    identity: Identity,
    /// What a landing needs; `None`: `--no-attach`.
    landing: Option<Local>,
    /// How the cluster is reached.
    pub(super) cluster: Cluster,
}

/// A seat that ssh can enter.
#[derive(Clone, Debug)]
pub(super) struct Way {
    /// The `Host`.
    alias: String,
    /// The stanza's file.
    config: PathBuf,
}

impl Way {
    /// For ssh.
    pub(super) fn host(&self) -> Host<'_> {
        Host { config: &self.config, alias: &self.alias }
    }
}

/// The user's ssh, key and cluster.
///
/// # Errors
/// When one of them is missing, or no stanza could be written.
pub(super) fn local(
    args: &SeatArgs,
    settings: &Settings,
    cluster: &ClusterArgs,
    interrupt: &Interrupt,
) -> Result<(OpenSsh, Here), Failure> {
    let client = OpenSsh::find(settings, interrupt.clone())?;
    if args.no_attach {
        let identity = ssh::keys::find(settings, args.identity.as_deref())?;
        let cluster = Cluster::resolve(cluster, settings)?;
        ssh::check(settings, &cluster, true)?;
        return Ok((client, Here { identity, landing: None, cluster }));
    }
    let local = attach::local(&as_attach(args, None)?, settings, cluster)?;
    let (identity, cluster) = (local.identity.clone(), local.cluster.clone());
    Ok((client, Here { identity, landing: Some(local), cluster }))
}

/// Finds or lands the seat, writes its stanza, and says in one line which it is.
///
/// # Errors
/// When there is no seat, or ssh can't enter it.
pub(super) fn enter(
    args: &SeatArgs,
    asked: (Option<&str>, Option<&str>),
    prompt: bool,
    session: &Session<'_>,
    here: &Here,
) -> Result<Way, Failure> {
    let (pod, container) = asked;
    let picked = pick::pod(session, pod, prompt)?;
    let defaults = session.settings.config.of(Some(&picked.context.name));
    let target = target::choose(&picked.pod, container, &defaults.sidecars)
        .map_err(|no| explain::no_target(session, &picked.pod, &no))?;
    let image = here.landing.as_ref().map(|local| attach::image(local, &defaults)).transpose()?;
    let attach = as_attach(args, container.map(str::to_owned))?;
    let mine = reuse::mine(&picked.pod, &target.name, picked.owner.as_deref(), &here.identity.public);
    // It is entered whatever was mounted into it. Who asks for a rung gets attach's own choice.
    let seat = mine.filter(|seat| {
        let container = picked.pod.container(&seat.to_string());
        let theirs = container.as_ref().and_then(|c| c.spec.get("image")).and_then(Value::as_str);
        image.is_none() || (args.max_rung.is_none() && theirs == image.as_deref())
    });
    let place = |pod: &str| format!("{}/{pod}", picked.pod.namespace());
    match (seat, &here.landing) {
        (Some(seat), _) => {
            session.progress("entering the seat");
            let stanza =
                ssh_config::stanza(&attach.ssh, session, &here.identity, &picked, &target.name, seat)?;
            session.ui.clear();
            let (Some(alias), Some(config)) = (&stanza.ssh.alias, &stanza.ssh.config) else {
                return Err(ssh_config::closed(session, &picked, seat, stanza.ssh));
            };
            session.ui.note(&format!("{seat} in {} runs already", place(picked.pod.name())));
            Ok(Way { alias: alias.clone(), config: config.into() })
        }
        (None, None) => Err(ssh_config::nothing_runs(session, &picked, &target.name, &here.identity)),
        (None, Some(local)) => {
            session.ui.clear();
            // What it says to paste is about attach's own flags.
            let landing = Session { verb: Running::Attach, ui: Ui::new(session.settings), ..*session };
            let done = attach::beside(&attach, &landing, local, picked)?;
            if let Some(failure) = done.failure {
                return Err(failure);
            }
            let Answer::Attach(report) = done.answer else {
                return Err(Failure::new(Kind::Bug, "attach gave no report"));
            };
            let (Some(alias), Some(config)) = (report.ssh.alias, report.ssh.config) else {
                let failure = Failure::cluster(report.ssh.why.unwrap_or_default());
                let failure = report.ssh.instead.into_iter().fold(failure, Failure::hint);
                let (pod, seat) = (&report.pod.name, report.seat.name.to_string());
                return Err(failure.hint(session.kubectl.enter(&report.namespace, pod, &seat)));
            };
            let how = if report.seat.reused { "runs already" } else { "landed" };
            let rung = report.rung.measured.unwrap_or(report.rung.name);
            session.ui.note(&format!(
                "{} in {}/{} {how} ({rung})",
                report.seat.name, report.namespace, report.pod.name
            ));
            for warning in &report.warnings {
                session.ui.note(&format!("warning: {warning}"));
            }
            Ok(Way { alias, config: config.into() })
        }
    }
}

/// The flags as attach would have them.
fn as_attach(args: &SeatArgs, target: Option<String>) -> Result<cli::Attach, Failure> {
    let mut attach = cli::Attach::plain(None, target)
        .map_err(|e| Failure::new(Kind::Bug, "attach has no defaults").because(e.to_string()))?;
    attach.image.clone_from(&args.image);
    attach.max_rung = args.max_rung;
    attach.timeout = args.timeout;
    attach.ssh.identity.clone_from(&args.identity);
    attach.ssh.ssh_user.clone_from(&args.ssh_user);
    Ok(attach)
}
