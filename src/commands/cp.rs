//! `podbench cp`: files between this machine and the seat. What arrives is whole or isn't there: it is
//! written beside its destination and renamed, file by file where a folder is merged into one.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::enter::{self, Here};
use super::{Answer, Done, Session};
use crate::cli::{self, ClusterArgs};
use crate::error::{Failure, Kind};
use crate::kubectl::line::flags;
use crate::settings::{Cluster, Settings};
use crate::shell::word;
use crate::ssh::sftp::{Sftp, Skipped};

mod transfer;
mod tree;

use transfer::Transfer;
use tree::Tree;

/// How many of the paths that were left out are told; `-o json` has more.
const TOLD: usize = 5;

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
        Side::Local(local) if local.starts_with('-') => word(&format!("./{local}")),
        Side::Local(local) => word(&local),
        Side::Seat { namespace, path, .. } => {
            let namespace = namespace.map_or_else(String::new, |n| format!("{n}/"));
            word(&format!("{namespace}{pod}:{path}"))
        }
    });
    typed.join(" ")
}

/// What is to be done.
#[derive(Debug)]
pub(super) struct Copy {
    local: PathBuf,
    pod: String,
    path: String,
    up: bool,
}

impl Copy {
    /// The path in the seat, as sftp and a shell there take it: from the seat's home.
    fn remote(&self) -> &str {
        match self.path.strip_prefix("~/").unwrap_or(&self.path) {
            "" | "~" => ".",
            path => path,
        }
    }
}

/// Reads the two sides; the namespace of the one in a seat goes to the cluster's flags.
///
/// # Errors
/// When not exactly one is in a seat, or they name two namespaces.
pub(super) fn parse(
    args: &cli::Cp,
    cluster: &ClusterArgs,
    settings: &Settings,
) -> Result<(Copy, ClusterArgs), Failure> {
    let typed = Cluster::resolve(cluster, settings)?;
    let flags = |namespace: Option<&str>| flags(&typed, namespace);
    let (up, local, seat) = match (side(&args.source), side(&args.destination)) {
        (Side::Local(local), seat @ Side::Seat { .. }) => (true, local, seat),
        (seat @ Side::Seat { .. }, Side::Local(local)) => (false, local, seat),
        (Side::Local(_), Side::Local(_)) => {
            return Err(Failure::input("neither side is in a pod")
                .because("one of the two is [NAMESPACE/]POD:PATH")
                .hint("podbench cp --help"));
        }
        (Side::Seat { .. }, Side::Seat { .. }) => {
            let here = format!("podbench cp {} .{}", word(&args.source), flags(cluster.namespace.as_deref()));
            return Err(Failure::input("both sides are in a pod")
                .because("a local path that has a colon is written ./a:b")
                .hint(here));
        }
    };
    let Side::Seat { namespace, pod, path } = seat else {
        return Err(Failure::new(Kind::Bug, "a side of cp is nowhere"));
    };
    let mut cluster = cluster.clone();
    match (&namespace, &cluster.namespace) {
        (Some(here), Some(flag)) if here != flag => {
            return Err(Failure::input(format!("{here}/{pod} and -n {flag} name two namespaces"))
                .hint(format!("podbench cp {}{}", sides(args, &pod), flags(None))));
        }
        (Some(here), _) => cluster.namespace = Some(here.clone()),
        (None, _) => {}
    }
    if !up && path.is_empty() {
        let look = format!("podbench ssh {}{} -- ls -la", word(&pod), flags(cluster.namespace.as_deref()));
        return Err(Failure::input(format!("{pod}: names no file")).hint(look));
    }
    if local.is_empty() {
        return Err(Failure::input("a path is empty").hint("podbench cp --help"));
    }
    Ok((Copy { local: settings.cwd.join(local), pod, path, up }, cluster))
}

/// Enters the seat and copies.
///
/// # Errors
/// When there is no way in, or the copy didn't come about: what is told then is what is known.
pub(super) fn run(
    args: &cli::Cp,
    session: &Session<'_>,
    copy: &Copy,
    here: &Here,
    sftp: &Sftp,
) -> Result<Done, Failure> {
    let tree = copy.up.then(|| source(args, session, copy)).transpose()?;
    let asked = (Some(copy.pod.as_str()), args.target.as_deref());
    let way = enter::enter(&args.seat, asked, !args.no_prompt, session, here)?;
    let remote = copy.remote();
    session.progress(&format!("copying {}", args.source));
    let transfer = Transfer { session, sftp, host: way.host(), pod: &copy.pod };
    let (from, to, tree) = if let Some(tree) = tree {
        let to = transfer.up(&copy.local, &tree, remote)?;
        (copy.local.display().to_string(), format!("{}:{to}", copy.pod), tree)
    } else {
        let (to, tree) = transfer.down(remote, &copy.local)?;
        (format!("{}:{remote}", copy.pod), to.display().to_string(), tree)
    };
    session.ui.clear();
    if let Some(warning) = left_out(&tree.skipped) {
        session.ui.note(&warning);
    }
    let value = json!({
        "schema": "podbench/cp/v1", "from": from, "to": to,
        "files": tree.files.len(), "bytes": tree.bytes,
        "skipped": tree.skipped.paths, "skippedMore": tree.skipped.more,
        "calls": session.calls(),
    });
    Ok(Answer::Value(value, String::new()).into())
}

/// What there is to copy from here, before the cluster hears of it.
fn source(args: &cli::Cp, session: &Session<'_>, copy: &Copy) -> Result<Tree, Failure> {
    let local = &copy.local;
    let there = local.ancestors().skip(1).find(|folder| folder.is_dir()).unwrap_or(Path::new("/"));
    let look = format!("ls -la {}", word(&there.to_string_lossy()));
    let meta = std::fs::metadata(local).map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => {
            Failure::input(format!("there is no {}", local.display())).hint(look.clone())
        }
        _ => Failure::input(format!("{} can't be read: {e}", local.display())).hint(look.clone()),
    })?;
    if !meta.is_file() && !meta.is_dir() {
        // sftp would wait for a FIFO's other end for ever.
        let name = local.file_name().unwrap_or_default().to_string_lossy();
        let to = match copy.remote() {
            "." => name.into_owned(),
            folder if folder.ends_with('/') => format!("{folder}{name}"),
            file => file.to_owned(),
        };
        let pipe =
            format!("{} < {}", ssh(session, &copy.pod, &format!("cat > {}", word(&to))), word(&args.source));
        return Err(Failure::input(format!("{} is neither a file nor a folder", local.display())).hint(pipe));
    }
    Tree::of(local).map_err(|e| Failure::input(format!("{} can't be read: {e}", local.display())).hint(look))
}

/// `podbench ssh` into the same seat, to paste: with a line for its shell, or for a shell.
fn ssh(session: &Session<'_>, pod: &str, line: &str) -> String {
    let enter = session.verb("ssh", &session.verb.seat(pod));
    if line.is_empty() { enter } else { format!("{enter} -- {}", word(line)) }
}

/// The warning about what is no file and no folder.
fn left_out(skipped: &Skipped) -> Option<String> {
    let all = skipped.more + skipped.paths.len() as u64;
    let named: Vec<&str> = skipped.paths.iter().take(TOLD).map(String::as_str).collect();
    let more = match all - named.len() as u64 {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let (what, are) =
        if all == 1 { ("link or special file", "was") } else { ("links or special files", "were") };
    (all > 0).then(|| format!("warning: {all} {what} {are} not copied: {}{more}", named.join(", ")))
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
        let settings = Settings { path: "/usr/bin:/bin".into(), ..Settings::bare("/here") };
        let settings = Settings { kubectl: Some("/bin/sh".into()), cwd: "/here".into(), ..settings };
        parse(args, &cli.cluster, &settings)
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

    #[test]
    fn a_line_that_means_nothing_is_answered_with_one_that_does_and_keeps_the_flags() {
        let hint = |line: &[&str]| parsed(line).unwrap_err().hints.join("\n");
        assert_eq!(
            hint(&["p:a", "q:b", "-n", "shop", "--context", "c"]),
            "podbench cp p:a . -n shop --context=c"
        );
        let line = ["-n", "other", "shop/api:/x y", ".", "--as", "me"];
        assert_eq!(hint(&line), "podbench cp 'shop/api:/x y' . --as=me");
        assert_eq!(hint(&["shop/api:", "."]), "podbench ssh api -n shop -- ls -la");
    }

    #[test]
    fn what_was_left_out_is_named_up_to_a_few() {
        let mut skipped = Skipped::default();
        assert_eq!(left_out(&skipped), None);
        skipped.add("/a");
        assert_eq!(left_out(&skipped).unwrap(), "warning: 1 link or special file was not copied: /a");
        (0..1499).for_each(|_| skipped.add("/b"));
        let said = left_out(&skipped).unwrap();
        assert!(said.starts_with("warning: 1500 links or special files were not copied: /a, /b"), "{said}");
        assert!(said.ends_with("/b and 1495 more"), "{said}");
    }
}
