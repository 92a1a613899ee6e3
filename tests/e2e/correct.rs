//! A target whose ids aren't the ones that its pod says: measured, and corrected once.

use podbench_test_support::namespace::Namespace;
use podbench_test_support::person::{Person, alias};
use serde_json::{Value, json};

use crate::world::{ladder, number, person, text};

/// A pod that is root by its spec and becomes 1234:4321 before it does anything.
fn dropping(what: &str) -> (Namespace, Person) {
    let ns = Namespace::scratch(what);
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "drops", "namespace": ns.name},
        "spec": {
            "terminationGracePeriodSeconds": 1,
            "volumes": [{"name": "data", "emptyDir": {}}, {"name": "podbench-home", "emptyDir": {}}],
            "containers": [{
                "name": "app", "image": "podbench.test/debian:1", "imagePullPolicy": "Never",
                "command": ["chroot", "--userspec=1234:4321", "--groups=", "/", "sleep", "3600"],
                "volumeMounts": [{"name": "data", "mountPath": "/data"}],
                "securityContext": {"runAsUser": 0, "runAsGroup": 0},
            }],
        },
    });
    ns.cluster.apply(&pod.to_string());
    ns.kubectl(&["wait", "--for=condition=Ready", "pod/drops", "--timeout=60s"]).expect_code(0);
    let person = person(&ns);
    (ns, person)
}

const FLAGS: [&str; 9] = [
    "drops",
    "--max-rung",
    "degraded",
    "--mount",
    "data:/mnt/data",
    "--no-seat-identity",
    "--pull",
    "Never",
    "--no-prompt",
];

#[test]
fn a_corrected_seat_is_landed_once_and_keeps_every_flag() {
    let (ns, person) = dropping("correct");
    let report = person.attach(&FLAGS);
    assert_eq!(text(&report, "/seat/name"), "podbench-2", "{report:#}");
    assert_eq!((number(&report, "/rung/uid"), number(&report, "/rung/gid")), (1234, 4321));
    assert_eq!(text(&report, "/rung/measured"), "degraded");
    assert_eq!(report.pointer("/supports/liveAttach/ok"), Some(&json!(true)), "{report:#}");
    assert!(ladder(&report).contains(&"degraded landed kubelet".to_owned()), "{report:#}");
    let said = report["warnings"].to_string();
    assert!(said.contains("podbench-2") && said.contains("podbench-1 isn't used any more"), "{said}");

    let pod = ns.get("pod", "drops");
    let both = pod.pointer("/spec/ephemeralContainers").and_then(Value::as_array).unwrap();
    assert_eq!(both.len(), 2);
    for field in ["image", "imagePullPolicy", "command", "targetContainerName", "volumeMounts", "env"] {
        assert_eq!(both[0].get(field), both[1].get(field), "{field} was lost in the corrected seat");
    }
    assert_eq!(both[1].pointer("/volumeMounts/0/mountPath"), Some(&json!("/mnt/data")));
    assert_eq!(both[1].get("imagePullPolicy"), Some(&json!("Never")));
    assert_eq!(
        person.ssh(&[&alias(&report), "id -u; id -g; ls -d /mnt/data"]).text(),
        "1234\n4321\n/mnt/data"
    );

    // The second time there is nothing to correct, and nothing is written.
    let again = person.attach(&FLAGS);
    assert_eq!(text(&again, "/seat/name"), "podbench-2", "{again:#}");
    assert_eq!(ns.seats("drops").len(), 2);
}

#[test]
fn without_correction_or_with_pinned_ids_one_seat_is_all() {
    let (ns, person) = dropping("uncorrected");
    let report = person.attach(&["drops", "--max-rung", "degraded", "--no-correct-ids"]);
    assert_eq!(ns.seats("drops"), ["podbench-1"]);
    assert_eq!(text(&report, "/blocker/kind"), "uid", "{report:#}");
    let remedy = text(&report, "/blocker/remedy");
    assert!(remedy.contains("--target-uid 1234"), "{remedy}");

    // What the report advises does it.
    let report = person.attach(&["drops", "--new", "--target-uid", "1234", "--target-gid", "4321"]);
    assert_eq!(ns.seats("drops").len(), 2, "pinned ids need no correction: {report:#}");
    assert_eq!(text(&report, "/rung/measured"), "degraded", "{report:#}");
    assert_eq!(report.pointer("/supports/liveAttach/ok"), Some(&json!(true)), "{report:#}");
}
