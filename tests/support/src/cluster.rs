//! The live cluster: the project's own, or the one that `PODBENCH_E2E_CONTEXT` names.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::process::{Ran, run, run_with};

/// Where the tests run, with an admin's rights.
pub struct Cluster {
    kubeconfig: PathBuf,
    context: Option<String>,
    /// The seat image that the nodes have.
    pub image: String,
}

impl Cluster {
    /// The cluster that the environment names (`eval "$(./dev env)"`).
    ///
    /// # Panics
    /// Without one: a live test that can't reach a cluster has failed.
    #[must_use]
    pub fn get() -> Self {
        let var = |name: &str| {
            std::env::var(name)
                .unwrap_or_else(|_| panic!("{name} is not set: a live test needs `eval \"$(./dev env)\"`"))
        };
        Self {
            kubeconfig: PathBuf::from(var("KUBECONFIG")),
            context: std::env::var("PODBENCH_E2E_CONTEXT").ok(),
            image: var("PODBENCH_IMAGE"),
        }
    }

    /// The admin's kubeconfig.
    #[must_use]
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// A `kubectl` command with an admin's rights.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new("kubectl");
        command.env("KUBECONFIG", &self.kubeconfig);
        if let Some(context) = &self.context {
            command.args(["--context", context]);
        }
        command.args(args);
        command
    }

    /// Runs `kubectl` with an admin's rights.
    #[track_caller]
    pub fn kubectl(&self, args: &[&str]) -> Ran {
        run(self.command(args))
    }

    /// Applies YAML or JSON text.
    #[track_caller]
    pub fn apply(&self, text: &str) {
        run_with(self.command(&["apply", "-f", "-"]), text.as_bytes(), Duration::from_secs(30))
            .expect_code(0);
    }

    /// The API server's version, for recordings.
    #[must_use]
    pub fn version(&self) -> String {
        let json = self.kubectl(&["version", "-o", "json"]).json();
        json.pointer("/serverVersion/gitVersion").and_then(|v| v.as_str()).unwrap_or_default().to_owned()
    }
}

/// The checkout.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}
