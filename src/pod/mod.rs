//! Typed views over a pod's JSON. The object itself stays a [`Value`]: what a view doesn't know is
//! written back as it came.
//!
//! - [`container`]: one container, its state, its ids
//! - [`ids`]: who the target runs as, as far as the pod says
//! - [`probes`]: how long the target may stand still
//! - [`state`]: can a seat be landed beside the target now?
//! - [`target`]: which container is the target

pub mod container;
pub mod ids;
pub mod probes;
pub mod state;
pub mod target;

use podbench_contract::text::printable;
use serde_json::Value;

pub use container::{Container, Kind, State};

/// A pod, as the API server gave it.
#[derive(Clone, Debug, PartialEq)]
pub struct Pod(Value);

/// What came isn't a pod, or has a name that no API server gives.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("kubectl's answer isn't a pod: {0}")]
pub struct NotAPod(&'static str);

impl Pod {
    /// Has somebody deleted it? It may go on for its grace period.
    #[must_use]
    pub fn is_being_deleted(&self) -> bool {
        self.value().pointer("/metadata/deletionTimestamp").is_some()
    }

    /// Takes a pod's JSON. Its names go into argvs and files, so they are checked here, once.
    ///
    /// # Errors
    /// When it isn't a pod.
    pub fn new(value: Value) -> Result<Self, NotAPod> {
        let pod = Self(value);
        if !is_dns(pod.name()) || !is_dns(pod.namespace()) {
            return Err(NotAPod("its name isn't one"));
        }
        if !pod.uid().bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') || pod.uid().len() > 64 {
            return Err(NotAPod("its uid isn't one"));
        }
        if !pod.node().is_empty() && !is_dns(pod.node()) {
            return Err(NotAPod("its node's name isn't one"));
        }
        if !pod.0.pointer("/spec/containers").is_some_and(Value::is_array) {
            return Err(NotAPod("it has no containers"));
        }
        if !pod.containers().iter().all(|c| is_dns(c.name())) {
            return Err(NotAPod("a container's name isn't one"));
        }
        Ok(pod)
    }

    /// The object.
    #[must_use]
    pub const fn value(&self) -> &Value {
        &self.0
    }

    fn text(&self, pointer: &str) -> &str {
        self.0.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    /// `metadata.name`.
    #[must_use]
    pub fn name(&self) -> &str {
        self.text("/metadata/name")
    }

    /// `metadata.namespace`.
    #[must_use]
    pub fn namespace(&self) -> &str {
        self.text("/metadata/namespace")
    }

    /// `metadata.uid`.
    #[must_use]
    pub fn uid(&self) -> &str {
        self.text("/metadata/uid")
    }

    /// `spec.nodeName`; empty where it isn't scheduled.
    #[must_use]
    pub fn node(&self) -> &str {
        self.text("/spec/nodeName")
    }

    /// `status.phase`.
    #[must_use]
    pub fn phase(&self) -> &str {
        self.text("/status/phase")
    }

    /// `metadata.creationTimestamp`.
    #[must_use]
    pub fn created(&self) -> &str {
        self.text("/metadata/creationTimestamp")
    }

    /// An annotation, where it is one printable line.
    #[must_use]
    pub fn annotation(&self, name: &str) -> Option<String> {
        let annotations = self.0.pointer("/metadata/annotations")?;
        printable(annotations.get(name)?.as_str()?, 512)
    }

    /// Does it share the node's network?
    #[must_use]
    pub fn host_network(&self) -> bool {
        self.0.pointer("/spec/hostNetwork").and_then(Value::as_bool) == Some(true)
    }

    /// Do its containers share one PID namespace?
    #[must_use]
    pub fn shared_pids(&self) -> bool {
        self.0.pointer("/spec/shareProcessNamespace").and_then(Value::as_bool) == Some(true)
    }

    /// Its volumes.
    #[must_use]
    pub fn volumes(&self) -> &[Value] {
        self.0.pointer("/spec/volumes").and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// A status condition's object.
    #[must_use]
    pub fn condition(&self, kind: &str) -> Option<&Value> {
        let conditions = self.0.pointer("/status/conditions").and_then(Value::as_array)?;
        conditions.iter().find(|c| c.get("type").and_then(Value::as_str) == Some(kind))
    }

    /// Every container of every kind: regular ones first, in the pod's order.
    #[must_use]
    pub fn containers(&self) -> Vec<Container<'_>> {
        let mut all = Vec::new();
        for (list, statuses) in [
            ("/spec/containers", "/status/containerStatuses"),
            ("/spec/initContainers", "/status/initContainerStatuses"),
            ("/spec/ephemeralContainers", "/status/ephemeralContainerStatuses"),
        ] {
            let array = |p: &str| self.0.pointer(p).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            for spec in array(list) {
                let kind = match list {
                    "/spec/containers" => Kind::Regular,
                    "/spec/initContainers" if spec.get("restartPolicy").is_some_and(|p| p == "Always") => {
                        Kind::Sidecar
                    }
                    "/spec/initContainers" => Kind::Init,
                    _ => Kind::Ephemeral,
                };
                let status = array(statuses).iter().find(|s| s.get("name") == spec.get("name"));
                all.push(Container { kind, spec, status });
            }
        }
        all
    }

    /// The container of that name, whatever its kind.
    #[must_use]
    pub fn container(&self, name: &str) -> Option<Container<'_>> {
        self.containers().into_iter().find(|c| c.name() == name)
    }

    /// Every container name that was ever used, dead ephemeral ones included.
    #[must_use]
    pub fn taken_names(&self) -> Vec<String> {
        let statuses = [
            "/status/containerStatuses",
            "/status/initContainerStatuses",
            "/status/ephemeralContainerStatuses",
        ];
        let from_status = statuses
            .iter()
            .filter_map(|p| self.0.pointer(p).and_then(Value::as_array))
            .flatten()
            .filter_map(|s| s.get("name").and_then(Value::as_str).map(str::to_owned));
        self.containers().iter().map(|c| c.name().to_owned()).chain(from_status).collect()
    }

    /// The object with one more ephemeral container, for a PUT. Lists print their items without
    /// `kind`, and a PUT needs it.
    #[must_use]
    pub fn with_ephemeral(&self, container: Value) -> Value {
        let mut value = self.0.clone();
        if let Some(object) = value.as_object_mut() {
            object.entry("apiVersion").or_insert_with(|| "v1".into());
            object.entry("kind").or_insert_with(|| "Pod".into());
        }
        if let Some(spec) = value.get_mut("spec").and_then(Value::as_object_mut) {
            let list = spec.entry("ephemeralContainers").or_insert_with(|| Value::Array(Vec::new()));
            if let Some(list) = list.as_array_mut() {
                list.push(container);
            }
        }
        value
    }
}

/// A name as the API server gives it to pods, namespaces and containers.
#[must_use]
pub fn is_dns(name: &str) -> bool {
    let alnum = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let mut bytes = name.bytes();
    (1..=253).contains(&name.len())
        && bytes.next().is_some_and(alnum)
        && name.bytes().next_back().is_some_and(alnum)
        && bytes.all(|b| alnum(b) || b == b'-' || b == b'.')
}

#[cfg(test)]
mod tests;
