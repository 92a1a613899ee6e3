//! Memory in the cgroups that the seat can see: its own, and the target's through the target's root.
//!
//! A container sees its own cgroup mounted and none above it. Version 1 tells the tightest limit
//! above in `memory.stat` as well (the pod's, where it has one); version 2 has no such figure.

use std::io;

use podbench_contract::measurement::Memory;
use podbench_contract::reading::{Errno, Reading};

use super::root::Root;
use crate::proc::{self, errno};

/// Version 1 writes "no limit" as the largest number of pages; anything near it is none.
const UNLIMITED: u64 = 1 << 60;
/// Where runtimes mount a container's cgroups.
const MOUNT: &str = "/sys/fs/cgroup";
/// `memory.stat` has a few kilobytes.
const LONGEST: u64 = 64 * 1024;

/// Reads both.
pub(crate) fn read(target: Option<u32>) -> Memory {
    let own = figures(&|name| proc::text(&format!("{MOUNT}/{name}")));
    let theirs = match target.map(|pid| proc::in_time(move || Root::of(pid).map(|root| in_root(&root)))) {
        Some(Some(Ok(figures))) => figures,
        Some(Some(Err(e))) => Figures { used: Reading::Denied(errno(&e)), limit: Reading::Denied(errno(&e)) },
        Some(None) | None => Figures::default(),
    };
    Memory {
        used: own.used,
        limit: own.limit,
        scope: "container".to_owned(),
        target_used: theirs.used,
        target_limit: theirs.limit,
    }
}

fn in_root(root: &Root) -> Figures {
    figures(&|name| root.text(&format!("{MOUNT}/{name}"), LONGEST))
}

/// What one cgroup says.
#[derive(Debug, Default)]
struct Figures {
    used: Reading<u64>,
    limit: Reading<u64>,
}

fn figures(file: &dyn Fn(&str) -> io::Result<String>) -> Figures {
    let number = |name: &str| match file(name) {
        Ok(text) => text.trim().parse().map_or(Reading::Denied(Errno::EINVAL), Reading::Read),
        Err(e) => Reading::Denied(errno(&e)),
    };
    let ceiling = |name: &str| match file(name) {
        Ok(text) => Reading::Read(limit(&text)),
        Err(e) => Reading::Denied(errno(&e)),
    };
    let used = number("memory.current");
    if !used.is_absent() {
        return Figures { used, limit: ceiling("memory.max") };
    }
    let above = file("memory/memory.stat").ok().and_then(|text| hierarchical(&text));
    let own = ceiling("memory/memory.limit_in_bytes");
    Figures {
        used: number("memory/memory.usage_in_bytes"),
        limit: own.map(|own| above.map_or(own, |above| above.min(own))),
    }
}

fn limit(text: &str) -> u64 {
    match text.trim().parse() {
        Ok(bytes) if bytes < UNLIMITED => bytes,
        Ok(_) | Err(_) => u64::MAX,
    }
}

fn hierarchical(stat: &str) -> Option<u64> {
    let line = stat.lines().find_map(|l| l.strip_prefix("hierarchical_memory_limit "))?;
    line.trim().parse().ok().filter(|bytes| *bytes < UNLIMITED)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let tmp = tempfile::tempdir().unwrap();
        std::fs::create_dir(tmp.path().join("memory")).unwrap();
        for (name, text) in files {
            std::fs::write(tmp.path().join(name), text).unwrap();
        }
        tmp
    }

    fn read(files: &[(&str, &str)]) -> Figures {
        let tmp = folder(files);
        figures(&|name| std::fs::read_to_string(tmp.path().join(name)))
    }

    #[test]
    fn both_versions_are_read_and_no_limit_is_no_number() {
        let two = read(&[("memory.current", "1048576\n"), ("memory.max", "max\n")]);
        assert_eq!((two.used, two.limit), (Reading::Read(1_048_576), Reading::Read(u64::MAX)));
        let one = read(&[
            ("memory/memory.usage_in_bytes", "4096\n"),
            ("memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("memory/memory.stat", "cache 0\nhierarchical_memory_limit 268435456\n"),
        ]);
        assert_eq!((one.used, one.limit), (Reading::Read(4096), Reading::Read(268_435_456)));
    }

    #[test]
    fn where_no_cgroup_is_mounted_nothing_is_read() {
        let none = read(&[]);
        assert!(none.used.is_absent() && none.limit.is_absent());
    }
}
