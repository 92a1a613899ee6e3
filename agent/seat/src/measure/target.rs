//! Whose processes are the target's, here and now.
//!
//! Somebody who read the pod's status knows the container id and is trusted. Without that, what
//! stands in the PID namespace decides: where only one container's processes are beside the seats,
//! that one is the target, whatever the environment says. The environment's id counts only to
//! choose between several, and only if it is really one of them.

use std::collections::{BTreeMap, BTreeSet};

use podbench_contract::ids::ContainerId;
use podbench_contract::measurement::Attribution;
use podbench_contract::proc::{Seen, choose, container_id, mentions};

use super::reads;
use crate::proc::{Own, Row, seats};
use crate::settings;

/// The target's processes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Found {
    /// How they were told from others.
    pub(crate) attribution: Attribution,
    /// Their pids, the one that a debugger wants first.
    pub(crate) pids: Vec<u32>,
    /// Every process that was looked at, in pid order.
    pub(crate) seen: Vec<Seen>,
}

/// Finds them.
pub(crate) fn find(rows: &[Row], own: &Own, trusted: Option<&ContainerId>) -> Found {
    let seats = seats(rows, own);
    let seen: Vec<Seen> = rows.iter().map(|row| seen(row, seats.contains(&row.pid))).collect();
    let id = trusted.cloned().or_else(|| infer(&seen, settings::target_hint(), &own.cgroup));
    let choice = choose(&seen, id.as_ref(), &own.cgroup);
    let attribution = Attribution { by: choice.by, container_id: id, processes: choice.pids.len() };
    Found { attribution, pids: choice.pids, seen }
}

fn seen(row: &Row, seat: bool) -> Seen {
    Seen {
        pid: row.pid,
        ppid: row.status.ppid.unwrap_or_default(),
        name: row.status.name.clone(),
        argv0: row.argv0.clone(),
        dead: row.status.is_dead(),
        threads: row.status.threads.unwrap_or_default(),
        cgroup: row.cgroup.clone(),
        readable: (!seat).then(|| reads::enter(&format!("/proc/{}/root", row.pid)).is_ok()),
        seat,
    }
}

/// The container whose processes are here. The hint where nothing decides, so that a target that
/// is gone isn't replaced by its neighbour. An id that stands in the seat's own cgroup is no
/// target's: where the application has it too, it tells nothing.
fn infer(seen: &[Seen], hint: Option<ContainerId>, own: &str) -> Option<ContainerId> {
    let hint = hint.filter(|id| !mentions(own, id));
    let mut names: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for p in seen.iter().filter(|p| !p.seat && !p.dead) {
        if let Some(id) = p.cgroup.as_deref().and_then(container_id).filter(|id| !mentions(own, id)) {
            names.entry(id.into()).or_default().insert(&p.name);
        }
    }
    if names.len() > 1 {
        // The sandbox of a shared PID namespace.
        names.retain(|_, names| names.iter().any(|name| *name != "pause"));
    }
    match names.first_key_value() {
        Some((only, _)) if names.len() == 1 => ContainerId::parse(only).ok(),
        Some(_) | None => hint,
    }
}

#[cfg(test)]
mod tests {
    use podbench_contract::measurement::By;

    use super::*;

    const APP: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    const SIDE: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
    const LIE: &str = "ffffffffffffffffffffffffffffffffffffffff";

    const OWN: &str = "0::/\n";

    fn p(pid: u32, name: &str, container: &str, seat: bool) -> Seen {
        let cgroup = Some(format!("0::/../{container}\n"));
        Seen { pid, name: name.into(), threads: 1, cgroup, seat, ..Seen::default() }
    }

    fn id(text: &str) -> Option<ContainerId> {
        ContainerId::parse(text).ok()
    }

    #[test]
    fn a_hint_that_lies_changes_nothing_where_one_container_runs() {
        let seen = [p(1, "app", APP, false), p(9, "podbench", SIDE, true)];
        for hint in [None, id(LIE), id(SIDE), id(APP)] {
            let found = infer(&seen, hint, OWN);
            assert_eq!(found, id(APP));
            assert_eq!(choose(&seen, found.as_ref(), "0::/\n").by, By::ContainerId);
        }
    }

    #[test]
    fn a_hint_chooses_between_containers_and_only_one_that_is_there() {
        let seen = [p(1, "pause", "0", false), p(7, "app", APP, false), p(8, "side", SIDE, false)];
        assert_eq!(infer(&seen, id(SIDE), OWN), id(SIDE));
        let lost = infer(&seen, id(LIE), OWN);
        assert_eq!(choose(&seen, lost.as_ref(), "0::/\n").by, By::Nothing);
        assert_eq!(infer(&seen, None, OWN), None);
    }

    #[test]
    fn the_sandbox_is_not_the_target_but_an_application_called_pause_is() {
        let sandbox = "cccccccccccccccccccccccccccccccccccccccc";
        let seen = [p(1, "pause", sandbox, false), p(7, "app", APP, false)];
        assert_eq!(infer(&seen, id(LIE), OWN), id(APP));
        assert_eq!(infer(&[p(1, "pause", APP, false)], None, OWN), id(APP));
    }

    #[test]
    fn an_id_that_the_seat_shares_is_nobodys() {
        let seen = [p(1, "app", APP, false), p(9, "podbench", APP, true)];
        let own = format!("0::/../{APP}\n");
        assert_eq!(infer(&seen, id(APP), &own), None);
        let choice = choose(&seen, None, &own);
        assert_eq!((choice.by, choice.pids.as_slice()), (By::Elimination, [1].as_slice()));
    }
}
