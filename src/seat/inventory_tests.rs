use podbench_contract::ids::Gid;
use proptest::prelude::*;

use super::*;
use crate::spec::ephemeral::Plan;
use crate::spec::security::{NonRoot, Security};

const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKHEChAgLwFqB3pJzkGm2E7VJ0sL9hVYx4kq0J3j5m1p me";
const KEY2: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKHEChAgLwFqB3pJzkGm2E7VJ0sL9hVYx4kq0J3j5m1q me";

/// A seat's spec, as attach authors it.
fn spec(n: u32, owner: Option<&str>, key: &str, security: &Security) -> Value {
    let plan =
        Plan { owner: owner.map(str::to_owned), key: PublicKey::parse(key).unwrap(), ..Plan::sample() };
    plan.container(SeatName::parse(&format!("podbench-{n}")).unwrap(), security)
}

fn degraded() -> Security {
    Security::Degraded { uid: NonRoot::new(Uid(7)).unwrap(), gid: Some(Gid(7)), seccomp: None }
}

fn mine(n: u32) -> Value {
    spec(n, Some("me"), KEY, &degraded())
}

/// A pod with these ephemeral containers, each running.
fn pod(specs: Vec<Value>) -> Pod {
    let status = |s: &Value| json!({"name": s["name"], "state": {"running": {}}});
    let statuses: Vec<Value> = specs.iter().map(status).collect();
    Pod::new(json!({
        "metadata": {"name": "p", "namespace": "n", "uid": "u"},
        "spec": {
            "containers": [{"name": "app", "securityContext": {"runAsUser": 7}}],
            "ephemeralContainers": specs,
        },
        "status": {"ephemeralContainerStatuses": statuses},
    }))
    .unwrap()
}

fn with(mut spec: Value, field: &str, value: Value) -> Value {
    spec[field] = value;
    spec
}

fn names(pod: &Pod) -> (Vec<String>, Vec<String>) {
    let all = Inventory::of(pod);
    let seats = all.seats.iter().map(|s| s.name.to_string()).collect();
    (seats, all.lookalikes.iter().map(|l| l.container.name().to_owned()).collect())
}

#[test]
fn what_attach_authors_is_a_seat_of_its_owner_and_of_nobody_else() {
    let pod = pod(vec![mine(1)]);
    let all = Inventory::of(&pod);
    let seat = all.seat("podbench-1").unwrap();
    assert_eq!((seat.target, seat.rung, seat.untrusted.clone()), ("app", Rung::Degraded, None));
    let is_of = |owner: Option<&str>, key: &str| {
        seat.is_of(&Caller { owner: owner.map(str::to_owned), key: PublicKey::parse(key).ok() })
    };
    assert!(is_of(Some("me"), KEY2));
    assert!(!is_of(Some("somebody"), KEY), "the key of a seat with an owner says nothing");
    assert!(!is_of(None, KEY), "a seat with an owner isn't that of somebody unknown");
}

#[test]
fn a_container_that_only_looks_like_a_seat_is_never_one() {
    let target = |value: &str| json!([{"name": "PODBENCH_TARGET", "value": value}]);
    let cases = [
        with(mine(1), "command", json!(["sleep", "1000"])),
        with(mine(1), "command", Value::Null),
        with(mine(1), "args", json!(["--evil"])),
        with(mine(1), "targetContainerName", Value::Null),
        with(mine(1), "env", target("other")),
        with(mine(1), "env", json!([])),
        with(mine(1), "name", json!("podbench-x")),
    ];
    for spec in cases {
        let (seats, lookalikes) = names(&pod(vec![spec.clone()]));
        assert_eq!((seats.len(), lookalikes.len()), (0, 1), "{spec:#}");
    }
    let debugger = json!({"name": "debugger-abcde", "image": "busybox"});
    assert_eq!(names(&pod(vec![debugger])), (vec![], vec![]), "somebody's own debug container is no news");
}

#[test]
fn a_seat_that_podbench_would_not_author_says_why_it_is_not_trusted() {
    let why = |spec: Value| Inventory::of(&pod(vec![spec])).seats.remove(0).untrusted;
    assert_eq!(why(mine(1)), None);
    let mut privileged = mine(1);
    privileged["securityContext"]["privileged"] = json!(true);
    assert_eq!(why(privileged).as_deref(), Some("it may gain privileges"));
    let mut preload = mine(1);
    preload["env"].as_array_mut().unwrap().push(json!({"name": "LD_PRELOAD", "value": "/evil.so"}));
    assert_eq!(why(preload).as_deref(), Some("its environment has LD_PRELOAD"));
    let hooked = with(mine(1), "lifecycle", json!({"postStart": {}}));
    let hidden = with(mine(1), "volumeMounts", json!([{"name": "x", "mountPath": "/usr/local/bin"}]));
    assert!(why(hidden).unwrap().contains("/usr/local/bin"));
    assert!(why(hooked).unwrap().contains("lifecycle"));
}

#[test]
fn a_corrected_seat_is_degraded_though_the_pod_says_no_uid() {
    let rung = |security: &Security| {
        let mut value = pod(vec![spec(1, Some("me"), KEY, security)]).value().clone();
        value["spec"]["containers"][0]["securityContext"] = Value::Null;
        Inventory::of(&Pod::new(value).unwrap()).seats[0].rung
    };
    assert_eq!(rung(&degraded()), Rung::Degraded);
    let uid = NonRoot::new(Uid::SEAT).unwrap();
    assert_eq!(rung(&Security::Seat { uid, gid: Gid::SEAT, seccomp: None }), Rung::Seat);
    assert_eq!(rung(&Security::Full), Rung::Full);
}

#[test]
fn a_newer_seat_supersedes_only_one_of_its_own_kind() {
    let superseded = |specs: Vec<Value>| {
        let pod = pod(specs);
        let all = Inventory::of(&pod);
        all.superseded(all.seat("podbench-1").unwrap()).map(SeatName::number)
    };
    assert_eq!(superseded(vec![mine(1), mine(2), mine(3)]), Some(3));
    assert_eq!(superseded(vec![mine(1), spec(2, Some("me"), KEY, &Security::Full)]), Some(2));
    let full = spec(1, Some("me"), KEY, &Security::Full);
    assert_eq!(superseded(vec![full, mine(2)]), None, "attach goes on entering the full one");
    assert_eq!(superseded(vec![mine(1), spec(2, Some("you"), KEY, &degraded())]), None);
    assert_eq!(superseded(vec![mine(1), with(mine(2), "targetContainerName", json!("side"))]), None);
    let ownerless = |n, key| spec(n, None, key, &degraded());
    assert_eq!(superseded(vec![ownerless(1, KEY), ownerless(2, KEY)]), Some(2));
    assert_eq!(superseded(vec![ownerless(1, KEY), ownerless(2, KEY2)]), None);
    let mut planted = mine(2);
    planted["securityContext"]["privileged"] = json!(true);
    assert_eq!(superseded(vec![mine(1), planted]), None, "nobody ends a seat by planting another");
}

proptest! {
    #[test]
    fn only_the_agents_own_command_makes_a_seat(command in prop::collection::vec("[a-z/-]{0,12}", 0..4)) {
        let (seats, _) = names(&pod(vec![with(mine(1), "command", json!(command))]));
        prop_assert_eq!(seats.len(), usize::from(command == agent_argv()));
    }
}
