//! The report says what the kernel answered, whatever the spec or the environment claim.

use podbench_contract::session;
use podbench_test_support::namespace::Namespace;
use podbench_test_support::person::alias;
use serde_json::{Value, json};

use crate::ptrace::deny_ptrace;
use crate::world::{ids, number, restricted, text, world};

#[test]
fn a_degraded_seat_attaches_for_real_where_its_report_says_so() {
    let (ns, person) = restricted("degraded", &["odd-ids"]);
    let report = person.attach(&["odd-ids"]);
    let (uid, gid) = ids(&ns, "odd-ids");
    assert_eq!((number(&report, "/target/uid"), number(&report, "/target/gid")), (uid, gid));
    assert_eq!((number(&report, "/rung/uid"), number(&report, "/rung/gid")), (uid, gid));
    let said = person.ssh(&[&alias(&report), "gdb -q -nx -batch -ex 'attach 1' -ex detach 2>&1"]);
    let works = said.stdout.contains("detached");
    assert_eq!(report.pointer("/supports/liveAttach/ok"), Some(&works.into()), "{said:?} {report:#}");
    let read = person.ssh(&[&alias(&report), "ls /proc/1/root/ && head -1 /proc/1/maps"]).code == 0;
    assert_eq!(report.pointer("/supports/readOnly/ok"), Some(&read.into()), "{report:#}");
}

#[test]
fn a_seat_of_other_ids_names_the_blocker_and_the_flag_that_lifts_it() {
    let (ns, person) = restricted("seat-rung", &["odd-ids"]);
    let report = person.attach(&["odd-ids", "--max-rung", "seat", "--no-correct-ids"]);
    assert_eq!(text(&report, "/rung/measured"), "seat", "{report:#}");
    assert_eq!(text(&report, "/blocker/kind"), "uid", "{report:#}");
    let (uid, _) = ids(&ns, "odd-ids");
    assert!(text(&report, "/blocker/remedy").contains(&uid.to_string()), "{report:#}");
    assert_eq!(report.pointer("/supports/liveAttach/ok"), Some(&false.into()));
    let said = person.ssh(&[&alias(&report), "gdb -q -nx -batch -ex 'attach 1' 2>&1"]);
    assert!(!said.stdout.contains("detached"), "{said:?}");
    // The wrong gid alone is enough for the kernel.
    let report = person.attach(&["odd-ids", "--target-gid", "77", "--new"]);
    assert_eq!(text(&report, "/blocker/kind"), "gid", "{report:#}");
}

#[test]
fn a_seccomp_profile_that_denies_ptrace_is_told_from_missing_rights() {
    let ns = Namespace::scratch("seccomp");
    let profile = deny_ptrace(&ns);
    ns.zoo(&["odd-ids"]);
    let mut pod = ns.get("pod", "odd-ids");
    let container = pod.pointer_mut("/spec/containers/0").unwrap();
    // The service account's mount belongs to a volume that the copy doesn't have.
    container.as_object_mut().unwrap().remove("volumeMounts");
    container["securityContext"]["seccompProfile"] =
        json!({"type": "Localhost", "localhostProfile": profile});
    let spec = json!({"containers": [container.clone()], "securityContext": pod["spec"]["securityContext"]});
    ns.cluster.apply(
        &json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "no-ptrace", "namespace": ns.name}, "spec": spec})
        .to_string(),
    );
    ns.kubectl(&["wait", "--for=condition=Ready", "pod/no-ptrace", "--timeout=30s"]).expect_code(0);
    let person = crate::world::person(&ns);
    // The degraded seat takes over the target container's own profile, so ids match and ptrace fails.
    let report = person.attach(&["no-ptrace"]);
    assert_eq!(text(&report, "/rung/measured"), "degraded", "{report:#}");
    assert_eq!(text(&report, "/blocker/kind"), "seccomp", "{report:#}");
    assert_eq!(report.pointer("/supports/launch/ok"), Some(&false.into()), "{report:#}");
    let said = person.ssh(&[&alias(&report), "gdb -q -nx -batch -ex 'attach 1' 2>&1"]);
    assert!(!said.stdout.contains("detached"), "{said:?}");
}

/// An ephemeral container of the seat image whose whole environment lies.
fn lying_seat(pod: &Value, image: &str) -> Value {
    let mut pod = pod.clone();
    let name = |n: &str, v: &str| json!({"name": n, "value": v});
    let seat = json!({
        "name": "liar", "image": image, "imagePullPolicy": "IfNotPresent",
        "command": session::agent_argv(), "targetContainerName": pod.pointer("/spec/containers/0/name").unwrap(),
        "securityContext": {"runAsUser": 65532, "runAsGroup": 65532, "runAsNonRoot": true,
            "allowPrivilegeEscalation": false, "privileged": false, "capabilities": {"drop": ["ALL"]}},
        "env": [
            name("PODBENCH_TARGET", "nosuch"), name("PODBENCH_NODE_NAME", "nosuch"), name("PODBENCH_OWNER", "root"),
            name("PODBENCH_TARGET_CID", &"f".repeat(64)), name("PODBENCH_POD_CONTAINERS", "x,y"),
            name("PODBENCH_HOST_NETWORK", "true"), name("PODBENCH_PUBKEY", "not a key"), name("HOME", "/proc/1/root"),
        ],
    });
    let spec = pod.pointer_mut("/spec").unwrap().as_object_mut().unwrap();
    spec.insert("ephemeralContainers".into(), json!([seat]));
    pod
}

#[test]
fn no_reading_comes_from_the_environment() {
    let (ns, _) = restricted("liar", &["odd-ids"]);
    let lying = lying_seat(&ns.get("pod", "odd-ids"), &ns.cluster.image);
    let path = format!("/api/v1/namespaces/{}/pods/odd-ids/ephemeralcontainers", ns.name);
    let put = ns.cluster.command(&["replace", "--raw", &path, "-f", "-"]);
    podbench_test_support::process::run_with(
        put,
        lying.to_string().as_bytes(),
        std::time::Duration::from_secs(20),
    )
    .expect_code(0);
    podbench_test_support::process::eventually(
        "the lying seat runs",
        std::time::Duration::from_secs(30),
        || ns.get("pod", "odd-ids").pointer("/status/ephemeralContainerStatuses/0/state/running").cloned(),
    );
    let pod = ns.get("pod", "odd-ids");
    let cid = pod.pointer("/status/containerStatuses/0/containerID").unwrap().as_str().unwrap();
    let cid = podbench_contract::ids::ContainerId::parse(cid).unwrap();
    let argv = session::measure_argv(Some(&cid), None, true);
    let reply = ns
        .exec("odd-ids", "liar", &argv.iter().map(String::as_str).collect::<Vec<_>>())
        .expect_code(0)
        .stdout;
    let payload = podbench_contract::frame::decode(reply.as_bytes()).unwrap();
    let m = podbench_contract::measurement::Measurement::parse(payload).unwrap();
    let (uid, gid) = ids(&ns, "odd-ids");
    let target = m.target.expect("the target is found");
    assert_eq!(target.uid().map(|u| u64::from(u.0)), Some(uid));
    assert_eq!(target.gid().map(|g| u64::from(g.0)), Some(gid));
    assert_eq!(m.seat.uid().map(|u| u.0), Some(65532));
    assert_eq!(target.pid, 1);
}

#[test]
fn the_target_of_a_shared_pid_namespace_is_the_one_that_was_asked_for() {
    let (ns, person) = world("shared", &["shared-pid"]);
    let pod = ns.get("pod", "shared-pid");
    let containers = pod.pointer("/spec/containers").unwrap().as_array().unwrap();
    assert!(containers.len() >= 2);
    for container in containers {
        let name = text(container, "/name");
        let report = person.attach(&["shared-pid", "-c", name, "--new"]);
        let uid = container.pointer("/securityContext/runAsUser").and_then(Value::as_u64);
        if let Some(uid) = uid {
            assert_eq!(number(&report, "/target/uid"), uid, "{name}: {report:#}");
        }
        assert_eq!(text(&report, "/target/container"), name);
        assert_ne!(number(&report, "/target/pid"), 1, "PID 1 is pause there");
    }
}
