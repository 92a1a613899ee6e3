//! Which of the user's keys a seat lets in. Keys are read, never made: whoever makes one decides
//! about its passphrase.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use podbench_contract::keys::PublicKey;
use podbench_contract::text;

use super::Identity;
use crate::error::Failure;
use crate::settings::{Settings, plain};

/// Tried in this order, under `~/.ssh`.
const NAMES: [&str; 5] = ["id_ed25519", "id_ecdsa", "id_ed25519_sk", "id_ecdsa_sk", "id_rsa"];

/// The longest file taken for a public key.
const LONGEST: u64 = 16 * 1024;

/// The key to use: `wanted` (`--identity`, private or public), else the first of `NAMES` that has
/// a public half. Where the private half isn't there, an agent holds it, and ssh takes the `.pub`.
///
/// # Errors
/// When there is none, or what should be one isn't.
pub fn find(settings: &Settings, wanted: Option<&Path>) -> Result<Identity, Failure> {
    match wanted {
        Some(path) => named(&settings.cwd.join(from_home(settings, path))),
        None => first(settings),
    }
}

fn first(settings: &Settings) -> Result<Identity, Failure> {
    let folder = settings.home.join(".ssh");
    for name in NAMES {
        let private = folder.join(name);
        if let Some(key) = read(&public_of(&private))? {
            return identity(&private, key);
        }
    }
    let folder_shown = shown(&folder);
    let failure = Failure::input(format!("there is no ssh public key in {folder_shown}"))
        .because(format!("looked for {}, each with .pub; --identity KEY names another", NAMES.join(", ")));
    let lonely = NAMES.into_iter().map(|n| folder.join(n)).find(|p| p.is_file());
    Err(match lonely {
        // A private key whose public half got lost: it can be printed from it.
        Some(private) => failure.hint(restore(&private)),
        None => failure.hint("ssh-keygen -t ed25519"),
    })
}

fn named(path: &Path) -> Result<Identity, Failure> {
    if path.is_dir() {
        return Err(Failure::input(format!("{} is a folder", shown(path)))
            .because("--identity takes a private key with a .pub beside it, or the .pub itself"));
    }
    let is_public = path.extension().is_some_and(|e| e == "pub");
    let private = if is_public { path.with_extension("") } else { path.to_owned() };
    if let Some(key) = read(&public_of(&private))? {
        return identity(&private, key);
    }
    if is_public || !path.exists() {
        return Err(Failure::input(format!("there is no key {}", shown(path)))
            .because("--identity takes a private key with a .pub beside it, or the .pub itself"));
    }
    // A public key may lie in a file of any name.
    match read(path) {
        Ok(Some(key)) => identity(path, key),
        Ok(None) | Err(_) => Err(Failure::input(format!(
            "{} has no public half: there is no {}",
            shown(path),
            shown(&public_of(path))
        ))
        .hint(restore(path))),
    }
}

fn identity(private: &Path, public: PublicKey) -> Result<Identity, Failure> {
    let file = if private.exists() { private.to_owned() } else { public_of(private) };
    Ok(Identity { file: plain(file, "the identity")?, public })
}

fn restore(private: &Path) -> String {
    let (from, to) = (private.to_string_lossy(), public_of(private));
    let (from, to) = (crate::shell::word(&from), crate::shell::word(&to.to_string_lossy()));
    format!("ssh-keygen -y -f {from} > {to}")
}

fn public_of(private: &Path) -> PathBuf {
    let mut name = private.as_os_str().to_owned();
    name.push(".pub");
    PathBuf::from(name)
}

fn from_home(settings: &Settings, path: &Path) -> PathBuf {
    // `--identity=~/x` reaches us unexpanded from most shells.
    path.strip_prefix("~").map_or_else(|_| path.to_owned(), |rest| settings.home.join(rest))
}

/// The key in a file; `None` where there is no file.
fn read(path: &Path) -> Result<Option<PublicKey>, Failure> {
    let unreadable = |e: std::io::Error| {
        Failure::input(format!("the public key {} can't be read", shown(path))).because(e.to_string())
    };
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(unreadable(e)),
    };
    let mut raw = Vec::new();
    file.take(LONGEST).read_to_end(&mut raw).map_err(unreadable)?;
    let raw = String::from_utf8_lossy(&raw);
    // As ssh reads it: the first line that isn't empty or a remark.
    let line = raw.lines().map(str::trim).find(|l| !l.is_empty() && !l.starts_with('#')).unwrap_or_default();
    let no_key = |why: String| Failure::input(format!("{} is not a public key", shown(path))).because(why);
    if line.is_empty() {
        return Err(no_key("it is empty".to_owned()));
    }
    PublicKey::parse(line).map(Some).map_err(|e| no_key(e.to_string()))
}

fn shown(path: &Path) -> String {
    text::escape(&path.to_string_lossy(), 200)
}

#[cfg(test)]
mod tests;
