use serde_json::json;

use super::*;
use crate::resize::plan::Step;
use podbench_contract::resized::Share;

fn share(limit: &str) -> Share {
    Share { request: "16Mi".parse().unwrap(), limit: limit.parse().unwrap() }
}

fn seen(conditions: &Value, actual: &str, observed: u64) -> Judged {
    let pod = Pod::new(json!({
        "metadata": {"name": "api", "namespace": "demo", "uid": "u-1", "generation": 3},
        "spec": {"containers": [{"name": "app"}]},
        "status": {"observedGeneration": observed, "conditions": conditions, "containerStatuses": [
            {"name": "app", "resources": {"limits": {"memory": actual}, "requests": {"memory": "16Mi"}}}]},
    }))
    .unwrap();
    let step = Step { resource: Resource::Memory, now: share("64Mi"), to: share("128Mi") };
    judge(&pod, &Change::new("app", &[step]), Some(3))
}

#[test]
fn only_the_kubelets_own_numbers_end_it_well() {
    assert_eq!(seen(&json!([]), "128Mi", 3), Judged::Actual);
    assert_eq!(seen(&json!([]), "131072Ki", 3), Judged::Actual);
    assert_eq!(seen(&json!([]), "64Mi", 3), Judged::Wait);
    assert_eq!(seen(&json!([]), "128Mi", 2), Judged::Wait, "the kubelet hasn't seen the write");
}

#[test]
fn the_kubelets_words_are_kept_and_an_earlier_writes_condition_is_not_believed() {
    let pending = |reason: &str, generation: u64| {
        json!([{"type": "PodResizePending", "status": "True", "reason": reason,
                "message": "Node didn't have enough capacity", "observedGeneration": generation}])
    };
    assert!(
        matches!(seen(&pending("Infeasible", 3), "64Mi", 3), Judged::Infeasible(w) if w.contains("enough capacity"))
    );
    assert!(matches!(seen(&pending("Deferred", 3), "64Mi", 3), Judged::Deferred(_)));
    assert_eq!(seen(&pending("Infeasible", 2), "64Mi", 3), Judged::Wait);
    // As a kubelet of 1.36 wrote it.
    let failing = json!([{"type": "PodResizeInProgress", "status": "True", "reason": "Error", "observedGeneration": 3,
        "message": "cannot decrease memory limits: attempting to set container \"app\" memory limit (1048576) below current usage (0)"}]);
    assert!(matches!(seen(&failing, "64Mi", 3), Judged::Failing(w) if w.contains("below current usage")));
    let going = json!([{"type": "PodResizeInProgress", "status": "True", "observedGeneration": 3}]);
    assert_eq!(seen(&going, "64Mi", 3), Judged::Wait);
}
