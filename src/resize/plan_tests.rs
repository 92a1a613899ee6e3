use serde_json::json;

use super::*;

fn pod(containers: &Value) -> Pod {
    Pod::new(json!({
        "metadata": {"name": "api", "namespace": "demo", "uid": "u-1"},
        "spec": {"containers": containers},
    }))
    .unwrap()
}

fn container(requests: &Value, limits: &Value) -> Value {
    json!({"name": "app", "resources": {"requests": requests, "limits": limits}})
}

fn burstable() -> Pod {
    pod(&json!([container(&json!({"memory": "16Mi", "cpu": "5m"}), &json!({"memory": "64Mi"}))]))
}

fn memory(raw: &str) -> Wish {
    let (request, limit) = match raw.split_once(':') {
        Some((request, limit)) => (Some(request.parse().unwrap()), limit),
        None => (None, raw),
    };
    Wish { resource: Resource::Memory, size: Size { request, limit: limit.parse().unwrap() } }
}

fn ranges(limits: &Value) -> Vec<Range> {
    Range::read(&json!({"items": [{"metadata": {"name": "lr"}, "spec": {"limits": limits}}]}))
}

fn to(pod: &Pod, wish: &str, limits: &Value) -> Result<String, String> {
    plan(pod, "app", &[memory(wish)], &ranges(limits))
        .map(|s| s[0].to.to_string())
        .map_err(|no| no.to_string())
}

#[test]
fn one_value_moves_the_limit_and_leaves_the_request() {
    assert_eq!(to(&burstable(), "128Mi", &json!([])).unwrap(), "16Mi:128Mi");
    assert_eq!(to(&burstable(), "32Mi:128Mi", &json!([])).unwrap(), "32Mi:128Mi");
    assert_eq!(
        to(&burstable(), "8Mi", &json!([])).unwrap(),
        "8Mi:8Mi",
        "a request is never more than its limit"
    );
}

#[test]
fn a_guaranteed_container_stays_one() {
    let both = json!({"memory": "64Mi", "cpu": "1"});
    let pod = pod(&json!([container(&both, &both)]));
    assert_eq!(to(&pod, "128Mi", &json!([])).unwrap(), "128Mi:128Mi");
    let said = to(&pod, "64Mi:128Mi", &json!([])).unwrap_err();
    assert!(said.contains("Guaranteed to Burstable"), "{said}");
}

#[test]
fn a_burstable_pod_never_becomes_guaranteed_or_best_effort_something_else() {
    let pod1 = pod(&json!([container(
        &json!({"memory": "16Mi", "cpu": "1"}),
        &json!({"memory": "64Mi", "cpu": "1"})
    )]));
    let said = to(&pod1, "64Mi:64Mi", &json!([])).unwrap_err();
    assert!(said.contains("Burstable to Guaranteed"), "{said}");
    let best = pod(&json!([{"name": "app"}]));
    assert_eq!(plan(&best, "app", &[memory("1Gi")], &[]), Err(No::BestEffort));
    let unlimited = pod(&json!([container(&json!({"memory": "16Mi"}), &json!({}))]));
    let said = to(&unlimited, "1Gi", &json!([])).unwrap_err();
    assert!(said.contains("app has no memory limit"), "{said}");
}

#[test]
fn a_ratio_moves_the_request_along_rounded_up_to_a_mebibyte() {
    let ratio = json!([{"type": "Container", "maxLimitRequestRatio": {"memory": "10"}}]);
    assert_eq!(to(&burstable(), "400Mi", &ratio).unwrap(), "40Mi:400Mi");
    assert_eq!(to(&burstable(), "405Mi", &ratio).unwrap(), "41Mi:405Mi");
    assert_eq!(to(&burstable(), "100Mi", &ratio).unwrap(), "16Mi:100Mi", "enough already");
    let said = to(&burstable(), "16Mi:400Mi", &ratio).unwrap_err();
    assert!(said.contains("ratio per Container is 10") && said.contains("160Mi"), "{said}");
}

#[test]
fn a_maximum_is_told_in_the_limit_ranges_terms_with_what_fits() {
    let max = json!([{"type": "Container", "max": {"memory": "512Mi"}}]);
    let said = to(&burstable(), "1Gi", &max).unwrap_err();
    assert_eq!(
        said,
        "LimitRange lr: maximum memory usage per Container is 512Mi; the greatest limit that fits is 512Mi"
    );
    assert!(to(&burstable(), "512Mi", &max).is_ok());
    let side =
        json!({"name": "side", "resources": {"requests": {"memory": "8Mi"}, "limits": {"memory": "100Mi"}}});
    let two = pod(&json!([container(&json!({"memory": "16Mi"}), &json!({"memory": "64Mi"})), side]));
    let max = json!([{"type": "Pod", "max": {"memory": "600Mi"}, "maxLimitRequestRatio": {"memory": "5"}}]);
    assert!(to(&two, "501Mi", &max).unwrap_err().contains("the greatest limit that fits is 500Mi"));
    assert_eq!(to(&two, "500Mi", &max).unwrap(), "112Mi:500Mi", "the others' share of the ratio counts");
    let min = json!([{"type": "Container", "min": {"memory": "8Mi"}}]);
    assert!(
        to(&burstable(), "1Mi:64Mi", &min).unwrap_err().contains("minimum memory usage per Container is 8Mi")
    );
}

#[test]
fn a_container_with_devices_and_one_that_would_restart_are_refused_by_name() {
    let claims = json!([{"name": "app", "resources": {"limits": {"memory": "1Gi"}, "requests": {"memory": "1Gi"},
                         "claims": [{"name": "gpu"}]}}]);
    let said = plan(&pod(&claims), "app", &[memory("2Gi")], &[]).unwrap_err().to_string();
    assert!(said.contains("app has resource claims (gpu)"), "{said}");
    let mut restarts = container(&json!({"memory": "16Mi"}), &json!({"memory": "64Mi"}));
    restarts["resizePolicy"] = json!([{"resourceName": "memory", "restartPolicy": "RestartContainer"},
                                      {"resourceName": "cpu", "restartPolicy": "NotRequired"}]);
    let said = to(&pod(&json!([restarts])), "128Mi", &json!([])).unwrap_err();
    assert!(said.contains("RestartContainer"), "{said}");
}
