//! `attach --check`: the whole way once, with the user's own ssh, before anybody says that it works.

use std::time::{Duration, Instant};

use super::{Answer, Done, Session};
use crate::error::{Failure, Kind};
use crate::kubectl::run::Interrupt;
use crate::report::attach::{Attach, Checked};
use crate::shell::word;
use crate::ssh::run::{Host, NoLogin, OpenSsh};

/// From start to end. The stanza's own `ConnectTimeout` is for people who sign in on the way.
const LIMIT: Duration = Duration::from_secs(30);

/// Logs in and puts what came of it into the report, which is printed whatever it is: the seat is there.
pub(super) fn check(done: Done, session: &Session<'_>, interrupt: Interrupt) -> Done {
    let Done { answer: Answer::Attach(mut report), failure } = done else { return done };
    session.progress("logging in with ssh");
    let began = Instant::now();
    let why = match login(&report, session, interrupt) {
        Ok(why) => why,
        // It says nothing about the login.
        Err(interrupted) => {
            session.ui.clear();
            return Done { answer: Answer::Attach(report), failure: failure.or(Some(interrupted)) };
        }
    };
    let ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    session.ui.clear();
    let failed = why.as_ref().map(|why| {
        report.supports.ssh.ok = Some(false);
        report.supports.ssh.why = format!("a login failed: {why}");
        failed(&report, session, why)
    });
    let ms = if session.settings.frozen_clock { 0 } else { ms };
    report.ssh.checked = Some(Checked { ok: why.is_none(), ms, why });
    Done { answer: Answer::Attach(report), failure: failure.or(failed) }
}

/// Why there was no login; `None`: there was one.
fn login(report: &Attach, session: &Session<'_>, interrupt: Interrupt) -> Result<Option<String>, Failure> {
    let (Some(alias), Some(config)) = (&report.ssh.alias, &report.ssh.config) else {
        return Ok(Some(report.ssh.why.clone().unwrap_or_else(|| "there is no stanza".to_owned())));
    };
    let ssh = match OpenSsh::find(session.settings, interrupt) {
        Ok(ssh) => ssh,
        Err(none) => return Ok(Some(none.message)),
    };
    match ssh.login(Host { config: config.as_ref(), alias }, LIMIT) {
        Ok(()) => Ok(None),
        Err(NoLogin::Said(why)) => Ok(Some(why)),
        Err(NoLogin::Interrupted) => Err(Failure::new(Kind::Interrupted, "interrupted")),
    }
}

fn failed(report: &Attach, session: &Session<'_>, why: &str) -> Failure {
    let failure = Failure::cluster(format!("a login by ssh failed: {why}"))
        .because(format!("{} runs, and your own ssh doesn't get into it", report.seat.name));
    match (&report.ssh.alias, &report.ssh.config) {
        (Some(alias), Some(config)) => {
            failure.hint(format!("ssh -v -S none -F {} {alias} true", word(config)))
        }
        _ => failure.hint(session.kubectl.enter(&report.namespace, &report.pod.name, &report.seat.name)),
    }
}
