//! `podbench clean`: everything stale on this machine, whichever cluster it led to, and the caller's
//! superseded seats in the current namespace.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use podbench_contract::ids::SeatName;
use podbench_contract::text::escape;
use serde_json::Value;

use super::pick::{self, Around};
use super::{Answer, Done, Session, seats};
use crate::cli;
use crate::error::{Failure, Kind};
use crate::kubectl::refusal::Refusal;
use crate::kubectl::run::Interrupt;
use crate::kubectl::{Error, Kubectl};
use crate::pod::Pod;
use crate::report::seats::Stale;
use crate::report::style::Style;
use crate::report::undo::{self as wire, Clean, Outcome};
use crate::resize::{self, Remembered};
use crate::seat::inventory::{Caller, Inventory};
use crate::settings::{Cluster, Settings};
use crate::ssh::inventory::{self as disk, Mode, Place, Stanza, Stanzas, Taken};

/// How other clusters are asked.
pub(super) struct Elsewhere<'a> {
    settings: &'a Settings,
    cluster: &'a Cluster,
    interrupt: Interrupt,
}

impl<'a> Elsewhere<'a> {
    /// As the user that the command line names, with the same kubectl.
    pub(super) const fn new(settings: &'a Settings, cluster: &'a Cluster, interrupt: Interrupt) -> Self {
        Self { settings, cluster, interrupt }
    }

    fn kubectl(&self, place: &Place, namespace: &str) -> Result<Kubectl, Failure> {
        let context = (!place.context.is_empty()).then(|| place.context.clone());
        let cluster = Cluster {
            // `--kubeconfig` takes no list.
            kubeconfig: None,
            context,
            namespace: Some(namespace.to_owned()),
            ..self.cluster.clone()
        };
        let env = vec![("KUBECONFIG", place.kubeconfig.clone().into())];
        // No terminal: nobody wants to be asked for the credentials of five clusters.
        super::kubectl_with(self.settings, &cluster, self.interrupt.clone(), env, false)
    }
}

/// How many clusters are asked at once, and how many pods of each.
const CLUSTERS: usize = 4;
const PODS: usize = 8;
/// How long one pod may take.
const LIMIT: Duration = Duration::from_secs(10);

/// Cleans.
///
/// # Errors
/// When the kubeconfig or a stanza can't be made sense of; all else is told after what was done.
pub(super) fn run(
    args: &cli::Clean,
    session: &Session<'_>,
    elsewhere: &Elsewhere<'_>,
) -> Result<Done, Failure> {
    let mode = if args.dry_run { Mode::DryRun } else { Mode::Remove };
    let Stanzas { known, unread } = disk::stanzas(session.settings);
    let (remembered, strange) = resize::remembered(session.settings);
    session.progress("looking at the namespace");
    let mut here = superseded(session, args.dry_run)?;
    here.warnings.extend(unread.into_iter().chain(strange));
    session.progress("asking clusters");
    let mut told = Told::default();
    let asked = match here.is_interrupted() {
        true => Asked::default(),
        false => ask_all(elsewhere, &here.context, &known, &remembered)?,
    };
    for stanza in &known {
        told.stanza(stanza, asked.of.get(&Lead::of_stanza(stanza)));
        if here.ended.iter().any(|(uid, seat)| stanza.leads_to(uid, seat)) && !told.over.contains(stanza) {
            told.over.push(stanza.clone());
        }
    }
    for one in &remembered {
        match asked.of.get(&Lead::of_remembered(one)) {
            Some(Looked::Gone) => told.forgotten.push(one.file.clone()),
            Some(Looked::Pod(pod)) if pod.uid() != one.uid => told.forgotten.push(one.file.clone()),
            Some(Looked::Pod(_)) => {}
            Some(Looked::Unknown(why)) => here.warnings.push(format!(
                "what {} had before --resize stays remembered: {why}",
                escape(&format!("{}/{}", one.namespace, one.pod), 320)
            )),
            None => {}
        }
    }
    let mut taken = Taken::default();
    let interrupted = asked.interrupted.then(|| Error::Interrupted.into());
    let mut failure = here.failure.take().or(interrupted);
    if failure.as_ref().is_none_or(|f| f.kind != Kind::Interrupted) {
        let settings = session.settings;
        let disk = disk::take_back(settings, &told.over, mode, &mut taken)
            .and_then(|()| disk::sweep(settings, mode, &told.over, &mut taken))
            .and_then(|()| disk::remove_all(settings, &told.forgotten, mode, &mut taken));
        failure = failure.or(disk.err());
    }
    let mut cost = session.calls();
    cost.kubectl += asked.calls;
    let nothing = told.checked == 0 && here.unlisted.is_some();
    let failure = failure.or_else(|| {
        let why = here.unlisted.clone().filter(|_| nothing)?;
        Some(
            Failure::cluster(
                "no cluster could be asked, so only this machine's own leftovers were looked for",
            )
            .because(why),
        )
    });
    let report = Clean {
        schema: wire::CLEAN,
        dry_run: args.dry_run,
        context: here.context,
        namespace: session.kubectl.namespace().unwrap_or_default().to_owned(),
        unlisted: here.unlisted,
        checked: told.checked,
        stale: told.stale,
        unchecked: told.unchecked,
        seats: here.seats,
        removed: taken.into(),
        calls: cost,
        warnings: here.warnings,
    };
    session.ui.clear();
    let text = wire::clean(&report, Style::stdout(session.settings));
    Ok(Done { answer: Answer::Value(super::to_value(&report)?, text), failure })
}

/// What the clusters' answers amount to.
#[derive(Default)]
struct Told {
    /// How many stanzas a cluster said something about.
    checked: usize,
    stale: Vec<Stale>,
    unchecked: Vec<wire::Kept>,
    /// Stanzas that go.
    over: Vec<Stanza>,
    /// State files that go.
    forgotten: Vec<PathBuf>,
}

impl Told {
    fn stanza(&mut self, stanza: &Stanza, looked: Option<&Looked>) {
        let why = match looked {
            None => return,
            Some(Looked::Unknown(why)) => {
                self.unchecked.push(seats::kept(stanza, why.clone()));
                return;
            }
            Some(Looked::Gone) => Some("its pod is gone".to_owned()),
            Some(Looked::Pod(pod)) => seats::dead_end(stanza, pod),
        };
        self.checked += 1;
        if let Some(why) = why {
            self.stale.push(seats::stale(stanza, why));
            self.over.push(stanza.clone());
        }
    }
}

/// What became of the current namespace's superseded seats.
#[derive(Default)]
struct Here {
    context: String,
    unlisted: Option<String>,
    seats: Vec<wire::Seat>,
    /// Pod UID and seat of those that don't run any more.
    ended: Vec<(String, String)>,
    warnings: Vec<String>,
    failure: Option<Failure>,
}

impl Here {
    fn is_interrupted(&self) -> bool {
        self.failure.as_ref().is_some_and(|f| f.kind == Kind::Interrupted)
    }
}

fn superseded(session: &Session<'_>, dry_run: bool) -> Result<Here, Failure> {
    // First, so that a credential plugin has the terminal.
    let first = session.kubectl.list_pods(None)?;
    let around = Around::ask(session)?;
    let mut here = Here { context: around.context.clone().unwrap_or_default().name, ..Here::default() };
    let pods = match first.finish() {
        Ok(value) => pick::list(value)?,
        Err(Error::Interrupted) => return Err(Error::Interrupted.into()),
        Err(error) => {
            here.unlisted = Some(first_line(&error));
            return Ok(here);
        }
    };
    let (owner, warning) = around.owner(session)?;
    here.warnings.extend(warning);
    let caller = seats::caller(session, owner);
    for mut pod in pods {
        let (uid, old) = (pod.uid().to_owned(), old(&pod, &caller));
        let names: Vec<SeatName> = old.iter().map(|(name, _)| *name).collect();
        let mut told: Vec<wire::Seat> = if dry_run {
            names.iter().map(|name| seats::undone(&pod, *name, Outcome::WouldEnd)).collect()
        } else {
            let ended = seats::end(session, &mut pod, &names);
            here.failure = here.failure.or(ended.failure);
            ended.seats
        };
        for (one, (_, newer)) in told.iter_mut().zip(&old) {
            one.why.get_or_insert_with(|| format!("{newer} has taken its place"));
        }
        let over = told.iter().filter(|s| s.outcome != Outcome::Left);
        here.ended.extend(over.map(|s| (uid.clone(), s.seat.clone())));
        here.seats.extend(told);
        if here.is_interrupted() {
            break;
        }
    }
    Ok(here)
}

/// The caller's running seats that a newer one has taken the place of, and that one.
fn old(pod: &Pod, caller: &Caller) -> Vec<(SeatName, SeatName)> {
    let inventory = Inventory::of(pod);
    let mine = inventory.seats.iter().filter(|s| s.is_of(caller));
    mine.filter_map(|s| Some((s.name, inventory.superseded(s)?))).collect()
}

/// A pod that something on this disk is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Lead {
    place: Place,
    namespace: String,
    pod: String,
}

impl Lead {
    fn of_stanza(stanza: &Stanza) -> Self {
        let owner = &stanza.owner;
        let place = Place { context: owner.context.clone(), kubeconfig: owner.kubeconfig.clone() };
        Self { place, namespace: owner.namespace.clone(), pod: owner.pod.clone() }
    }

    fn of_remembered(one: &Remembered) -> Self {
        Self { place: one.place.clone(), namespace: one.namespace.clone(), pod: one.pod.clone() }
    }
}

/// What a cluster says about a pod.
#[derive(Clone, Debug)]
enum Looked {
    Pod(Box<Pod>),
    /// There is none of its name.
    Gone,
    Unknown(String),
}

#[derive(Default)]
struct Asked {
    of: BTreeMap<Lead, Looked>,
    calls: usize,
    interrupted: bool,
}

/// Asks every cluster that something on this disk is about, a few at once.
fn ask_all(
    elsewhere: &Elsewhere<'_>,
    current: &str,
    known: &[Stanza],
    remembered: &[Remembered],
) -> Result<Asked, Failure> {
    let leads = known.iter().map(Lead::of_stanza).chain(remembered.iter().map(Lead::of_remembered));
    let mut places: BTreeMap<Place, BTreeSet<Lead>> = BTreeMap::new();
    for lead in leads {
        places.entry(lead.place.clone()).or_default().insert(lead);
    }
    let mut all = Asked::default();
    if !current.is_empty() {
        // Without a context kubectl would ask another cluster than the one that it was made in.
        let inside = places.extract_if(.., |place, _| place.context.is_empty());
        let why = "it was made inside a cluster, without a context, and can only be checked there";
        all.of
            .extend(inside.flat_map(|(_, leads)| leads).map(|lead| (lead, Looked::Unknown(why.to_owned()))));
    }
    let places: Vec<(Place, BTreeSet<Lead>)> = places.into_iter().collect();
    for answer in seats::side_by_side(&places, CLUSTERS, |(place, leads)| ask_one(elsewhere, place, leads)) {
        let answer = answer?;
        all.of.extend(answer.of);
        all.calls += answer.calls;
        all.interrupted |= answer.interrupted;
    }
    Ok(all)
}

/// Asks one cluster: the first pod alone, because a cluster that can't be reached is asked once.
fn ask_one(elsewhere: &Elsewhere<'_>, place: &Place, leads: &BTreeSet<Lead>) -> Result<Asked, Failure> {
    let mut kubectls: BTreeMap<&str, Kubectl> = BTreeMap::new();
    for namespace in leads.iter().map(|lead| lead.namespace.as_str()) {
        if !kubectls.contains_key(namespace) {
            kubectls.insert(namespace, elsewhere.kubectl(place, namespace)?);
        }
    }
    let leads: Vec<&Lead> = leads.iter().collect();
    let mut all = Asked::default();
    let mut unreachable: Option<String> = None;
    let (first, rest) = leads.split_at(leads.len().min(1));
    for some in std::iter::once(first).chain(rest.chunks(PODS)) {
        let started: Vec<_> = some
            .iter()
            .map(|lead| match (&unreachable, kubectls.get(lead.namespace.as_str())) {
                (None, Some(kubectl)) => Some(kubectl.get("pod", &lead.pod, "does this pod still run")),
                _ => None,
            })
            .collect();
        for (lead, started) in some.iter().zip(started) {
            let looked = match started.map(|started| started.and_then(|s| s.finish_within(LIMIT))) {
                None => Looked::Unknown(unreachable.clone().unwrap_or_default()),
                Some(answer) => {
                    if let Err(error) = &answer
                        && is_the_cluster(error)
                    {
                        unreachable = Some(first_line(error));
                    }
                    all.interrupted |= matches!(answer, Err(Error::Interrupted));
                    looked(answer)
                }
            };
            all.of.insert((*lead).clone(), looked);
        }
    }
    all.calls = kubectls.values().map(Kubectl::calls).sum();
    Ok(all)
}

/// What an answer says about the pod.
fn looked(answer: Result<Value, Error>) -> Looked {
    match answer.map(Pod::new) {
        Ok(Ok(pod)) => Looked::Pod(Box::new(pod)),
        Ok(Err(not_a_pod)) => Looked::Unknown(not_a_pod.to_string()),
        Err(Error::Refused(Refusal::NotFound(_))) => Looked::Gone,
        Err(other) => Looked::Unknown(first_line(&other)),
    }
}

/// Is it said of the cluster as a whole?
fn is_the_cluster(error: &Error) -> bool {
    match error {
        Error::Refused(refusal) => matches!(
            refusal,
            Refusal::Unreachable(_) | Refusal::Slow(_) | Refusal::Credentials(_) | Refusal::Kubeconfig(_)
        ),
        Error::Deadline { .. } | Error::Start { .. } | Error::Interrupted => true,
        Error::Failed { .. } | Error::TooMuch { .. } | Error::Answer { .. } => false,
    }
}

fn first_line(error: &Error) -> String {
    let words = error.to_string();
    let line = words.lines().next().unwrap_or_default();
    escape(line.strip_prefix("error: ").unwrap_or(line), 300)
}

#[cfg(test)]
#[path = "clean_tests.rs"]
mod tests;
