//! A running pod's resources: what the namespace allows, and the change itself.

use serde_json::Value;

use super::call::Call;
use super::{Error, Kubectl, Mode, Started, json};

impl Kubectl {
    /// The namespace's `LimitRange`s.
    ///
    /// # Errors
    /// When kubectl can't be started.
    pub fn limit_ranges(&self) -> Result<Started<'_, Value>, Error> {
        let verb = ["get", "limitranges", "-o", "json"];
        let call = Call::request(self.scope(), &verb, "what the namespace lets a container have");
        Ok(Started { running: self.start(call)?, read: json })
    }

    /// Changes a container's resources in place, or rehearses that. The subresource: since 1.32 a
    /// plain patch of them is refused. kubectl before 1.32 knows no `--subresource=resize`.
    ///
    /// # Errors
    /// When kubectl can't be started.
    pub fn resize(&self, name: &str, patch: &Value, mode: Mode) -> Result<Started<'_, Value>, Error> {
        let patch = patch.to_string();
        // Strategic: a merge patch would replace the whole list of containers.
        let mut verb = vec!["patch", "pod", name, "--subresource=resize", "--type=strategic", "-o", "json"];
        let why = match mode {
            Mode::DryRun => {
                verb.push("--dry-run=server");
                "rehearse: would the resize be stored"
            }
            Mode::Store => "resize the target",
        };
        verb.extend(["--patch", &patch]);
        Ok(Started { running: self.start(Call::request(self.scope(), &verb, why))?, read: json })
    }
}
