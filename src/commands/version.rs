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
pub(super) fn run(settings: &Settings, cluster: Option<&Cluster>, interrupt: Interrupt) -> Result<Done, Failure> {
    let client = match cluster {
        Some(cluster) => super::kubectl(settings, cluster, interrupt)?.client_version()?.finish().ok(),
        None => None,
    };
    Ok(Answer::Value(json!({
        "schema": "podbench/version/v1",
        "podbench": env!("CARGO_PKG_VERSION"),
        "kubectl": client,
        "kubectlPath": cluster.map(|c| c.kubectl.display().to_string()),
    }))
    .into())
}
