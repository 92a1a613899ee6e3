//! A namespace of a test's own, with pods of the zoo and a service account that has the chart's
//! observe Role and nothing else. Deleted on drop; kept when the test failed and
//! `PODBENCH_E2E_KEEP=1`.

use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::cluster::{Cluster, root};
use crate::process::{Ran, eventually, run};
use crate::recording;

/// The guard.
pub struct Namespace {
    /// The cluster it is in.
    pub cluster: Cluster,
    /// Its name.
    pub name: String,
}

impl Namespace {
    /// Makes a namespace called after the test.
    ///
    /// # Panics
    /// When the cluster doesn't do it.
    #[track_caller]
    #[must_use]
    pub fn scratch(what: &str) -> Self {
        Self::labelled(what, &[])
    }

    /// Makes a namespace with labels, such as `pod-security.kubernetes.io/enforce=restricted`.
    ///
    /// # Panics
    /// When the cluster doesn't do it.
    #[track_caller]
    #[must_use]
    pub fn labelled(what: &str, labels: &[&str]) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        // A recording names its namespace the same each time, so that recording again shows what changed.
        let name = if recording::is_on() {
            format!("e2e-{what}")
        } else {
            format!("e2e-{what}-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
        };
        Self::made(name, labels)
    }

    /// Makes a namespace of exactly this name.
    ///
    /// # Panics
    /// When the cluster doesn't do it.
    #[track_caller]
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self::made(name.to_owned(), &[])
    }

    #[track_caller]
    fn made(name: String, labels: &[&str]) -> Self {
        let cluster = Cluster::get();
        if recording::is_on() {
            cluster.kubectl(&["delete", "namespace", &name, "--ignore-not-found"]).expect_code(0);
        }
        cluster.kubectl(&["create", "namespace", &name]).expect_code(0);
        let ns = Self { cluster, name };
        let mut args = vec!["label", "namespace", &ns.name, "podbench.test/e2e=true"];
        args.extend(labels);
        ns.cluster.kubectl(&args).expect_code(0);
        // Pods can't be made before the namespace's default service account is.
        eventually("the default service account", std::time::Duration::from_secs(20), || {
            (ns.kubectl(&["get", "sa", "default", "-o", "name"]).code == 0).then_some(())
        });
        ns
    }

    /// Labels the namespace, later.
    #[track_caller]
    pub fn label(&self, label: &str) {
        self.cluster.kubectl(&["label", "--overwrite", "namespace", &self.name, label]).expect_code(0);
    }

    /// Runs `kubectl -n` this namespace with an admin's rights.
    #[track_caller]
    pub fn kubectl(&self, args: &[&str]) -> Ran {
        run(self.command(args))
    }

    /// The same as a command.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut all = vec!["-n", &self.name];
        all.extend(args);
        self.cluster.command(&all)
    }

    /// Applies pods of the zoo and waits until each is in the state that it is meant to be in.
    #[track_caller]
    pub fn zoo(&self, names: &[&str]) {
        let mut command = Command::new(root().join("tests/cluster/zoo.sh"));
        command.env("KUBECONFIG", self.cluster.kubeconfig()).arg(&self.name).args(names);
        run(command).expect_code(0);
    }

    /// An object as JSON.
    #[track_caller]
    pub fn get(&self, what: &str, name: &str) -> serde_json::Value {
        self.kubectl(&["get", what, name, "-o", "json"]).expect_code(0).json()
    }

    /// The names of a pod's ephemeral containers, in their order.
    #[track_caller]
    pub fn seats(&self, pod: &str) -> Vec<String> {
        let pod = self.get("pod", pod);
        let list =
            pod.pointer("/spec/ephemeralContainers").and_then(|l| l.as_array().cloned()).unwrap_or_default();
        list.iter().filter_map(|c| c.pointer("/name")?.as_str().map(str::to_owned)).collect()
    }

    /// Runs a program in a container with an admin's rights.
    #[track_caller]
    pub fn exec(&self, pod: &str, container: &str, argv: &[&str]) -> Ran {
        let mut args = vec!["exec", "-i", pod, "-c", container, "--"];
        args.extend(argv);
        self.kubectl(&args)
    }

    /// A kubeconfig of a service account that has these rules in this namespace and nothing else.
    /// `rules` is YAML, a list.
    #[track_caller]
    pub fn kubeconfig_with(&self, account: &str, rules: &str) -> String {
        let ns = &self.name;
        let indented = rules.lines().map(|l| format!("  {l}")).collect::<Vec<_>>().join("\n");
        self.cluster.apply(&format!(
            "apiVersion: v1\nkind: ServiceAccount\nmetadata: {{name: {account}, namespace: {ns}}}\n---\n\
             apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {{name: {account}, namespace: {ns}}}\nrules:\n{indented}\n---\n\
             apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {{name: {account}, namespace: {ns}}}\n\
             roleRef: {{kind: Role, name: {account}, apiGroup: rbac.authorization.k8s.io}}\n\
             subjects: [{{kind: ServiceAccount, name: {account}, namespace: {ns}}}]\n"
        ));
        let token = self.kubectl(&["create", "token", account, "--duration=2h"]).text();
        let view = self.cluster.kubectl(&["config", "view", "--minify", "--raw", "-o", "json"]).json();
        let server = view.pointer("/clusters/0/cluster").expect("a cluster in the kubeconfig").clone();
        serde_json::json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "e2e",
            "clusters": [{"name": "e2e", "cluster": server}],
            "users": [{"name": account, "user": {"token": token}}],
            "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": account, "namespace": ns}}],
        })
        .to_string()
    }

    /// A kubeconfig with the chart's observe Role.
    #[track_caller]
    pub fn observer(&self) -> String {
        let rules = std::fs::read_to_string(observe_rules()).unwrap();
        self.kubeconfig_with("observer", &rules)
    }
}

/// The chart's rules for the observe way in.
#[must_use]
pub fn observe_rules() -> PathBuf {
    root().join("chart/files/observe.yaml")
}

/// The chart's rules for `--resize`.
#[must_use]
pub fn resize_rules() -> PathBuf {
    root().join("chart/files/resize.yaml")
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if std::thread::panicking() && std::env::var("PODBENCH_E2E_KEEP").is_ok_and(|v| v == "1") {
            eprintln!("kept: namespace {}", self.name);
            return;
        }
        let mut command = self.cluster.command(&["delete", "namespace", &self.name, "--wait=false"]);
        let _ = command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).status();
    }
}
