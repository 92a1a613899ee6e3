//! What was changed, and what it was before: `~/.podbench/state/UID.json` on this machine, and the
//! environment of the seats that were landed with it, which any machine can read and anyone may have
//! written.

use std::path::{Path, PathBuf};

use podbench_contract::env;
use podbench_contract::ids::SeatName;
use podbench_contract::resized::{self, Change};
use serde_json::{Value, json};

use super::plan::Step;
use super::{resizable, share};
use crate::commands::Session;
use crate::error::{Failure, Kind as FailureKind};
use crate::pod::Pod;
use crate::seat::inventory::{Caller, Inventory};
use crate::settings::Settings;
use crate::shell::word;
use crate::ssh::files::{Found, Layout, folder, read, replace};
use crate::ssh::inventory::Place;

/// The value of a state file's `schema`.
const SCHEMA: &str = "podbench/resized/v1";

/// Who remembers a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// This machine.
    Machine,
    /// That seat's environment.
    Seat(SeatName),
}

/// What podbench changed in one container of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Journalled {
    /// The container.
    pub container: String,
    /// Each resource, with what it was and what podbench made of it.
    pub changes: Vec<(Change, Source)>,
}

/// What was resized in this pod as far as this machine and the caller's own seats remember, a
/// container each. Where several remember one resource, the one that knows what is there now is
/// believed, this machine first and then the newest seat: who else remembers it knows less.
///
/// # Errors
/// When this machine's own file can't be read.
pub fn journalled(pod: &Pod, settings: &Settings, caller: &Caller) -> Result<Vec<Journalled>, Failure> {
    let mut all: Vec<(Change, Source)> =
        kept(settings, pod)?.into_iter().map(|change| (change, Source::Machine)).collect();
    all.extend(in_seats(pod, caller));
    let mut out: Vec<Journalled> = Vec::new();
    for (change, source) in &all {
        let same = |c: &Change| c.container == change.container && c.resource == change.resource;
        let is_now = |c: &Change| {
            resizable(pod, &c.container).and_then(|found| share(&found, c.resource)) == Some(c.to)
        };
        let candidates = || all.iter().filter(|(c, _)| same(c));
        let best = candidates().find(|(c, _)| is_now(c)).or_else(|| candidates().next());
        if best != Some(&(change.clone(), *source)) {
            continue;
        }
        match out.iter_mut().find(|j| j.container == change.container) {
            Some(entry) if entry.changes.iter().any(|(c, _)| same(c)) => {}
            Some(entry) => entry.changes.push((change.clone(), *source)),
            None => out.push(Journalled {
                container: change.container.clone(),
                changes: vec![(change.clone(), *source)],
            }),
        }
    }
    Ok(out)
}

/// What the environments of the caller's own seats say, the newest first. A stranger's text is
/// nothing to be done in the caller's name, and is no old value of anything.
fn in_seats(pod: &Pod, caller: &Caller) -> Vec<(Change, Source)> {
    let inventory = Inventory::of(pod);
    let trusted = inventory.seats.iter().rev().filter(|s| s.is_of(caller) && s.untrusted.is_none());
    trusted
        .filter_map(|seat| {
            let raw = seat.container.env(env::RESIZED_FROM.name);
            Some((seat.name, env::RESIZED_FROM.parse(raw.as_deref())?))
        })
        .flat_map(|(name, changes)| changes.into_iter().map(move |c| (c, Source::Seat(name))))
        .collect()
}

/// The steps as changes. A resource that podbench changed before, and nobody since, keeps its first
/// old value; where somebody else did, what it is now is the old value.
pub(super) fn first_values(
    settings: &Settings,
    pod: &Pod,
    caller: &Caller,
    container: &str,
    steps: &[Step],
) -> Result<Vec<Change>, Failure> {
    let known = journalled(pod, settings, caller)?;
    let known = || known.iter().flat_map(|j| &j.changes).map(|(c, _)| c).filter(|c| c.container == container);
    let first =
        |step: &Step| known().find(|c| c.resource == step.resource && c.to == step.now).map(|c| c.from);
    let change = |step: &Step| Change {
        container: container.to_owned(),
        resource: step.resource,
        from: first(step).unwrap_or(step.now),
        to: step.to,
    };
    Ok(steps.iter().map(change).collect())
}

/// This machine's memory of what was changed.
#[derive(Clone, Debug)]
pub(super) struct Journal<'s> {
    settings: &'s Settings,
    place: Place,
}

impl<'s> Journal<'s> {
    /// For pods of this session's cluster.
    ///
    /// # Errors
    /// When the kubeconfig's path can't be written on a line.
    pub(super) fn of(session: &Session<'s>) -> Result<Self, Failure> {
        let place = Place::new(session.settings, session.cluster, session.kubectl.context_name())?;
        Ok(Self { settings: session.settings, place })
    }
}

/// What this machine remembered before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Before(Vec<Change>);

/// Writes changes down, each in place of what was remembered of the same resource.
pub(super) fn remember(journal: &Journal<'_>, pod: &Pod, changes: &[Change]) -> Result<Before, Failure> {
    let layout = Layout::new(journal.settings);
    let _lock = layout.open(journal.settings)?;
    let before = kept(journal.settings, pod)?;
    let other = |c: &&Change| !changes.iter().any(|n| n.container == c.container && n.resource == c.resource);
    let after: Vec<Change> = before.iter().filter(other).chain(changes).cloned().collect();
    store(journal, pod, &after)?;
    Ok(Before(before))
}

/// Undoes [`remember`]. A file that stays says what isn't so any more, and a restore that reads it
/// finds another value and touches nothing: no failure of a run that did what it was asked for.
pub(super) fn put_back(journal: &Journal<'_>, pod: &Pod, before: &Before) {
    let layout = Layout::new(journal.settings);
    if let Ok(_lock) = layout.open(journal.settings) {
        let _ = store(journal, pod, &before.0);
    }
}

/// This machine forgets what it remembered of a container.
pub(super) fn forget(journal: &Journal<'_>, pod: &Pod, container: &str) -> Result<(), Failure> {
    let settings = journal.settings;
    if matches!(read(&file(settings, pod))?, Found::Nothing) {
        return Ok(());
    }
    let layout = Layout::new(settings);
    let _lock = layout.open(settings)?;
    let rest: Vec<Change> = kept(settings, pod)?.into_iter().filter(|c| c.container != container).collect();
    store(journal, pod, &rest)
}

fn file(settings: &Settings, pod: &Pod) -> PathBuf {
    // A uid is of letters, digits and hyphens: `Pod::new`.
    Layout::new(settings).state().join(format!("{}.json", pod.uid()))
}

/// What this machine remembers of the pod.
fn kept(settings: &Settings, pod: &Pod) -> Result<Vec<Change>, Failure> {
    let path = file(settings, pod);
    let Some(value) = value(&path)? else { return Ok(Vec::new()) };
    value.get("resized").and_then(Value::as_str).and_then(resized::read).ok_or_else(|| strange(&path))
}

/// A state file's content; `None`: there is none.
fn value(path: &Path) -> Result<Option<Value>, Failure> {
    let text = match read(path)? {
        Found::Nothing => return Ok(None),
        Found::Foreign => return Err(strange(path)),
        Found::Text(text) => text,
    };
    let value: Value = serde_json::from_str(&text).map_err(|_| strange(path))?;
    if value.get("schema").is_none_or(|s| s != SCHEMA) {
        return Err(strange(path));
    }
    Ok(Some(value))
}

fn strange(path: &Path) -> Failure {
    let shown = podbench_contract::text::escape(&path.to_string_lossy(), 200);
    Failure::new(FailureKind::Disk, format!("{shown} is not a file that podbench wrote"))
        .because("podbench remembers there what a pod's container had before --resize")
        .hint(format!("rm {}", word(&path.to_string_lossy())))
}

/// A pod whose old values this machine remembers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remembered {
    /// Where.
    pub file: PathBuf,
    /// The pod's `metadata.uid`.
    pub uid: String,
    /// The cluster that it is in.
    pub place: Place,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub pod: String,
}

/// Every pod of which this machine remembers something, and a line about each file that is none of
/// podbench's. Nobody's secret: what is there is what any reader of the pod sees.
#[must_use]
pub fn remembered(settings: &Settings) -> (Vec<Remembered>, Vec<String>) {
    let (mut known, mut strange) = (Vec::new(), Vec::new());
    let files = std::fs::read_dir(Layout::new(settings).state()).into_iter().flatten().flatten();
    for path in files.map(|entry| entry.path()) {
        let Some(uid) = path.file_name().and_then(|n| n.to_str()).and_then(|n| n.strip_suffix(".json"))
        else {
            continue;
        };
        match value(&path).map(|value| value.as_ref().and_then(|value| about(&path, uid, value))) {
            Ok(Some(one)) => known.push(one),
            Ok(None) => {}
            Err(failure) => strange.push(failure.message),
        }
    }
    known.sort_by(|a, b| a.file.cmp(&b.file));
    (known, strange)
}

fn about(file: &Path, uid: &str, value: &Value) -> Option<Remembered> {
    let text = |field: &str| value.get(field).and_then(Value::as_str).map(str::to_owned);
    Some(Remembered {
        file: file.to_owned(),
        uid: uid.to_owned(),
        place: Place { context: text("context")?, kubeconfig: text("kubeconfig")? },
        namespace: text("namespace")?,
        pod: text("pod")?,
    })
}

/// Under the lock.
fn store(journal: &Journal<'_>, pod: &Pod, changes: &[Change]) -> Result<(), Failure> {
    let path = file(journal.settings, pod);
    if changes.is_empty() {
        return match std::fs::remove_file(&path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                Err(crate::ssh::files::disk("it can't be removed", &path, &e))
            }
            _ => Ok(()),
        };
    }
    folder(&Layout::new(journal.settings).state())?;
    let value = json!({
        "schema": SCHEMA,
        "context": journal.place.context,
        "kubeconfig": journal.place.kubeconfig,
        "namespace": pod.namespace(),
        "pod": pod.name(),
        "resized": resized::write(changes),
    });
    replace(&path, &format!("{value:#}\n"))
}

#[cfg(test)]
#[path = "journal_tests.rs"]
mod tests;
