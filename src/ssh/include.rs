//! Does the user's `~/.ssh/config` read our stanzas, before anything else could set their options?
//! Only looked at, never written: it is the user's file.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::files::Layout;
use crate::settings::Settings;

/// Names that say nothing about the user.
const HARMLESS: [&str; 4] = ["LANG", "LANGUAGE", "COLORTERM", "TERM"];

/// What the user's configuration lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Missing {
    /// The line that belongs first in it.
    pub(crate) line: String,
    /// Where it is there, but not first: a warning about what stands above it.
    pub(crate) shadowed: Option<String>,
}

/// `None` when everything is as it should be.
pub(crate) fn missing(settings: &Settings, layout: &Layout) -> Option<Missing> {
    let shadowed = match look(&read(settings), settings, layout) {
        State::First => return None,
        State::Missing => None,
        State::Shadowed(by) => Some(format!(
            "`{}` stands above podbench's Include line in ~/.ssh/config and decides first: move the line to the top",
            podbench_contract::text::escape(&by, 60)
        )),
    };
    Some(Missing { line: line(settings, layout), shadowed })
}

/// What the user's own configuration gives to every host of theirs, this pod included, and no stanza
/// can take back: variables and ports of this machine, a locale and a terminal aside.
pub(crate) fn given_away(settings: &Settings) -> Option<String> {
    let text = read(settings);
    let mut everywhere = true;
    let mut given: Vec<String> = Vec::new();
    let harmless =
        |name: &String| name.starts_with('-') || name.starts_with("LC_") || HARMLESS.contains(&name.as_str());
    for line in text.lines().map(str::trim) {
        let (keyword, rest) = split(line);
        match keyword.to_ascii_lowercase().as_str() {
            "host" => everywhere = words(rest).iter().any(|w| w == "*"),
            "match" => everywhere = rest.trim().eq_ignore_ascii_case("all"),
            "sendenv" if everywhere => {
                let named = words(rest).into_iter().filter(|name| !harmless(name));
                given.extend(named.map(|name| format!("SendEnv {name}")));
            }
            "remoteforward" if everywhere => given.push(format!("RemoteForward {rest}")),
            _ => {}
        }
    }
    (!given.is_empty()).then(|| {
        format!(
            "~/.ssh/config gives these to every host, the pod included: {}",
            podbench_contract::text::escape(&given.join(", "), 200)
        )
    })
}

/// ssh follows includes so deep.
const DEEPEST: usize = 16;

/// The names under which the hosts of `~/.ssh/config`, and of every file that it includes, look their
/// keys up. `None`: something there can't be read, so nobody knows.
pub(crate) fn host_key_aliases(settings: &Settings) -> Option<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    let mut files = vec![settings.home.join(".ssh").join("config")];
    for _ in 0..DEEPEST {
        let mut below = Vec::new();
        for file in files {
            let raw = match std::fs::metadata(&file) {
                Ok(meta) if meta.is_file() => std::fs::read(&file).ok()?,
                Err(e) if e.kind() != ErrorKind::NotFound => return None,
                // Nothing, a folder, a pipe: ssh reads none of them.
                Ok(_) | Err(_) => continue,
            };
            let text = String::from_utf8_lossy(&raw);
            found.extend(values(&text, "hostkeyalias").into_iter().flatten());
            for word in values(&text, "include").into_iter().flatten() {
                let pattern = in_glob(&path_of(&word, settings).to_string_lossy());
                for path in glob::glob(&pattern).ok()? {
                    below.push(path.ok()?);
                }
            }
        }
        files = below;
    }
    Some(found)
}

/// The words of every line with this keyword, which is lower case.
pub(crate) fn values(text: &str, keyword: &str) -> Vec<Vec<String>> {
    let of = |line: &str| {
        let (word, rest) = split(line.trim());
        word.eq_ignore_ascii_case(keyword).then(|| words(rest))
    };
    text.lines().filter_map(of).collect()
}

/// ssh's `\x` is the library's `[x]`.
fn in_glob(pattern: &str) -> String {
    let mut out = String::new();
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => out.extend(chars.next().map(|c| format!("[{c}]"))),
            c => out.push(c),
        }
    }
    out
}

/// Where an `Include`'s word points.
fn path_of(word: &str, settings: &Settings) -> PathBuf {
    match word.strip_prefix("~/") {
        Some(rest) => settings.home.join(rest),
        None => settings.home.join(".ssh").join(word),
    }
}

/// A config that can't be read is ssh's to complain about.
fn read(settings: &Settings) -> String {
    let file = settings.home.join(".ssh").join("config");
    std::fs::read(file).map(|raw| String::from_utf8_lossy(&raw).into_owned()).unwrap_or_default()
}

/// The line that belongs there.
fn line(settings: &Settings, layout: &Layout) -> String {
    let folder = layout.stanzas();
    folder.strip_prefix(&settings.home).map_or_else(
        |_| format!("Include {}", pattern(&folder.to_string_lossy())),
        |rest| format!("Include {}", pattern(&format!("~/{}", rest.to_string_lossy()))),
    )
}

/// A folder's files as `Include` takes them: quoted for its reader, and escaped for its glob.
fn pattern(folder: &str) -> String {
    let mut escaped = String::new();
    for c in folder.chars() {
        if "*?[]\\".contains(c) {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    let whole = format!("{escaped}/*.conf");
    if whole.contains([' ', '\t', '"', '\'', '\\', '#']) {
        format!("\"{}\"", whole.replace('\\', "\\\\").replace('"', "\\\""))
    } else {
        whole
    }
}

#[derive(Debug, PartialEq, Eq)]
enum State {
    First,
    Missing,
    /// There, but something above it already decided.
    Shadowed(String),
}

fn look(text: &str, settings: &Settings, layout: &Layout) -> State {
    let mut above: Option<String> = None;
    for raw in text.lines() {
        let line = raw.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (keyword, rest) = split(line);
        match keyword.to_ascii_lowercase().as_str() {
            "include" => {
                if words(rest).iter().any(|w| reads_stanzas(w, settings, layout)) {
                    return above.map_or(State::First, State::Shadowed);
                }
            }
            // Options that no stanza sets, and that many people have at the top.
            "ignoreunknown" | "addkeystoagent" | "usekeychain" | "identityagent" => {}
            _ => above = above.or_else(|| Some(line.to_owned())),
        }
    }
    State::Missing
}

/// `Keyword value`, `Keyword=value`, `Keyword = value`.
fn split(line: &str) -> (&str, &str) {
    let end = line.find([' ', '\t', '=']).unwrap_or(line.len());
    let (keyword, rest) = line.split_at(end);
    (keyword, rest.trim_start_matches([' ', '\t', '=']))
}

/// The words of a value, as ssh splits them.
fn words(rest: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quote = None;
    let mut chars = rest.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, quote) {
            ('\\', _) if matches!(chars.peek(), Some('\\' | '"' | '\'')) => word.extend(chars.next()),
            (' ' | '\t', None) => words.push(std::mem::take(&mut word)),
            ('#', None) if word.is_empty() => break,
            ('"' | '\'', None) => quote = Some(c),
            (c, Some(q)) if c == q => quote = None,
            (c, _) => word.push(c),
        }
    }
    words.push(word);
    words.retain(|w| !w.is_empty());
    words
}

fn reads_stanzas(word: &str, settings: &Settings, layout: &Layout) -> bool {
    let unescaped = unescape(&path_of(word, settings).to_string_lossy());
    let path = Path::new(&unescaped);
    let all = path
        .file_name()
        .is_some_and(|n| n == "*.conf" || n == "*" || n == "podbench-*" || n == "podbench-*.conf");
    let folder = path.parent();
    let ours = layout.stanzas();
    all && folder.is_some_and(|f| f == ours || same_file(f, &ours))
}

/// A glob's `\x` is x.
fn unescape(glob: &str) -> String {
    let mut out = String::new();
    let mut chars = glob.chars();
    while let Some(c) = chars.next() {
        out.push(if c == '\\' { chars.next().unwrap_or(c) } else { c });
    }
    out
}

/// A link to the folder is the folder.
fn same_file(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

#[cfg(test)]
mod tests;
