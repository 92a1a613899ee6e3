//! `~/.podbench/config.toml`: defaults for every run, and for runs in one context. What is on the
//! command line or in the environment counts more. A key that nobody knows is refused: a default
//! that is silently not taken is worse than none.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Display;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use podbench_contract::rung::Rung;
use podbench_contract::text;
use serde::Deserialize;
use toml::Spanned;

use crate::cli::values;
use crate::error::{Failure, Kind};

/// A file of ours is never longer: bytes.
const LONGEST: u64 = 1 << 20;

/// What the file says; empty where there is none.
#[derive(Clone, Debug, Default)]
pub struct Config {
    file: PathBuf,
    defaults: Defaults,
    contexts: BTreeMap<String, Defaults>,
}

/// Defaults, of all runs or of one context's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Defaults {
    /// The seat's image.
    pub image: Option<String>,
    /// `--max-rung`.
    pub max_rung: Option<Rung>,
    /// Containers that are no application, beside those that podbench knows.
    pub sidecars: Vec<String>,
    /// `--spec-patch`: a file.
    pub spec_patch: Option<PathBuf>,
    /// The kubectl to run: a path, or a name to find on PATH.
    pub kubectl: Option<OsString>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct File {
    defaults: Table,
    context: BTreeMap<String, Table>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct Table {
    image: Option<Spanned<String>>,
    max_rung: Option<Spanned<String>>,
    sidecars: Vec<Spanned<String>>,
    spec_patch: Option<Spanned<String>>,
    kubectl: Option<Spanned<String>>,
}

impl Config {
    /// Reads `config.toml` in this folder.
    ///
    /// # Errors
    /// When it can't be read, others may write it (it names a program to run), or something in it
    /// isn't what it should be.
    pub fn read(folder: &Path) -> Result<Self, Failure> {
        let file = folder.join("config.toml");
        let shown = text::escape(&file.to_string_lossy(), 200);
        let wrong = |e: std::io::Error| {
            Failure::new(Kind::Disk, format!("{shown} can't be read")).because(e.to_string())
        };
        let meta = match std::fs::metadata(&file) {
            Ok(meta) => meta,
            Err(e)
                if matches!(e.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) =>
            {
                return Ok(Self::default());
            }
            Err(e) => return Err(wrong(e)),
        };
        if !meta.is_file() || meta.len() > LONGEST {
            return Err(Failure::input(format!("{shown} isn't a file of podbench's settings")));
        }
        let me = rustix::process::geteuid().as_raw();
        let word = crate::shell::word(&file.to_string_lossy());
        let not_mine = |how: String, remedy: String| {
            Err(Failure::input(how)
                .because("it names a program that podbench runs, so it is only read where it is yours alone to write")
                .hint(remedy))
        };
        if meta.uid() != me && meta.uid() != 0 {
            let how = format!("{shown} belongs to uid {}, and you are uid {me}", meta.uid());
            return not_mine(how, format!("sudo chown {me} {word}"));
        }
        if meta.mode() & 0o022 != 0 {
            return not_mine(format!("others may write {shown}"), format!("chmod go-w {word}"));
        }
        let raw = std::fs::read(&file).map_err(wrong)?;
        match String::from_utf8(raw) {
            Ok(text) => Self::parse(file, &text),
            Err(e) => {
                let valid = e.utf8_error().valid_up_to();
                let text = String::from_utf8_lossy(e.as_bytes());
                Err(Source { file: &file, text: &text }.wrong(valid, "it isn't text (UTF-8) from there on"))
            }
        }
    }

    fn parse(file: PathBuf, text: &str) -> Result<Self, Failure> {
        let at = Source { file: &file, text };
        let raw: File = toml::from_str(text)
            .map_err(|e| at.wrong(e.span().map_or(0, |span| span.start), e.message().trim()))?;
        let defaults = at.defaults(raw.defaults)?;
        let contexts = raw.context.into_iter().map(|(name, table)| Ok((name, at.defaults(table)?)));
        let contexts = contexts.collect::<Result<_, Failure>>()?;
        Ok(Self { file, defaults, contexts })
    }

    /// What counts in a context; `None`: it isn't known yet, or there is none.
    #[must_use]
    pub fn of(&self, context: Option<&str>) -> Defaults {
        let mut all = self.defaults.clone();
        if let Some(own) = context.and_then(|name| self.contexts.get(name)) {
            all.image = own.image.clone().or(all.image);
            all.max_rung = own.max_rung.or(all.max_rung);
            all.spec_patch = own.spec_patch.clone().or(all.spec_patch);
            all.kubectl = own.kubectl.clone().or(all.kubectl);
            all.sidecars.extend(own.sidecars.iter().cloned());
        }
        all
    }

    /// The file.
    #[must_use]
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Does it name an image anywhere?
    #[must_use]
    pub fn names_an_image(&self) -> bool {
        std::iter::once(&self.defaults).chain(self.contexts.values()).any(|d| d.image.is_some())
    }

    /// What counts in a context, a line for each default: for `-v`.
    #[must_use]
    pub fn lines(&self, context: &str) -> Vec<String> {
        let own = self.contexts.get(context);
        let whence =
            |is_own: bool| if is_own { format!("[context.{context:?}]") } else { "[defaults]".to_owned() };
        let line = |key: &str, value: String, is_own: bool| {
            format!("{}: {key} = {value}, from {}", self.file.display(), whence(is_own))
        };
        let all = self.of(Some(context));
        let mut lines = Vec::new();
        if let Some(image) = &all.image {
            lines.push(line("image", format!("{image:?}"), own.is_some_and(|o| o.image.is_some())));
        }
        if let Some(rung) = &all.max_rung {
            lines.push(line("max-rung", format!("\"{rung}\""), own.is_some_and(|o| o.max_rung.is_some())));
        }
        if let Some(patch) = &all.spec_patch {
            lines.push(line("spec-patch", format!("{patch:?}"), own.is_some_and(|o| o.spec_patch.is_some())));
        }
        if let Some(kubectl) = &all.kubectl {
            lines.push(line("kubectl", format!("{kubectl:?}"), own.is_some_and(|o| o.kubectl.is_some())));
        }
        for (is_own, table) in [(false, Some(&self.defaults)), (true, own)] {
            if let Some(table) = table.filter(|t| !t.sidecars.is_empty()) {
                lines.push(line("sidecars", format!("{:?}", table.sidecars), is_own));
            }
        }
        lines
    }
}

/// The text, to say where in it something is wrong.
struct Source<'a> {
    file: &'a Path,
    text: &'a str,
}

impl Source<'_> {
    fn wrong(&self, at: usize, why: impl Display) -> Failure {
        let line = self.text.get(..at).unwrap_or_default().matches('\n').count() + 1;
        let file = text::escape(&self.file.to_string_lossy(), 200);
        let why = text::escape(&why.to_string(), 500);
        Failure::input(format!("{file}, line {line}: {why}"))
            .because("the cluster wasn't touched")
            .hint(format!("${{EDITOR:-vi}} {}", crate::shell::word(&self.file.to_string_lossy())))
    }

    fn value<T>(
        &self,
        key: &str,
        value: Option<Spanned<String>>,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<T>, Failure> {
        let Some(value) = value else { return Ok(None) };
        let at = value.span().start;
        read(value.get_ref())
            .map(Some)
            .map_err(|why| self.wrong(at, format!("{key} {:?}: {why}", value.get_ref())))
    }

    fn defaults(&self, table: Table) -> Result<Defaults, Failure> {
        let sidecars = table.sidecars.into_iter().filter_map(|name| {
            self.value("sidecars", Some(name), |raw| {
                if crate::pod::is_dns(raw) {
                    Ok(raw.to_owned())
                } else {
                    Err("no container is called that".to_owned())
                }
            })
            .transpose()
        });
        Ok(Defaults {
            sidecars: sidecars.collect::<Result<_, _>>()?,
            image: self.value("image", table.image, values::image)?,
            max_rung: self.value("max-rung", table.max_rung, |raw| {
                raw.parse().map_err(|_| format!("it is one of {}", Rung::ALL.map(Rung::as_str).join(", ")))
            })?,
            spec_patch: self.value("spec-patch", table.spec_patch, |raw| {
                let folder = self.file.parent().unwrap_or(Path::new("/"));
                values::text(raw).map(|file| folder.join(file))
            })?,
            kubectl: self.value("kubectl", table.kubectl, |raw| {
                // A relative path would be another program in every folder.
                if raw.contains('/') && !raw.starts_with('/') {
                    return Err("it is an absolute path, or a name to find on PATH".to_owned());
                }
                values::text(raw).map(OsString::from)
            })?,
        })
    }
}

#[cfg(test)]
mod tests;
