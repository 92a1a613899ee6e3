//! What `podbench detach` and `podbench clean` say (schemas `podbench/detach/v1`, `podbench/clean/v1`).

use serde::Serialize;

use super::attach::Calls;
use super::seats::State;
use super::status::below;
use super::style::{Ink, LABEL, Page, Style};
use crate::shell::word;

/// The value of `schema` in `detach`'s answer.
pub const DETACH: &str = "podbench/detach/v1";
/// The value of `schema` in `clean`'s answer.
pub const CLEAN: &str = "podbench/clean/v1";

/// What became of a seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// It was asked to end, and the kubelet says that it has.
    Ended,
    /// It had ended already.
    EndedBefore,
    /// Its pod is gone.
    PodGone,
    /// `--dry-run`: it would be asked to end.
    WouldEnd,
    /// It still runs, or nobody knows.
    Left,
}

/// A seat, and what became of it.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Seat {
    /// The namespace.
    pub namespace: String,
    /// The pod.
    pub pod: String,
    /// `podbench-N`.
    pub seat: String,
    /// The container that it looked at; null where the pod is gone.
    pub target: Option<String>,
    /// Whose it is.
    pub owner: Option<String>,
    /// What became of it.
    pub outcome: Outcome,
    /// Why it is left, or what else is to be said.
    pub why: Option<String>,
    /// The command that does what couldn't be done.
    pub instead: Option<String>,
    /// What the kubelet says now.
    pub state: Option<State>,
}

/// What was removed from this disk, or would be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Removed {
    /// Files: stanzas, control sockets, left-over temporaries.
    pub files: Vec<String>,
    /// Names of lines in known_hosts.
    pub known_hosts: Vec<String>,
}

impl Removed {
    /// Was there nothing?
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.files.is_empty() && self.known_hosts.is_empty()
    }
}

impl From<crate::ssh::inventory::Taken> for Removed {
    fn from(taken: crate::ssh::inventory::Taken) -> Self {
        let files = taken.files.iter().map(|f| f.display().to_string()).collect();
        Self { files, known_hosts: taken.known_hosts }
    }
}

/// What became of a container's old resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum GivenBack {
    /// They are in force again.
    Restored,
    /// `--dry-run`: the server would take them.
    WouldRestore,
    /// They are stored, and the kubelet hasn't done it yet.
    Pending,
    /// They were back already, or aren't podbench's to give any more.
    Nothing,
    /// A seat still runs beside it.
    Kept,
    /// Somebody said no.
    Refused,
    /// A call failed, and nobody knows how far it is.
    Unknown,
}

/// A container that was resized.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Resized {
    /// The container.
    pub container: String,
    /// What became of its old resources.
    pub outcome: GivenBack,
    /// What podbench had changed, old values first.
    pub changes: Vec<String>,
    /// The kubelet's or the server's words, or why it stays.
    pub why: Option<String>,
}

/// `detach`'s answer.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Detach {
    /// [`DETACH`].
    pub schema: &'static str,
    /// Was nothing done, only told?
    pub dry_run: bool,
    /// The context.
    pub context: String,
    /// The namespace.
    pub namespace: String,
    /// The pod's name.
    pub pod: String,
    /// Its `metadata.uid`; null where it is gone.
    pub pod_uid: Option<String>,
    /// The seats.
    pub seats: Vec<Seat>,
    /// What `--resize` had changed.
    pub resized: Vec<Resized>,
    /// What went from this disk.
    pub removed: Removed,
    /// ssh hosts that stay, because their seat may still run.
    pub kept: Vec<Kept>,
    /// What it cost.
    pub calls: Calls,
    /// One line each.
    pub warnings: Vec<String>,
}

/// A stanza that stays.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Kept {
    /// What `ssh` is told.
    pub alias: String,
    /// The file.
    pub config: String,
    /// Why it stays.
    pub why: String,
}

/// `clean`'s answer.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Clean {
    /// [`CLEAN`].
    pub schema: &'static str,
    /// Was nothing done, only told?
    pub dry_run: bool,
    /// The context in which superseded seats were looked for.
    pub context: String,
    /// The namespace.
    pub namespace: String,
    /// Why nobody looked for superseded seats.
    pub unlisted: Option<String>,
    /// How many stanzas were checked with their clusters.
    pub checked: usize,
    /// ssh hosts that led nowhere.
    pub stale: Vec<super::seats::Stale>,
    /// ssh hosts that couldn't be checked.
    pub unchecked: Vec<Kept>,
    /// Superseded seats.
    pub seats: Vec<Seat>,
    /// What went from this disk.
    pub removed: Removed,
    /// What it cost.
    pub calls: Calls,
    /// One line each.
    pub warnings: Vec<String>,
}

/// `detach` as a person reads it.
#[must_use]
pub fn detach(detach: &Detach, style: Style) -> String {
    let mut page = Page::new(style);
    for one in &detach.seats {
        seat(&mut page, one);
    }
    if detach.seats.iter().any(|s| s.outcome == Outcome::Ended) {
        below(
            &mut page,
            "nothing of it runs any more, as the kubelet says; the container's entry stays in the pod until the pod is \
             replaced",
        );
    }
    for one in &detach.resized {
        resized(&mut page, one);
    }
    removed(&mut page, &detach.removed, detach.dry_run);
    kept(&mut page, &detach.kept);
    for warning in &detach.warnings {
        page.row("warning", Ink::Warn, warning);
    }
    let acted = detach.seats.iter().any(|s| s.outcome != Outcome::EndedBefore)
        || detach.resized.iter().any(|r| r.outcome != GivenBack::Nothing);
    if !acted && detach.removed.is_empty() {
        page.row("nothing", Ink::Strong, &format!("to take back in {}/{}", detach.namespace, detach.pod));
    }
    page.finish()
}

/// `clean` as a person reads it.
#[must_use]
pub fn clean(clean: &Clean, style: Style) -> String {
    let mut page = Page::new(style);
    for stale in &clean.stale {
        page.row("stale", Ink::Strong, &stale.text());
    }
    for one in &clean.seats {
        seat(&mut page, one);
    }
    removed(&mut page, &clean.removed, clean.dry_run);
    kept(&mut page, &clean.unchecked);
    if let Some(why) = &clean.unlisted {
        page.row("kept", Ink::Warn, &format!("nobody looked for superseded seats: {why}"));
    }
    for warning in &clean.warnings {
        page.row("warning", Ink::Warn, warning);
    }
    if clean.seats.is_empty() && clean.removed.is_empty() && clean.stale.is_empty() {
        page.row("nothing", Ink::Strong, "stale was found");
    }
    page.finish()
}

fn seat(page: &mut Page, seat: &Seat) {
    let (what, ink) = match seat.outcome {
        Outcome::Ended => ("ended", Ink::Good),
        Outcome::EndedBefore => ("had ended already", Ink::Faint),
        Outcome::PodGone => ("is gone with its pod", Ink::Faint),
        Outcome::WouldEnd => ("would be ended", Ink::Strong),
        Outcome::Left => ("is left", Ink::Bad),
    };
    let beside = seat.target.as_deref().map(|t| format!(" beside {t}")).unwrap_or_default();
    let state = match (&seat.outcome, &seat.state) {
        (Outcome::Ended | Outcome::EndedBefore, Some(state)) => {
            state.text().strip_prefix("ended").map(|rest| rest.replacen(": ", ", ", 1)).unwrap_or_default()
        }
        _ => String::new(),
    };
    let why = seat.why.as_deref().map(|w| format!(": {w}")).unwrap_or_default();
    let text = format!("{}/{} {}{beside} {what}{state}{why}", seat.namespace, seat.pod, seat.seat);
    page.row("seat", ink, &text);
    if let Some(instead) = &seat.instead {
        page.command(&" ".repeat(LABEL), instead);
    }
}

fn resized(page: &mut Page, one: &Resized) {
    let (what, ink) = match one.outcome {
        GivenBack::Restored => ("restored", Ink::Good),
        GivenBack::WouldRestore => ("would be restored", Ink::Strong),
        GivenBack::Pending => {
            ("pending: the old values are stored, and the kubelet hasn't done it yet", Ink::Warn)
        }
        GivenBack::Nothing => ("nothing to restore", Ink::Faint),
        GivenBack::Kept => ("stays resized", Ink::Warn),
        GivenBack::Refused => ("is left resized", Ink::Bad),
        GivenBack::Unknown => ("may be restored or not", Ink::Bad),
    };
    let parts =
        [Some(what.to_owned()), (!one.changes.is_empty()).then(|| one.changes.join(", ")), one.why.clone()];
    let text = parts.into_iter().flatten().collect::<Vec<_>>().join(": ");
    page.row("resized", ink, &format!("{}: {text}", one.container));
}

fn kept(page: &mut Page, kept: &[Kept]) {
    for one in kept {
        page.row("kept", Ink::Warn, &format!("the ssh host {}: {}", one.alias, one.why));
        // Whoever knows more than podbench can.
        page.command(&" ".repeat(LABEL), &format!("rm {}", word(&one.config)));
    }
}

fn removed(page: &mut Page, removed: &Removed, dry_run: bool) {
    let label = if dry_run { "would" } else { "removed" };
    for file in &removed.files {
        let head = page.label(label, Ink::Strong);
        page.command(&head, &if dry_run { format!("remove {file}") } else { file.clone() });
    }
    for name in &removed.known_hosts {
        let head = page.label(label, Ink::Strong);
        page.command(&head, &format!("{}known_hosts {name}", if dry_run { "remove " } else { "" }));
    }
}
