//! What the readings prove before any mechanism is named.

use crate::measurement::{Measurement, Process};
use crate::reading::{Attempt, Errno};

/// The inode number of the initial user namespace (the kernel's `PROC_USER_INIT_INO`).
const INITIAL: u64 = 0xEFFF_FFFD;
/// The initial namespace's map; a child namespace may have the same, which is rare.
const WHOLE: &str = "0 0 4294967295";

/// Where the target's user namespace lies, as far as it shows. The same map proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Space {
    /// Nothing says that it is another.
    Same,
    /// The seat is in the initial namespace and the target in one below: the seat's capabilities count there.
    Below,
    /// Another one, where the seat's capabilities count for nothing.
    Foreign,
}

/// A measurement of a refusal, and what follows from it.
pub(super) struct Evidence<'a> {
    pub(super) m: &'a Measurement,
    pub(super) target: &'a Process,
    /// A seccomp filter answered: the kernel's own check was never reached.
    pub(super) filtered: bool,
    /// The kernel's check let the seat read the target.
    pub(super) read_passes: bool,
    /// The kernel's check refused even to let the seat read the target.
    pub(super) read_denied: bool,
    /// The kernel's check would let the seat attach, whatever seccomp or another tracer says.
    pub(super) attach_passes: bool,
    /// The seat holds `CAP_SYS_PTRACE` in its own user namespace.
    pub(super) capable: bool,
    pub(super) space: Space,
}

impl<'a> Evidence<'a> {
    pub(super) fn of(m: &'a Measurement, target: &'a Process) -> Self {
        let filtered = match m.probes.nobody {
            Attempt::Ok | Attempt::NotTried | Attempt::Errno(Errno::ESRCH) => false,
            Attempt::Errno(_) | Attempt::Signal(_) => true,
        };
        // Files are gated by the file-system ids and the effective set, ptrace by the real ids and
        // the permitted one: a file speaks for ptrace where these are the same.
        let files_speak = files_speak(&m.seat);
        let reads = &m.probes.reads;
        Self {
            m,
            target,
            filtered,
            read_passes: files_speak && reads.maps.is_ok(),
            read_denied: files_speak
                && reads.maps.errno().is_some_and(|e| e == Errno::EACCES || e == Errno::EPERM),
            attach_passes: files_speak && reads.mem.is_ok(),
            capable: m.seat.cap_eff.value().is_some_and(|c| c.has_sys_ptrace()),
            space: space(&m.seat, target),
        }
    }

    /// What the kernel's own check answered, where no filter did.
    pub(super) fn errno(&self) -> Option<Errno> {
        if self.filtered { None } else { self.m.probes.seize.errno() }
    }

    /// `EACCES` comes from a labelled module alone, and the kernel asks those last.
    pub(super) fn module_answered(&self) -> bool {
        self.errno() == Some(Errno::EACCES)
    }

    /// The credential check is known to pass.
    pub(super) fn past_credentials(&self) -> bool {
        self.read_passes || self.attach_passes || self.module_answered()
    }

    /// What the kernel answers about a child of the prober's own, where no filter does.
    pub(super) fn child(&self) -> Option<Errno> {
        if self.filtered { None } else { self.m.probes.child.errno() }
    }

    /// The seat's security label, where it is one that may say no.
    pub(super) fn confined(&self) -> Option<&'a str> {
        self.m.seat.label.value().map(String::as_str).filter(|label| enforces(label))
    }
}

fn files_speak(seat: &Process) -> bool {
    let uids = seat.uids.value().is_some_and(|ids| ids.real == ids.fs);
    let gids = seat.gids.value().is_some_and(|ids| ids.real == ids.fs);
    uids && gids && seat.cap_prm.value() == seat.cap_eff.value()
}

/// AppArmor writes a mode behind the name, in the last parentheses; SELinux and Smack write none.
pub(super) fn enforces(label: &str) -> bool {
    let mode = label.rsplit_once(" (").and_then(|(_, mode)| mode.strip_suffix(')'));
    match mode {
        Some("complain" | "unconfined" | "prompt") => false,
        Some(_) => true,
        None => !label.is_empty() && label != "unconfined",
    }
}

fn space(seat: &Process, target: &Process) -> Space {
    let other = match (seat.user_ns.value(), target.user_ns.value()) {
        (Some(own), Some(theirs)) => own != theirs,
        (Some(_), None) | (None, Some(_) | None) => match (seat.uid_map.value(), target.uid_map.value()) {
            (Some(own), Some(theirs)) => squeeze(own) != squeeze(theirs),
            (Some(_), None) | (None, Some(_) | None) => false,
        },
    };
    let initial = match seat.user_ns.value() {
        Some(inode) => *inode == INITIAL,
        None => seat.uid_map.value().is_some_and(|map| squeeze(map) == WHOLE),
    };
    match (other, initial) {
        (false, _) => Space::Same,
        (true, true) => Space::Below,
        (true, false) => Space::Foreign,
    }
}

/// Is it known that the seat is in the initial user namespace, above every other?
pub(super) fn is_initial(seat: &Process) -> bool {
    seat.user_ns.value() == Some(&INITIAL)
}

fn squeeze(map: &str) -> String {
    map.split_whitespace().collect::<Vec<_>>().join(" ")
}
