//! `podbench clean`: everything stale on this machine, whichever cluster it led to, and the caller's
//! superseded seats in the current namespace.

use std::collections::BTreeMap;
use std::time::Duration;

use podbench_contract::ids::SeatName;

use super::pick::{self, Around};
use super::{Answer, Done, Session, seats};
use crate::cli;
use crate::error::Failure;
use crate::kubectl::refusal::Refusal;
use crate::kubectl::run::Interrupt;
use crate::kubectl::{Error, Kubectl};
use crate::pod::Pod;
use crate::report::style::Style;
use crate::report::undo::{self as wire, Clean, Outcome};
use crate::seat::inventory::{Caller, Inventory};
use crate::settings::{Cluster, Settings};
use crate::ssh::inventory::{self as disk, Mode, Place, Stanza};

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
/// When the disk says no, or nothing at all could be asked.
pub(super) fn run(
    args: &cli::Clean,
    session: &Session<'_>,
    elsewhere: &Elsewhere<'_>,
) -> Result<Done, Failure> {
    let mode = if args.dry_run { Mode::DryRun } else { Mode::Remove };
    let known = disk::stanzas(session.settings)?;
    session.progress("looking at the namespace");
    let mut here = superseded(session, args.dry_run)?;
    session.progress("asking clusters");
    let verdicts = ask_all(elsewhere, &here.context, &known)?;
    let (mut stale, mut unchecked, mut over, mut checked) = (Vec::new(), Vec::new(), Vec::new(), 0);
    let mut gone: Vec<String> = Vec::new();
    let calls = verdicts.calls;
    for (stanza, verdict) in verdicts.each {
        match verdict {
            Verdict::Live => checked += 1,
            Verdict::Stale(why) => {
                checked += 1;
                stale.push(seats::stale(&stanza, why));
                over.push(stanza);
            }
            Verdict::Gone(why) => {
                checked += 1;
                stale.push(seats::stale(&stanza, why));
                gone.push(stanza.owner.pod_uid.clone());
                over.push(stanza);
            }
            Verdict::Unknown(why) => unchecked.push(seats::kept(&stanza, why)),
        }
    }
    for stanza in &known {
        let ended = |(uid, seat): &(String, String)| stanza.leads_to(uid, seat);
        if here.ended.iter().any(ended) && !over.contains(stanza) {
            over.push(stanza.clone());
        }
    }
    let mut taken = disk::take_back(session.settings, &over, mode)?;
    let swept = disk::sweep(session.settings, mode, &over)?;
    taken.files.extend(swept.files);
    taken.known_hosts.extend(swept.known_hosts);
    let gone: Vec<&str> = gone.iter().map(String::as_str).collect();
    taken.files.extend(disk::forget_pods(session.settings, &gone, mode)?.files);
    let mut cost = session.calls();
    cost.kubectl += calls;
    let nothing = checked == 0 && here.unlisted.is_some();
    let failure = here.failure.take().or_else(|| {
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
        checked,
        stale,
        unchecked,
        seats: here.seats,
        removed: taken.into(),
        calls: cost,
        warnings: here.warnings,
    };
    session.ui.clear();
    let text = wire::clean(&report, Style::stdout(session.settings));
    Ok(Done { answer: Answer::Value(super::to_value(&report)?, text), failure })
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
            let ended = seats::end(session, &mut pod, &names)?;
            here.failure = here.failure.or(ended.failure);
            ended.seats
        };
        for (one, (_, newer)) in told.iter_mut().zip(&old) {
            one.why.get_or_insert_with(|| format!("{newer} has taken its place"));
        }
        let over = told.iter().filter(|s| s.outcome != Outcome::Left);
        here.ended.extend(over.map(|s| (uid.clone(), s.seat.clone())));
        here.seats.extend(told);
    }
    Ok(here)
}

/// The caller's running seats that a newer one has taken the place of, and that one.
fn old(pod: &Pod, caller: &Caller) -> Vec<(SeatName, SeatName)> {
    let inventory = Inventory::of(pod);
    let mine = inventory.seats.iter().filter(|s| s.is_of(caller));
    mine.filter_map(|s| Some((s.name, inventory.superseded(s)?))).collect()
}

/// What a cluster says about a stanza.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Verdict {
    Live,
    /// Its pod is there, and its seat isn't.
    Stale(String),
    /// Its pod isn't.
    Gone(String),
    Unknown(String),
}

struct Verdicts {
    each: Vec<(Stanza, Verdict)>,
    calls: usize,
}

/// Asks every cluster that a stanza names, a few at once.
fn ask_all(elsewhere: &Elsewhere<'_>, current: &str, known: &[Stanza]) -> Result<Verdicts, Failure> {
    let mut places: BTreeMap<Place, Vec<&Stanza>> = BTreeMap::new();
    for stanza in known {
        let place =
            Place { context: stanza.owner.context.clone(), kubeconfig: stanza.owner.kubeconfig.clone() };
        places.entry(place).or_default().push(stanza);
    }
    let mut all = Verdicts { each: Vec::new(), calls: 0 };
    if !current.is_empty() {
        // Without a context kubectl would ask another cluster than the one that it was made in.
        let inside = places.extract_if(.., |place, _| place.context.is_empty());
        let why = "it was made inside a cluster, without a context, and can only be checked there";
        all.each.extend(
            inside
                .flat_map(|(_, stanzas)| stanzas)
                .map(|stanza| (stanza.clone(), Verdict::Unknown(why.to_owned()))),
        );
    }
    let places: Vec<(Place, Vec<&Stanza>)> = places.into_iter().collect();
    for answer in seats::side_by_side(&places, CLUSTERS, |(place, known)| ask_one(elsewhere, place, known)) {
        let answer = answer?;
        all.each.extend(answer.each);
        all.calls += answer.calls;
    }
    all.each.sort_by(|a, b| a.0.alias.cmp(&b.0.alias));
    Ok(all)
}

/// Asks one cluster: the first pod alone, because a cluster that can't be reached is asked once.
fn ask_one(elsewhere: &Elsewhere<'_>, place: &Place, stanzas: &[&Stanza]) -> Result<Verdicts, Failure> {
    let mut by_pod: BTreeMap<(&str, &str), Vec<&Stanza>> = BTreeMap::new();
    for stanza in stanzas {
        by_pod.entry((&stanza.owner.namespace, &stanza.owner.pod)).or_default().push(stanza);
    }
    let mut kubectls: BTreeMap<&str, Kubectl> = BTreeMap::new();
    for (namespace, _) in by_pod.keys() {
        if !kubectls.contains_key(namespace) {
            kubectls.insert(namespace, elsewhere.kubectl(place, namespace)?);
        }
    }
    let pods: Vec<((&str, &str), Vec<&Stanza>)> = by_pod.into_iter().collect();
    let mut each = Vec::new();
    let mut unreachable: Option<String> = None;
    let (first, rest) = pods.split_at(pods.len().min(1));
    for some in std::iter::once(first).chain(rest.chunks(PODS)) {
        let asked: Vec<_> = some
            .iter()
            .map(|((namespace, pod), stanzas)| {
                let started = match (&unreachable, kubectls.get(namespace)) {
                    (None, Some(kubectl)) => {
                        Some(kubectl.get("pod", pod, "does the ssh host's pod still run"))
                    }
                    _ => None,
                };
                (stanzas, started)
            })
            .collect();
        for (stanzas, started) in asked {
            let answer = match started {
                None => Err(Verdict::Unknown(unreachable.clone().unwrap_or_default())),
                Some(started) => match started.and_then(|s| s.finish_within(LIMIT)) {
                    Ok(value) => Ok(Pod::new(value)),
                    Err(Error::Interrupted) => return Err(Error::Interrupted.into()),
                    Err(error) => {
                        if is_the_cluster(&error) {
                            unreachable = Some(first_line(&error));
                        }
                        Err(verdict(&error))
                    }
                },
            };
            for stanza in stanzas {
                let verdict = match &answer {
                    Ok(Ok(pod)) => match seats::dead_end(stanza, pod) {
                        None => Verdict::Live,
                        Some(why) if stanza.owner.pod_uid != pod.uid() => Verdict::Gone(why),
                        Some(why) => Verdict::Stale(why),
                    },
                    Ok(Err(not_a_pod)) => Verdict::Unknown(not_a_pod.to_string()),
                    Err(verdict) => verdict.clone(),
                };
                each.push(((*stanza).clone(), verdict));
            }
        }
    }
    Ok(Verdicts { each, calls: kubectls.values().map(Kubectl::calls).sum() })
}

/// What a failed look at a pod says about its stanzas.
fn verdict(error: &Error) -> Verdict {
    match error {
        Error::Refused(Refusal::NotFound(_)) => Verdict::Gone("its pod is gone".to_owned()),
        other => Verdict::Unknown(first_line(other)),
    }
}

/// Is it said of the cluster as a whole?
fn is_the_cluster(error: &Error) -> bool {
    match error {
        Error::Refused(refusal) => matches!(
            refusal,
            Refusal::Unreachable(_) | Refusal::Slow(_) | Refusal::Credentials(_) | Refusal::Kubeconfig(_)
        ),
        Error::Deadline { .. } | Error::Start { .. } => true,
        Error::Failed { .. } | Error::TooMuch { .. } | Error::Interrupted | Error::Answer { .. } => false,
    }
}

fn first_line(error: &Error) -> String {
    let words = error.to_string();
    let line = words.lines().next().unwrap_or_default();
    podbench_contract::text::escape(line.strip_prefix("error: ").unwrap_or(line), 300)
}

#[cfg(test)]
#[path = "clean_tests.rs"]
mod tests;
