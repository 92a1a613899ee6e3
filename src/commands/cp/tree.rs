//! Files and folders of this machine's, for `podbench cp`: what there is to copy, and how what has
//! arrived comes to its place.

use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::ssh::sftp::Skipped;

/// What sftp copies of a file, or of a folder with all that is in it.
#[derive(Debug, Default)]
pub(super) struct Tree {
    /// The folders in it, each behind the one that it is in; empty for a file.
    pub(super) folders: Vec<PathBuf>,
    /// The files, relative to it; the empty path for a file.
    pub(super) files: Vec<PathBuf>,
    /// What the files hold.
    pub(super) bytes: u64,
    /// What is neither a file nor a folder: sftp follows no link within a folder.
    pub(super) skipped: Skipped,
}

impl Tree {
    /// Looks at what is there. A link that is itself named is followed.
    ///
    /// # Errors
    /// When a folder can't be read.
    pub(super) fn of(root: &Path) -> io::Result<Self> {
        let mut tree = Self::default();
        let meta = root.metadata()?;
        if meta.is_dir() {
            tree.look(root, Path::new(""))?;
        } else {
            tree.files.push(PathBuf::new());
            tree.bytes = meta.len();
        }
        Ok(tree)
    }

    fn look(&mut self, root: &Path, below: &Path) -> io::Result<()> {
        let folder = root.join(below);
        for entry in std::fs::read_dir(&folder)? {
            let entry = entry?;
            let (kind, path) = (entry.file_type()?, below.join(entry.file_name()));
            if kind.is_dir() {
                self.folders.push(path.clone());
                self.look(root, &path)?;
            } else if kind.is_file() {
                self.bytes += entry.metadata()?.len();
                self.files.push(path);
            } else {
                self.skipped.add(&root.join(path).to_string_lossy());
            }
        }
        Ok(())
    }
}

/// A folder that nothing of is left, whatever comes: beside the destination, on the same disk.
#[derive(Debug)]
pub(super) struct Beside(TempDir);

impl Beside {
    /// # Errors
    /// When none can be made there.
    pub(super) fn new(folder: &Path) -> io::Result<Self> {
        Ok(Self(tempfile::Builder::new().prefix(".podbench-cp").tempdir_in(folder)?))
    }

    /// In no particular place.
    ///
    /// # Errors
    /// When none can be made.
    pub(super) fn scratch() -> io::Result<Self> {
        Ok(Self(tempfile::tempdir()?))
    }

    /// A name in it.
    pub(super) fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // A copy of a folder that may not be written in couldn't be emptied.
        open(self.0.path());
    }
}

fn open(folder: &Path) {
    let _ = writable(folder);
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            open(&entry.path());
        }
    }
}

/// Lets the owner write in a folder; what its mode was.
fn writable(folder: &Path) -> io::Result<std::fs::Permissions> {
    let before = folder.metadata()?.permissions();
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(before.mode() | 0o700))?;
    Ok(before)
}

/// The folders of a tree without its files, with their modes: with it sftp makes those that the other
/// side lacks. Those that are there get their modes too, as with `cp -p`.
///
/// # Errors
/// When it can't be made.
pub(super) fn skeleton(root: &Path, tree: &Tree, at: &Path) -> io::Result<()> {
    std::fs::create_dir(at)?;
    for folder in &tree.folders {
        std::fs::create_dir(at.join(folder))?;
    }
    for folder in tree.folders.iter().rev() {
        std::fs::set_permissions(at.join(folder), root.join(folder).metadata()?.permissions())?;
    }
    std::fs::set_permissions(at, root.metadata()?.permissions())
}

/// What is in the way of a folder that is merged into one: a folder where a file is to be, or the
/// other way round.
pub(super) fn in_the_way(tree: &Tree, to: &Path) -> Option<PathBuf> {
    let file = tree.files.iter().map(|path| to.join(path)).find(|at| at.is_dir());
    let folders = || tree.folders.iter().map(|path| to.join(path));
    file.or_else(|| folders().find(|at| at.symlink_metadata().is_ok() && !at.is_dir()))
}

/// Moves what has arrived to its place; into a folder that is there, file by file.
///
/// # Errors
/// When the disk says no.
pub(super) fn place(part: &Path, to: &Path) -> io::Result<()> {
    if !part.is_dir() {
        return std::fs::rename(part, to);
    }
    // A folder that moves into another one is written to: its `..` changes.
    let mode = writable(part)?;
    if !to.is_dir() {
        std::fs::rename(part, to)?;
        return std::fs::set_permissions(to, mode);
    }
    for entry in std::fs::read_dir(part)? {
        let entry = entry?;
        place(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `a/b/c` with files at each level.
    fn sample(root: &Path) {
        std::fs::create_dir_all(root.join("b/c")).unwrap();
        for (name, text) in [("one", "1"), ("b/two", "22"), ("b/c/three", "333")] {
            std::fs::write(root.join(name), text).unwrap();
        }
        std::os::unix::fs::symlink("one", root.join("link")).unwrap();
        std::os::unix::fs::symlink(".", root.join("b/loop")).unwrap();
        std::fs::set_permissions(root.join("b/c"), std::fs::Permissions::from_mode(0o550)).unwrap();
    }

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_tree_counts_what_sftp_copies_and_names_what_it_does_not() {
        let tmp = tempfile::tempdir().unwrap();
        sample(&tmp.path().join("a"));
        std::os::unix::fs::symlink("a", tmp.path().join("to-a")).unwrap();
        std::os::unix::fs::symlink("a/b/two", tmp.path().join("to-two")).unwrap();
        let of = |name: &str| Tree::of(&tmp.path().join(name)).unwrap();
        for name in ["a", "to-a"] {
            let tree = of(name);
            assert_eq!((tree.files.len(), tree.folders.len(), tree.bytes), (3, 2, 6), "{name}");
            assert_eq!(tree.skipped.paths.len(), 2, "{name}");
        }
        assert_eq!((of("to-two").files.len(), of("to-two").bytes), (1, 2), "the file that it leads to");
        open(tmp.path());
    }

    #[test]
    fn a_merge_replaces_and_adds_files_and_keeps_the_rest() {
        let tmp = tempfile::tempdir().unwrap();
        let beside = Beside::new(tmp.path()).unwrap();
        sample(&beside.at("part"));
        let to = tmp.path().join("to");
        std::fs::create_dir_all(to.join("b")).unwrap();
        std::fs::write(to.join("b/two"), "old").unwrap();
        std::fs::write(to.join("b/other"), "stays").unwrap();
        let tree = Tree::of(&beside.at("part")).unwrap();
        assert_eq!(in_the_way(&tree, &to), None);
        place(&beside.at("part"), &to).unwrap();
        let read = |name: &str| std::fs::read_to_string(to.join(name)).unwrap();
        assert_eq!(
            (read("b/two"), read("b/other"), read("b/c/three")),
            ("22".into(), "stays".into(), "333".into())
        );
        assert_eq!(mode(&to.join("b/c")), 0o550);
        open(&to);
    }

    #[test]
    fn what_is_in_the_way_of_a_merge_is_found_before_anything_moves() {
        let tmp = tempfile::tempdir().unwrap();
        let (from, to) = (tmp.path().join("from"), tmp.path().join("to"));
        sample(&from);
        let tree = Tree::of(&from).unwrap();
        std::fs::create_dir_all(to.join("b/two")).unwrap();
        assert_eq!(in_the_way(&tree, &to), Some(to.join("b/two")));
        std::fs::remove_dir(to.join("b/two")).unwrap();
        std::fs::write(to.join("b/c"), "").unwrap();
        assert_eq!(in_the_way(&tree, &to), Some(to.join("b/c")));
        open(tmp.path());
    }

    #[test]
    fn a_skeleton_has_the_folders_and_their_modes_and_no_file_and_leaves_nothing() {
        let tmp = tempfile::tempdir().unwrap();
        sample(&tmp.path().join("a"));
        let tree = Tree::of(&tmp.path().join("a")).unwrap();
        let beside = Beside::new(tmp.path()).unwrap();
        skeleton(&tmp.path().join("a"), &tree, &beside.at("part")).unwrap();
        let made = Tree::of(&beside.at("part")).unwrap();
        assert_eq!((made.files.len(), made.folders), (0, tree.folders));
        assert_eq!(mode(&beside.at("part").join("b/c")), 0o550);
        drop(beside);
        open(tmp.path());
        assert_eq!(std::fs::read_dir(tmp.path()).unwrap().count(), 1);
    }
}
