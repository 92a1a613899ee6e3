//! The reads of the target's `/proc` files: each is tried, and answers ok or its errno.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;

use podbench_contract::measurement::Reads;
use podbench_contract::reading::Attempt;

use crate::proc::errno;

/// Tries all of them on a process.
pub(crate) fn all(pid: u32) -> Reads {
    let at = |name: &str| format!("/proc/{pid}/{name}");
    Reads {
        root: attempt(enter(&at("root"))),
        maps: attempt(first_byte(&at("maps"))),
        environ: attempt(first_byte(&at("environ"))),
        cmdline: attempt(first_byte(&at("cmdline"))),
        status: attempt(first_byte(&at("status"))),
        fd: attempt(list(&at("fd"))),
        exe: attempt(std::fs::read_link(at("exe")).map(|_| ())),
        mem: attempt(File::open(at("mem")).map(|_| ())),
    }
}

fn attempt(done: io::Result<()>) -> Attempt {
    match done {
        Ok(()) => Attempt::Ok,
        Err(e) => Attempt::Errno(errno(&e)),
    }
}

/// Can the folder behind `/proc/PID/root` be entered? Nothing in it is looked at.
pub(crate) fn enter(path: &str) -> io::Result<()> {
    let flags = rustix::fs::OFlags::PATH | rustix::fs::OFlags::DIRECTORY;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    OpenOptions::new().read(true).custom_flags(flags).open(path).map(|_| ())
}

/// A folder may open and refuse to be listed.
fn list(path: &str) -> io::Result<()> {
    std::fs::read_dir(path)?.next().transpose().map(|_| ())
}

/// A file may open and refuse the read.
fn first_byte(path: &str) -> io::Result<()> {
    File::open(path)?.read(&mut [0u8; 1]).map(|_| ())
}

#[cfg(test)]
mod tests {
    use podbench_contract::reading::Errno;

    use super::*;

    #[test]
    fn our_own_process_can_be_read_and_one_that_is_gone_says_so() {
        let own = all(std::process::id());
        for read in [own.root, own.maps, own.environ, own.cmdline, own.status, own.fd, own.exe, own.mem] {
            assert_eq!(read, Attempt::Ok, "{own:?}");
        }
        let gone = all(4_194_304);
        assert_eq!((gone.root, gone.mem), (Attempt::Errno(Errno::ENOENT), Attempt::Errno(Errno::ENOENT)));
    }
}
