//! `/proc` as this seat sees it: text from there, each read bounded, each refusal kept with its errno.
//!
//! Reads only. Parsing is the contract's; what a process wrote of itself is data, never a command.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::time::{Duration, Instant};

use podbench_contract::ids::{Gid, Uid};
use podbench_contract::measurement::{Caps, Ids, Process};
use podbench_contract::proc::{Status, argv};
use podbench_contract::reading::{Errno, Reading};
use podbench_contract::session::{AGENT, agent_argv};

/// The most that is read of any one file, in bytes.
const LONGEST: u64 = 64 * 1024;

/// How long a read of another process may take before the process counts as stuck.
const STUCK: Duration = Duration::from_millis(700);

/// The errno of a failed call; `EIO` where there is none.
pub(crate) fn errno(error: &io::Error) -> Errno {
    Errno(error.raw_os_error().unwrap_or(5))
}

/// The beginning of a file under `/proc`, as text.
pub(crate) fn text(path: &str) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(LONGEST).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The same as a reading.
pub(crate) fn reading(path: &str) -> Reading<String> {
    match text(path) {
        Ok(text) => Reading::Read(text),
        Err(e) => Reading::Denied(errno(&e)),
    }
}

/// A file's number, as a reading. A file that holds something else is `EINVAL`.
pub(crate) fn number<T: std::str::FromStr>(path: &str) -> Reading<T> {
    match reading(path) {
        Reading::Read(text) => text.trim().parse().map_or(Reading::Denied(Errno::EINVAL), Reading::Read),
        Reading::Denied(e) => Reading::Denied(e),
        Reading::NotTried => Reading::NotTried,
    }
}

/// Every pid that `/proc` shows, in order.
pub(crate) fn pids() -> Vec<u32> {
    numbers("/proc")
}

/// The numbers among the names in a folder, in order.
fn numbers(folder: &str) -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut numbers: Vec<u32> = entries.filter_map(|e| e.ok()?.file_name().to_str()?.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
}

/// The inode number of a process' mount namespace; gated by `PTRACE_MODE_READ`.
pub(crate) fn mount_namespace(pid: u32) -> io::Result<u64> {
    Ok(std::fs::metadata(format!("/proc/{pid}/ns/mnt"))?.ino())
}

/// A process' status, while it lives.
pub(crate) fn status(pid: u32) -> Option<Status> {
    text(&format!("/proc/{pid}/status")).ok().map(|text| Status::parse(&text))
}

/// When a process began, in clock ticks since the machine's start: with its pid that is its identity.
pub(crate) fn began(pid: u32) -> Option<u64> {
    let stat = text(&format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(19)?.parse().ok()
}

/// The threads of a process.
pub(crate) fn threads(pid: u32) -> Vec<u32> {
    numbers(&format!("/proc/{pid}/task"))
}

/// One process as the wire spells it. `pid` is what the report says; `dir` is read.
pub(crate) fn process(pid: u32, dir: &str) -> Process {
    let status_path = format!("{dir}/status");
    let label = reading(&format!("{dir}/attr/current"));
    let mut process = Process {
        pid,
        label: label.map(|l| l.trim_end_matches(['\0', '\n']).to_owned()),
        uid_map: reading(&format!("{dir}/uid_map")).map(|m| m.trim_end().to_owned()),
        owner: match std::fs::metadata(&status_path) {
            Ok(found) => Reading::Read(Uid(found.uid())),
            Err(e) => Reading::Denied(errno(&e)),
        },
        user_ns: match std::fs::metadata(format!("{dir}/ns/user")) {
            Ok(found) => Reading::Read(found.ino()),
            Err(e) => Reading::Denied(errno(&e)),
        },
        kernel_thread: match reading(&format!("{dir}/stat")) {
            Reading::Read(stat) => {
                is_kernel_thread(&stat).map_or(Reading::Denied(Errno::EINVAL), Reading::Read)
            }
            Reading::Denied(e) => Reading::Denied(e),
            Reading::NotTried => Reading::NotTried,
        },
        ..Process::default()
    };
    match text(&status_path) {
        Ok(text) => fill(&mut process, &Status::parse(&text)),
        Err(e) => deny(&mut process, errno(&e)),
    }
    process
}

/// `PF_KTHREAD` among the flags of `stat`, the seventh field behind the name, which may hold anything.
fn is_kernel_thread(stat: &str) -> Option<bool> {
    const PF_KTHREAD: u32 = 0x0020_0000;
    let flags: u32 = stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(6)?.parse().ok()?;
    Some(flags & PF_KTHREAD != 0)
}

fn fill(process: &mut Process, status: &Status) {
    // A field that this kernel's status lacks was asked for and isn't there.
    fn field<T>(value: Option<T>) -> Reading<T> {
        value.map_or(Reading::Denied(Errno::ENOENT), Reading::Read)
    }
    process.name.clone_from(&status.name);
    process.state = field(status.state);
    process.uids = field(status.uids);
    process.gids = field(status.gids);
    process.cap_prm = field(status.cap_prm);
    process.cap_eff = field(status.cap_eff);
    process.cap_bnd = field(status.cap_bnd);
    process.no_new_privs = field(status.no_new_privs);
    process.seccomp = field(status.seccomp);
    process.tracer = field(status.tracer);
}

fn deny(process: &mut Process, errno: Errno) {
    process.state = Reading::Denied(errno);
    process.uids = Reading::<Ids<Uid>>::Denied(errno);
    process.gids = Reading::<Ids<Gid>>::Denied(errno);
    process.cap_prm = Reading::<Caps>::Denied(errno);
    process.cap_eff = Reading::Denied(errno);
    process.cap_bnd = Reading::Denied(errno);
    process.no_new_privs = Reading::Denied(errno);
    process.seccomp = Reading::Denied(errno);
    process.tracer = Reading::Denied(errno);
}

/// One line of the list of processes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Row {
    /// Its pid.
    pub(crate) pid: u32,
    /// Its status.
    pub(crate) status: Status,
    /// Its command line, words joined by spaces.
    pub(crate) command: String,
    /// Its first word.
    pub(crate) argv0: String,
    /// Its `/proc/PID/cgroup`.
    pub(crate) cgroup: Option<String>,
    /// Its mount namespace, where it can be read.
    pub(crate) mount_namespace: Option<u64>,
    /// Does its command line say that it is some seat's agent?
    pub(crate) says_agent: bool,
}

/// Every process there is, in pid order. One that ends while it is looked at is left out.
pub(crate) fn rows() -> Vec<Row> {
    let mut rows: Vec<Row> = pids().into_iter().filter_map(row).collect();
    let pids: Vec<u32> = rows.iter().map(|r| r.pid).collect();
    for (row, command) in rows.iter_mut().zip(commands(pids)) {
        let words = argv(&command);
        row.argv0 = words.first().copied().unwrap_or_default().to_owned();
        row.says_agent = words == agent_argv();
        row.command = words.join(" ");
    }
    rows
}

fn row(pid: u32) -> Option<Row> {
    Some(Row {
        pid,
        status: status(pid)?,
        cgroup: text(&format!("/proc/{pid}/cgroup")).ok(),
        mount_namespace: mount_namespace(pid).ok(),
        ..Row::default()
    })
}

/// The command lines, in the order of the pids, as far as they came in time: the read of one waits
/// for the memory map of its process, and a process that is looked at may well be stuck in it.
fn commands(pids: Vec<u32>) -> Vec<String> {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for pid in pids {
            let command = text(&format!("/proc/{pid}/cmdline")).unwrap_or_default();
            if sender.send(command).is_err() {
                return;
            }
        }
    });
    let deadline = Instant::now() + STUCK;
    let next = || receiver.recv_timeout(deadline.saturating_duration_since(Instant::now())).ok();
    std::iter::from_fn(next).collect()
}

/// Does something that may wait for a stuck process, on a thread of its own, which is left behind
/// where it takes too long: it ends with this program.
pub(crate) fn in_time<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || sender.send(work()));
    receiver.recv_timeout(STUCK).ok()
}

/// What of the seat's own can be told from outside.
#[derive(Clone, Debug, Default)]
pub(crate) struct Own {
    /// The seat's mount namespace.
    pub(crate) mount_namespace: u64,
    /// `/proc/self/cgroup`.
    pub(crate) cgroup: String,
}

impl Own {
    /// Reads them.
    pub(crate) fn read() -> Self {
        Self {
            mount_namespace: crate::runtime::own_mount_namespace(),
            cgroup: text("/proc/self/cgroup").unwrap_or_default(),
        }
    }
}

/// The pids of this seat's processes and of every other seat's in this PID namespace.
///
/// Our own: in our mount namespace, or in our cgroup where cgroups tell containers apart at all.
/// Another seat's: an agent by its command line (its executable can't be read: it isn't dumpable),
/// whatever descends from it, and whatever shares a cgroup with it.
pub(crate) fn seats(rows: &[Row], own: &Own) -> BTreeSet<u32> {
    let parents: BTreeMap<u32, u32> =
        rows.iter().map(|r| (r.pid, r.status.ppid.unwrap_or_default())).collect();
    let agents: BTreeSet<u32> =
        rows.iter().filter(|r| r.says_agent || r.argv0 == AGENT).map(|r| r.pid).collect();
    let mut cgroups: BTreeSet<&str> =
        rows.iter().filter(|r| r.says_agent).filter_map(|r| r.cgroup.as_deref()).collect();
    cgroups.insert(&own.cgroup);
    // A cgroup that PID 1 is in as well tells nothing, unless PID 1 is a seat itself.
    if let Some(first) = rows.iter().find(|r| r.pid == 1)
        && !first.says_agent
        && let Some(cgroup) = first.cgroup.as_deref()
    {
        cgroups.remove(cgroup);
    }
    let is_seat = |r: &&Row| {
        agents.contains(&r.pid)
            || r.mount_namespace == Some(own.mount_namespace)
            || r.cgroup.as_deref().is_some_and(|c| cgroups.contains(c))
            || descends(&parents, r.pid, &agents)
    };
    rows.iter().filter(is_seat).map(|r| r.pid).collect()
}

/// Is one of `ancestors` above this process? A namespace that changes under us may show a circle,
/// and a chain is never longer than the list.
pub(crate) fn descends(parents: &BTreeMap<u32, u32>, pid: u32, ancestors: &BTreeSet<u32>) -> bool {
    let mut at = pid;
    for _ in 0..parents.len() {
        match parents.get(&at) {
            Some(parent) if ancestors.contains(parent) => return true,
            Some(parent) => at = *parent,
            None => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_process_is_read_whole() {
        let own = process(7, "/proc/self");
        assert_eq!(own.pid, 7);
        assert_eq!(own.uid(), Some(crate::runtime::own_uid()));
        assert!(own.cap_eff.value().is_some() && own.seccomp.value().is_some());
        assert!(own.owner.value().is_some() && own.uid_map.value().is_some());
    }

    #[test]
    fn a_thread_of_the_kernels_own_is_told_by_its_flags_whatever_its_name_is() {
        let stat = |flags: u32| format!("2 (a) b) (c) S 0 0 0 0 -1 {flags} 0 0 0");
        assert_eq!(is_kernel_thread(&stat(2_129_984)), Some(true));
        assert_eq!(is_kernel_thread(&stat(4_194_560)), Some(false));
        assert_eq!(is_kernel_thread("2 (x"), None);
        assert_eq!(process(1, "/proc/self").kernel_thread, Reading::Read(false));
    }

    #[test]
    fn a_process_that_is_gone_is_denied_and_not_zero() {
        let gone = process(u32::MAX, "/proc/4194304");
        assert_eq!(gone.uids, Reading::Denied(Errno::ENOENT));
        assert_eq!(gone.tracer, Reading::Denied(Errno::ENOENT));
        assert_eq!(gone.uid(), None);
    }

    #[test]
    fn a_file_that_is_absent_is_absent_and_one_that_is_no_number_is_no_zero() {
        assert!(number::<u32>("/proc/self/nosuch").is_absent());
        assert_eq!(number::<u32>("/proc/self/comm"), Reading::Denied(Errno::EINVAL));
    }

    fn row(pid: u32, ppid: u32, cgroup: &str, agent: bool) -> Row {
        let status = Status { ppid: Some(ppid), ..Status::default() };
        Row { pid, status, cgroup: Some(cgroup.into()), says_agent: agent, ..Row::default() }
    }

    #[test]
    fn every_seats_processes_are_told_from_the_applications() {
        let own = Own { mount_namespace: 99, cgroup: "/own\n".into() };
        let mut exec = row(30, 0, "/own\n", false);
        exec.mount_namespace = Some(99);
        let rows = [
            row(1, 0, "/app\n", false),
            row(2, 1, "/app\n", false),
            row(10, 0, "/own\n", true),
            row(11, 10, "/own\n", false),
            exec,
            row(20, 0, "/other\n", true),
            row(21, 20, "/other\n", false),
            row(22, 0, "/other\n", false),
        ];
        let seats: Vec<u32> = seats(&rows, &own).into_iter().collect();
        assert_eq!(seats, [10, 11, 20, 21, 22, 30]);
    }

    #[test]
    fn where_cgroups_tell_nothing_the_application_is_not_taken_for_a_seat() {
        let own = Own { mount_namespace: 99, cgroup: "0::/\n".into() };
        let rows = [row(1, 0, "0::/\n", false), row(10, 0, "0::/\n", true), row(11, 10, "0::/\n", false)];
        let seats: Vec<u32> = seats(&rows, &own).into_iter().collect();
        assert_eq!(seats, [10, 11]);
    }

    #[test]
    fn what_is_stuck_is_left_behind_and_what_is_not_is_answered() {
        assert_eq!(in_time(|| 7), Some(7));
        assert_eq!(in_time(|| std::thread::sleep(Duration::from_secs(5))), None);
    }

    #[test]
    fn our_own_command_line_stands_in_our_own_row() {
        let rows = rows();
        let own = rows.iter().find(|r| r.pid == std::process::id()).unwrap();
        assert!(own.argv0.contains("podbench") && !own.says_agent, "{own:?}");
        assert_eq!(own.mount_namespace, Some(crate::runtime::own_mount_namespace()));
    }

    #[test]
    fn a_circle_of_parents_ends() {
        let parents = BTreeMap::from([(2, 3), (3, 2)]);
        assert!(!descends(&parents, 2, &BTreeSet::from([9])));
        assert!(descends(&parents, 2, &BTreeSet::from([3])));
    }
}
