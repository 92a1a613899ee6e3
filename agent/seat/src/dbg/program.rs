//! Which file gdb is to read as the target's program.

use std::fs::File;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// A target's program as gdb is to be told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    /// This path reaches it.
    At(String),
    /// No path that gdb would keep does: a copy of it has to be here.
    Copy(PathBuf),
}

impl Program {
    /// The path for gdb.
    pub(crate) fn path(&self) -> String {
        match self {
            Self::At(path) => path.clone(),
            Self::Copy(path) => path.to_string_lossy().into_owned(),
        }
    }
}

/// Finds a process' program; `folder`: where copies go.
///
/// gdb resolves `/proc/PID/root/x` to `/x`, and where the seat has a file of that name it reads that one: the
/// symbols of another program, silently. A program that was deleted or replaced has no path at all.
///
/// # Errors
/// The process has no program, or it can't be read.
pub(crate) fn of(pid: u32, folder: &Path) -> io::Result<Program> {
    let link = std::fs::read_link(format!("/proc/{pid}/exe"))?;
    let running = File::open(format!("/proc/{pid}/exe"))?.metadata()?;
    let named = PathBuf::from(format!("/proc/{pid}/root{}", link.display()));
    let reached =
        std::fs::metadata(&named).is_ok_and(|m| (m.dev(), m.ino()) == (running.dev(), running.ino()));
    // As gdb resolves it: to what the seat has there, where it has anything.
    let shadowed = std::fs::canonicalize(&named).is_ok_and(|path| path.exists());
    if let Some(path) = named.to_str().filter(|path| reached && !shadowed && is_plain(path)) {
        return Ok(Program::At(path.to_owned()));
    }
    let name =
        link.file_name().and_then(|name| name.to_str()).map(|name| name.trim_end_matches(" (deleted)"));
    let name = name.filter(|name| is_plain(name)).unwrap_or("program");
    // Told apart by what the file is: the same program is copied once.
    let key = format!("{:x}-{:x}-{}-{}", running.dev(), running.ino(), running.size(), running.mtime());
    Ok(Program::Copy(folder.join(key).join(name)))
}

/// Is it one word in any of gdb's commands? A name is whatever its image's author chose.
fn is_plain(path: &str) -> bool {
    path.bytes().all(|b| b.is_ascii_alphanumeric() || b"/._+-@:".contains(&b))
}

/// Makes the copy, unless it is there.
///
/// # Errors
/// No room, or no right to read the program.
pub(crate) fn copy(pid: u32, to: &Path) -> io::Result<()> {
    if to.exists() {
        return Ok(());
    }
    let folder = to.parent().unwrap_or(to);
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let mut from = File::open(format!("/proc/{pid}/exe"))?;
    let size = from.metadata()?.size();
    let room = rustix::fs::statvfs(folder)?;
    let free = room.f_bavail.saturating_mul(room.f_frsize);
    if size > free {
        return Err(io::Error::other(format!(
            "it is {} MiB, and {} has {} MiB left",
            size >> 20,
            folder.display(),
            free >> 20
        )));
    }
    // Whole or not at all: gdb of another session may look for it.
    let part = folder.join(format!("part-{}", std::process::id()));
    io::copy(&mut from, &mut File::create(&part)?)?;
    std::fs::rename(part, to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a program of that name has to run")]
    fn a_name_that_is_more_than_a_word_to_gdb_never_gets_there() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a b", "x\nshell touch y", "a'b", "a\\b"] {
            let program = folder.path().join(name);
            std::fs::copy("/bin/sleep", &program).unwrap();
            let mut sleeping = std::process::Command::new(&program).arg("30").spawn().unwrap();
            let found = of(sleeping.id(), folder.path());
            sleeping.kill().unwrap();
            sleeping.wait().unwrap();
            assert!(
                is_plain(&found.unwrap().path().replace(folder.path().to_str().unwrap(), "")),
                "{name:?}"
            );
        }
    }

    #[test]
    fn a_program_that_the_seat_has_at_the_same_path_is_copied() {
        // This very process: its root is ours, so its path is taken.
        let folder = tempfile::tempdir().unwrap();
        let pid = std::process::id();
        let Program::Copy(to) = of(pid, folder.path()).unwrap() else { panic!("it would be mistaken") };
        copy(pid, &to).unwrap();
        copy(pid, &to).unwrap();
        assert_eq!(std::fs::read(&to).unwrap(), std::fs::read("/proc/self/exe").unwrap());
        assert_eq!(std::fs::read_dir(to.parent().unwrap()).unwrap().count(), 1);
    }
}
