//! `podbench version`: of podbench, and of the kubectl that it runs.

use serde_json::json;

use super::{Answer, Done};
use crate::error::Failure;
use crate::kubectl::run::Interrupt;
use crate::settings::{Cluster, Settings};

/// Prints both. A kubectl that is missing or silent is no reason to fail.
///
/// # Errors
/// On ctrl-C.
pub(super) fn run(
    settings: &Settings,
    cluster: Option<&Cluster>,
    interrupt: Interrupt,
) -> Result<Done, Failure> {
    let client = match cluster {
        Some(cluster) => super::kubectl(settings, cluster, interrupt)?.client_version()?.finish().ok(),
        None => None,
    };
    let version = env!("CARGO_PKG_VERSION");
    let path = cluster.map(|c| c.kubectl.display().to_string());
    let text = match (&client, &path) {
        (Some(client), Some(path)) => format!("podbench {version}\nkubectl {client} ({path})\n"),
        (None, Some(path)) => format!("podbench {version}\nkubectl {path} (its version can't be read)\n"),
        (_, None) => format!("podbench {version}\nkubectl isn't there\n"),
    };
    let value = json!({
        "schema": "podbench/version/v1",
        "podbench": version,
        "kubectl": client,
        "kubectlPath": path,
    });
    Ok(Answer::Value(value, text).into())
}
