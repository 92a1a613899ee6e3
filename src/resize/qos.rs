//! A pod's QoS class, from its spec as Kubernetes computes it: no resize may change it.

use podbench_contract::quantity::Quantity;
use podbench_contract::resized::Resource;
use serde_json::Value;

use super::amount;

/// `status.qosClass`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Every container's requests are its limits, for memory and cpu.
    Guaranteed,
    /// Something is asked for.
    Burstable,
    /// Nothing is.
    BestEffort,
}

impl Class {
    /// Kubernetes' name for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Guaranteed => "Guaranteed",
            Self::Burstable => "Burstable",
            Self::BestEffort => "BestEffort",
        }
    }

    /// Of a pod's object. Where the pod itself has resources, they alone decide.
    #[must_use]
    pub fn of(pod: &Value) -> Self {
        let spec = pod.get("spec");
        let own = spec.filter(|s| asks(s));
        let lists = ["containers", "initContainers"];
        let containers = || lists.iter().filter_map(|l| spec?.get(l)?.as_array()).flatten();
        let owners: Vec<&Value> = own.map_or_else(|| containers().collect(), |own| vec![own]);
        if !owners.iter().any(|owner| asks(owner)) {
            return Self::BestEffort;
        }
        let full = |owner: &&Value| {
            Resource::ALL.into_iter().all(|r| {
                let limit = given(owner, "limits", r);
                limit.is_some() && given(owner, "requests", r).is_none_or(|request| Some(request) == limit)
            })
        };
        if owners.iter().all(full) { Self::Guaranteed } else { Self::Burstable }
    }
}

/// An amount; one of nothing counts as none.
fn given(owner: &Value, list: &str, resource: Resource) -> Option<Quantity> {
    amount(owner, list, resource).filter(|a| !a.is_zero())
}

fn asks(owner: &Value) -> bool {
    ["requests", "limits"]
        .iter()
        .any(|list| Resource::ALL.into_iter().any(|r| given(owner, list, r).is_some()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn class(containers: &Value) -> &'static str {
        Class::of(&json!({"spec": {"containers": containers}})).as_str()
    }

    fn resources(requests: &Value, limits: &Value) -> Value {
        json!({"resources": {"requests": requests, "limits": limits}})
    }

    #[test]
    fn the_class_is_the_one_that_the_api_server_computes() {
        let both = json!({"cpu": "1", "memory": "1Gi"});
        let same = json!({"cpu": "1000m", "memory": "1024Mi"});
        let full = resources(&both, &same);
        assert_eq!(class(&json!([full])), "Guaranteed");
        assert_eq!(class(&json!([resources(&json!({}), &both)])), "Guaranteed");
        assert_eq!(class(&json!([full, {}])), "Burstable");
        assert_eq!(class(&json!([resources(&json!({"cpu": "1"}), &both)])), "Guaranteed");
        assert_eq!(class(&json!([resources(&json!({"cpu": "500m"}), &both)])), "Burstable");
        assert_eq!(class(&json!([resources(&json!({}), &json!({"memory": "1Gi"}))])), "Burstable");
        assert_eq!(class(&json!([{}])), "BestEffort");
        assert_eq!(class(&json!([resources(&json!({"cpu": "0"}), &json!({}))])), "BestEffort");
        assert_eq!(
            class(&json!([resources(&json!({"ephemeral-storage": "1Gi"}), &json!({}))])),
            "BestEffort"
        );
    }

    #[test]
    fn init_containers_count_and_the_pods_own_resources_win() {
        let both = json!({"cpu": "1", "memory": "1Gi"});
        let full = resources(&both, &both);
        let with_init = json!({"spec": {"containers": [full], "initContainers": [{}]}});
        assert_eq!(Class::of(&with_init), Class::Burstable);
        let own = json!({"spec": {"resources": {"requests": both, "limits": both}, "containers": [{}]}});
        assert_eq!(Class::of(&own), Class::Guaranteed);
    }
}
