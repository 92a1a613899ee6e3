//! What was changed, and what it was before: `~/.podbench/state/UID.json` on this machine, and the
//! environment of the seats that were landed with it, which any machine can read and anyone may have
//! written.

use std::path::PathBuf;

use podbench_contract::env;
use podbench_contract::ids::SeatName;
use podbench_contract::resized::{self, Change};
use serde_json::{Value, json};

use super::plan::Step;
use super::{resizable, share};
use crate::error::{Failure, Kind as FailureKind};
use crate::pod::Pod;
use crate::seat::inventory::{Caller, Inventory};
use crate::settings::Settings;
use crate::ssh::files::{Found, Layout, folder, read, replace};

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

/// What this machine remembered before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Before(Vec<Change>);

/// Writes changes down, each in place of what was remembered of the same resource.
pub(super) fn remember(settings: &Settings, pod: &Pod, changes: &[Change]) -> Result<Before, Failure> {
    let layout = Layout::new(settings);
    let _lock = layout.open(settings)?;
    let before = kept(settings, pod)?;
    let other = |c: &&Change| !changes.iter().any(|n| n.container == c.container && n.resource == c.resource);
    let after: Vec<Change> = before.iter().filter(other).chain(changes).cloned().collect();
    store(settings, pod, &after)?;
    Ok(Before(before))
}

/// Undoes [`remember`]. A file that stays says what isn't so any more, and a restore that reads it
/// finds another value and touches nothing: no failure of a run that did what it was asked for.
pub(super) fn put_back(settings: &Settings, pod: &Pod, before: &Before) {
    let layout = Layout::new(settings);
    if let Ok(_lock) = layout.open(settings) {
        let _ = store(settings, pod, &before.0);
    }
}

/// This machine forgets what it remembered of a container.
pub(super) fn forget(settings: &Settings, pod: &Pod, container: &str) -> Result<(), Failure> {
    if matches!(read(&file(settings, pod))?, Found::Nothing) {
        return Ok(());
    }
    let layout = Layout::new(settings);
    let _lock = layout.open(settings)?;
    let rest: Vec<Change> = kept(settings, pod)?.into_iter().filter(|c| c.container != container).collect();
    store(settings, pod, &rest)
}

fn file(settings: &Settings, pod: &Pod) -> PathBuf {
    // A uid is of letters, digits and hyphens: `Pod::new`.
    settings.config_dir.join("state").join(format!("{}.json", pod.uid()))
}

/// What this machine remembers of the pod.
fn kept(settings: &Settings, pod: &Pod) -> Result<Vec<Change>, Failure> {
    let path = file(settings, pod);
    let strange = || {
        Failure::new(
            FailureKind::Disk,
            format!(
                "{} is not a file that podbench wrote",
                podbench_contract::text::escape(&path.to_string_lossy(), 200)
            ),
        )
    };
    let text = match read(&path)? {
        Found::Nothing => return Ok(Vec::new()),
        Found::Foreign => return Err(strange()),
        Found::Text(text) => text,
    };
    let value: Value = serde_json::from_str(&text).map_err(|_| strange())?;
    let known = value.get("schema").is_some_and(|s| s == SCHEMA);
    let line = value.get("resized").and_then(Value::as_str).filter(|_| known);
    line.and_then(resized::read).ok_or_else(strange)
}

/// Under the lock.
fn store(settings: &Settings, pod: &Pod, changes: &[Change]) -> Result<(), Failure> {
    let path = file(settings, pod);
    if changes.is_empty() {
        return match std::fs::remove_file(&path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                Err(crate::ssh::files::disk("it can't be removed", &path, &e))
            }
            _ => Ok(()),
        };
    }
    folder(&settings.config_dir.join("state"))?;
    let value = json!({
        "schema": SCHEMA,
        "namespace": pod.namespace(),
        "pod": pod.name(),
        "resized": resized::write(changes),
    });
    replace(&path, &format!("{value:#}\n"))
}

#[cfg(test)]
#[path = "journal_tests.rs"]
mod tests;
