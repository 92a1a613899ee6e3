use serde_json::{Value, json};

use super::ids::{Ids, shares_pids_with_others};
use super::state::{NotNow, node_looks_dead, not_now};
use super::target::choose;
use super::*;
use podbench_contract::ids::{Gid, Uid};

fn pod(spec: Value, status: Value) -> Pod {
    let mut spec = spec;
    spec.as_object_mut().unwrap().entry("nodeName").or_insert_with(|| "node1".into());
    Pod::new(json!({
        "metadata": {"name": "api", "namespace": "demo", "uid": "u-1", "annotations": {}},
        "spec": spec, "status": status,
    }))
    .unwrap()
}

fn containers(names: &[&str]) -> Value {
    json!({"containers": names.iter().map(|n| json!({"name": n})).collect::<Vec<_>>()})
}

fn running(name: &str) -> Value {
    json!({"containerStatuses": [{"name": name, "state": {"running": {}}}]})
}

#[test]
fn what_has_a_hostile_name_is_no_pod() {
    for name in ["", "-x", "a b", "a\nb", "../x", "A"] {
        let value =
            json!({"metadata": {"name": name, "namespace": "n", "uid": "u"}, "spec": {"containers": []}});
        assert!(Pod::new(value).is_err(), "{name:?}");
    }
}

#[test]
fn the_container_wins_over_the_pod_and_the_node_fills_in_the_rest() {
    let p = pod(
        json!({"securityContext": {"runAsUser": 1, "runAsGroup": 2}, "containers": [
            {"name": "a", "securityContext": {"runAsUser": 10}}, {"name": "b"}]}),
        Value::Null,
    );
    let ids = |name| Ids::of(&p, &p.container(name).unwrap());
    assert_eq!(ids("a"), Ids { uid: Some(Uid(10)), gid: Some(Gid(2)) });
    assert_eq!(ids("b"), Ids { uid: Some(Uid(1)), gid: Some(Gid(2)) });
    let status = json!({"containerStatuses": [{"name": "a", "user": {"linux": {"uid": 33, "gid": 0}}}]});
    let p = pod(
        json!({"containers": [{"name": "a", "securityContext": {"runAsUser": 34}}, {"name": "b"}]}),
        status,
    );
    assert_eq!(Ids::of(&p, &p.container("a").unwrap()), Ids { uid: Some(Uid(34)), gid: Some(Gid(0)) });
    assert_eq!(Ids::of(&p, &p.container("b").unwrap()), Ids::default());
}

#[test]
fn a_shared_pid_namespace_counts_only_with_another_uid_in_it() {
    let shared = |uids: [u32; 2]| {
        let c = |n: &str, uid: u32| json!({"name": n, "securityContext": {"runAsUser": uid}});
        pod(
            json!({"shareProcessNamespace": true, "containers": [c("a", uids[0]), c("b", uids[1])]}),
            Value::Null,
        )
    };
    assert!(!shares_pids_with_others(&shared([7, 7]), "a", Some(Uid(7))));
    assert!(shares_pids_with_others(&shared([7, 8]), "a", Some(Uid(7))));
    let unknown = pod(
        json!({"shareProcessNamespace": true, "containers": [{"name": "a"}, {"name": "b"}]}),
        Value::Null,
    );
    assert!(shares_pids_with_others(&unknown, "a", Some(Uid(7))));
    assert!(!shares_pids_with_others(&pod(containers(&["a", "b"]), Value::Null), "a", Some(Uid(7))));
}

#[test]
fn a_mesh_sidecar_in_front_is_passed_over_and_said() {
    let choice = choose(&pod(containers(&["istio-proxy", "shop"]), Value::Null), None, &[]).unwrap();
    assert_eq!(choice.name, "shop");
    assert!(choice.why.unwrap().contains("istio-proxy"));
    assert_eq!(choice.others, ["istio-proxy"]);
}

#[test]
fn the_default_container_annotation_wins_over_the_order() {
    let mut value = pod(containers(&["a", "b"]), Value::Null).value().clone();
    value["metadata"]["annotations"][super::target::DEFAULT] = "b".into();
    assert_eq!(choose(&Pod::new(value.clone()).unwrap(), None, &[]).unwrap().name, "b");
    value["metadata"]["annotations"][super::target::DEFAULT] = "gone".into();
    assert_eq!(choose(&Pod::new(value).unwrap(), None, &[]).unwrap().name, "a");
}

#[test]
fn a_single_container_needs_no_reason() {
    assert_eq!(choose(&pod(containers(&["a"]), Value::Null), None, &[]).unwrap().why, None);
}

#[test]
fn an_init_container_can_be_named_and_a_seat_cannot() {
    let spec = json!({"containers": [{"name": "a"}], "initContainers": [{"name": "prepare"}],
        "ephemeralContainers": [{"name": "podbench-1"}]});
    let p = pod(spec, Value::Null);
    assert_eq!(choose(&p, Some("prepare"), &[]).unwrap().name, "prepare");
    let no = choose(&p, Some("podbench-1"), &[]).unwrap_err();
    assert_eq!(no.have, ["a", "prepare"]);
    assert_eq!(choose(&p, Some("prep"), &[]).unwrap_err().like.as_deref(), Some("prepare"));
}

#[test]
fn a_pod_that_cannot_take_a_seat_is_told_before_any_write() {
    let base = || pod(containers(&["a"]), running("a")).value().clone();
    let ask = |value: Value| not_now(&Pod::new(value).unwrap(), "a");
    assert_eq!(ask(base()), None);
    let with = |pointer: &str, key: &str, value: Value| {
        let mut v = base();
        v.pointer_mut(pointer).unwrap()[key] = value;
        ask(v)
    };
    assert_eq!(with("/metadata/annotations", MIRROR_FOR_TEST, "x".into()), Some(NotNow::Static));
    assert_eq!(with("/metadata", "deletionTimestamp", "2026-01-01T00:00:00Z".into()), Some(NotNow::Deleted));
    assert_eq!(with("/status", "phase", "Succeeded".into()), Some(NotNow::Completed("Succeeded".into())));
    assert_eq!(with("/spec", "os", json!({"name": "windows"})), Some(NotNow::Windows));
    assert_eq!(with("/spec", "nodeSelector", json!({"kubernetes.io/os": "windows"})), Some(NotNow::Windows));
    assert!(matches!(with("/spec", "nodeName", "".into()), Some(NotNow::Unscheduled(_))));
}

const MIRROR_FOR_TEST: &str = "kubernetes.io/config.mirror";

#[test]
fn a_crash_looping_target_says_how_often_and_how_it_ended() {
    let status = json!({"containerStatuses": [{"name": "a", "restartCount": 7,
        "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s"}},
        "lastState": {"terminated": {"exitCode": 3, "reason": "Error"}}}]});
    let Some(NotNow::Target(stopped)) = not_now(&pod(containers(&["a"]), status), "a") else { panic!() };
    assert_eq!((stopped.reason.as_str(), stopped.restarts), ("CrashLoopBackOff", 7));
    assert_eq!(stopped.last.unwrap().code, 3);
}

#[test]
fn a_target_that_waits_for_an_init_container_names_it() {
    let spec = json!({"containers": [{"name": "a"}], "initContainers": [{"name": "done"}, {"name": "slow"}]});
    let status = json!({
        "containerStatuses": [{"name": "a", "state": {"waiting": {"reason": "PodInitializing"}}}],
        "initContainerStatuses": [{"name": "done", "state": {"terminated": {"exitCode": 0}}},
            {"name": "slow", "state": {"running": {}}}]});
    let p = pod(spec, status);
    let Some(NotNow::Target(stopped)) = not_now(&p, "a") else { panic!() };
    assert_eq!((stopped.waits_for.as_str(), stopped.reason.as_str()), ("slow", "running"));
    assert_eq!(not_now(&p, "slow"), None);
}

#[test]
fn a_node_that_stopped_answering_shows_in_the_pods_conditions() {
    let looks = |ready: &str, containers_ready: &str, gates: Value| {
        let mut spec = containers(&["a"]);
        spec["readinessGates"] = gates;
        let status = json!({"phase": "Running", "conditions": [
            {"type": "Ready", "status": ready}, {"type": "ContainersReady", "status": containers_ready}]});
        node_looks_dead(&pod(spec, status))
    };
    assert!(looks("False", "True", json!([])));
    assert!(!looks("True", "True", json!([])));
    assert!(!looks("False", "False", json!([])));
    assert!(!looks("False", "True", json!([{"conditionType": "lb"}])));
}

#[test]
fn a_name_that_only_the_status_remembers_is_taken_too() {
    let p = pod(containers(&["a"]), json!({"ephemeralContainerStatuses": [{"name": "podbench-4"}]}));
    assert!(p.taken_names().iter().any(|n| n == "podbench-4"));
}

#[test]
fn one_more_seat_leaves_everything_else_as_it_came() {
    let p = pod(json!({"containers": [{"name": "a"}], "future": {"x": 1}}), Value::Null);
    let value = p.with_ephemeral(json!({"name": "podbench-1"}));
    assert_eq!(value.pointer("/spec/future/x"), Some(&json!(1)));
    assert_eq!(value.pointer("/spec/ephemeralContainers/0/name"), Some(&json!("podbench-1")));
    assert_eq!(value["kind"], "Pod");
}

#[test]
fn every_name_that_reaches_an_argv_is_a_name() {
    let pod = |name: &str, namespace: &str, node: &str, container: &str| {
        Pod::new(json!({
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"nodeName": node, "containers": [{"name": container}]},
        }))
        .is_ok()
    };
    assert!(pod("api", "demo", "worker-2.example", "app") && pod("api", "demo", "", "app"));
    for bad in ["--kubeconfig=/x", "-w", "a b", "a\n", "A", "a/b", "$(x)", "a;b", "a-"] {
        assert!(!pod(bad, "demo", "n", "app") && !pod("api", bad, "n", "app"), "{bad:?}");
        assert!(!pod("api", "demo", bad, "app") && !pod("api", "demo", "n", bad), "{bad:?}");
    }
}
