//! The two directions of `podbench cp`, and what is known when one of them ends early.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::path::{Path, PathBuf};

use super::tree::{Beside, Tree, in_the_way, place, skeleton};
use super::{Session, ssh};
use crate::error::{Failure, Kind};
use crate::shell::word;
use crate::ssh::run::Host;
use crate::ssh::sftp::{NoTransfer, Sftp, is_absent, is_local_disk, quoted};

/// A seat that is entered.
pub(super) struct Transfer<'a> {
    pub(super) session: &'a Session<'a>,
    pub(super) sftp: &'a Sftp,
    pub(super) host: Host<'a>,
    /// As it was typed.
    pub(super) pod: &'a str,
}

/// The lines that bring something into a seat.
struct Upload {
    lines: Vec<String>,
    to: String,
    part: String,
    /// Of a merge: how many files it has.
    merged: Option<usize>,
}

/// In front of the renames of a merge stand the transfer and the folders.
const MERGE_AHEAD: usize = 2;

impl Upload {
    /// One file, or a folder that is new.
    fn whole(local: &str, is_dir: bool, to: &str, part: &str) -> Self {
        let flags = if is_dir { "-pR" } else { "-p" };
        let lines = vec![
            format!("put {flags} {} {}", quoted(local), quoted(part)),
            format!("rename {} {}", quoted(part), quoted(to)),
        ];
        Self { lines, to: to.to_owned(), part: part.to_owned(), merged: None }
    }

    /// A folder into one that is there: each file is renamed into place. `folders` has the tree's
    /// folders and no file.
    fn merge(
        local: &str,
        tree: &Tree,
        folders: &str,
        (parent, to): (&str, &str),
        part: &str,
    ) -> Result<Self, Failure> {
        let mut lines = vec![
            format!("put -pR {} {}", quoted(local), quoted(part)),
            format!("put -pR {} {}", quoted(folders), quoted(parent)),
        ];
        let within = |base: &str, path: &Path| Ok::<_, Failure>(quoted(&format!("{base}/{}", text(path)?)));
        for file in &tree.files {
            lines.push(format!("rename {} {}", within(part, file)?, within(to, file)?));
        }
        // What is left of it is empty.
        for folder in tree.folders.iter().rev() {
            lines.push(format!("-rmdir {}", within(part, folder)?));
        }
        lines.push(format!("-rmdir {}", quoted(part)));
        Ok(Self { lines, to: to.to_owned(), part: part.to_owned(), merged: Some(tree.files.len()) })
    }

    /// What is known of the destination: `done` lines took effect, and the next one perhaps.
    fn known(&self, done: usize, perhaps: bool) -> String {
        let Self { to, merged, .. } = self;
        match merged {
            None if done > 0 && perhaps => {
                format!("whether it came to {to} isn't known: it was being renamed")
            }
            Some(all) if done > 0 => {
                let sure = done.saturating_sub(MERGE_AHEAD).min(*all);
                let more =
                    if perhaps && done >= MERGE_AHEAD && sure < *all { ", perhaps one more" } else { "" };
                format!("{sure} of its {all} files are in {to}{more}; none is half there")
            }
            None | Some(_) => format!("{to} is as it was"),
        }
    }
}

impl Transfer<'_> {
    /// Is it a folder in the seat?
    fn is_folder(&self, path: &str) -> Result<bool, Failure> {
        match self.sftp.batch(self.host, &[format!("cd {}", quoted(path))]) {
            Ok(_) => Ok(true),
            Err(NoTransfer::Refused { words, .. }) if is_absent(&words) => Ok(false),
            Err(no) => Err(self.failed(path, &no)),
        }
    }

    /// Why it wasn't copied, and what helps.
    fn failed(&self, what: &str, no: &NoTransfer) -> Failure {
        self.session.ui.clear();
        match no {
            NoTransfer::Interrupted { .. } => {
                Failure::new(Kind::Interrupted, "interrupted").hint(self.session.again(self.pod))
            }
            NoTransfer::Lost { words, .. } => {
                Failure::cluster(format!("{what} wasn't copied: {words}")).hint(self.session.again(self.pod))
            }
            NoTransfer::Refused { words, .. } => Failure::cluster(format!("{what} wasn't copied: {words}"))
                .hint(ssh(self.session, self.pod, "")),
        }
    }

    /// From here to the seat; the path it has there.
    pub(super) fn up(&self, local: &Path, tree: &Tree, remote: &str) -> Result<String, Failure> {
        let name = name_of(local)?;
        let from = text(local)?;
        let into = remote.ends_with('/') || self.is_folder(remote)?;
        let folder = remote.trim_end_matches('/');
        let to = if into { format!("{folder}/{name}") } else { remote.to_owned() };
        let is_dir = local.is_dir();
        // Nobody else's, on whichever machine: it may be removed with all that is in it.
        let part = format!("{to}.podbench-{:016x}", RandomState::new().build_hasher().finish());
        // A folder that is there already is merged into, as cp does.
        if !(is_dir && into && self.is_folder(&to)?) {
            self.send(&from, &Upload::whole(&from, is_dir, &to, &part))?;
            return Ok(to);
        }
        let scratch = Beside::scratch().map_err(|e| disk(&std::env::temp_dir(), &e))?;
        let folders = scratch.at(&name);
        skeleton(local, tree, &folders).map_err(|e| disk(&folders, &e))?;
        let parent = if folder.is_empty() { "/" } else { folder };
        self.send(&from, &Upload::merge(&from, tree, &text(&folders)?, (parent, &to), &part)?)?;
        Ok(to)
    }

    fn send(&self, from: &str, upload: &Upload) -> Result<(), Failure> {
        let Err(no) = self.sftp.batch(self.host, &upload.lines) else { return Ok(()) };
        let (done, perhaps) = match &no {
            NoTransfer::Refused { line, .. } => (*line, false),
            NoTransfer::Lost { begun, .. } | NoTransfer::Interrupted { begun } => {
                (begun.saturating_sub(1), *begun > 0)
            }
        };
        let began = done > 0 || perhaps || matches!(no, NoTransfer::Refused { .. });
        let mut failure = match &no {
            NoTransfer::Refused { words, .. } if is_local_disk(words) => {
                Failure::new(Kind::Disk, format!("{from} can't be read: {words}")).hint(free(Path::new(from)))
            }
            NoTransfer::Refused { line: 1.., .. } if upload.merged.is_none() => {
                self.blocked(from, &upload.to).unwrap_or_else(|| self.failed(from, &no))
            }
            _ => self.failed(from, &no),
        };
        failure = failure.because(upload.known(done, perhaps));
        self.session.progress("taking back what had arrived");
        if began && let Err(why) = self.sftp.remove(self.host, &upload.part) {
            let why = if why.is_empty() { why } else { format!(": {why}") };
            failure = failure
                .because(format!("what had arrived may be left in the seat as {}{why}", upload.part))
                .hint(ssh(self.session, self.pod, &removal(&upload.part)));
        }
        self.session.ui.clear();
        Err(failure)
    }

    /// A rename was refused with sftp's `Failure`: what is in its way.
    fn blocked(&self, from: &str, to: &str) -> Option<Failure> {
        let what = if self.is_folder(to).ok()? {
            "folder"
        } else {
            // Only what is there can be listed.
            self.sftp.batch(self.host, &[format!("ls -1 {}", quoted(to))]).ok()?;
            "file"
        };
        let failure = Failure::input(format!("{from} wasn't copied: {to} is a {what} in the seat"));
        Some(failure.hint(ssh(self.session, self.pod, &format!("ls -la {}", word(to)))))
    }

    /// From the seat to here: where it is, and what it is.
    pub(super) fn down(&self, remote: &str, local: &Path) -> Result<(PathBuf, Tree), Failure> {
        let is_dir = self.is_folder(remote)?;
        let name = remote.trim_end_matches('/').rsplit('/').next().filter(|n| !matches!(*n, "" | "." | ".."));
        let into = local.is_dir() || local.as_os_str().to_string_lossy().ends_with('/');
        let to = match (into, name) {
            (true, Some(name)) => local.join(name),
            (true, None) => {
                return Err(Failure::input(format!("{remote} has no name to have in {}", local.display()))
                    .hint(ssh(self.session, self.pod, "pwd; ls -la")));
            }
            (false, _) => local.to_owned(),
        };
        // Without the `.` that was typed.
        let to: PathBuf = to.components().collect();
        let blocked = |at: &Path| {
            let what = if at.is_dir() { "folder" } else { "file" };
            Failure::input(format!("{remote} wasn't copied: {} is a {what}", at.display()))
                .hint(format!("ls -la {}", word(&at.to_string_lossy())))
        };
        if to.symlink_metadata().is_ok() && to.is_dir() != is_dir {
            return Err(blocked(&to));
        }
        let parent = to.parent().unwrap_or(Path::new("/"));
        // Removed with all that is in it, whatever comes.
        let beside = Beside::new(parent).map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound if !parent.is_dir() => {
                let make = format!("mkdir -p {}", word(&parent.to_string_lossy()));
                Failure::new(Kind::Disk, format!("there is no folder {}", parent.display())).hint(make)
            }
            _ => disk(parent, &e),
        })?;
        let part = beside.at("part");
        let flags = if is_dir { "-pR" } else { "-p" };
        let line = format!("get {flags} {} {}", quoted(remote), quoted(&text(&part)?));
        let unchanged = || format!("{} is as it was", to.display());
        let skipped = self.sftp.batch(self.host, &[line]).map_err(|no| match &no {
            NoTransfer::Refused { words, .. } if is_local_disk(words) => {
                Failure::new(Kind::Disk, format!("{} can't be written: {words}", to.display()))
                    .because(unchanged())
                    .hint(free(parent))
            }
            _ => self.failed(remote, &no).because(unchanged()),
        })?;
        let mut tree = Tree::of(&part).map_err(|e| disk(&part, &e))?;
        if let Some(at) = in_the_way(&tree, &to).filter(|_| is_dir) {
            return Err(blocked(&at).because(unchanged()));
        }
        let merged = to.is_dir();
        place(&part, &to).map_err(|e| match merged {
            true => disk(&to, &e).because("some of its files may be there already; none is half there"),
            false => disk(&to, &e),
        })?;
        tree.skipped = skipped;
        Ok((to, tree))
    }
}

/// The line that takes back what had arrived.
fn removal(part: &str) -> String {
    format!("rm -rf -- {}", word(part))
}

fn disk(at: &Path, e: &std::io::Error) -> Failure {
    let folder = at.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("/"));
    Failure::new(Kind::Disk, format!("{} can't be written: {e}", at.display())).hint(free(folder))
}

/// How full the disk is.
fn free(at: &Path) -> String {
    format!("df -h {}", word(&at.to_string_lossy()))
}

fn name_of(path: &Path) -> Result<String, Failure> {
    let name = path.file_name().and_then(|n| n.to_str());
    name.map(str::to_owned).ok_or_else(|| {
        Failure::input(format!("{} has no name to have in the seat", path.display()))
            .hint("podbench cp --help")
    })
}

/// A path that a line of sftp's can hold.
fn text(path: &Path) -> Result<String, Failure> {
    let text = path.to_str().filter(|t| !t.chars().any(char::is_control));
    text.map(str::to_owned).ok_or_else(|| {
        let folder = path.parent().unwrap_or(Path::new("/"));
        Failure::input(format!("{} can't be a word of sftp's: it isn't text on one line", path.display()))
            .hint(format!("ls -la {}", word(&folder.to_string_lossy())))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_known_of_the_destination_is_said() {
        let whole = Upload::whole("/a", false, "/tmp/a", "/tmp/p");
        assert_eq!(whole.lines, ["put -p \"/a\" \"/tmp/p\"", "rename \"/tmp/p\" \"/tmp/a\""]);
        for (done, perhaps) in [(0, false), (0, true), (1, false)] {
            assert_eq!(whole.known(done, perhaps), "/tmp/a is as it was");
        }
        assert!(whole.known(1, true).contains("isn't known"));

        let tree =
            Tree { files: vec!["x".into(), "d/y".into()], folders: vec!["d".into()], ..Tree::default() };
        let merge = Upload::merge("/a", &tree, "/s/a", ("/tmp", "/tmp/a"), "/tmp/p").unwrap();
        assert_eq!(merge.lines.iter().filter(|l| l.starts_with("rename")).count(), 2);
        assert_eq!(merge.lines.last().unwrap(), "-rmdir \"/tmp/p\"");
        assert_eq!(merge.known(0, true), "/tmp/a is as it was");
        assert_eq!(merge.known(1, true), "0 of its 2 files are in /tmp/a; none is half there");
        assert_eq!(
            merge.known(2, true),
            "0 of its 2 files are in /tmp/a, perhaps one more; none is half there"
        );
        assert_eq!(merge.known(3, false), "1 of its 2 files are in /tmp/a; none is half there");
        assert_eq!(merge.known(9, true), "2 of its 2 files are in /tmp/a; none is half there");
    }

    #[test]
    fn a_name_that_no_line_can_hold_is_refused_before_anything_is_sent() {
        let tree = Tree { files: vec!["a\nb".into()], ..Tree::default() };
        assert!(Upload::merge("/a", &tree, "/s/a", ("/tmp", "/tmp/a"), "/tmp/p").is_err());
    }
}
