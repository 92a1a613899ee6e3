//! `podbench version`: of podbench, and of the kubectl that it runs.

use serde_json::json;

use super::{Answer, Done};
use crate::error::Failure;
use crate::kubectl::run::Interrupt;
use crate::kubectl::{Error, Kubectl, Started};
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
        Some(cluster) => client(&super::kubectl(settings, cluster, interrupt)?)?,
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

/// kubectl's own version; `None` where it doesn't say.
fn client(kubectl: &Kubectl) -> Result<Option<String>, Error> {
    match kubectl.client_version().and_then(Started::finish) {
        Ok(version) => Ok(Some(version)),
        Err(Error::Interrupted) => Err(Error::Interrupted),
        Err(
            Error::Start { .. }
            | Error::Refused(_)
            | Error::Failed { .. }
            | Error::Deadline { .. }
            | Error::TooMuch { .. }
            | Error::Answer { .. },
        ) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kubectl::fake::{Says, fails, kubectl, ok};

    #[test]
    fn a_kubectl_that_cannot_say_its_version_is_no_failure_and_ctrl_c_is_one() {
        let answer = |says: fn() -> Says| client(&kubectl(move |_, _| says()).0);
        assert_eq!(
            answer(|| ok(r#"{"clientVersion": {"gitVersion": "v1.33.0"}}"#)),
            Ok(Some("v1.33.0".into()))
        );
        assert_eq!(answer(|| fails("error: unknown flag: --client")), Ok(None));
        assert_eq!(answer(|| ok("{}")), Ok(None));
        assert_eq!(answer(|| Says { interrupted: true, ..ok("") }), Err(Error::Interrupted));
    }
}
