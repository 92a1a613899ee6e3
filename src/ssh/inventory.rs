//! What podbench has written on this disk, and how it is taken back: stanzas, their lines in
//! known_hosts, their control sockets, and what an interrupted run left. A file without the line that
//! says whose it is isn't ours, and isn't touched.

use std::collections::BTreeSet;
use std::fs::FileType;
use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use podbench_contract::ids::SeatName;

use super::alias::{Owner, is_alias};
use super::files::{self, Found, Layout, disk};
use super::{include, known_hosts};
use crate::error::Failure;
use crate::settings::{Cluster, Settings};

/// A stanza on this disk that podbench wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stanza {
    /// What `ssh` is told.
    pub alias: String,
    /// The file.
    pub file: PathBuf,
    /// Where it leads.
    pub owner: Owner,
    /// Its control socket, there or not.
    pub socket: Option<PathBuf>,
}

impl Stanza {
    /// Does it lead to this seat of this pod? Whatever the context is called: a UID is one pod's.
    #[must_use]
    pub fn leads_to(&self, uid: &str, seat: &str) -> bool {
        self.owner.pod_uid == uid && self.owner.seat == seat
    }

    /// Is it about a pod of this name, in the same context, kubeconfig and namespace?
    #[must_use]
    pub fn is_at(&self, place: &Place, namespace: &str, pod: &str) -> bool {
        self.is_in(place) && self.owner.namespace == namespace && self.owner.pod == pod
    }

    /// Is it about this context of this kubeconfig?
    #[must_use]
    pub fn is_in(&self, place: &Place) -> bool {
        self.owner.context == place.context && self.owner.kubeconfig == place.kubeconfig
    }
}

/// Which cluster, as a stanza spells it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The context's name.
    pub context: String,
    /// The kubeconfig files.
    pub kubeconfig: String,
}

impl Place {
    /// This run's.
    ///
    /// # Errors
    /// When a path can't be written on a line.
    pub fn new(settings: &Settings, cluster: &Cluster, context: &str) -> Result<Self, Failure> {
        let kubeconfig = super::kubeconfig(settings, cluster)?;
        Ok(Self { context: context.to_owned(), kubeconfig })
    }
}

/// The stanzas on this disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stanzas {
    /// Every one of ours, by alias.
    pub known: Vec<Stanza>,
    /// What couldn't be read, and why: one line each. ssh can't read it either.
    pub unread: Vec<String>,
}

/// Reads them.
#[must_use]
pub fn stanzas(settings: &Settings) -> Stanzas {
    let layout = Layout::new(settings);
    let mut found = Stanzas::default();
    let files = entries(&layout.stanzas()).unwrap_or_else(|failure| {
        found.unread.push(one_line(&failure));
        Vec::new()
    });
    for (path, _) in files {
        let Some(alias) = path.file_name().and_then(|n| n.to_str()).and_then(|n| n.strip_suffix(".conf"))
        else {
            continue;
        };
        if !is_alias(alias) {
            continue;
        }
        let text = match files::read(&path) {
            Ok(Found::Text(text)) => text,
            Ok(Found::Foreign | Found::Nothing) => continue,
            Err(failure) => {
                found.unread.push(one_line(&failure));
                continue;
            }
        };
        let Some(owner) = Owner::of(&text) else { continue };
        let socket = socket_of(&text, &layout.sockets());
        found.known.push(Stanza { alias: alias.to_owned(), file: path, owner, socket });
    }
    found.known.sort_by(|a, b| a.alias.cmp(&b.alias));
    found
}

fn one_line(failure: &Failure) -> String {
    std::iter::once(&failure.message).chain(&failure.causes).cloned().collect::<Vec<_>>().join(": ")
}

/// What was removed, or would be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Files: stanzas, sockets, left-over temporaries.
    pub files: Vec<PathBuf>,
    /// Names of lines in known_hosts.
    pub known_hosts: Vec<String>,
}

impl Taken {
    /// Was there nothing?
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.files.is_empty() && self.known_hosts.is_empty()
    }
}

/// Is something removed, or only told?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Told.
    DryRun,
    /// Removed.
    Remove,
}

/// Takes these stanzas back, each with its line in known_hosts and its control socket, under the lock
/// that `attach` writes under. One that leads elsewhere by now stays. `taken` is told as it goes.
///
/// # Errors
/// When the disk says no. A known_hosts that nobody can read keeps everything where it is.
pub fn take_back(
    settings: &Settings,
    stanzas: &[Stanza],
    mode: Mode,
    taken: &mut Taken,
) -> Result<(), Failure> {
    if stanzas.is_empty() {
        return Ok(());
    }
    let layout = Layout::new(settings);
    let lock = lock(settings, &layout, mode)?;
    layout.known()?;
    let mut names: Vec<String> = Vec::new();
    for stanza in stanzas {
        let same = matches!(files::read(&stanza.file)?, Found::Text(text) if Owner::of(&text).as_ref() == Some(&stanza.owner));
        if !same {
            continue;
        }
        names.push(stanza.owner.host_key_alias());
        remove(&stanza.file, mode, taken)?;
        if let Some(socket) = stanza.socket.as_ref().filter(|s| is_socket(s)) {
            remove(socket, mode, taken)?;
        }
    }
    // A second alias of the same seat keeps the line.
    let still = self::stanzas(settings).known;
    let gone = |s: &&Stanza| !taken.files.contains(&s.file);
    let kept: Vec<String> = still.iter().filter(gone).map(|s| s.owner.host_key_alias()).collect();
    names.retain(|name| !kept.contains(name));
    forget(&layout, &names, mode, taken)?;
    drop(lock);
    Ok(())
}

/// The lock that whoever writes holds; a dry run writes nothing.
fn lock(settings: &Settings, layout: &Layout, mode: Mode) -> Result<Option<files::Lock>, Failure> {
    match mode {
        Mode::DryRun => Ok(None),
        Mode::Remove => layout.open(settings).map(Some),
    }
}

/// Removes files of ours that are about pods that are gone.
///
/// # Errors
/// When the disk says no.
pub fn remove_all(
    settings: &Settings,
    files: &[PathBuf],
    mode: Mode,
    taken: &mut Taken,
) -> Result<(), Failure> {
    if files.is_empty() {
        return Ok(());
    }
    let lock = lock(settings, &Layout::new(settings), mode)?;
    for file in files {
        remove(file, mode, taken)?;
    }
    drop(lock);
    Ok(())
}

/// Removes what leads nowhere: lines of known_hosts without a stanza, control sockets that nobody
/// listens on, temporaries of interrupted runs.
///
/// # Errors
/// When the disk says no.
pub fn sweep(settings: &Settings, mode: Mode, without: &[Stanza], taken: &mut Taken) -> Result<(), Failure> {
    let layout = Layout::new(settings);
    if !layout.root.exists() {
        return Ok(());
    }
    let lock = lock(settings, &layout, mode)?;
    let known = layout.known()?;
    // Where something can't be read, nobody knows which lines are used, and all of them stay.
    let used = used_lines(settings, &layout, without);
    let names: Vec<String> = known
        .lines()
        .filter_map(|line| line.split(' ').next())
        .filter(|name| is_host_key_alias(name))
        .filter(|name| used.as_ref().is_some_and(|used| !used.contains(*name)))
        .filter(|name| !without.iter().any(|s| s.owner.host_key_alias() == *name))
        .map(str::to_owned)
        .collect();
    forget(&layout, &names, mode, taken)?;
    for (path, kind) in entries(&layout.sockets())? {
        let ours = path.file_name().and_then(|n| n.to_str()).is_some_and(is_socket_name);
        if ours
            && kind.is_socket()
            && is_dead(&path)
            && !without.iter().any(|s| s.socket.as_ref() == Some(&path))
        {
            remove(&path, mode, taken)?;
        }
    }
    for folder in [layout.root.clone(), layout.stanzas(), layout.sockets(), layout.state()] {
        for (path, kind) in entries(&folder)? {
            // Whoever writes holds the lock, and so do we.
            let ours = path.file_name().and_then(|n| n.to_str()).is_some_and(is_temporary);
            if ours && kind.is_file() {
                remove(&path, mode, taken)?;
            }
        }
    }
    drop(lock);
    Ok(())
}

/// The names under which any host of the user's looks its key up. A stanza that somebody put there by
/// hand (`--print-config`) has no line that says whose it is, and may be in a file of their own that
/// `~/.ssh/config` includes. `None`: something can't be read.
fn used_lines(settings: &Settings, layout: &Layout, without: &[Stanza]) -> Option<BTreeSet<String>> {
    let mut used = include::host_key_aliases(settings)?;
    for (path, _) in entries(&layout.stanzas()).ok()? {
        if without.iter().any(|s| s.file == path) {
            continue;
        }
        if let Found::Text(text) = files::read(&path).ok()? {
            used.extend(include::values(&text, "hostkeyalias").into_iter().flatten());
        }
    }
    Some(used)
}

/// Does somebody listen on a stanza's control socket? `None`: there is no socket.
#[must_use]
pub fn is_connected(stanza: &Stanza) -> Option<bool> {
    let socket = stanza.socket.as_ref().filter(|s| is_socket(s))?;
    Some(!is_dead(socket))
}

/// The command that enters it: with `-F` where `~/.ssh/config` doesn't read our stanzas.
#[must_use]
pub fn command(settings: &Settings, alias: &str, config: &str) -> String {
    match super::include::missing(settings, &Layout::new(settings)) {
        None => format!("ssh {alias}"),
        Some(_) => format!("ssh -F {} {alias}", crate::shell::word(config)),
    }
}

fn forget(layout: &Layout, names: &[String], mode: Mode, taken: &mut Taken) -> Result<(), Failure> {
    let old = layout.known()?;
    let mut new = old.clone();
    for name in names {
        let less = known_hosts::without(&new, name);
        if less != new && !taken.known_hosts.contains(name) {
            taken.known_hosts.push(name.clone());
        }
        new = less;
    }
    if mode == Mode::Remove && new != old {
        files::replace(&layout.known_hosts(), &new)?;
    }
    Ok(())
}

fn remove(path: &Path, mode: Mode, taken: &mut Taken) -> Result<(), Failure> {
    if mode == Mode::Remove {
        match std::fs::remove_file(path) {
            Ok(()) => {}
            // ssh's own master removes its socket when its connection ends.
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(e) => return Err(disk("it can't be removed", path, &e)),
        }
    }
    taken.files.push(path.to_owned());
    Ok(())
}

/// A folder's entries by name; none where there is no folder.
fn entries(folder: &Path) -> Result<Vec<(PathBuf, FileType)>, Failure> {
    let wrong = |e: io::Error| disk("the folder can't be read", folder, &e);
    let listed = match std::fs::read_dir(folder) {
        Ok(listed) => listed,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(wrong(e)),
    };
    let mut found = Vec::new();
    for entry in listed {
        let entry = entry.map_err(wrong)?;
        found.push((entry.path(), entry.file_type().map_err(wrong)?));
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(found)
}

fn is_socket(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|meta| meta.file_type().is_socket())
}

/// Only a refused connection says that nobody listens.
fn is_dead(socket: &Path) -> bool {
    match std::os::unix::net::UnixStream::connect(socket) {
        Ok(_) => false,
        Err(e) => e.kind() == io::ErrorKind::ConnectionRefused,
    }
}

/// The stanza's control socket, where it is one in our own folder.
fn socket_of(stanza: &str, folder: &Path) -> Option<PathBuf> {
    let value = stanza.lines().find_map(|l| l.trim_start().strip_prefix("ControlPath "))?;
    let path = PathBuf::from(super::quote::unpath(value));
    let name = path.file_name()?.to_str()?;
    (path.parent() == Some(folder) && is_socket_name(name)).then_some(path)
}

/// Twelve hexadecimal digits; while ssh makes one, a dot and letters hang on it.
fn is_socket_name(name: &str) -> bool {
    let (name, tail) = name.split_once('.').unwrap_or((name, ""));
    name.len() == 12
        && name.bytes().all(|b| b.is_ascii_hexdigit())
        && tail.bytes().all(|b| b.is_ascii_alphanumeric())
}

/// `podbench-UID-N`.
fn is_host_key_alias(name: &str) -> bool {
    let Some((uid, number)) = name.strip_prefix(SeatName::PREFIX).and_then(|rest| rest.rsplit_once('-'))
    else {
        return false;
    };
    is_uid(uid) && number.parse::<u32>().is_ok()
}

/// As the API server makes them.
fn is_uid(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    parts.iter().map(|p| p.len()).eq([8, 4, 4, 4, 12])
        && parts.iter().all(|p| p.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// As `files::replace` and `files::try_to_write` name them: a dot, what it is for, six letters, `.tmp`.
fn is_temporary(name: &str) -> bool {
    let Some(inner) = name.strip_prefix('.').and_then(|n| n.strip_suffix(".tmp")) else { return false };
    let Some(at) = inner.len().checked_sub(6).filter(|at| inner.is_char_boundary(*at)) else { return false };
    let (what, random) = inner.split_at(at);
    random.bytes().all(|b| b.is_ascii_alphanumeric())
        && (what == "known_hosts"
            || what == "podbench-try"
            || what.strip_suffix(".json").is_some_and(is_uid)
            || what.strip_suffix(".conf").is_some_and(is_alias))
}

#[cfg(test)]
#[path = "inventory_tests.rs"]
mod tests;
