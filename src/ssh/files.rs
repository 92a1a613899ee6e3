//! Files that ssh relies on: written beside themselves and renamed, under one lock, 0600 in folders
//! of 0700.
//!
//! ssh ends with "Bad owner or permissions" *for every host* when a file that the user's
//! configuration includes belongs to somebody else or is group-writable, so owners are checked
//! before anything is written.

use std::fs::{DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use podbench_contract::text;

use crate::error::{Failure, Kind};
use crate::settings::Settings;

/// How long one podbench waits for another that writes: each holds the lock for milliseconds.
const LOCK_LIMIT: Duration = Duration::from_secs(10);

/// A file of ours is never longer; one that is belongs to somebody else.
const LONGEST: u64 = 8 * 1024 * 1024;

/// Where everything is.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    /// `~/.podbench`.
    pub(crate) root: PathBuf,
}

impl Layout {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self { root: settings.config_dir.clone() }
    }

    /// One stanza a file.
    pub(crate) fn stanzas(&self) -> PathBuf {
        self.root.join("config.d")
    }

    pub(crate) fn stanza(&self, alias: &str) -> PathBuf {
        self.stanzas().join(format!("{alias}.conf"))
    }

    pub(crate) fn known_hosts(&self) -> PathBuf {
        self.root.join("known_hosts")
    }

    /// Control sockets. Two letters, because a socket's path has 104 to 108 bytes.
    pub(crate) fn sockets(&self) -> PathBuf {
        self.root.join("cm")
    }

    /// Looks whether [`Self::open`] would be let, and writes nothing.
    pub(crate) fn check(&self, settings: &Settings) -> Result<(), Failure> {
        not_as_somebody_else(settings, &self.root)?;
        match std::fs::metadata(&self.root) {
            Ok(meta) => is_ours(&self.root, &meta),
            // It will be made.
            Err(_) => Ok(()),
        }
    }

    /// Does what [`Self::open`] and a write would do, and leaves nothing but the folder and its lock:
    /// what the disk refuses is known before the cluster is touched.
    pub(crate) fn rehearse(&self, settings: &Settings) -> Result<(), Failure> {
        self.rehearse_within(settings, LOCK_LIMIT)
    }

    fn rehearse_within(&self, settings: &Settings, limit: Duration) -> Result<(), Failure> {
        not_as_somebody_else(settings, &self.root)?;
        folder(&self.root)?;
        let lock = Lock::take(&self.lock(), limit)?;
        for path in [self.stanzas(), self.sockets()] {
            let is_new = std::fs::symlink_metadata(&path).is_err();
            let tried = folder(&path).and_then(|()| try_to_write(&path));
            if is_new {
                // Under the lock, so nobody has put anything into it.
                let _ = std::fs::remove_dir(&path);
            }
            tried?;
        }
        try_to_write(&self.root)?;
        self.known().map(|_| drop(lock))
    }

    /// Takes the lock, and makes the folders.
    pub(crate) fn open(&self, settings: &Settings) -> Result<Lock, Failure> {
        not_as_somebody_else(settings, &self.root)?;
        folder(&self.root)?;
        let lock = Lock::take(&self.lock(), LOCK_LIMIT)?;
        folder(&self.stanzas())?;
        folder(&self.sockets())?;
        Ok(lock)
    }

    /// What this machine remembers of pods.
    pub(crate) fn state(&self) -> PathBuf {
        self.root.join("state")
    }

    fn lock(&self) -> PathBuf {
        self.root.join("lock")
    }

    /// What known_hosts says; empty where there is none.
    pub(crate) fn known(&self) -> Result<String, Failure> {
        let path = self.known_hosts();
        match read(&path)? {
            Found::Nothing => Ok(String::new()),
            Found::Text(text) => Ok(text),
            Found::Foreign => {
                let word = crate::shell::word(&path.to_string_lossy());
                let failure =
                    Failure::new(Kind::Disk, format!("{} is not a file that podbench wrote", shown(&path)));
                Err(failure.hint(format!("mv {word} {word}.kept")))
            }
        }
    }
}

/// `sudo` may keep HOME: what root writes there, the user's own ssh can't read, and stops at.
fn not_as_somebody_else(settings: &Settings, root: &Path) -> Result<(), Failure> {
    let uid = rustix::process::geteuid().as_raw();
    let Ok(home) = std::fs::metadata(&settings.home) else { return Ok(()) };
    if uid == 0 && home.uid() != 0 && root.starts_with(&settings.home) {
        return Err(Failure::new(
            Kind::Input,
            format!("you are root, and HOME ({}) belongs to uid {}", shown(&settings.home), home.uid()),
        )
        .because("an ssh configuration that root writes there stops that user's ssh")
        .hint("sudo -H podbench attach"));
    }
    Ok(())
}

/// Writes a file there, as large as a stanza gets, and removes it.
fn try_to_write(folder: &Path) -> Result<(), Failure> {
    let wrong = |e: io::Error| disk("nothing can be written there", folder, &e);
    let mut file =
        tempfile::Builder::new().prefix(".podbench-try").suffix(".tmp").tempfile_in(folder).map_err(wrong)?;
    file.write_all(&[b'#'; 4096]).map_err(wrong)?;
    file.as_file().sync_data().map_err(wrong)
}

/// Makes a folder of 0700, or checks one that is there. A symbolic link to a folder is fine.
pub(crate) fn folder(path: &Path) -> Result<(), Failure> {
    let wrong = |e: io::Error| disk("the folder can't be made", path, &e);
    match DirBuilder::new().mode(0o700).recursive(true).create(path) {
        Ok(()) => {}
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
        Err(e) => return Err(wrong(e)),
    }
    let meta = std::fs::metadata(path).map_err(wrong)?;
    is_ours(path, &meta)?;
    if meta.mode() & 0o077 != 0 {
        std::fs::set_permissions(path, Permissions::from_mode(0o700)).map_err(wrong)?;
    }
    Ok(())
}

fn is_ours(path: &Path, meta: &std::fs::Metadata) -> Result<(), Failure> {
    if !meta.is_dir() {
        return Err(Failure::new(Kind::Disk, format!("{} is not a folder", shown(path))));
    }
    let uid = rustix::process::geteuid().as_raw();
    if meta.uid() != uid {
        return Err(Failure::new(
            Kind::Disk,
            format!("{} belongs to uid {}, and you are uid {uid}", shown(path), meta.uid()),
        )
        .because("ssh would refuse what is in it"));
    }
    Ok(())
}

/// Held while files are compared and replaced; other podbenches wait.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    pub(crate) fn take(path: &Path, limit: Duration) -> Result<Self, Failure> {
        let wrong = |e: io::Error| disk("the lock can't be taken", path, &e);
        let not_a_file = || {
            Failure::new(Kind::Disk, format!("{} is not a regular file, so it can't be a lock", shown(path)))
        };
        if std::fs::symlink_metadata(path).is_ok_and(|meta| !meta.is_file()) {
            return Err(not_a_file());
        }
        // A pipe that is put there meanwhile would keep an open waiting for its reader.
        let flags = (rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK).bits().cast_signed();
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .custom_flags(flags)
            .open(path)
            .map_err(wrong)?;
        if !file.metadata().map_err(wrong)?.is_file() {
            return Err(not_a_file());
        }
        let start = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { _file: file }),
                Err(TryLockError::Error(e)) => return Err(wrong(e)),
                Err(TryLockError::WouldBlock) if start.elapsed() >= limit => {
                    return Err(Failure::new(
                        Kind::Disk,
                        format!("another podbench has held {} for {} s", shown(path), limit.as_secs()),
                    ));
                }
                Err(TryLockError::WouldBlock) => sleep(Duration::from_millis(20)),
            }
        }
    }
}

/// What is at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Nothing,
    Text(String),
    /// A link, a folder, another encoding, something huge: not written by us.
    Foreign,
}

/// Reads one of our own files. Links aren't followed.
pub(crate) fn read(path: &Path) -> Result<Found, Failure> {
    let wrong = |e: io::Error| disk("it can't be read", path, &e);
    let meta = match std::fs::symlink_metadata(path) {
        Ok(meta) => meta,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Found::Nothing),
        Err(e) => return Err(wrong(e)),
    };
    if !meta.is_file() || meta.len() > LONGEST {
        return Ok(Found::Foreign);
    }
    let raw = std::fs::read(path).map_err(wrong)?;
    Ok(String::from_utf8(raw).map_or(Found::Foreign, Found::Text))
}

/// Puts a whole file in place of what is at `path`. A link there is replaced, not followed; nobody
/// ever sees half a file, and an interrupted run leaves at most a hidden temporary that no
/// `*.conf` matches.
pub(crate) fn replace(path: &Path, content: &str) -> Result<(), Failure> {
    let wrong = |e: io::Error| disk("it can't be written", path, &e);
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(wrong(io::Error::from(io::ErrorKind::InvalidInput)));
    };
    let mut prefix = std::ffi::OsString::from(".");
    prefix.push(name);
    let mut file = tempfile::Builder::new()
        .prefix(&prefix)
        .suffix(".tmp")
        .permissions(Permissions::from_mode(0o600))
        .tempfile_in(folder)
        .map_err(wrong)?;
    file.write_all(content.as_bytes()).map_err(wrong)?;
    // After a power cut an empty known_hosts would be worse than an old one.
    file.as_file().sync_data().map_err(wrong)?;
    file.persist(path).map_err(|e| wrong(e.error))?;
    Ok(())
}

pub(crate) fn disk(what: &str, path: &Path, error: &io::Error) -> Failure {
    Failure::new(Kind::Disk, format!("{}: {what}", shown(path))).because(error.to_string())
}

fn shown(path: &Path) -> String {
    text::escape(&path.to_string_lossy(), 200)
}

#[cfg(test)]
mod tests;
