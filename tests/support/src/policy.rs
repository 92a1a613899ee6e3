//! Policies and webhooks are objects of the whole cluster: each here matches one namespace, is probed
//! to be in force before a test leans on it, and is deleted on drop.

use std::time::Duration;

use serde_json::{Value, json};

use crate::namespace::Namespace;
use crate::process::{Ran, eventually, run_with};

/// The guard.
pub struct Policies<'a> {
    ns: &'a Namespace,
    list: String,
}

impl<'a> Policies<'a> {
    /// Makes them.
    ///
    /// # Panics
    /// When the cluster doesn't do it.
    #[track_caller]
    #[must_use]
    pub fn apply(ns: &'a Namespace, items: &[Value]) -> Self {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string();
        let policies = Self { ns, list };
        policies.ns.cluster.apply(&policies.list);
        policies
    }

    /// Rehearses `container` in `pod` until the answer is what a policy in force makes of it: a new one
    /// takes two to three seconds.
    ///
    /// # Panics
    /// When it isn't within twenty.
    #[track_caller]
    pub fn in_force(&self, pod: &str, container: &Value, is: impl Fn(&Ran) -> bool) {
        eventually(&format!("the policy for {pod} is in force"), Duration::from_secs(20), || {
            is(&self.ns.rehearse(pod, container)).then_some(())
        });
    }
}

impl Drop for Policies<'_> {
    fn drop(&mut self) {
        let delete = self.ns.cluster.command(&["delete", "--wait=false", "--ignore-not-found", "-f", "-"]);
        let _ = run_with(delete, self.list.as_bytes(), Duration::from_secs(30));
    }
}

/// What a policy or a webhook looks at: the seats of the pods of one namespace with `app: APP`.
#[must_use]
pub fn seats_of(ns: &Namespace, app: &str) -> Value {
    json!({
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": ns.name}},
        "objectSelector": {"matchLabels": {"app": app}},
        "resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"],
                           "resources": ["pods/ephemeralcontainers"]}],
    })
}

fn admission(version: &str, kind: &str, name: &str, spec: Value) -> Value {
    let version = format!("admissionregistration.k8s.io/{version}");
    json!({"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec})
}

/// A `ValidatingAdmissionPolicy` with one rule, and its binding. `rule` is an entry of `validations`.
#[must_use]
pub fn denies(ns: &Namespace, app: &str, rule: &Value) -> [Value; 2] {
    let name = format!("{}-{app}", ns.name);
    let spec = json!({"failurePolicy": "Fail", "matchConstraints": seats_of(ns, app), "validations": [rule]});
    let binding = json!({"policyName": name, "validationActions": ["Deny"]});
    [
        admission("v1", "ValidatingAdmissionPolicy", &name, spec),
        admission("v1", "ValidatingAdmissionPolicyBinding", &name, binding),
    ]
}

/// A `MutatingAdmissionPolicy` that applies a CEL expression of `JSONPatch`es, and its binding.
#[must_use]
pub fn mutates(ns: &Namespace, app: &str, expression: &str) -> [Value; 2] {
    let name = format!("{}-{app}", ns.name);
    let spec = json!({
        "failurePolicy": "Fail", "reinvocationPolicy": "Never", "matchConstraints": seats_of(ns, app),
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}],
    });
    // v1 from Kubernetes 1.36 on.
    let v1 = ns.cluster.kubectl(&["get", "--raw", "/apis/admissionregistration.k8s.io/v1"]).text();
    let version = if v1.contains("mutatingadmissionpolicies") { "v1" } else { "v1beta1" };
    [
        admission(version, "MutatingAdmissionPolicy", &name, spec),
        admission(version, "MutatingAdmissionPolicyBinding", &name, json!({"policyName": name})),
    ]
}

/// A CEL expression that applies one patch to the seats for which `when` is true: `c` is the seat,
/// `path` the place in it, `value` what is put there (CEL).
#[must_use]
pub fn put(when: &str, path: &str, value: &str) -> String {
    let when = when.replace("c.", "object.spec.ephemeralContainers[i].");
    // Indices that no test has more seats than: `lists.range` came with Kubernetes 1.35.
    let indices: Vec<String> = (0..20).map(|i| i.to_string()).collect();
    format!(
        "[{}].filter(i, i < size(object.spec.ephemeralContainers) && {when}).map(i, JSONPatch{{op: \"add\", \
         path: \"/spec/ephemeralContainers/\" + string(i) + \"{path}\", value: {value}}})",
        indices.join(", ")
    )
}
