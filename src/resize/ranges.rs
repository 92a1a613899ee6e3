//! What the namespace's `LimitRange`s let a container and a pod have.

use podbench_contract::quantity::Quantity;
use podbench_contract::resized::Resource;
use serde_json::Value;

use crate::pod::is_dns;

/// What an item of a `LimitRange` is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Each container.
    Container,
    /// A pod's containers together.
    Pod,
}

impl Scope {
    /// Kubernetes' name for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Container => "Container",
            Self::Pod => "Pod",
        }
    }
}

/// One item of a `LimitRange`.
#[derive(Clone, Debug)]
pub struct Range {
    /// The object's name.
    pub name: String,
    /// What it is about.
    pub scope: Scope,
    item: Value,
}

impl Range {
    /// Every item of a list that is about containers or pods.
    #[must_use]
    pub fn read(list: &Value) -> Vec<Self> {
        let items = |value: &Value, pointer: &str| {
            value.pointer(pointer).and_then(Value::as_array).cloned().unwrap_or_default()
        };
        let mut ranges = Vec::new();
        for object in items(list, "/items") {
            let name = object.pointer("/metadata/name").and_then(Value::as_str).filter(|n| is_dns(n));
            let name = name.unwrap_or("without a name").to_owned();
            for item in items(&object, "/spec/limits") {
                let scope = match item.get("type").and_then(Value::as_str) {
                    Some("Container") => Scope::Container,
                    Some("Pod") => Scope::Pod,
                    _ => continue,
                };
                ranges.push(Self { name: name.clone(), scope, item });
            }
        }
        ranges
    }

    fn amount(&self, list: &str, resource: Resource) -> Option<Quantity> {
        self.item.get(list)?.get(resource.as_str())?.as_str()?.parse().ok()
    }

    /// The greatest limit.
    #[must_use]
    pub fn max(&self, resource: Resource) -> Option<Quantity> {
        self.amount("max", resource)
    }

    /// The least request.
    #[must_use]
    pub fn min(&self, resource: Resource) -> Option<Quantity> {
        self.amount("min", resource)
    }

    /// How many times the request a limit may be.
    #[must_use]
    pub fn ratio(&self, resource: Resource) -> Option<Quantity> {
        self.amount("maxLimitRequestRatio", resource).filter(|r| !r.is_zero())
    }
}
