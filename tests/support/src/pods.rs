//! Pods that differ from the zoo's in one thing.

use std::time::Duration;

use serde_json::{Value, json};

use crate::namespace::Namespace;
use crate::process::{Ran, run, run_with};

/// A pod that passes Pod Security `restricted` and answers on 8080, `app: NAME`, with these ids.
#[must_use]
pub fn pod(name: &str, uid: u64, gid: u64) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": false,
            "securityContext": {"runAsNonRoot": true, "runAsUser": uid, "runAsGroup": gid,
                                "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [container("app", 8080)],
        },
    })
}

/// A container of such a pod.
#[must_use]
pub fn container(name: &str, port: u16) -> Value {
    json!({
        "name": name, "image": "podbench.test/static:1", "imagePullPolicy": "Never", "args": ["-port", port.to_string()],
        "resources": {"requests": {"cpu": "1m", "memory": "16Mi"}, "limits": {"memory": "256Mi"}},
        "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
    })
}

impl Namespace {
    /// Makes pods and waits until each is ready.
    #[track_caller]
    pub fn pods(&self, pods: &[Value]) {
        self.create(pods);
        let mut args = vec!["wait".to_owned(), "--for=condition=Ready".into(), "--timeout=60s".into()];
        args.extend(
            pods.iter().filter_map(|p| Some(format!("pod/{}", p.pointer("/metadata/name")?.as_str()?))),
        );
        self.kubectl(&args.iter().map(String::as_str).collect::<Vec<_>>()).expect_code(0);
    }

    /// Makes objects of this namespace.
    #[track_caller]
    pub fn create(&self, objects: &[Value]) {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string();
        run_with(self.command(&["apply", "-f", "-"]), list.as_bytes(), Duration::from_secs(30))
            .expect_code(0);
    }

    /// What the server would make of a pod with this ephemeral container: `dryRun`, as an admin.
    #[track_caller]
    pub fn rehearse(&self, pod: &str, container: &Value) -> Ran {
        self.seat(pod, container, &["--dry-run=server"])
    }

    /// Adds an ephemeral container to a pod, as an admin.
    #[track_caller]
    pub fn plant(&self, pod: &str, container: &Value) {
        self.seat(pod, container, &[]).expect_code(0);
    }

    fn seat(&self, pod: &str, container: &Value, more: &[&str]) -> Ran {
        let patch = json!({"spec": {"ephemeralContainers": [container]}}).to_string();
        let mut args =
            vec!["patch", "pod", pod, "--subresource=ephemeralcontainers", "-o", "json", "-p", &patch];
        args.extend(more);
        run(self.command(&args))
    }
}
