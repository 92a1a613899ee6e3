//! `/proc/PID/status` and `/proc/PID/cmdline`.

use crate::ids::{Gid, Uid};
use crate::measurement::{Caps, Ids};

/// The fields of `/proc/PID/status` that podbench reads. A field that an older kernel lacks is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// `Name:`, as the kernel escapes it.
    pub name: String,
    /// `State:`, its letter.
    pub state: Option<char>,
    /// `PPid:`.
    pub ppid: Option<u32>,
    /// `TracerPid:`.
    pub tracer: Option<u32>,
    /// `Uid:`.
    pub uids: Option<Ids<Uid>>,
    /// `Gid:`.
    pub gids: Option<Ids<Gid>>,
    /// `Threads:`.
    pub threads: Option<u32>,
    /// `CapPrm:`.
    pub cap_prm: Option<Caps>,
    /// `CapEff:`.
    pub cap_eff: Option<Caps>,
    /// `CapBnd:`.
    pub cap_bnd: Option<Caps>,
    /// `NoNewPrivs:`.
    pub no_new_privs: Option<bool>,
    /// `Seccomp:`.
    pub seccomp: Option<u32>,
}

impl Status {
    /// Reads the text; unknown lines are passed over.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut out = Self::default();
        for line in text.lines() {
            let Some((key, value)) = line.split_once(':') else { continue };
            let value = value.trim();
            match key {
                "Name" => value.clone_into(&mut out.name),
                "State" => out.state = value.chars().next(),
                "PPid" => out.ppid = value.parse().ok(),
                "TracerPid" => out.tracer = value.parse().ok(),
                "Uid" => out.uids = four(value, Uid),
                "Gid" => out.gids = four(value, Gid),
                "Threads" => out.threads = value.parse().ok(),
                "CapPrm" => out.cap_prm = Caps::parse(value),
                "CapEff" => out.cap_eff = Caps::parse(value),
                "CapBnd" => out.cap_bnd = Caps::parse(value),
                "NoNewPrivs" => out.no_new_privs = value.parse::<u32>().ok().map(|n| n != 0),
                "Seccomp" => out.seccomp = value.parse().ok(),
                _ => {}
            }
        }
        out
    }

    /// Is the process gone but not reaped, or being taken down?
    #[must_use]
    pub const fn is_dead(&self) -> bool {
        matches!(self.state, Some('Z' | 'X' | 'x'))
    }
}

fn four<T>(value: &str, of: impl Fn(u32) -> T) -> Option<Ids<T>> {
    let mut ids = value.split_ascii_whitespace().map(|w| w.parse().ok());
    let mut next = || ids.next().flatten().map(&of);
    Some(Ids { real: next()?, effective: next()?, saved: next()?, fs: next()? })
}

/// The words of `/proc/PID/cmdline`. A process that rewrites its own may leave one long word.
#[must_use]
pub fn argv(cmdline: &str) -> Vec<&str> {
    cmdline.trim_end_matches('\0').split('\0').filter(|w| !w.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &str = "Name:\tserver\nUmask:\t0022\nState:\tS (sleeping)\nPPid:\t0\nTracerPid:\t0\n\
        Uid:\t1234\t1234\t1234\t1234\nGid:\t4321\t4321\t4321\t4321\nThreads:\t5\nCapPrm:\t0000000000000000\n\
        CapEff:\t00000000a80425fb\nCapBnd:\t00000000a80425fb\nNoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t1\n";

    #[test]
    fn a_status_is_read_field_by_field() {
        let s = Status::parse(TEXT);
        assert_eq!((s.name.as_str(), s.state, s.threads), ("server", Some('S'), Some(5)));
        assert!(s.uids.unwrap().all(Uid(1234)) && s.gids.unwrap().all(Gid(4321)));
        assert_eq!((s.no_new_privs, s.seccomp), (Some(true), Some(2)));
        assert!(!s.cap_eff.unwrap().has_sys_ptrace());
    }

    #[test]
    fn a_missing_field_is_none_and_not_zero() {
        let s = Status::parse("Name:\tx\nUid:\t1\t2\n");
        assert_eq!((s.uids, s.seccomp, s.no_new_privs, s.tracer), (None, None, None, None));
    }

    #[test]
    fn a_command_line_ends_at_its_nuls() {
        assert_eq!(argv("/app\0-x\0\0"), ["/app", "-x"]);
        assert!(argv("").is_empty());
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC*") {
            let _ = (Status::parse(&text), argv(&text));
        }
    }
}
