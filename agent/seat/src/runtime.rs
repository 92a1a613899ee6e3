//! The runtime folder: 0700, the seat's own, and never one that somebody else planted.
//!
//! It lies where others may write (`/run/podbench` in the image, `/dev/shm` that the pod's
//! containers share), so it is looked at before it is used: a folder, no symbolic link, owned by
//! us, closed to everybody else.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use podbench_contract::ids::Uid;
use podbench_contract::session::runtime_dirs;

/// A folder that was looked at and is ours.
#[derive(Clone, Debug)]
pub(crate) struct Runtime {
    dir: String,
}

/// Our own uid.
pub(crate) fn own_uid() -> Uid {
    Uid(rustix::process::getuid().as_raw())
}

/// The inode number of our mount namespace; 0 where it can't be read.
pub(crate) fn own_mount_namespace() -> u64 {
    std::fs::metadata("/proc/self/ns/mnt").map_or(0, |m| m.ino())
}

impl Runtime {
    /// Makes the best folder that can be made; otherwise why each of them couldn't.
    pub(crate) fn create() -> Result<Self, String> {
        Self::create_in(&runtime_dirs(own_uid(), own_mount_namespace()))
    }

    fn create_in(candidates: &[String]) -> Result<Self, String> {
        let mut why = Vec::new();
        for dir in candidates {
            match make(dir) {
                Ok(()) => return Ok(Self { dir: dir.clone() }),
                Err(e) => why.push(format!("{dir}: {e}")),
            }
        }
        Err(why.join("; "))
    }

    /// The folders that exist and are ours, best first.
    pub(crate) fn existing() -> Vec<Self> {
        let dirs = runtime_dirs(own_uid(), own_mount_namespace());
        dirs.into_iter().filter(|dir| inspect(dir).is_ok()).map(|dir| Self { dir }).collect()
    }

    /// The folder of a running or earlier agent: the first that holds an sshd configuration.
    pub(crate) fn configured() -> Option<Self> {
        Self::existing()
            .into_iter()
            .find(|r| Path::new(&r.path(podbench_contract::session::file::SSHD_CONFIG)).exists())
    }

    /// The folder's path.
    pub(crate) fn dir(&self) -> &str {
        &self.dir
    }

    /// A file's path.
    pub(crate) fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.dir)
    }

    /// Writes a file whole: to a temporary beside it, then renamed. Mode 0600.
    pub(crate) fn write(&self, name: &str, content: &str) -> io::Result<()> {
        write_whole(&self.path(name), content, 0o600)
    }

    /// Removes the folder with all that is in it.
    pub(crate) fn remove(&self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }

    /// Reads a file of at most 1 MiB.
    pub(crate) fn read(&self, name: &str) -> io::Result<String> {
        read_bounded(&self.path(name), 1 << 20)
    }
}

/// Writes a file whole, with this mode: to a temporary beside it, then renamed.
pub(crate) fn write_whole(path: &str, content: &str, mode: u32) -> io::Result<()> {
    let temporary = format!("{path}.{}", std::process::id());
    let _ = std::fs::remove_file(&temporary);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&temporary)?;
    let written = file.write_all(content.as_bytes()).and_then(|()| std::fs::rename(&temporary, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    written
}

/// Reads at most `most` bytes of a file; a longer one is an error.
pub(crate) fn read_bounded(path: &str, most: u64) -> io::Result<String> {
    let mut text = String::new();
    let got = File::open(path)?.take(most + 1).read_to_string(&mut text)? as u64;
    if got > most { Err(io::Error::other("longer than it may be")) } else { Ok(text) }
}

/// Makes the folder anew. An agent starts with its container, so what lies there is left from
/// another one or was put there by somebody else: a host key that is known, a home.
fn make(dir: &str) -> Result<(), Unfit> {
    match inspect(dir) {
        Ok(()) | Err(Unfit::Open) => std::fs::remove_dir_all(dir)?,
        Err(Unfit::Io(e)) if e.kind() == io::ErrorKind::NotFound => {}
        Err(unfit) => return Err(unfit),
    }
    DirBuilder::new().mode(0o700).create(dir)?;
    inspect(dir)
}

/// Why a folder can't be the seat's.
#[derive(Debug, thiserror::Error)]
enum Unfit {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("not a folder")]
    NotAFolder,
    #[error("it belongs to uid {0}")]
    Foreign(u32),
    #[error("it is open to others")]
    Open,
}

fn inspect(dir: &str) -> Result<(), Unfit> {
    let found = std::fs::symlink_metadata(dir)?;
    if !found.is_dir() {
        Err(Unfit::NotAFolder)
    } else if found.uid() != own_uid().0 {
        Err(Unfit::Foreign(found.uid()))
    } else if found.mode() & 0o077 != 0 {
        Err(Unfit::Open)
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two(tmp: &tempfile::TempDir) -> [String; 2] {
        ["first", "second"].map(|n| tmp.path().join(n).to_str().unwrap().to_owned())
    }

    #[test]
    fn the_folder_is_closed_and_what_is_written_in_it_too() {
        let tmp = tempfile::tempdir().unwrap();
        let runtime = Runtime::create_in(&two(&tmp)).unwrap();
        assert_eq!(std::fs::metadata(runtime.dir()).unwrap().mode() & 0o777, 0o700);
        runtime.write("keys", "one").unwrap();
        runtime.write("keys", "two").unwrap();
        assert_eq!(runtime.read("keys").unwrap(), "two");
        assert_eq!(std::fs::metadata(runtime.path("keys")).unwrap().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(runtime.dir()).unwrap().count(), 1, "no temporary stays");
    }

    #[test]
    fn a_planted_link_or_file_is_refused_and_the_next_folder_taken() {
        let tmp = tempfile::tempdir().unwrap();
        let [first, second] = two(&tmp);
        let elsewhere = tmp.path().join("elsewhere");
        std::fs::create_dir(&elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &first).unwrap();
        let got = Runtime::create_in(&[first.clone(), second.clone()]).unwrap();
        assert_eq!(got.dir(), second);
        std::fs::remove_dir(&second).unwrap();
        std::fs::write(&second, "").unwrap();
        let why = Runtime::create_in(&[first, second]).unwrap_err();
        assert_eq!(why.matches("not a folder").count(), 2, "{why}");
    }

    #[test]
    fn what_lay_in_the_folder_is_gone_and_it_is_closed() {
        use std::os::unix::fs::PermissionsExt as _;
        let tmp = tempfile::tempdir().unwrap();
        let dirs = two(&tmp);
        let other = tmp.path().join("other");
        std::fs::write(&other, "stays").unwrap();
        for mode in [0o700, 0o777] {
            std::fs::create_dir_all(&dirs[0]).unwrap();
            std::fs::set_permissions(&dirs[0], std::fs::Permissions::from_mode(mode)).unwrap();
            std::fs::write(Path::new(&dirs[0]).join("ssh_host_ed25519_key"), "planted").unwrap();
            std::os::unix::fs::symlink(&other, Path::new(&dirs[0]).join(format!("link{mode}"))).unwrap();
            let runtime = Runtime::create_in(&dirs).unwrap();
            assert_eq!(runtime.dir(), dirs[0]);
            assert_eq!(std::fs::read_dir(runtime.dir()).unwrap().count(), 0);
            assert_eq!(std::fs::metadata(&dirs[0]).unwrap().mode() & 0o777, 0o700);
        }
        assert_eq!(std::fs::read_to_string(other).unwrap(), "stays");
    }

    #[test]
    fn a_file_that_is_too_long_is_an_error_and_not_a_cut_text() {
        let tmp = tempfile::tempdir().unwrap();
        let path = tmp.path().join("f");
        std::fs::write(&path, "12345").unwrap();
        let path = path.to_str().unwrap();
        assert_eq!(read_bounded(path, 5).unwrap(), "12345");
        assert!(read_bounded(path, 4).is_err());
    }
}
