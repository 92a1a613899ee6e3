//! A core dump of a target that lives on.

use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use podbench_contract::exit;

use super::gdb::{self, Target, Wishes};
use super::{guard, mappings};
use crate::{exec, out};

/// Takes one into a folder and answers the file. The target stands still meanwhile.
///
/// # Errors
/// The exit code; why is said.
pub(crate) fn take(gdb: &str, target: &Target, wishes: &Wishes, folder: &Path) -> Result<String, u8> {
    let failed = |why: &str| {
        out::note(&format!("no core of pid {}: {why}", target.pid));
        exit::FAILED
    };
    // What is in it is as secret as the target's memory.
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|e| failed(&format!("{}: {e}", folder.display())))?;
    let size = size(target.pid).map_err(|e| failed(&e.to_string()))?;
    let room = rustix::fs::statvfs(folder).map_err(|e| failed(&e.to_string()))?;
    let free = room.f_bavail.saturating_mul(room.f_frsize);
    let about = format!("up to {} MiB, and {} has {} MiB", size >> 20, folder.display(), free >> 20);
    if size > free {
        return Err(failed(&format!("it takes {about}: --core-dir names another folder")));
    }
    out::note(&format!("a core of pid {}: {about}; the target stands still meanwhile", target.pid));
    let file = folder.join(format!("core.{}.{}", target.pid, std::process::id()));
    let file = file.to_string_lossy().into_owned();
    let held = guard::start(&[target.pid]).map_err(|e| failed(&e.to_string()))?;
    let ended = exec::run_here(&dump(gdb, target, wishes, &file)).map_err(|e| failed(&e.to_string()))?;
    drop(held);
    if ended && Path::new(&file).exists() { Ok(file) } else { Err(failed("gdb didn't write it")) }
}

/// The words that have gdb write one.
pub(crate) fn dump(gdb: &str, target: &Target, wishes: &Wishes, file: &str) -> Vec<String> {
    let mut argv = gdb::attach(gdb, target, wishes);
    argv.extend(["-batch", "-ex"].map(str::to_owned));
    argv.extend([format!("gcore {file}"), "-ex".into(), "detach".into()]);
    argv
}

/// The most that gdb writes: every mapping that isn't as its file is.
fn size(pid: u32) -> std::io::Result<u64> {
    let differs = |m: &&mappings::Mapping| m.written || m.access.contains('w');
    Ok(mappings::of(pid)?.iter().filter(differs).map(mappings::Mapping::size).sum())
}
