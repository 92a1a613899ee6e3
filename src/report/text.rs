//! `podbench attach`'s report as a person reads it: what I have, what I can do, what stopped the
//! rest, what to type next. Rendered from the JSON value and from nothing else.

use podbench_contract::measurement::{Caps, Measurement, Memory, Node};
use podbench_contract::reading::{Attempt, Errno, Reading};

use super::attach::{Attach, Channel, Outcome, ResizeState, Resized, RungFacts, Step, Support, Target};
use super::style::{Ink, LABEL, Page, Style, clean};
use crate::shell::word;

/// Behind the label: the answer's word, then what it is about.
const ANSWER: usize = 5;
const ABOUT: usize = 19;
/// The columns of a rung's name.
const RUNG: usize = 10;
const MIB: u64 = 1024 * 1024;

/// The whole report.
#[must_use]
pub fn attach(report: &Attach, style: Style) -> String {
    let mut page = Page::new(style);
    seat(&mut page, report);
    target(&mut page, &report.target);
    page.row("rung", Ink::Strong, &rung(report));
    for step in shown(report) {
        let head = format!("{}{:<RUNG$}", " ".repeat(LABEL), step.rung.as_str());
        page.hang(&head, LABEL + RUNG, &outcome(step));
    }
    if !is_rehearsal(report) {
        page.gap();
        can(&mut page, report);
    }
    blockers(&mut page, report);
    facts(&mut page, report);
    page.gap();
    for warning in &report.warnings {
        page.row("warning", Ink::Warn, warning);
    }
    checked(&mut page, report);
    next(&mut page, report);
    page.finish()
}

fn is_rehearsal(report: &Attach) -> bool {
    report.ladder.iter().any(|s| s.outcome == Outcome::WouldLand)
}

fn seat(page: &mut Page, report: &Attach) {
    let name =
        format!("{}/{}  {}", clean(&report.namespace), clean(&report.pod.name), clean(&report.seat.name));
    let took = duration(report.calls.wall_ms);
    let how = if is_rehearsal(report) {
        "rehearsed, nothing written".to_owned()
    } else if report.seat.reused {
        format!("reused in {took}")
    } else {
        format!("new in {took}")
    };
    let used = LABEL + console::measure_text_width(&name) + 2 + how.len();
    let label = page.label("seat", Ink::Strong);
    let painted = page.style.paint(Ink::Strong, &name);
    if used <= page.style.width {
        let fill = " ".repeat(page.style.width - used + 2);
        let how = page.style.paint(Ink::Faint, &how);
        page.line(&format!("{label}{painted}{fill}{how}"));
    } else {
        page.hang(&label, LABEL, &name);
        page.hang(&" ".repeat(LABEL), LABEL, &how);
    }
    let mut more: Vec<String> = report.pod.why.iter().cloned().collect();
    if !report.context.is_empty() {
        more.push(format!("context {}", report.context));
    }
    if !more.is_empty() {
        page.hang(&" ".repeat(LABEL), LABEL, &more.join("; "));
    }
    if let Some(reason) = &report.seat.reason {
        page.row("reason", Ink::Strong, reason);
    }
}

fn target(page: &mut Page, target: &Target) {
    let id = |what: &str, id: Option<String>| format!("{what} {}", id.as_deref().unwrap_or("unknown"));
    let mut parts = vec![
        target.container.clone(),
        id("uid", target.uid.map(|u| u.to_string())),
        id("gid", target.gid.map(|g| g.to_string())),
    ];
    if let Some(pid) = target.pid {
        let process = target.process.as_deref().map(|p| format!(" ({p})")).unwrap_or_default();
        parts.push(format!("pid {pid}{process}"));
    }
    page.row("target", Ink::Strong, &parts.join(", "));
    let mut more: Vec<String> = target.why.iter().cloned().collect();
    if !target.others.is_empty() {
        more.push(format!("-c reaches {}", target.others.join(", ")));
    }
    if !more.is_empty() {
        page.hang(&" ".repeat(LABEL), LABEL, &more.join("; "));
    }
}

fn rung(report: &Attach) -> String {
    let RungFacts { name, measured, uid, gid, cap_eff } = &report.rung;
    if is_rehearsal(report) {
        return format!("{name} would land");
    }
    let Some(measured) = measured else { return format!("{name}, as asked for; not measured") };
    let ids = [uid.map(|u| format!("uid {u}")), gid.map(|g| format!("gid {g}")), cap_eff.map(capabilities)];
    let ids = ids.into_iter().flatten().collect::<Vec<_>>().join(", ");
    if measured == name {
        format!("{name}, measured: {ids}")
    } else {
        format!("{name} was asked for, {measured} is what it measures as: {ids}")
    }
}

pub(super) fn capabilities(caps: Caps) -> String {
    match (caps.0.count_ones(), caps.has_sys_ptrace()) {
        (0, _) => "no capabilities".to_owned(),
        (1, true) => "CAP_SYS_PTRACE".to_owned(),
        (n, true) => format!("CAP_SYS_PTRACE and {} more", n - 1),
        (n, false) => format!("{n} capabilities without CAP_SYS_PTRACE"),
    }
}

/// The rungs worth a line: a single one that simply landed is in the line above.
fn shown(report: &Attach) -> impl Iterator<Item = &Step> {
    let only = report.ladder.len() == 1;
    report.ladder.iter().filter(move |s| match s.outcome {
        Outcome::Landed | Outcome::Reused | Outcome::WouldLand => !only,
        Outcome::Skipped | Outcome::Refused | Outcome::Withdrawn => true,
    })
}

/// What became of a rung, and in whose words.
#[must_use]
pub fn outcome(step: &Step) -> String {
    let what = match step.outcome {
        Outcome::Landed => "landed",
        Outcome::Reused => "reused",
        Outcome::WouldLand => "would land",
        Outcome::Skipped => "skipped",
        Outcome::Withdrawn => "withdrawn",
        Outcome::Refused => match step.channel {
            Channel::Launcher => "refused",
            Channel::Rehearsal => "refused at the rehearsal",
            Channel::Admission => "refused at the write",
            Channel::Kubelet => "refused by the node",
        },
    };
    let reason = step.reason.trim();
    let reason = if reason.is_empty() { String::new() } else { format!(": {reason}") };
    let burnt = step.burnt.as_ref().map(|name| format!("; {}", burnt(name)));
    format!("{what}{reason}{}", burnt.unwrap_or_default())
}

/// What a container's name costs that was spent without a seat.
#[must_use]
pub fn burnt(name: &str) -> String {
    format!("the name {name} is burnt: a pod keeps it for its life")
}

fn can(page: &mut Page, report: &Attach) {
    let s = &report.supports;
    let rows: [(&str, &Support); 6] = [
        ("live attach", &s.live_attach),
        ("read-only inspect", &s.read_only),
        ("debug launched", &s.launch),
        ("iterate", &s.iterate),
        ("ssh", &s.ssh),
        ("exec", &s.exec),
    ];
    for (n, (about, support)) in rows.into_iter().enumerate() {
        let (answer, ink) = match support.ok {
            Some(true) => ("yes", Ink::Good),
            Some(false) => ("no", Ink::Bad),
            None => ("?", Ink::Warn),
        };
        let label = if n == 0 { page.label("can", Ink::Strong) } else { " ".repeat(LABEL) };
        let fill = " ".repeat(ANSWER.saturating_sub(answer.len()));
        let head = format!("{label}{}{fill}{about:<ABOUT$}", page.style.paint(ink, answer));
        let why =
            if support.why.is_empty() && support.ok.is_none() { "not measured" } else { support.why.trim() };
        let indent = LABEL + ANSWER + ABOUT;
        let room = page.style.width.saturating_sub(indent);
        let fits = console::measure_text_width(&clean(why)) <= room;
        if is_command(why) && !fits {
            // A command is pasted whole.
            page.line(&head);
            page.line(&format!("{}{}", " ".repeat(LABEL + ANSWER), clean(why)));
        } else if room < 30 && !fits {
            page.line(&head);
            page.hang(&" ".repeat(LABEL + ANSWER), LABEL + ANSWER, why);
        } else {
            page.hang(&head, indent, why);
        }
    }
}

fn is_command(text: &str) -> bool {
    ["kubectl ", "podbench ", "ssh "].iter().any(|program| text.starts_with(program)) && !text.contains('\n')
}

fn blockers(page: &mut Page, report: &Attach) {
    for (n, blocker) in report.blockers.iter().enumerate() {
        // Lifting the first is not enough where another stands behind it.
        let (label, ink) = match (n, blocker.certain) {
            (0, _) => ("blocker", Ink::Bad),
            (_, true) => ("and", Ink::Bad),
            (_, false) => ("perhaps", Ink::Warn),
        };
        if n == 0 {
            page.gap();
        }
        page.row(label, ink, &format!("{}: {}", blocker.kind, blocker.detail));
        page.hang(&" ".repeat(LABEL), LABEL, &format!("what lifts it: {}", blocker.remedy));
    }
}

fn facts(page: &mut Page, report: &Attach) {
    page.gap();
    let mut about = vec![if report.pod.node.is_empty() { "not known" } else { &report.pod.node }.to_owned()];
    if let Some(m) = &report.measurement {
        about.extend(node(&m.node, m));
    }
    let (name, rest) =
        about.split_first().map_or((String::new(), String::new()), |(n, r)| (n.clone(), r.join("; ")));
    page.row("node", Ink::Strong, &if rest.is_empty() { name } else { format!("{name}: {rest}") });
    if let Some(text) = report.measurement.as_ref().and_then(|m| memory(&m.memory)) {
        page.row("memory", Ink::Strong, &text);
    }
    if let Some(resized) = &report.resized {
        resize(page, resized);
    }
    let version = match report.seat.version.as_deref() {
        _ if is_rehearsal(report) => String::new(),
        Some(version) if !version.is_empty() => format!(" (podbench {version})"),
        _ => " (its version is not known)".to_owned(),
    };
    page.row("image", Ink::Strong, &format!("{}{version}", report.seat.image));
}

/// What was resized; the way back stands alone, to be pasted.
fn resize(page: &mut Page, resized: &Resized) {
    let then = match resized.state {
        ResizeState::Actual => "; to give it back:".to_owned(),
        ResizeState::Pending => {
            let why = resized.why.as_deref().unwrap_or("nobody says why");
            format!("; stored, and not in force yet: {why}; to give it back:")
        }
        ResizeState::Rehearsed => "; rehearsed, nothing written".to_owned(),
    };
    page.row("resized", Ink::Strong, &format!("{}{then}", resized.values()));
    if resized.state != ResizeState::Rehearsed {
        page.command(&" ".repeat(LABEL), &resized.undo);
    }
}

fn node(node: &Node, m: &Measurement) -> Vec<String> {
    let yama = match &node.yama {
        Reading::Read(0) => Some("Yama allows ptrace (ptrace_scope 0)".to_owned()),
        Reading::Read(1) => Some("Yama lets parents trace only (ptrace_scope 1)".to_owned()),
        Reading::Read(2) => Some("Yama lets CAP_SYS_PTRACE trace only (ptrace_scope 2)".to_owned()),
        Reading::Read(n) => Some(format!("Yama lets nobody trace (ptrace_scope {n})")),
        absent if absent.is_absent() => Some("no Yama".to_owned()),
        Reading::Denied(errno) => Some(format!("Yama not readable ({errno})")),
        Reading::NotTried => None,
    };
    let seccomp = match m.probes.nobody {
        Attempt::Errno(Errno::ESRCH) => Some("seccomp lets ptrace through".to_owned()),
        Attempt::NotTried => None,
        said @ (Attempt::Ok | Attempt::Errno(_) | Attempt::Signal(_)) => {
            Some(format!("a seccomp filter answers ptrace ({said})"))
        }
    };
    let label = m.seat.label.value().filter(|l| !l.is_empty()).map(|l| format!("security label {l}"));
    let kernel = node.kernel.value().map(|k| format!("kernel {k}"));
    [yama, seccomp, label, kernel].into_iter().flatten().collect()
}

/// Whose memory is whose: the seat lives in the pod's, beside the target.
pub(super) fn memory(memory: &Memory) -> Option<String> {
    let target = match (&memory.target_used, &memory.target_limit) {
        (Reading::Read(used), Reading::Read(u64::MAX)) => {
            Some(format!("the target uses {} MiB, no limit", used / MIB))
        }
        (Reading::Read(used), Reading::Read(limit)) => {
            Some(format!("the target uses {} of {} MiB", used / MIB, limit / MIB))
        }
        (Reading::Read(used), Reading::Denied(_) | Reading::NotTried) => {
            Some(format!("the target uses {} MiB", used / MIB))
        }
        (Reading::Denied(errno), _) => Some(format!("the target's can't be read ({errno})")),
        (Reading::NotTried, _) => None,
    };
    let seat = match (&memory.used, &memory.limit) {
        (Reading::Read(used), Reading::Read(limit)) if *limit != u64::MAX => {
            Some(format!("the seat {} MiB; the pod may use {} MiB", used / MIB, limit / MIB))
        }
        (Reading::Read(used), _) => Some(format!("the seat {} MiB", used / MIB)),
        (Reading::Denied(errno), _) => Some(format!("the seat's can't be read ({errno})")),
        (Reading::NotTried, _) => None,
    };
    let said: Vec<String> = [target, seat].into_iter().flatten().collect();
    (!said.is_empty()).then(|| said.join(", "))
}

fn checked(page: &mut Page, report: &Attach) {
    let Some(checked) = &report.ssh.checked else { return };
    let took = duration(checked.ms);
    let alias = report.ssh.alias.as_deref().unwrap_or("ALIAS");
    page.gap();
    match &checked.why {
        Some(why) if !checked.ok => page.row("check", Ink::Bad, &format!("`ssh {alias} true` failed: {why}")),
        _ => page.row("check", Ink::Good, &format!("`ssh {alias} true` logged in, {took}")),
    }
}

fn next(page: &mut Page, report: &Attach) {
    page.gap();
    if is_rehearsal(report) {
        page.row("next", Ink::Strong, "the same command without --dry-run lands it");
        return;
    }
    let label = page.label("next", Ink::Strong);
    let below = " ".repeat(LABEL);
    let ssh = &report.ssh;
    match (&ssh.alias, &ssh.include) {
        (Some(alias), None) => page.command(&label, &format!("ssh {alias}")),
        (Some(alias), Some(include)) => {
            let file = ssh.config.as_deref().map(|c| format!("-F {} ", word(c))).unwrap_or_default();
            page.command(&label, &format!("ssh {file}{alias}"));
            let what =
                format!("so that `ssh {alias}` and editors find it, put this line first in ~/.ssh/config:");
            page.hang(&below, LABEL, &what);
            // What belongs into a file stands alone, to be copied.
            page.command(&below, include);
        }
        (None, _) => {
            if let Some(instead) = &ssh.instead {
                page.command(&label, instead);
            }
            let why = ssh.why.as_deref().unwrap_or("no stanza was written");
            page.hang(if ssh.instead.is_some() { &below } else { &label }, LABEL, &format!("no ssh: {why}"));
        }
    }
}

fn duration(ms: u64) -> String {
    match ms {
        0..10_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        10_000..120_000 => format!("{} s", ms / 1000),
        _ => format!("{} min {} s", ms / 60_000, ms % 60_000 / 1000),
    }
}

#[cfg(test)]
pub(crate) mod tests;
