use podbench_contract::session::agent_argv;
use serde_json::{Value, json};

use super::*;

/// A pod whose seat ended so, beside a target with this status.
fn pod(seat: Value, target: Value) -> Pod {
    let env = json!([{"name": "PODBENCH_TARGET", "value": "app"}]);
    Pod::new(json!({
        "metadata": {"name": "p", "namespace": "n", "uid": "u"},
        "spec": {"containers": [{"name": "app"}], "ephemeralContainers": [{
            "name": "podbench-1", "command": agent_argv(), "targetContainerName": "app", "env": env,
        }]},
        "status": {
            "containerStatuses": [target],
            "ephemeralContainerStatuses": [{"name": "podbench-1", "state": {"terminated": seat}}],
        },
    }))
    .unwrap()
}

fn why(code: i64, target: Value) -> Option<String> {
    let ended = json!({"exitCode": code, "reason": "Error", "finishedAt": "2026-12-01T01:00:10Z"});
    let pod = pod(ended, target);
    let inventory = Inventory::of(&pod);
    let seat = inventory.seats.first().unwrap();
    cause(&pod, seat, &State::of(&seat.container))
}

fn exit(code: i64, at: &str) -> Value {
    json!({"terminated": {"exitCode": code, "reason": "OOMKilled", "finishedAt": at}})
}

#[test]
fn a_seat_that_went_with_its_target_names_the_exit_that_took_it() {
    let restarted = |at| json!({"name": "app", "state": {"running": {}}, "lastState": exit(3, at)});
    let said = why(137, restarted("2026-12-01T01:00:09Z")).unwrap();
    assert_eq!(
        said,
        "terminated with its target: app ended with exit code 3 (OOMKilled) at 2026-12-01T01:00:09Z"
    );
    // It hasn't been started again.
    let down = json!({"name": "app", "state": exit(3, "2026-12-01T01:00:10Z")});
    assert!(why(137, down).unwrap().contains("exit code 3"));
    // The exit that took it isn't remembered any more, and another isn't blamed.
    let later = why(137, restarted("2026-12-01T02:00:00Z")).unwrap();
    assert!(!later.contains("exit code") && later.contains("only its last exit"), "{later}");
    let earlier = why(137, restarted("2026-12-01T00:00:00Z")).unwrap();
    assert!(earlier.contains("not by the end of app"), "{earlier}");
}

#[test]
fn a_seat_that_ended_by_itself_blames_nobody() {
    let target = json!({"name": "app", "state": {"running": {}}});
    assert!(why(0, target.clone()).unwrap().contains("exit code 0"));
    assert_eq!(why(1, target), None);
}
