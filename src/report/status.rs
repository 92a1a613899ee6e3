//! What `podbench status` says (schema `podbench/status/v1`).

use podbench_contract::ids::{Gid, Uid};
use podbench_contract::measurement::{Caps, Memory};
use podbench_contract::rung::Rung;
use serde::Serialize;

use super::attach::{Calls, Pod};
use super::list::owner;
use super::seats::{NotOurs, Seat, Stale, State};
use super::style::{Ink, LABEL, Page, Style, clean};
use super::text::{capabilities, memory};

/// The value of [`Status::schema`].
pub const SCHEMA: &str = "podbench/status/v1";

/// One pod, and everything about its seats.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// The context.
    pub context: String,
    /// The namespace.
    pub namespace: String,
    /// The pod.
    pub pod: Pod,
    /// `status.phase`.
    pub phase: String,
    /// The containers that seats look at.
    pub targets: Vec<Target>,
    /// The seats, the oldest first.
    pub seats: Vec<Full>,
    /// What isn't one.
    pub not_ours: Vec<NotOurs>,
    /// ssh hosts for this pod's name that lead nowhere.
    pub stale: Vec<Stale>,
    /// What to type next.
    pub next: String,
    /// What it cost.
    pub calls: Calls,
    /// One line each.
    pub warnings: Vec<String>,
}

/// A target container.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Target {
    /// Its name.
    pub container: String,
    /// What the kubelet says.
    pub state: State,
    /// How often it was restarted.
    pub restarts: u64,
    /// How it last ended.
    pub last_exit: Option<State>,
}

/// A seat, and what is known about it.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Full {
    /// What the pod says.
    #[serde(flatten)]
    pub seat: Seat,
    /// What ended it.
    pub ended_because: Option<String>,
    /// What it measures now, where it is the caller's and runs.
    pub measured: Option<Measured>,
    /// Why it wasn't measured.
    pub unmeasured: Option<String>,
    /// The pod's resources before it was resized for this seat.
    pub resized_from: Option<String>,
    /// The ssh host on this machine.
    pub ssh: Option<Host>,
}

/// What a seat measures.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Measured {
    /// The rung that the kernel's answer amounts to.
    pub rung: Option<Rung>,
    /// The seat's uid.
    pub uid: Option<Uid>,
    /// The seat's gid.
    pub gid: Option<Gid>,
    /// Its effective capabilities.
    pub cap_eff: Option<Caps>,
    /// Its agent's version.
    pub version: String,
    /// ssh connections that are open now, from whichever machine.
    pub sessions: Option<u32>,
    /// Memory as its cgroups show it.
    pub memory: Memory,
}

/// A stanza that leads to a seat.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Host {
    /// What `ssh` is told.
    pub alias: String,
    /// The file.
    pub config: String,
    /// Is a shared connection open?
    pub connected: Option<bool>,
}

/// The report as a person reads it.
#[must_use]
pub fn text(status: &Status, style: Style) -> String {
    let mut page = Page::new(style);
    let node = if status.pod.node.is_empty() { String::new() } else { format!(", node {}", status.pod.node) };
    page.row(
        "pod",
        Ink::Strong,
        &format!("{}/{}  {}{node}", status.namespace, status.pod.name, status.phase),
    );
    let mut more: Vec<String> = status.pod.why.iter().cloned().collect();
    if !status.context.is_empty() {
        more.push(format!("context {}", status.context));
    }
    below(&mut page, &more.join("; "));
    for target in &status.targets {
        page.row("target", Ink::Strong, &self::target(target));
    }
    for seat in &status.seats {
        page.gap();
        full(&mut page, seat);
    }
    page.gap();
    for other in &status.not_ours {
        page.row("other", Ink::Warn, &other.text());
    }
    for stale in &status.stale {
        page.row("stale", Ink::Warn, &stale.text());
    }
    for warning in &status.warnings {
        page.row("warning", Ink::Warn, warning);
    }
    if status.seats.is_empty() {
        page.row("seat", Ink::Strong, "none in this pod");
    }
    page.gap();
    let label = page.label("next", Ink::Strong);
    page.command(&label, &status.next);
    page.finish()
}

fn target(target: &Target) -> String {
    let mut parts = vec![target.container.clone(), target.state.text()];
    if target.restarts > 0 {
        parts.push(format!("restarts {}", target.restarts));
    }
    if let Some(last) = &target.last_exit {
        let code = last.exit_code.unwrap_or(-1);
        let reason = last.reason.as_deref().map(|r| format!(" ({r})")).unwrap_or_default();
        let at = last.finished_at.as_deref().map(|at| format!(" at {at}")).unwrap_or_default();
        parts.push(format!("last exit {code}{reason}{at}"));
    }
    parts.join(", ")
}

fn full(page: &mut Page, full: &Full) {
    let seat = &full.seat;
    let whose = if seat.mine {
        "yours".to_owned()
    } else {
        match &seat.owner {
            Some(_) => format!("{}'s", owner(seat)),
            None => "nobody's by name".to_owned(),
        }
    };
    let ink = if seat.state.name == "running" { Ink::Strong } else { Ink::Faint };
    page.row("seat", ink, &format!("{}  beside {}, {whose}, {}", seat.seat, seat.target, seat.state.text()));
    if let Some(why) = &full.ended_because {
        below(page, why);
    } else if let Some(message) = &seat.state.message {
        below(page, message);
    }
    if let Some(why) = &seat.untrusted {
        below(page, &format!("not trusted: {why}"));
    }
    if let Some(newer) = &seat.superseded_by {
        let clean = if seat.mine { "; podbench clean ends it" } else { "" };
        below(page, &format!("superseded: {newer} has taken its place{clean}"));
    }
    let authored = format!("rung: authored for {}", seat.rung);
    match (&full.measured, &full.unmeasured) {
        (Some(m), _) => {
            below(page, &format!("{authored}; measured: {}", measured(m)));
            match m.sessions {
                Some(0) | None => {}
                Some(1) => below(page, "sessions: 1 ssh connection is open"),
                Some(n) => below(page, &format!("sessions: {n} ssh connections are open")),
            }
            below(page, &memory(&m.memory).map(|m| format!("memory: {m}")).unwrap_or_default());
        }
        (None, Some(why)) => below(page, &format!("{authored}; not measured: {why}")),
        (None, None) => below(page, &authored),
    }
    if let Some(from) = &full.resized_from {
        below(page, &format!("resized for it: {from}"));
    }
    if let Some(host) = &full.ssh {
        let open = if host.connected == Some(true) { ", a connection is open" } else { "" };
        let head = " ".repeat(LABEL);
        page.command(&head, &format!("ssh: {}{open}", host.alias));
    }
    below(page, &format!("image: {}", seat.image));
}

fn measured(m: &Measured) -> String {
    let parts = [
        m.rung.map(|r| r.to_string()),
        m.uid.map(|u| format!("uid {u}")),
        m.gid.map(|g| format!("gid {g}")),
        m.cap_eff.map(capabilities),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Behind the column of labels.
pub(crate) fn below(page: &mut Page, text: &str) {
    if !text.is_empty() {
        page.hang(&" ".repeat(LABEL), LABEL, &clean(text));
    }
}
