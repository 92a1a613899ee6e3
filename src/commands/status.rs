//! `podbench status`: one pod, and everything about its seats. The caller's running seats are measured,
//! side by side; nobody else's is entered.

use podbench_contract::ids::{ContainerId, SeatName};
use podbench_contract::measurement::Measurement;
use podbench_contract::{env, oracle, resized};

use super::explain::{self, ended};
use super::pick::Picked;
use super::{Answer, Done, Session, pick, seats};
use crate::cli;
use crate::error::Failure;
use crate::kubectl::Error;
use crate::pod::{Pod, target};
use crate::report::attach as attach_wire;
use crate::report::seats::{Stale, State};
use crate::report::status::{self as wire, Full, Host, Measured, Status};
use crate::report::style::Style;
use crate::seat::inventory::{Caller, Inventory, Seat};
use crate::seat::measure::{Question, Unmeasured, measure};
use crate::ssh::inventory::{self as disk, Place, Stanza, Stanzas};

/// Looks.
///
/// # Errors
/// When the pod can't be read.
pub(super) fn run(args: &cli::Status, session: &Session<'_>) -> Result<Done, Failure> {
    let Stanzas { known, unread } = disk::stanzas(session.settings);
    let asked = args.pod.pod.as_deref();
    let bare = asked.map(pick::bare);
    let picked = pick::pod_of(session, asked, !args.pod.no_prompt, pick::Of::Seats).map_err(|failure| {
        // What is left of a pod that is gone.
        match known.iter().find(|s| bare == Some(s.owner.pod.as_str())) {
            Some(stanza) => failure
                .because(format!("the ssh host {} on this machine led to a pod of that name", stanza.alias))
                .hint(session.verb("detach", &stanza.owner.pod)),
            None => failure,
        }
    })?;
    let pod = &picked.pod;
    if let Some(name) = &args.pod.target {
        target::choose(pod, Some(name), &[]).map_err(|no| explain::no_target(session, pod, &no))?;
    }
    let wanted = |name: &str| args.pod.target.as_deref().is_none_or(|t| t == name);
    let caller = seats::caller(session, picked.owner.clone());
    let inventory = Inventory::of(pod);
    let shown: Vec<&Seat<'_>> = inventory.seats.iter().filter(|s| wanted(s.target)).collect();
    session.progress("measuring seats");
    let mut measured = measure_all(session, pod, &shown, &caller)?;
    let full: Vec<Full> = shown
        .iter()
        .map(|seat| {
            let answer =
                measured.iter().position(|(name, _)| *name == seat.name).map(|at| measured.swap_remove(at).1);
            one(pod, &inventory, seat, &caller, answer, &known)
        })
        .collect();
    let report = Status {
        schema: wire::SCHEMA,
        context: picked.context.name.clone(),
        namespace: pod.namespace().to_owned(),
        pod: attach_wire::Pod {
            name: pod.name().to_owned(),
            uid: pod.uid().to_owned(),
            node: pod.node().to_owned(),
            why: picked.why.clone(),
        },
        phase: podbench_contract::text::escape(pod.phase(), 40),
        targets: targets(pod, args.pod.target.as_deref(), &shown),
        next: next(session, pod, &full),
        seats: full,
        not_ours: seats::not_ours(pod, &inventory),
        stale: stale(session, &picked, &known)?,
        calls: session.calls(),
        warnings: warnings(&picked).into_iter().chain(unread).collect(),
    };
    session.ui.clear();
    let text = wire::text(&report, Style::stdout(session.settings));
    Ok(Answer::Value(super::to_value(&report)?, text).into())
}

type Answered = (SeatName, Result<Measurement, Unmeasured>);

/// One exec a seat, side by side; each has a deadline of its own.
fn measure_all(
    session: &Session<'_>,
    pod: &Pod,
    shown: &[&Seat<'_>],
    caller: &Caller,
) -> Result<Vec<Answered>, Failure> {
    let kubectl = session.kubectl;
    let is_meant = |s: &&&Seat<'_>| s.is_of(caller) && s.container.is_running() && s.untrusted.is_none();
    let mine: Vec<(SeatName, Option<ContainerId>)> = shown
        .iter()
        .filter(is_meant)
        .map(|s| (s.name, pod.container(s.target).and_then(|c| c.id())))
        .collect();
    let answers = seats::side_by_side(&mine, seats::SEATS, |(seat, target)| {
        let question =
            Question { pod: pod.name(), seat: *seat, target: target.as_ref(), authorize: None, probe: true };
        (*seat, measure(kubectl, question))
    });
    if answers.iter().any(|(_, a)| matches!(a, Err(Unmeasured::Exec(Error::Interrupted)))) {
        return Err(Error::Interrupted.into());
    }
    Ok(answers)
}

fn one(
    pod: &Pod,
    inventory: &Inventory<'_>,
    seat: &Seat<'_>,
    caller: &Caller,
    answer: Option<Result<Measurement, Unmeasured>>,
    known: &[Stanza],
) -> Full {
    let value = seats::value(inventory, seat, caller);
    let name = seat.name.to_string();
    let host = known.iter().find(|s| s.leads_to(pod.uid(), &name)).map(|s| Host {
        alias: s.alias.clone(),
        config: s.file.display().to_string(),
        connected: disk::is_connected(s),
    });
    let (measured, unmeasured) = match answer {
        Some(Ok(m)) => (Some(read(&m)), None),
        Some(Err(why)) => (None, Some(why.to_string())),
        None if seat.container.is_running() && value.mine => (None, Some("it isn't trusted".to_owned())),
        None => (None, None),
    };
    Full {
        ended_because: ended::cause(pod, seat, &value.state),
        seat: value,
        measured,
        unmeasured,
        resized_from: env::RESIZED_FROM
            .parse(seat.container.env(env::RESIZED_FROM.name).as_deref())
            .map(|changes| resized::write(&changes)),
        ssh: host,
    }
}

fn read(m: &Measurement) -> Measured {
    Measured {
        rung: oracle::measured_rung(m),
        uid: m.seat.uid(),
        gid: m.seat.gid(),
        cap_eff: m.seat.cap_eff.value().copied(),
        version: m.version.clone(),
        sessions: m.sessions,
        memory: m.memory.clone(),
    }
}

/// The one that was asked for, else those that have seats.
fn targets(pod: &Pod, asked: Option<&str>, seats: &[&Seat<'_>]) -> Vec<wire::Target> {
    let mut names: Vec<&str> = match asked {
        Some(name) => vec![name],
        None => seats.iter().map(|s| s.target).collect(),
    };
    names.sort_unstable();
    names.dedup();
    let containers = names.into_iter().filter_map(|name| pod.container(name));
    containers
        .map(|c| wire::Target {
            container: c.name().to_owned(),
            state: State::of(&c),
            restarts: c.restarts(),
            last_exit: ended::last_exit(&c),
        })
        .collect()
}

/// Stanzas for this pod's name that lead nowhere.
fn stale(session: &Session<'_>, picked: &Picked, known: &[Stanza]) -> Result<Vec<Stale>, Failure> {
    let pod = &picked.pod;
    let place = Place::new(session.settings, session.cluster, &picked.context.name)?;
    let here = |s: &&Stanza| s.owner.pod_uid == pod.uid() || s.is_at(&place, pod.namespace(), pod.name());
    let stale = |s: &Stanza| Some(seats::stale(s, seats::dead_end(s, pod)?));
    Ok(known.iter().filter(here).filter_map(stale).collect())
}

fn warnings(picked: &Picked) -> Vec<String> {
    let mut warnings = picked.warnings.clone();
    let pod = &picked.pod;
    if crate::pod::state::node_looks_dead(pod) {
        warnings.push(format!("node {} may not answer: what runs there may be old news", pod.node()));
    }
    if pod.is_being_deleted() {
        warnings.push("the pod is being deleted, and its seats with it".to_owned());
    }
    warnings
}

/// The most useful thing that can be typed.
fn next(session: &Session<'_>, pod: &Pod, seats: &[Full]) -> String {
    let usable = |f: &&Full| f.seat.mine && f.seat.state.name == "running" && f.seat.untrusted.is_none();
    let best =
        seats.iter().filter(usable).max_by_key(|f| (f.measured.as_ref().and_then(|m| m.rung), f.seat.rung));
    match best {
        Some(Full { ssh: Some(host), .. }) => disk::command(session.settings, &host.alias, &host.config),
        Some(f) => {
            let target = crate::shell::word(&f.seat.target);
            session.verb("ssh-config", &format!("{} -c {target}", pod.name()))
        }
        None => session.verb("attach", pod.name()),
    }
}
