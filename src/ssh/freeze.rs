//! What a stanza keeps of the shell it was made in, so that `ssh ALIAS` does tomorrow, from an
//! editor or a cron job, what kubectl did when the seat was landed.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use podbench_contract::text;

use crate::error::Failure;
use crate::settings::{Cluster, Settings};

/// Proxies, whose address may hold a password.
const PROXIES: [&str; 6] =
    ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];

/// What kubectl needs inside a pod, where there is no kubeconfig and no context.
const IN_CLUSTER: [&str; 2] = ["KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"];

/// `NAME`, value, in the order in which they are written.
pub(crate) type Environment = Vec<(String, String)>;

/// The environment of the stanza's kubectl.
///
/// # Errors
/// When something in it is secret, or can't be written on a line.
pub(crate) fn environment(
    settings: &Settings,
    cluster: &Cluster,
    in_cluster: bool,
) -> Result<Environment, Failure> {
    let mut env = vec![
        ("PATH".to_owned(), search_path(settings)),
        ("HOME".to_owned(), one_line("HOME", settings.home.as_os_str())?),
    ];
    if cluster.kubeconfig.is_none() {
        env.push(("KUBECONFIG".to_owned(), kubeconfig(settings)?));
    }
    for (name, value) in &settings.kubectl_env {
        if IN_CLUSTER.contains(&name.as_str()) && !in_cluster {
            continue;
        }
        let value = one_line(name, value)?;
        if PROXIES.contains(&name.as_str()) && has_credentials(&value) {
            return Err(secret(name, cluster));
        }
        env.push((name.clone(), value));
    }
    Ok(env)
}

/// The kubeconfig files that kubectl will read, as it would spell them: `--kubeconfig`, else the
/// list of `$KUBECONFIG` with every entry absolute, else the default.
///
/// # Errors
/// When a path can't be written on a line.
pub(crate) fn kubeconfig(settings: &Settings) -> Result<String, Failure> {
    let listed: Vec<PathBuf> = settings.kubeconfig_env.as_deref().map_or_else(Vec::new, |list| {
        // kubectl skips empty entries, and files that aren't there: those may come yet.
        std::env::split_paths(list)
            .filter(|p| !p.as_os_str().is_empty())
            .map(|p| settings.cwd.join(p))
            .collect()
    });
    let list = if listed.is_empty() {
        // Written out, or a KUBECONFIG in the shell that runs ssh later would lead elsewhere.
        settings.home.join(".kube").join("config").into_os_string()
    } else {
        std::env::join_paths(listed)
            .map_err(|e| Failure::input("KUBECONFIG can't be kept").because(e.to_string()))?
    };
    one_line("KUBECONFIG", &list)
}

/// Absolute entries, each once. A relative one would be another folder wherever ssh is run, and Go
/// refuses to run what it finds there. One that isn't UTF-8 can't be written; kubectl itself is
/// named absolutely.
fn search_path(settings: &Settings) -> String {
    let mut kept: Vec<String> = Vec::new();
    for entry in std::env::split_paths(&settings.path) {
        let Some(entry) = entry.to_str().filter(|e| !e.chars().any(char::is_control)) else { continue };
        if Path::new(entry).is_absolute() && !kept.iter().any(|k| k == entry) {
            kept.push(entry.to_owned());
        }
    }
    if kept.is_empty() { "/usr/local/bin:/usr/bin:/bin".to_owned() } else { kept.join(":") }
}

/// A value that can stand on a line.
///
/// # Errors
/// Names the variable.
pub(crate) fn one_line(name: &str, value: &OsStr) -> Result<String, Failure> {
    let why = match value.to_str() {
        Some(text) if !text.chars().any(char::is_control) => return Ok(text.to_owned()),
        Some(_) => "it holds a control character",
        None => "it is not UTF-8",
    };
    let shown = text::escape(&value.to_string_lossy(), 200);
    Err(Failure::input(format!("{name} (`{shown}`) can't stand in an ssh configuration")).because(why))
}

/// Is there a user in front of the proxy's host?
fn has_credentials(proxy: &str) -> bool {
    let rest = proxy.split_once("://").map_or(proxy, |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().is_some_and(|authority| authority.contains('@'))
}

fn secret(name: &str, cluster: &Cluster) -> Failure {
    let flags = crate::kubectl::line::flags(cluster, None);
    Failure::input(format!("{name} holds a user or password, and podbench writes no secret into an ssh configuration"))
        .because("the kubeconfig can name the proxy itself (`proxy-url`), and kubectl prefers that")
        .hint(format!(
            "kubectl{flags} config set \"clusters.$(kubectl{flags} config view --minify -o jsonpath='{{.clusters[0].name}}').\
             proxy-url\" \"${name}\" && unset {name}",
        ))
}

#[cfg(test)]
mod tests;
