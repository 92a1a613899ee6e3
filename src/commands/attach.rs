//! `podbench attach`, box by box (docs/attach-flow.md).

use std::time::Instant;

use podbench_contract::ids::SeatName;
use podbench_contract::measurement::Measurement;
use podbench_contract::rung::Rung;

use super::explain::{self, ended};
use super::{Answer, Done, Session, assemble, pick, resizing, spec_patch};
use crate::cli::{self, ClusterArgs};
use crate::config::Defaults;
use crate::error::{Failure, Kind};
use crate::kubectl::Error;
use crate::ladder::{End, Facts, Ladder};
use crate::pod::Pod;
use crate::pod::ids::{Ids, shares_pids_with_others};
use crate::pod::state::{NotNow, node_looks_dead, not_now};
use crate::pod::target::{self, Choice};
use crate::report::attach::{self as wire, Channel, Outcome, Step};
use crate::seat::inventory::Caller;
use crate::seat::land::{Landing, Walked};
use crate::seat::measure::{Question, Unmeasured, measure};
use crate::seat::reuse::{self, Wanted};
use crate::seat::start::{Waited, may_start, until_started};
use crate::settings::{Cluster, Settings};
use crate::spec::ephemeral::Plan;
use crate::spec::image;
use crate::spec::mounts::mounts;
use crate::spec::patch::Patch;
use crate::ssh::{self, Identity};

/// What is settled before the cluster is touched.
pub struct Local {
    /// The key that may log in.
    pub identity: Identity,
    /// The seat's image, where the command line or the environment names it.
    pub image: Option<String>,
    /// `--spec-patch`.
    pub patch: Option<Patch>,
    /// How the cluster is reached.
    pub cluster: Cluster,
}

/// Box 1. The public key is read before anything else and never made; without one no seat could be
/// entered, whichever pod it would have been.
///
/// # Errors
/// When there is no key, no image, no kubectl, or no stanza could be written.
pub fn local(args: &cli::Attach, settings: &Settings, cluster: &ClusterArgs) -> Result<Local, Failure> {
    let identity = ssh::keys::find(settings, args.ssh.identity.as_deref())?;
    let image = args.image.clone().or_else(|| settings.image.clone());
    if image.is_none() && !settings.config.names_an_image() && image::derived().is_none() {
        return Err(no_image());
    }
    let cluster = Cluster::resolve(cluster, settings)?;
    ssh::check(settings, &cluster, !args.is_dry_run() && !args.ssh.print_config)?;
    let patch = args.spec_patch.as_deref().map(|file| spec_patch::read(file, settings)).transpose()?;
    Ok(Local { identity, image, patch, cluster })
}

/// The seat's image, now that the context is known.
///
/// # Errors
/// When nobody names one.
pub(super) fn image(local: &Local, defaults: &Defaults) -> Result<String, Failure> {
    let named = local.image.as_ref().or(defaults.image.as_ref());
    named.cloned().or_else(image::derived).ok_or_else(no_image)
}

fn no_image() -> Failure {
    Failure::input("no seat image is named")
        .because("this is a development build, which knows no released one")
        .hint("podbench attach POD --image IMAGE")
        .hint("export PODBENCH_IMAGE=IMAGE")
}

/// A seat that runs, however it came to.
struct Seat {
    name: SeatName,
    rung: Rung,
    reused: bool,
}

/// The whole of it.
///
/// # Errors
/// When there is no seat: what a person is to be told.
pub fn run(args: &cli::Attach, session: &Session<'_>, local: &Local) -> Result<Done, Failure> {
    // Box 2: the pod.
    let picked = pick::pod(session, args.pod.pod.as_deref(), !args.pod.no_prompt)?;
    beside(args, session, local, picked)
}

/// The whole of it beside a pod that is known.
///
/// # Errors
/// As [`run`].
pub fn beside(
    args: &cli::Attach,
    session: &Session<'_>,
    local: &Local,
    picked: pick::Picked,
) -> Result<Done, Failure> {
    let mut resized = None;
    let done = flow(args, session, local, picked, &mut resized);
    // Whatever came after it: it was done, and isn't lost.
    done.map_err(|failure| resizing::kept(resized.as_ref(), failure))
}

fn flow(
    args: &cli::Attach,
    session: &Session<'_>,
    local: &Local,
    mut picked: pick::Picked,
    resized: &mut Option<wire::Resized>,
) -> Result<Done, Failure> {
    let defaults = session.defaults(&picked.context.name);
    let args = &cli::Attach { max_rung: args.max_rung.or(defaults.max_rung), ..args.clone() };
    if let (Some(require), Some(ceiling)) = (args.require, args.max_rung)
        && require > ceiling
    {
        return Err(Failure::input(format!(
            "--require {require} is more than --max-rung {ceiling} lets land"
        ))
        .because("either of the two on the command line, or max-rung in config.toml, has to give way"));
    }
    let image = image(local, &defaults)?;
    let patch = match (&local.patch, &defaults.spec_patch) {
        (Some(patch), _) => Some(patch.clone()),
        (None, Some(file)) => Some(spec_patch::read(file, session.settings)?),
        (None, None) => None,
    };
    // Box 3: the target, and what the seat will see.
    let target = target::choose(&picked.pod, args.pod.target.as_deref(), &defaults.sidecars)
        .map_err(|no| explain::no_target(session, &picked.pod, &no))?;
    let made = |picked: &pick::Picked| {
        plan(args, (image.clone(), patch.clone(), &local.identity), picked, &target)
            .map_err(|no| explain::no_mount(session, &picked.pod, &no))
    };
    let mut plan = made(&picked)?;
    // Box 4: can anything start beside it?
    if startable(args, session, &mut picked.pod, &target)? {
        plan = made(&picked)?;
    }
    let mut warnings = std::mem::take(&mut picked.warnings);
    let caller = Caller { owner: picked.owner.clone(), key: Some(local.identity.public.clone()) };
    // Before the seat: it lives in the pod's memory.
    *resized = resizing::before_seat(args, session, (&mut picked.pod, &caller), &mut plan, &mut warnings)?;
    warnings.extend(explain::restarts(&picked.pod, &target.name));
    let ids = ids(args, &picked.pod, &target.name);
    let mut steps = Vec::new();
    // Boxes 5 and 6: a running seat, else the ladder.
    let wanted =
        Wanted { ceiling: args.max_rung, require: args.require, uid: args.target_uid, gid: args.target_gid };
    let mut unused = Vec::new();
    let mut seat = if args.new || args.is_dry_run() {
        None
    } else {
        let (found, notes) = reuse::find(&picked.pod, &plan, ids, wanted);
        warnings.extend(notes.iter().map(ToString::to_string));
        unused = notes;
        warnings.extend(found.as_ref().and_then(|f| explain::below_ceiling(args.max_rung, f)));
        found.map(|f| reused(&mut steps, f))
    };
    if seat.is_none() {
        warnings.extend(ended::before(&picked.pod, &target.name, &caller));
        session.progress("landing a seat");
        let facts = facts(args, &picked.pod, &target.name, ids);
        match walk(args, session, &mut picked.pod, &mut plan, facts, &mut steps, &mut warnings)? {
            Walk::Landed(landed) => {
                // Said before anybody knew what a policy makes of a seat.
                let wrong = unused.iter().find(|note| note.name == landed.name).map(ToString::to_string);
                warnings.retain(|warning| Some(warning) != wrong.as_ref());
                seat = Some(landed);
            }
            Walk::WouldLand(rung, name) => {
                let walked = (steps, warnings);
                let report = assemble::dry_run(session, &picked, &target, &plan, ids, (name, rung), walked);
                let report = wire::Attach { resized: resized.take(), ..report };
                let failure = args.require.and_then(|wanted| {
                    explain::required(session, wanted, picked.pod.name(), &explain::Got::Would(rung), args)
                });
                return Ok(Done { answer: Answer::Attach(Box::new(report)), failure });
            }
        }
    }
    let Some(mut seat) = seat else {
        return Err(Failure::new(Kind::Bug, "a walk ended without a seat or a reason"));
    };
    // Box 7: measure, and correct the ids once.
    session.progress("measuring the seat");
    let mut measured = ask(args, session, &picked.pod, &plan, &seat)?;
    let corrected = correction(args, &measured, &picked.pod, &target.name);
    // A walk that has just been through these ids was told no about them.
    if let Some(facts) = corrected.filter(|facts| seat.reused || facts.target != ids) {
        let wanted = Wanted {
            ceiling: args.max_rung,
            require: args.require,
            uid: facts.target.uid,
            gid: facts.target.gid,
        };
        let (found, _) = reuse::find(&picked.pod, &plan, facts.target, wanted);
        let other = match found {
            Some(found) => Some(reused(&mut steps, found)),
            None => correct(args, session, &mut picked.pod, &mut plan, facts, &mut steps, &mut warnings)?,
        };
        if let Some(other) = other {
            warnings.push(format!(
                "the target's ids aren't what the pod says: {} has the measured ones, and {} isn't used any more",
                other.name, seat.name
            ));
            seat = other;
            measured = ask(args, session, &picked.pod, &plan, &seat)?;
        }
    }
    // Boxes 8 and 9: the stanza, whose alias the report says.
    let way = assemble::ssh(
        &args.ssh,
        session,
        &local.identity,
        &picked,
        (seat.name, seat.reused),
        measured.as_ref().ok(),
    );
    let (ssh, unwritten) = match way {
        Ok(way) => (way, None),
        Err(failure) if args.ssh.print_config => return Err(failure),
        // The seat was landed, and its report isn't lost.
        Err(failure) => assemble::unwritten(session, args, &picked, seat.name, failure),
    };
    if let Some(text) = ssh.printed {
        return Ok(Answer::Text(text).into());
    }
    warnings.extend(ssh.warnings);
    let report = assemble::Report {
        picked: &picked,
        target: &target,
        plan: &plan,
        ids,
        seat: seat.name,
        reused: seat.reused,
        rung: seat.rung,
        measured: measured.as_ref().map_err(ToString::to_string),
        steps,
        ssh: ssh.ssh,
        warnings,
    };
    let report = wire::Attach { resized: resized.take(), ..report.value(session) };
    let failure = match measured {
        Err(why) => Some(explain::unmeasured(session, &report, &why)),
        Ok(_) => unwritten.or_else(|| {
            let got = explain::Got::Measured(report.rung.measured);
            args.require.and_then(|rung| explain::required(session, rung, &report.pod.name, &got, args))
        }),
    };
    session.ui.clear();
    Ok(Done { answer: Answer::Attach(Box::new(report)), failure })
}

fn plan(
    args: &cli::Attach,
    (image, patch, identity): (String, Option<Patch>, &Identity),
    picked: &pick::Picked,
    target: &Choice,
) -> Result<Plan, crate::spec::mounts::NoMount> {
    let pod = &picked.pod;
    let container = pod.container(&target.name);
    let mounts = match &container {
        Some(container) => mounts(pod, container, &args.mounts, !args.no_seat_identity)?,
        None => Vec::new(),
    };
    Ok(Plan {
        image,
        pull: args.pull.as_str(),
        target: target.name.clone(),
        target_id: container.and_then(|c| c.id()),
        containers: std::iter::once(&target.name).chain(&target.others).cloned().collect(),
        owner: picked.owner.clone(),
        node: pod.node().to_owned(),
        host_network: pod.host_network(),
        key: identity.public.clone(),
        mounts,
        resized: Vec::new(),
        reason: args.reason.clone(),
        patch,
    })
}

fn ids(args: &cli::Attach, pod: &Pod, target: &str) -> Ids {
    let said = pod.container(target).map(|c| Ids::of(pod, &c)).unwrap_or_default();
    Ids { uid: args.target_uid.or(said.uid), gid: args.target_gid.or(said.gid) }
}

fn facts(args: &cli::Attach, pod: &Pod, target: &str, ids: Ids) -> Facts {
    Facts {
        target: ids,
        shares_pids: shares_pids_with_others(pod, target, ids.uid),
        ceiling: args.max_rung,
        require: args.require,
        seccomp: pod.container(target).and_then(|c| c.security("seccompProfile")).cloned(),
        rehearse_only: args.is_dry_run(),
    }
}

/// Nothing is written beside a target that doesn't run, in a pod that can't take a seat, or on a
/// node that doesn't answer. True: its start was waited for, and the pod is another one now.
fn startable(
    args: &cli::Attach,
    session: &Session<'_>,
    pod: &mut Pod,
    target: &Choice,
) -> Result<bool, Failure> {
    if let Some(no) = not_now(pod, &target.name) {
        let limit = args.wait_start.filter(|_| may_start(&no) && !args.is_dry_run());
        let Some(limit) = limit else { return Err(explain::not_now(session, pod, &no)) };
        let deadline = Instant::now() + limit;
        let told = |no: &NotNow| session.progress(&explain::waiting(&target.name, no));
        return match until_started(session.kubectl, pod, &target.name, deadline, told)? {
            Waited::Started => Ok(true),
            Waited::Never(no) => Err(explain::not_now(session, pod, &no)),
            Waited::Late(no) => Err(explain::late_start(session, pod, &no, limit)),
        };
    }
    if node_looks_dead(pod)
        && let Some(why) = explain::dead_node(session, pod)?
    {
        return Err(why);
    }
    Ok(false)
}

fn reused(steps: &mut Vec<Step>, found: reuse::Found) -> Seat {
    steps.push(Step {
        rung: found.rung,
        outcome: Outcome::Reused,
        channel: Channel::Launcher,
        reason: format!("{} was running already", found.name),
        burnt: None,
    });
    Seat { name: found.name, rung: found.rung, reused: true }
}

enum Walk {
    Landed(Seat),
    WouldLand(Rung, SeatName),
}

fn walk(
    args: &cli::Attach,
    session: &Session<'_>,
    pod: &mut Pod,
    plan: &mut Plan,
    facts: Facts,
    steps: &mut Vec<Step>,
    warnings: &mut Vec<String>,
) -> Result<Walk, Failure> {
    let mut ladder = Ladder::new(facts);
    let landing = Landing::new(session.kubectl, args.timeout).reusing(!args.new);
    let walked = climb(&landing, pod, plan, &mut ladder, steps, warnings);
    match walked.map_err(|e| explain::cut_off(session, pod, landing.written.get(), e))? {
        Walked::Landed(name, rung) => Ok(Walk::Landed(Seat { name, rung, reused: false })),
        Walked::Running(found) => Ok(Walk::Landed(reused(steps, found))),
        Walked::Ended(End::WouldLand(rung), name) => Ok(Walk::WouldLand(rung, name)),
        Walked::Ended(end, _) => {
            // A dry run that ends with a right that is missing.
            steps.retain(|step| step.outcome != Outcome::WouldLand);
            Err(explain::ended(session, pod, plan, &end, steps, ladder.refusals()))
        }
    }
}

/// Walks the ladder, and keeps what was walked whichever way it ends.
fn climb(
    landing: &Landing<'_>,
    pod: &mut Pod,
    plan: &mut Plan,
    ladder: &mut Ladder,
    steps: &mut Vec<Step>,
    warnings: &mut Vec<String>,
) -> Result<Walked, Error> {
    let walked = landing.walk(pod, plan, ladder);
    steps.extend(ladder.steps().iter().cloned());
    warnings.extend(ladder.warnings().iter().cloned());
    walked
}

fn ask(
    args: &cli::Attach,
    session: &Session<'_>,
    pod: &Pod,
    plan: &Plan,
    seat: &Seat,
) -> Result<Result<Measurement, Unmeasured>, Failure> {
    // The target may have been restarted since the seat's environment was written.
    let target = pod.container(&plan.target).and_then(|c| c.id());
    let question = Question {
        pod: pod.name(),
        seat: seat.name,
        target: target.as_ref(),
        // A new seat has it in its spec. An older one may have lost it, or have been landed with another.
        authorize: seat.reused.then_some(&plan.key),
        probe: !args.no_probe,
    };
    match measure(session.kubectl, question) {
        Err(Unmeasured::Exec(error)) if explain::is_unreachable(&error) => {
            Err(explain::unreachable(session, pod, plan, seat.name, error))
        }
        other => Ok(other),
    }
}

/// The ladder's facts with the target's ids as measured, where they aren't the seat's, nobody
/// pinned them, and a seat at those ids would reach what this one doesn't.
fn correction(
    args: &cli::Attach,
    measured: &Result<Measurement, Unmeasured>,
    pod: &Pod,
    target: &str,
) -> Option<Facts> {
    let m = measured.as_ref().ok()?;
    let (uid, gid) = podbench_contract::oracle::target_ids(m)?;
    let (own_uid, own_gid) = (m.seat.uid()?, m.seat.gid()?);
    let pinned =
        (args.target_uid.is_some() || own_uid == uid) && (args.target_gid.is_some() || own_gid == gid);
    let capable = m.seat.cap_eff.value().is_some_and(|c| c.has_sys_ptrace());
    let allowed = args.max_rung.is_none_or(|ceiling| ceiling >= Rung::Degraded);
    if args.no_correct_ids || pinned || capable || uid.is_root() || !allowed || m.probes.seize.is_ok() {
        return None;
    }
    let ids = Ids { uid: args.target_uid.or(Some(uid)), gid: args.target_gid.or(Some(gid)) };
    Some(facts(args, pod, target, ids))
}

/// Lands the corrected seat; where it is refused the first one stays.
fn correct(
    args: &cli::Attach,
    session: &Session<'_>,
    pod: &mut Pod,
    plan: &mut Plan,
    facts: Facts,
    steps: &mut Vec<Step>,
    warnings: &mut Vec<String>,
) -> Result<Option<Seat>, Failure> {
    // One rung and no other: the seat at hand is as good as any lower one.
    let mut ladder = Ladder::new(facts).only(Rung::Degraded);
    let landing = Landing::new(session.kubectl, args.timeout).reusing(true);
    match climb(&landing, pod, plan, &mut ladder, steps, warnings) {
        Ok(Walked::Landed(name, rung)) => Ok(Some(Seat { name, rung, reused: false })),
        Ok(Walked::Running(found)) => Ok(Some(reused(steps, found))),
        Err(Error::Interrupted) => Err(Error::Interrupted.into()),
        // The steps say why.
        Ok(Walked::Ended(..)) => Ok(None),
        Err(error) => {
            warnings.push(explain::uncorrected(landing.written.get(), &error));
            Ok(None)
        }
    }
}

#[cfg(test)]
mod tests {
    use podbench_contract::ids::{Gid, Uid};
    use serde_json::json;

    use super::*;
    use crate::cli::Verb;
    use crate::kubectl::fake::{self, fails, ok};
    use crate::ui::Ui;

    #[test]
    fn a_correction_that_fails_after_its_write_is_told_with_the_seats_name() {
        let value = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "api", "namespace": "demo", "uid": "u-1", "resourceVersion": "1"},
            "spec": {"nodeName": "node1", "containers": [{"name": "app"}],
                     "ephemeralContainers": [{"name": "podbench-1"}]},
            "status": {"containerStatuses": [{"name": "app", "state": {"running": {}}}]},
        });
        // The write arrives, and its answer doesn't.
        let (kubectl, _) = fake::kubectl(|line, stdin| match line {
            review if review.contains("selfsubjectaccessreviews") => ok(json!({"status": {"allowed": true}})),
            rehearsal if rehearsal.contains("dryRun=All") => ok(stdin.unwrap()),
            _ => fails("something that nobody knows"),
        });
        let settings = Settings::bare("/home/u");
        let cluster = Cluster::default();
        let session = Session {
            settings: &settings,
            cluster: &cluster,
            kubectl: &kubectl,
            verb: crate::commands::Running::Attach,
            ui: Ui::new(&settings),
        };
        let cli = cli::parse(["podbench", "attach", "api"].map(Into::into)).unwrap();
        let Verb::Attach(args) = cli.verb else { panic!("another verb") };
        let mut plan = Plan { target_id: None, ..Plan::sample() };
        let mut pod = Pod::new(value).unwrap();
        let facts = facts(&args, &pod, "app", Ids { uid: Some(Uid(7)), gid: Some(Gid(7)) });
        let (mut steps, mut warnings) = (Vec::new(), Vec::new());
        let seat = correct(&args, &session, &mut pod, &mut plan, facts, &mut steps, &mut warnings).unwrap();
        assert!(seat.is_none());
        let [warning] = warnings.as_slice() else { panic!("{warnings:?}") };
        assert!(
            warning.contains("podbench-2 may be stored") && warning.contains("nobody knows"),
            "{warning}"
        );
    }
}
