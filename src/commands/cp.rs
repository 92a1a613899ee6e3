//! `podbench cp`: files between this machine and the seat. What arrives is whole or isn't there: a
//! file, and a folder that is new, is written beside its destination and renamed.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::enter::{self, Here, Way};
use super::{Answer, Done, Session};
use crate::cli::{self, ClusterArgs};
use crate::error::{Failure, Kind};
use crate::ssh::sftp::{NoTransfer, Sftp, quoted};

/// One side.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Side {
    /// Here.
    Local(String),
    /// In a seat.
    Seat { namespace: Option<String>, pod: String, path: String },
}

/// `[NAMESPACE/]POD:PATH`, or a local path.
fn side(raw: &str) -> Side {
    let local = || Side::Local(raw.to_owned());
    if raw.starts_with(['.', '/', '~']) {
        return local();
    }
    let Some((pod, path)) = raw.split_once(':') else { return local() };
    match pod.split('/').collect::<Vec<_>>().as_slice() {
        [pod] if !pod.is_empty() => {
            Side::Seat { namespace: None, pod: (*pod).to_owned(), path: path.to_owned() }
        }
        [namespace, pod] if !namespace.is_empty() && !pod.is_empty() => Side::Seat {
            namespace: Some((*namespace).to_owned()),
            pod: (*pod).to_owned(),
            path: path.to_owned(),
        },
        _ => local(),
    }
}

/// The two sides as they are typed, with this pod in place of the one that was.
pub(super) fn sides(args: &cli::Cp, pod: &str) -> String {
    let typed = [&args.source, &args.destination].map(|raw| match side(raw) {
        // Behind a dash it would be an option.
        Side::Local(local) if local.starts_with('-') => crate::shell::word(&format!("./{local}")),
        Side::Local(local) => crate::shell::word(&local),
        Side::Seat { namespace, path, .. } => {
            let namespace = namespace.map_or_else(String::new, |n| format!("{n}/"));
            crate::shell::word(&format!("{namespace}{pod}:{path}"))
        }
    });
    typed.join(" ")
}

/// What is to be done.
pub(super) struct Copy {
    local: PathBuf,
    pod: String,
    path: String,
    up: bool,
}

/// Reads the two sides; the namespace of the one in a seat goes to the cluster's flags.
///
/// # Errors
/// When not exactly one is in a seat, or a path can't be a word of sftp's.
pub(super) fn parse(
    args: &cli::Cp,
    cluster: &ClusterArgs,
    cwd: &Path,
) -> Result<(Copy, ClusterArgs), Failure> {
    let (up, local, seat) = match (side(&args.source), side(&args.destination)) {
        (Side::Local(local), seat @ Side::Seat { .. }) => (true, local, seat),
        (seat @ Side::Seat { .. }, Side::Local(local)) => (false, local, seat),
        (Side::Local(_), Side::Local(_)) => {
            return Err(Failure::input("neither side is in a pod")
                .because("one of the two is [NAMESPACE/]POD:PATH")
                .hint(format!("podbench cp {} POD:/tmp/", crate::shell::word(&args.source))));
        }
        (Side::Seat { .. }, Side::Seat { .. }) => {
            return Err(Failure::input("both sides are in a pod")
                .because("a local path that has a colon is written ./a:b")
                .hint(format!("podbench cp {} .", crate::shell::word(&args.source))));
        }
    };
    let Side::Seat { namespace, pod, path } = seat else {
        return Err(Failure::new(Kind::Bug, "a side of cp is nowhere"));
    };
    let mut cluster = cluster.clone();
    match (&namespace, &cluster.namespace) {
        (Some(here), Some(flag)) if here != flag => {
            return Err(Failure::input(format!("{here}/{pod} and -n {flag} name two namespaces")));
        }
        (Some(here), _) => cluster.namespace = Some(here.clone()),
        (None, _) => {}
    }
    if local.is_empty() || (!up && path.is_empty()) {
        return Err(Failure::input("a path is empty"));
    }
    Ok((Copy { local: cwd.join(local), pod, path, up }, cluster))
}

/// Enters the seat and copies.
///
/// # Errors
/// When there is no way in, or the copy didn't come about; nothing of it is at the destination then.
pub(super) fn run(
    args: &cli::Cp,
    session: &Session<'_>,
    copy: &Copy,
    here: &Here,
    sftp: &Sftp,
) -> Result<Done, Failure> {
    if copy.up && std::fs::symlink_metadata(&copy.local).is_err() {
        return Err(Failure::input(format!("there is no {}", copy.local.display())));
    }
    let asked = (Some(copy.pod.as_str()), args.target.as_deref());
    let way = enter::enter(&args.seat, asked, !args.no_prompt, session, here)?;
    let to = Transfer { session, sftp, way: &way };
    let remote = match copy.path.strip_prefix("~/").unwrap_or(&copy.path) {
        "" | "~" => ".",
        path => path,
    };
    session.progress(&format!("copying {}", args.source));
    let (from, to, landed) = if copy.up {
        let to = to.up(&copy.local, remote)?;
        (copy.local.display().to_string(), format!("{}:{to}", copy.pod), copy.local.clone())
    } else {
        let landed = to.down(remote, &copy.local)?;
        (format!("{}:{remote}", copy.pod), landed.display().to_string(), landed)
    };
    session.ui.clear();
    let (files, bytes) = size(&landed);
    let value = json!({
        "schema": "podbench/cp/v1", "from": from, "to": to, "files": files, "bytes": bytes,
        "calls": session.calls(),
    });
    Ok(Answer::Value(value, String::new()).into())
}

struct Transfer<'a> {
    session: &'a Session<'a>,
    sftp: &'a Sftp,
    way: &'a Way,
}

impl Transfer<'_> {
    fn batch(&self, lines: &[String]) -> Result<(), NoTransfer> {
        self.sftp.batch(self.way.host(), lines)
    }

    /// Is it a folder in the seat? ssh's own trouble shows in the transfer that follows.
    fn is_folder(&self, path: &str) -> Result<bool, Failure> {
        match self.batch(&[format!("cd {}", quoted(path))]) {
            Ok(()) => Ok(true),
            Err(NoTransfer::Said(_)) => Ok(false),
            Err(NoTransfer::Interrupted) => Err(Failure::new(Kind::Interrupted, "interrupted")),
        }
    }

    fn failed(&self, what: &str, no: NoTransfer) -> Failure {
        match no {
            NoTransfer::Interrupted => Failure::new(Kind::Interrupted, "interrupted"),
            NoTransfer::Said(words) => Failure::cluster(format!("{what} wasn't copied: {words}"))
                .because(
                    "nothing of it is at the destination, unless it was merged into a folder that was there",
                )
                .hint(format!(
                    "ssh -F {} {}",
                    crate::shell::word(&self.way.host().config.to_string_lossy()),
                    self.way.host().alias
                )),
        }
    }

    /// From here to the seat; the path it has there.
    fn up(&self, local: &Path, remote: &str) -> Result<String, Failure> {
        let name = name_of(local)?;
        let text = word(local)?;
        let into = remote.ends_with('/') || self.is_folder(remote)?;
        let to = if into { format!("{}/{name}", remote.trim_end_matches('/')) } else { remote.to_owned() };
        let is_dir = local.is_dir();
        // A folder that is there already is merged into, as cp does.
        let merge = is_dir && self.is_folder(&to)?;
        let part = format!("{to}.podbench-{}", std::process::id());
        let lines = if merge {
            let parent = to.strip_suffix(&format!("/{name}")).filter(|_| into);
            let Some(parent) = parent else {
                return Err(Failure::input(format!("{to} is a folder in the seat")));
            };
            vec![format!(
                "put -pR {} {}",
                quoted(&text),
                quoted(if parent.is_empty() { "/" } else { parent })
            )]
        } else {
            let flags = if is_dir { "-pR" } else { "-p" };
            vec![
                format!("put {flags} {} {}", quoted(&text), quoted(&part)),
                format!("rename {} {}", quoted(&part), quoted(&to)),
            ]
        };
        self.batch(&lines).map(|()| to).map_err(|no| {
            if !merge && !is_dir {
                self.sftp.tidy(self.way.host(), &[format!("rm {}", quoted(&part))]);
            }
            let failure = self.failed(&text, no);
            if is_dir && !merge {
                failure.because(format!("what had arrived is in the seat's {part}"))
            } else {
                failure
            }
        })
    }

    /// From the seat to here; where it is.
    fn down(&self, remote: &str, local: &Path) -> Result<PathBuf, Failure> {
        let is_dir = self.is_folder(remote)?;
        let name = remote.trim_end_matches('/').rsplit('/').next().filter(|n| !matches!(*n, "" | "." | ".."));
        let into = local.is_dir() || local.as_os_str().to_string_lossy().ends_with('/');
        let to = match (into, name) {
            (true, Some(name)) => local.join(name),
            (true, None) => {
                return Err(Failure::input(format!("{remote} has no name to have in {}", local.display())));
            }
            (false, _) => local.to_owned(),
        };
        let parent = to.parent().unwrap_or(Path::new("/")).to_owned();
        let wrong = |e: std::io::Error| {
            Failure::new(Kind::Disk, format!("{} can't be written", to.display())).because(e.to_string())
        };
        if is_dir && to.is_dir() {
            let line = format!("get -pR {} {}", quoted(remote), quoted(&word(&parent)?));
            return self.batch(&[line]).map(|()| to).map_err(|no| self.failed(remote, no));
        }
        // Removed with all that is in it, whatever comes.
        let beside = tempfile::Builder::new().prefix(".podbench-cp").tempdir_in(&parent).map_err(wrong)?;
        let part = beside.path().join("part");
        let flags = if is_dir { "-pR" } else { "-p" };
        let line = format!("get {flags} {} {}", quoted(remote), quoted(&word(&part)?));
        self.batch(&[line]).map_err(|no| self.failed(remote, no))?;
        std::fs::rename(&part, &to).map_err(wrong)?;
        self.session.ui.clear();
        Ok(to)
    }
}

fn name_of(path: &Path) -> Result<String, Failure> {
    let name = path.file_name().and_then(|n| n.to_str());
    name.map(str::to_owned).ok_or_else(|| Failure::input(format!("{} has no name", path.display())))
}

/// A path that a line of sftp's can hold.
fn word(path: &Path) -> Result<String, Failure> {
    let text = path.to_str().filter(|t| !t.chars().any(char::is_control));
    text.map(str::to_owned).ok_or_else(|| {
        Failure::input(format!("{} can't be a word of sftp's: it isn't text on one line", path.display()))
    })
}

/// Files and bytes of a tree.
fn size(path: &Path) -> (u64, u64) {
    let Ok(meta) = std::fs::symlink_metadata(path) else { return (0, 0) };
    if meta.is_file() {
        return (1, meta.len());
    }
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    entries.filter(|_| meta.is_dir()).map(|e| size(&e.path())).fold((0, 0), |(f, b), (n, m)| (f + n, b + m))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seat(namespace: Option<&str>, pod: &str, path: &str) -> Side {
        Side::Seat { namespace: namespace.map(str::to_owned), pod: pod.into(), path: path.into() }
    }

    #[test]
    fn a_side_is_spelled_as_kubectl_cp_spells_it() {
        assert_eq!(side("api:/tmp/x"), seat(None, "api", "/tmp/x"));
        assert_eq!(side("shop/api:a:b"), seat(Some("shop"), "api", "a:b"));
        assert_eq!(side("api:"), seat(None, "api", ""));
        for local in ["x", "./a:b", "/a:b", "../a:b", "a/b/c:d", ":x", "~/a:b", "/:x"] {
            assert_eq!(side(local), Side::Local(local.into()), "{local}");
        }
    }

    fn parsed(line: &[&str]) -> Result<(Copy, ClusterArgs), Failure> {
        let words = ["podbench", "cp"].iter().chain(line).map(std::ffi::OsString::from);
        let cli = cli::parse(words).unwrap_or_else(|e| panic!("{}", e.text(false)));
        let crate::cli::Verb::Cp(args) = &cli.verb else { panic!("another verb") };
        parse(args, &cli.cluster, Path::new("/here"))
    }

    #[test]
    fn exactly_one_side_is_in_a_pod_and_names_one_namespace() {
        let (copy, cluster) = parsed(&["a", "shop/api:"]).unwrap();
        assert_eq!(
            (copy.local.as_path(), copy.up, cluster.namespace.as_deref()),
            (Path::new("/here/a"), true, Some("shop"))
        );
        assert!(parsed(&["a", "b"]).is_err());
        assert!(parsed(&["p:a", "q:b"]).is_err());
        assert!(parsed(&["-n", "other", "shop/api:/x", "."]).is_err());
        assert!(parsed(&["api:", "."]).is_err(), "which file?");
    }
}
