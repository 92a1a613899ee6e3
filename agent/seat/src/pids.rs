//! `podbench pids`: every process that this seat sees, whose it is, and which one a debugger wants.

use std::fmt::Write as _;

use podbench_contract::exit;
use podbench_contract::ids::{ContainerId, Gid, Uid};
use podbench_contract::measurement::{Attribution, By};
use podbench_contract::proc::container_id;
use podbench_contract::text::escape;
use serde::Serialize;

use crate::cli::Pids;
use crate::measure::target::{self, Found};
use crate::out;
use crate::proc::{self, Own, Row};

/// The longest command line in the table, in characters.
const WIDTH: usize = 100;

/// `podbench pids -o json`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    schema: &'static str,
    attribution: Attribution,
    processes: Vec<Line>,
}

/// One process.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    pid: u32,
    ppid: Option<u32>,
    uid: Option<Uid>,
    gid: Option<Gid>,
    state: Option<char>,
    threads: Option<u32>,
    name: String,
    command: String,
    container_id: Option<ContainerId>,
    /// The target's.
    target: bool,
    /// This seat's, or another one's.
    seat: bool,
    /// Can its root be entered? `null` for a seat's own: not tried.
    readable: Option<bool>,
}

/// `podbench pids`.
pub(crate) fn run(asked: &Pids) -> u8 {
    let rows = proc::rows();
    let found = target::find(&rows, &Own::read(), asked.cid.as_ref());
    let report = report(&rows, &found, asked.targets);
    if !asked.json {
        return out::text(&table(&report));
    }
    match serde_json::to_string_pretty(&report) {
        Ok(text) => out::text(&(text + "\n")),
        Err(e) => {
            out::note(&e.to_string());
            exit::FAILED
        }
    }
}

/// The target's processes first, best first; then the others by pid.
fn report(rows: &[Row], found: &Found, targets: bool) -> Report {
    let line = |pid: u32| {
        let row = rows.iter().find(|r| r.pid == pid)?;
        let seen = found.seen.iter().find(|s| s.pid == pid)?;
        Some(Line {
            pid,
            ppid: row.status.ppid,
            uid: row.status.uids.map(|ids| ids.effective),
            gid: row.status.gids.map(|ids| ids.effective),
            state: row.status.state,
            threads: row.status.threads,
            name: row.status.name.clone(),
            command: row.command.clone(),
            container_id: row.cgroup.as_deref().and_then(container_id),
            target: found.pids.contains(&pid),
            seat: seen.seat,
            readable: seen.readable,
        })
    };
    let others = rows.iter().map(|r| r.pid).filter(|pid| !targets && !found.pids.contains(pid));
    Report {
        schema: "podbench/pids/v1",
        attribution: found.attribution.clone(),
        processes: found.pids.iter().copied().chain(others).filter_map(line).collect(),
    }
}

fn table(report: &Report) -> String {
    let mut text = format!(
        "{:>2} {:>7} {:>7} {:>10} {:>2} {:>4}  {:<6}  COMMAND\n",
        "", "PID", "PPID", "UID", "S", "THR", "WHOSE"
    );
    for (at, line) in report.processes.iter().enumerate() {
        let number = |n: Option<u32>| n.map_or_else(|| "-".to_owned(), |n| n.to_string());
        let command = if line.command.is_empty() { format!("[{}]", line.name) } else { line.command.clone() };
        let _ = writeln!(
            text,
            "{:>2} {:>7} {:>7} {:>10} {:>2} {:>4}  {:<6}  {}",
            if at == 0 && line.target { ">" } else { "" },
            line.pid,
            number(line.ppid),
            number(line.uid.map(|u| u.0)),
            line.state.unwrap_or('-'),
            number(line.threads),
            match (line.target, line.seat) {
                (true, _) => "target",
                (false, true) => "seat",
                (false, false) => "other",
            },
            escape(&command, WIDTH),
        );
    }
    text.push_str(&note(&report.attribution));
    text
}

/// How sure the table is.
pub(crate) fn note(attribution: &Attribution) -> String {
    match (attribution.by, &attribution.container_id) {
        (By::ContainerId, Some(id)) => {
            format!("target: told by its container id {}\n", escape(id.as_str(), 12))
        }
        (By::ContainerId, None) => "target: told by its container id\n".to_owned(),
        (By::Elimination, _) => {
            "target: by elimination (no container id can be seen): what isn't a seat's, nor pause\n"
                .to_owned()
        }
        (By::Nothing, Some(id)) => {
            format!("target: no live process of container {}\n", escape(id.as_str(), 12))
        }
        (By::Nothing, None) => "target: none was found\n".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use podbench_contract::proc::{Seen, Status};

    use super::*;

    fn row(pid: u32, name: &str, command: &str) -> Row {
        let status = Status { name: name.into(), ppid: Some(0), ..Status::default() };
        Row { pid, status, command: command.into(), ..Row::default() }
    }

    fn found(pids: &[u32], all: &[u32]) -> Found {
        let seen = all.iter().map(|pid| Seen { pid: *pid, seat: *pid == 3, ..Seen::default() }).collect();
        let attribution = Attribution { by: By::Elimination, container_id: None, processes: pids.len() };
        Found { attribution, pids: pids.to_vec(), seen }
    }

    #[test]
    fn the_best_target_comes_first_and_is_marked() {
        let rows = [row(1, "sh", "sh -c app"), row(2, "app", "/app"), row(3, "podbench", "podbench agent")];
        let all = report(&rows, &found(&[2, 1], &[1, 2, 3]), false);
        assert_eq!(all.processes.iter().map(|l| l.pid).collect::<Vec<_>>(), [2, 1, 3]);
        let text = table(&all);
        assert!(text.lines().nth(1).unwrap().starts_with(" >       2"), "{text}");
        assert!(text.lines().nth(3).unwrap().contains(" seat "), "{text}");
        assert!(text.contains("by elimination"));
        let only = report(&rows, &found(&[2], &[1, 2, 3]), true);
        assert_eq!(only.processes.len(), 1);
    }

    #[test]
    fn what_a_process_calls_itself_never_moves_a_cursor() {
        let rows = [row(1, "\u{1b}[2J", "\u{1b}]0;owned\u{7}\nfake line")];
        let text = table(&report(&rows, &found(&[], &[1]), false));
        assert!(!text.contains('\u{1b}'), "{text:?}");
        assert_eq!(text.lines().count(), 3, "{text:?}");
    }
}
