//! Which container is the target.

use super::{Container, Kind, Pod};

/// The container, and why this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Its name.
    pub name: String,
    /// Why, where nobody typed it and there was a choice.
    pub why: Option<String>,
    /// The others that `-c` would reach.
    pub others: Vec<String>,
}

/// There is no such container.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the pod has no container `{asked}`")]
pub struct NoSuch {
    /// What was asked for.
    pub asked: String,
    /// What there is.
    pub have: Vec<String>,
    /// The one that looks most like it.
    pub like: Option<String>,
}

/// The annotation by which kubectl itself chooses.
pub const DEFAULT: &str = "kubectl.kubernetes.io/default-container";

/// Containers that meshes and cloud vendors put beside the application.
const SIDECARS: [&str; 17] = [
    "istio-proxy",
    "linkerd-proxy",
    "envoy",
    "envoy-sidecar",
    "consul-dataplane",
    "consul-connect-envoy-sidecar",
    "kuma-sidecar",
    "aws-appmesh-envoy",
    "osm-envoy",
    "daprd",
    "cloud-sql-proxy",
    "cloudsql-proxy",
    "vault-agent",
    "jaeger-agent",
    "fluent-bit",
    "datadog-agent",
    "otc-container",
];

/// Chooses. `sidecars`: more of them, by the user's own settings. `asked` may be an init or native-sidecar container; nobody lands beside a seat.
///
/// # Errors
/// When there is no container of the name that was asked for.
pub fn choose(pod: &Pod, asked: Option<&str>, sidecars: &[String]) -> Result<Choice, NoSuch> {
    let all = pod.containers();
    let can: Vec<&Container<'_>> = all.iter().filter(|c| c.kind != Kind::Ephemeral).collect();
    let names =
        |except: &str| can.iter().map(|c| c.name()).filter(|n| *n != except).map(str::to_owned).collect();
    let choice = |name: &str, why: Option<String>| Choice { name: name.to_owned(), why, others: names(name) };
    if let Some(asked) = asked {
        if can.iter().any(|c| c.name() == asked) {
            return Ok(choice(asked, None));
        }
        let close = |name: &&str| name.contains(asked) || asked.contains(name);
        let like = can.iter().map(|c| c.name()).find(close).map(str::to_owned);
        return Err(NoSuch { asked: asked.to_owned(), have: names(""), like });
    }
    let regular: Vec<&str> = can.iter().filter(|c| c.kind == Kind::Regular).map(|c| c.name()).collect();
    if let Some(named) = pod.annotation(DEFAULT)
        && regular.contains(&named.as_str())
    {
        let why = (regular.len() > 1).then(|| format!("the annotation {DEFAULT} names it"));
        return Ok(choice(&named, why));
    }
    let first = regular.first().copied().unwrap_or_default();
    let is_sidecar = |name: &str| SIDECARS.contains(&name) || sidecars.iter().any(|s| s == name);
    let app = regular.iter().copied().find(|n| !is_sidecar(n)).unwrap_or(first);
    let why = match regular.as_slice() {
        [] | [_] => None,
        _ if app != first => Some(format!("the first container that isn't a known sidecar such as {first}")),
        _ => Some("the pod's first container".to_owned()),
    };
    Ok(choice(app, why))
}
