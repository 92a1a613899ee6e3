//! The one way into the target's file system.
//!
//! A plain path through `/proc/PID/root` follows an absolute symbolic link of the target's into the
//! *seat*. Here the kernel resolves every name inside that root, through no `/proc` link, and what
//! is opened is a regular file: a pipe that was planted there would wait for ever.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags, ResolveFlags, open, openat2};

/// A process' root folder, held.
pub(crate) struct Root {
    dir: OwnedFd,
}

impl Root {
    /// Enters it; gated by `PTRACE_MODE_READ`.
    pub(crate) fn of(pid: u32) -> io::Result<Self> {
        Self::at(&format!("/proc/{pid}/root"))
    }

    fn at(path: &str) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self { dir: open(path, flags, Mode::empty())? })
    }

    /// The beginning of a regular file in it, as text.
    pub(crate) fn text(&self, path: &str, most: u64) -> io::Result<String> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let inside = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        let file = File::from(openat2(&self.dir, path, flags, Mode::empty(), inside)?);
        if !file.metadata()?.is_file() {
            return Err(io::Error::from(rustix::io::Errno::INVAL));
        }
        let mut bytes = Vec::new();
        file.take(most).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_of_the_targets_stays_in_the_targets_root() {
        let tmp = tempfile::tempdir().unwrap();
        let inside = tmp.path().join("etc");
        std::fs::create_dir(&inside).unwrap();
        std::fs::write(inside.join("passwd"), "the target's").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", tmp.path().join("link")).unwrap();
        std::os::unix::fs::symlink("../../../../etc/passwd", tmp.path().join("climb")).unwrap();
        std::os::unix::fs::symlink("/proc/self/root/etc/passwd", tmp.path().join("magic")).unwrap();
        let root = Root::at(tmp.path().to_str().unwrap()).unwrap();
        for name in ["link", "climb", "/etc/passwd"] {
            assert_eq!(root.text(name, 100).unwrap(), "the target's", "{name}");
        }
        assert!(root.text("magic", 100).is_err());
        assert_eq!(root.text("link", 3).unwrap(), "the");
    }

    #[test]
    fn a_pipe_or_a_folder_is_refused_and_never_waited_for() {
        let tmp = tempfile::tempdir().unwrap();
        let pipe = tmp.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRUSR).unwrap();
        let root = Root::at(tmp.path().to_str().unwrap()).unwrap();
        assert!(root.text("pipe", 100).is_err());
        assert!(root.text(".", 100).is_err());
    }
}
