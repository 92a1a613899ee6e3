//! The report's value, from what was picked, landed and measured.

use podbench_contract::env;
use podbench_contract::ids::SeatName;
use podbench_contract::keys::PublicKey;
use podbench_contract::measurement::Measurement;
use podbench_contract::oracle;
use podbench_contract::rung::Rung;

use super::{Session, pick};
use crate::cli::{self, SshArgs};
use crate::error::Failure;
use crate::pod::ids::Ids;
use crate::pod::probes;
use crate::pod::target::Choice;
use crate::report::attach as wire;
use crate::report::supports::supports;
use crate::report::warnings;
use crate::shell::word;
use crate::spec::ephemeral::Plan;
use crate::ssh::{self, Identity, SshSeat};

/// Everything that a report says.
pub(super) struct Report<'a> {
    /// The pod, its context, and who asked.
    pub(super) picked: &'a pick::Picked,
    /// The target.
    pub(super) target: &'a Choice,
    /// What the seat was authored from.
    pub(super) plan: &'a Plan,
    /// The target's ids as the pod says.
    pub(super) ids: Ids,
    /// The seat.
    pub(super) seat: SeatName,
    /// It was running already.
    pub(super) reused: bool,
    /// The rung it was authored for.
    pub(super) rung: Rung,
    /// What it measured, or why it didn't.
    pub(super) measured: Result<&'a Measurement, String>,
    /// The ladder.
    pub(super) steps: Vec<wire::Step>,
    /// The way in.
    pub(super) ssh: wire::Ssh,
    /// One line each.
    pub(super) warnings: Vec<String>,
}

impl Report<'_> {
    /// The value that is printed, as JSON or as text.
    pub(super) fn value(self, session: &Session<'_>) -> wire::Attach {
        let m = self.measured.as_ref().ok().copied();
        let known = warnings::Known {
            rung: self.rung,
            host_network: self.plan.host_network,
            version: env!("CARGO_PKG_VERSION"),
        };
        let mut warnings = self.warnings;
        if m.is_some() {
            warnings.extend(warnings::warnings(m, &known));
        }
        // Only who can stop the target has to know how long it may stand still.
        if m.is_some_and(|m| oracle::verdict(m) == oracle::Verdict::LiveAttach) {
            let target = self.picked.pod.container(&self.plan.target);
            warnings.extend(target.iter().flat_map(probes::outlasted));
        }
        let seat = self.seat.to_string();
        let stored = self.picked.pod.container(&seat).and_then(|c| c.env(env::REASON.name));
        let reason = env::REASON.parse(stored.as_deref());
        if let Some(asked) =
            self.plan.reason.as_ref().filter(|asked| self.reused && reason.as_ref() != Some(asked))
        {
            let kept = reason.as_deref().unwrap_or("none");
            warnings
                .push(format!("{seat} keeps the reason it was landed with ({kept}): `{asked}` isn't stored"));
        }
        let named = |m| wire::blockers(m, self.picked.pod.name(), self.picked.pod.namespace());
        let blockers = m.map(named).unwrap_or_default();
        let exec = session.kubectl.enter(self.picked.pod.namespace(), self.picked.pod.name(), &seat);
        let target = m.and_then(|m| m.target.as_ref());
        let text = |s: &str| (!s.is_empty()).then(|| s.to_owned());
        wire::Attach {
            schema: wire::SCHEMA.to_owned(),
            context: self.picked.context.name.clone(),
            namespace: self.picked.pod.namespace().to_owned(),
            pod: pod(self.picked),
            target: wire::Target {
                container: self.target.name.clone(),
                uid: target.and_then(|t| t.uid()).or(self.ids.uid),
                gid: target.and_then(|t| t.gid()).or(self.ids.gid),
                pid: target.map(|t| t.pid),
                process: target.map(|t| t.name.clone()),
                why: self.target.why.clone(),
                others: self.target.others.clone(),
            },
            seat: wire::Seat {
                name: self.seat.to_string(),
                reused: self.reused,
                image: self.plan.image.clone(),
                version: m.and_then(|m| text(&m.version)),
                home: m.and_then(|m| text(&m.home)),
                owner: self.plan.owner.clone(),
                reason,
            },
            ladder: self.steps,
            rung: wire::RungFacts {
                name: self.rung,
                measured: m.and_then(oracle::measured_rung),
                uid: m.and_then(|m| m.seat.uid()),
                gid: m.and_then(|m| m.seat.gid()),
                cap_eff: m.and_then(|m| m.seat.cap_eff.value().copied()),
            },
            supports: supports(self.measured.as_ref().map(|m| *m).map_err(String::as_str), &self.ssh, &exec),
            blocker: blockers.first().cloned(),
            blockers,
            measurement: m.cloned(),
            ssh: self.ssh,
            resized: None,
            calls: session.calls(),
            warnings,
        }
    }
}

fn pod(picked: &pick::Picked) -> wire::Pod {
    wire::Pod {
        name: picked.pod.name().to_owned(),
        uid: picked.pod.uid().to_owned(),
        node: picked.pod.node().to_owned(),
        why: picked.why.clone(),
    }
}

/// The way in: what was written or is to be printed.
pub(super) struct Way {
    /// For the report.
    pub(super) ssh: wire::Ssh,
    /// `--print-config`: this is the answer.
    pub(super) printed: Option<String>,
    /// One line each.
    pub(super) warnings: Vec<String>,
}

/// Writes the stanza, where the seat can be entered by ssh. `seat.1`: it was running already.
pub(super) fn ssh(
    args: &SshArgs,
    session: &Session<'_>,
    identity: &Identity,
    picked: &pick::Picked,
    seat: (SeatName, bool),
    measured: Option<&Measurement>,
) -> Result<Way, Failure> {
    let (seat, reused) = seat;
    let pod = picked.pod.name();
    let enter = || session.kubectl.enter(picked.pod.namespace(), pod, &seat.to_string());
    let Some(m) = measured else {
        let ssh = wire::Ssh::none("the seat couldn't be measured", Some(enter()));
        return Ok(Way { ssh, printed: None, warnings: Vec::new() });
    };
    let none = |why: String| {
        // It would be reused for ever.
        let another = reused.then(|| session.verb("attach", &format!("{pod} --new")));
        let warning = another.as_ref().map(|another| format!("{seat} has no ssh; {another} lands another"));
        let ssh = wire::Ssh::none(why, Some(another.unwrap_or_else(enter)));
        Ok(Way { ssh, printed: None, warnings: warning.into_iter().collect() })
    };
    let login = match (&args.ssh_user, &m.login.name) {
        (Some(login), _) | (None, Some(login)) => login.clone(),
        (None, None) => {
            return none(match &m.login.why {
                Some(why) => format!("sshd knows no login for the seat's uid: {why}"),
                None => "the seat's agent doesn't answer for its sshd".to_owned(),
            });
        }
    };
    let Some(host_key) = m.sshd.host_key.as_deref().and_then(|k| PublicKey::parse(k).ok()) else {
        return none("the seat has no host key".to_owned());
    };
    if m.sshd.config.is_empty() {
        return none("the seat has no sshd configuration".to_owned());
    }
    let trip = &m.sshd.round_trip;
    // Who names another login than the measured one knows more than the measurement.
    if !trip.ok && !trip.late && args.ssh_user.is_none() {
        match (trip.stage.as_str(), trip.why.as_deref()) {
            // It wasn't made.
            ("", None) => {}
            ("", Some(why)) => return none(format!("sshd in the seat didn't start: {why}")),
            (stage, why) => {
                let why = why.unwrap_or("without a reason");
                return none(format!("sshd in the seat got no further than {stage}: {why}"));
            }
        }
    }
    let ssh_seat = SshSeat {
        context: picked.context.name.clone(),
        namespace: picked.pod.namespace().to_owned(),
        pod: picked.pod.name().to_owned(),
        pod_uid: picked.pod.uid().to_owned(),
        seat,
        login: login.clone(),
        host_key,
        sshd_config: m.sshd.config.clone(),
        alias: args.host_alias.clone(),
    };
    // What exec needed here, the stanza's kubectl needs too.
    let mut settings = session.settings.clone();
    if session.kubectl.needs_spdy() {
        const NAME: &str = "KUBECTL_REMOTE_COMMAND_WEBSOCKETS";
        settings.kubectl_env.retain(|(name, _)| name != NAME);
        settings.kubectl_env.push((NAME.to_owned(), "false".into()));
    }
    if args.print_config {
        let text = ssh::render(&settings, session.cluster, identity, &ssh_seat, args.plain)?;
        let ssh =
            wire::Ssh { login: Some(login), ..wire::Ssh::none("--print-config: nothing was written", None) };
        return Ok(Way { ssh, printed: Some(text), warnings: Vec::new() });
    }
    let installed = ssh::install(&settings, session.cluster, identity, &ssh_seat)?;
    let ssh = wire::Ssh {
        alias: Some(installed.alias),
        config: Some(installed.config.display().to_string()),
        login: Some(login),
        include: installed.include_missing,
        why: None,
        instead: None,
        checked: None,
    };
    Ok(Way { ssh, printed: None, warnings: installed.warnings })
}

/// The way in where the stanza couldn't be written, and what is told after the report.
pub(super) fn unwritten(
    session: &Session<'_>,
    args: &cli::Attach,
    picked: &pick::Picked,
    seat: SeatName,
    failure: Failure,
) -> (Way, Option<Failure>) {
    let pod = picked.pod.name();
    let enter = session.kubectl.enter(picked.pod.namespace(), pod, &seat.to_string());
    let ssh = wire::Ssh::none(format!("no stanza was written: {}", failure.message), Some(enter));
    let target = args.pod.target.as_ref().map(|c| format!(" -c {}", word(c))).unwrap_or_default();
    let failure = failure
        .because(format!("{seat} runs, and only its ssh stanza is missing"))
        .hint(session.verb("ssh-config", &format!("{pod}{target}")));
    (Way { ssh, printed: None, warnings: Vec::new() }, Some(failure))
}

/// `--dry-run`'s report: nothing was written and nothing measured.
pub(super) fn dry_run(
    session: &Session<'_>,
    picked: &pick::Picked,
    target: &Choice,
    plan: &Plan,
    ids: Ids,
    would: (SeatName, Rung),
    walked: (Vec<wire::Step>, Vec<String>),
) -> wire::Attach {
    let (steps, warnings) = walked;
    let ssh = wire::Ssh::none("--dry-run: nothing was written", None);
    let report = Report {
        picked,
        target,
        plan,
        ids,
        seat: would.0,
        reused: false,
        rung: would.1,
        measured: Err("--dry-run: nothing was written".to_owned()),
        steps,
        ssh,
        warnings,
    };
    report.value(session)
}
