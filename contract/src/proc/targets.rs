//! Whose process is the target, and which of the target's processes a debugger wants.
//!
//! "The target is PID 1" is wrong in a shared PID namespace, and "what isn't ours" takes in every
//! other seat's processes. The target's container id in `/proc/PID/cgroup` is right everywhere it
//! can be seen; elimination is the second way, and says of itself that it is one.

use std::cmp::Reverse;

use crate::ids::ContainerId;
use crate::measurement::By;

use super::cgroup::{has_any_id, mentions};

/// One process as the seat sees it.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Its pid.
    pub pid: u32,
    /// Its parent's pid, 0 for none in this namespace.
    pub ppid: u32,
    /// `Name:` of `status`.
    pub name: String,
    /// The first word of its command line.
    pub argv0: String,
    /// Gone but not reaped.
    pub dead: bool,
    /// Its number of threads.
    pub threads: u32,
    /// `/proc/PID/cgroup`, where it could be read.
    pub cgroup: Option<String>,
    /// Can `/proc/PID/root` be entered? `None`: not tried.
    pub readable: Option<bool>,
    /// Is it the seat's own, or another seat's (its executable is the agent's)?
    pub seat: bool,
}

/// The target's live processes, the one a debugger wants first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// How they were told from others.
    pub by: By,
    /// Their pids, best first.
    pub pids: Vec<u32>,
}

/// Picks the target's processes. `own` is the seat's own `/proc/self/cgroup`.
#[must_use]
pub fn choose(seen: &[Seen], target: Option<&ContainerId>, own: &str) -> Choice {
    let by_id: Vec<&Seen> = target.map_or_else(Vec::new, |id| {
        seen.iter().filter(|p| p.cgroup.as_deref().is_some_and(|c| mentions(c, id))).collect()
    });
    let (by, mut mine) = if by_id.iter().any(|p| !p.dead) {
        (By::ContainerId, by_id)
    } else if target.is_some() && seen.iter().any(|p| p.cgroup.as_deref().is_some_and(has_any_id) && !p.seat)
    {
        // Other containers' ids can be seen and the target's can't: it isn't running here.
        (By::Nothing, Vec::new())
    } else {
        // Where everything is in one cgroup it tells nothing: a sandboxed runtime, no cgroup at all.
        let tells = seen.iter().any(|p| p.cgroup.as_deref().is_some_and(|c| c != own));
        let ours = |p: &Seen| p.seat || (tells && p.cgroup.as_deref() == Some(own));
        let others = |p: &&Seen| !ours(p) && p.name != "pause";
        (By::Elimination, seen.iter().filter(others).collect())
    };
    mine.retain(|p| !p.dead);
    mine.sort_by_key(|p| {
        (is_wrapper(p), p.readable == Some(false), Reverse(p.threads), Reverse(depth(seen, p)), p.pid)
    });
    let pids: Vec<u32> = mine.iter().map(|p| p.pid).collect();
    if pids.is_empty() { Choice::default() } else { Choice { by, pids } }
}

/// Shells and init shims that only start the program a person means.
fn is_wrapper(p: &Seen) -> bool {
    const WRAPPERS: [&str; 11] =
        ["sh", "bash", "dash", "ash", "ksh", "mksh", "zsh", "busybox", "tini", "dumb-init", "catatonit"];
    let base = p.argv0.rsplit('/').next().unwrap_or_default();
    WRAPPERS.contains(&p.name.as_str()) || WRAPPERS.contains(&base.trim_start_matches('-'))
}

fn depth(seen: &[Seen], of: &Seen) -> usize {
    let mut ppid = of.ppid;
    // A chain can't be longer than the list; a namespace that changes under us may show a circle.
    for steps in 0..seen.len() {
        match seen.iter().find(|p| p.pid == ppid) {
            Some(parent) => ppid = parent.ppid,
            None => return steps,
        }
    }
    seen.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGET: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    const OTHER: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

    fn process(pid: u32, name: &str, container: &str) -> Seen {
        let cgroup = Some(format!("0::/../{container}\n"));
        Seen { pid, name: name.into(), argv0: format!("/bin/{name}"), threads: 1, cgroup, ..Seen::default() }
    }

    #[test]
    fn in_a_shared_pid_namespace_only_the_targets_processes_count() {
        let id = ContainerId::parse(TARGET).unwrap();
        let seen = [process(1, "pause", "0"), process(7, "side", OTHER), process(9, "app", TARGET)];
        assert_eq!(choose(&seen, Some(&id), "0::/\n"), Choice { by: By::ContainerId, pids: vec![9] });
    }

    #[test]
    fn a_shell_in_front_of_the_program_comes_last() {
        let id = ContainerId::parse(TARGET).unwrap();
        let mut app = process(8, "java", TARGET);
        app.ppid = 1;
        let mut zombie = process(9, "old", TARGET);
        zombie.dead = true;
        let seen = [process(1, "sh", TARGET), app, zombie];
        assert_eq!(choose(&seen, Some(&id), "").pids, [8, 1]);
    }

    #[test]
    fn a_target_that_is_gone_is_not_replaced_by_a_neighbour() {
        let id = ContainerId::parse(TARGET).unwrap();
        assert_eq!(choose(&[process(7, "side", OTHER)], Some(&id), "0::/\n"), Choice::default());
    }

    #[test]
    fn without_ids_elimination_leaves_out_seats_and_pause() {
        let bare = |pid, name: &str| Seen { cgroup: Some("0::/..\n".into()), ..process(pid, name, "") };
        let mut seat = bare(3, "podbench");
        seat.seat = true;
        let seen = [bare(1, "pause"), bare(2, "app"), seat];
        assert_eq!(choose(&seen, None, "0::/\n"), Choice { by: By::Elimination, pids: vec![2] });
    }

    #[test]
    fn where_everything_is_in_one_cgroup_only_the_seats_are_left_out() {
        let same = |pid, name: &str| Seen { cgroup: Some("0::/\n".into()), ..process(pid, name, "") };
        let mut seat = same(3, "podbench");
        seat.seat = true;
        let seen = [same(1, "app"), seat.clone()];
        assert_eq!(choose(&seen, None, "0::/\n"), Choice { by: By::Elimination, pids: vec![1] });
        assert_eq!(choose(&[seat], None, "0::/\n"), Choice::default());
    }
}
