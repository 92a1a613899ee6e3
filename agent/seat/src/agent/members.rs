//! Which processes are this seat's, for its end. The application's never are.
//!
//! Ours is what descends from the agent, wherever it went, and what shares its mount namespace: a
//! process that `kubectl exec` starts in this container has no parent here. One whose namespace
//! can't be read (it isn't dumpable) counts only where the cgroup tells our container from that of
//! PID 1, the application.

use std::collections::{BTreeMap, BTreeSet};

use podbench_contract::proc::Status;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};

use crate::proc::{self, Own, descends};

/// What is looked at; never a command line: reading one waits for a process that hangs.
#[derive(Clone, Debug, Default)]
struct Member {
    pid: u32,
    ppid: u32,
    dead: bool,
    cgroup: Option<String>,
    mount_namespace: Option<u64>,
}

fn look(pid: u32) -> Option<Member> {
    let status = Status::parse(&proc::text(&format!("/proc/{pid}/status")).ok()?);
    Some(Member {
        pid,
        ppid: status.ppid.unwrap_or_default(),
        dead: status.is_dead(),
        cgroup: proc::text(&format!("/proc/{pid}/cgroup")).ok(),
        mount_namespace: proc::mount_namespace(pid).ok(),
    })
}

/// The live processes of this seat but for the agent itself and `except`.
pub(crate) fn find(own: &Own, except: &BTreeSet<u32>) -> Vec<u32> {
    let seen: Vec<Member> = proc::pids().into_iter().filter_map(look).collect();
    select(&seen, own, std::process::id(), except)
}

fn select(seen: &[Member], own: &Own, agent: u32, except: &BTreeSet<u32>) -> Vec<u32> {
    let parents: BTreeMap<u32, u32> = seen.iter().map(|m| (m.pid, m.ppid)).collect();
    let first = seen.iter().find(|m| m.pid == 1).and_then(|m| m.cgroup.as_deref());
    let cgroup_tells = agent == 1 || first.is_some_and(|c| c != own.cgroup);
    let ours = |m: &&Member| {
        if m.dead || m.pid == agent || m.pid == 1 || except.contains(&m.pid) {
            return false;
        }
        match m.mount_namespace {
            _ if descends(&parents, m.pid, &BTreeSet::from([agent])) => true,
            Some(theirs) => theirs == own.mount_namespace && theirs != 0,
            None => cgroup_tells && m.cgroup.as_deref() == Some(own.cgroup.as_str()),
        }
    };
    seen.iter().filter(ours).map(|m| m.pid).collect()
}

/// Signals what [`find`] found. The process is held while it is looked at once more, so that a pid
/// that was given to somebody else in between isn't hit.
pub(crate) fn signal(pids: &[u32], signal: Signal, own: &Own, except: &BTreeSet<u32>) {
    let held: Vec<(u32, Pid, Option<std::os::fd::OwnedFd>)> = pids
        .iter()
        .filter_map(|pid| {
            let raw = i32::try_from(*pid).ok().and_then(Pid::from_raw)?;
            Some((*pid, raw, pidfd_open(raw, PidfdFlags::empty()).ok()))
        })
        .collect();
    let still = find(own, except);
    for (_, raw, fd) in held.iter().filter(|(pid, ..)| still.contains(pid)) {
        let _ = match fd {
            Some(fd) => pidfd_send_signal(fd, signal),
            // A kernel or a filter without pidfds.
            None => kill_process(*raw, signal),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(pid: u32, ppid: u32, namespace: Option<u64>, cgroup: &str) -> Member {
        Member { pid, ppid, cgroup: Some(cgroup.into()), mount_namespace: namespace, ..Member::default() }
    }

    fn own() -> Own {
        Own { mount_namespace: 99, cgroup: "/own\n".into() }
    }

    #[test]
    fn the_seats_processes_end_and_the_applications_do_not() {
        let mut zombie = member(13, 10, None, "/own\n");
        zombie.dead = true;
        let seen = [
            member(1, 0, Some(5), "/app\n"),
            member(2, 1, None, "/app\n"),
            member(10, 0, Some(99), "/own\n"),
            member(11, 10, Some(99), "/own\n"),
            member(12, 11, Some(5), "/own\n"),
            zombie,
            member(20, 0, Some(99), "/own\n"),
            member(21, 0, None, "/own\n"),
            member(22, 0, Some(99), "/own\n"),
            member(30, 0, Some(7), "/other\n"),
        ];
        assert_eq!(select(&seen, &own(), 10, &BTreeSet::from([22])), [11, 12, 20, 21]);
    }

    #[test]
    fn where_the_cgroup_tells_nothing_an_unreadable_process_is_left_alone() {
        let seen = [
            member(1, 0, None, "/own\n"),
            member(2, 1, None, "/own\n"),
            member(10, 0, Some(99), "/own\n"),
            member(11, 10, None, "/own\n"),
            member(20, 0, Some(99), "/own\n"),
        ];
        assert_eq!(select(&seen, &own(), 10, &BTreeSet::new()), [11, 20]);
    }

    #[test]
    fn an_unreadable_namespace_of_our_own_matches_nobody() {
        let unread = Own { mount_namespace: 0, ..own() };
        let seen = [
            member(1, 0, Some(0), "/app\n"),
            member(2, 1, Some(0), "/app\n"),
            member(10, 0, Some(0), "/own\n"),
        ];
        assert_eq!(select(&seen, &unread, 10, &BTreeSet::new()), [0u32; 0]);
    }
}
