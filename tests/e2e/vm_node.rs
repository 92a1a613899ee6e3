//! A node whose kernel has what the others' lacks: Yama, AppArmor, cgroup v2. `./dev up --vm-node` starts
//! it, `./dev test vm` runs these; two nodes of one cluster disagree, as they do in the field.

use podbench_test_support::namespace::Namespace;
use podbench_test_support::person::alias;
use podbench_test_support::pods::pod;
use podbench_test_support::process::Ran;
use serde_json::{Value, json};

use crate::ptrace::judged;
use crate::world::{number, person, text};

/// The profiles that the node has; tests/cluster/vm/given.
const DENIED: &str = "podbench-deny-ptrace";

/// A pod of that node.
fn there(mut pod: Value) -> Value {
    pod["spec"]["nodeName"] = "node3".into();
    pod["spec"]["tolerations"] = json!([{"operator": "Exists"}]);
    pod
}

/// A pod of that node whose containers are under this AppArmor profile.
fn confined(name: &str, profile: &Value) -> Value {
    let mut pod = there(pod(name, 1234, 2000));
    pod["spec"]["securityContext"]["appArmorProfile"] = profile.clone();
    pod
}

/// The node's own settings, by a pod that may do anything to it; as they were when it is dropped.
struct Node(Namespace);

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.write_yama(0);
    }
}

impl Node {
    fn new() -> Self {
        let ns = Namespace::scratch("vm-admin");
        let mut admin = there(pod("admin", 0, 0));
        admin["spec"]["securityContext"] = json!({"runAsUser": 0});
        let container = &mut admin["spec"]["containers"][0];
        container["image"] = "podbench.test/debian:1".into();
        container["command"] = json!(["sleep", "infinity"]);
        container["args"] = json!([]);
        container["securityContext"] = json!({"privileged": true});
        ns.pods(&[admin]);
        Self(ns)
    }

    fn write_yama(&self, scope: u8) -> Ran {
        let script = format!("echo {scope} >/proc/sys/kernel/yama/ptrace_scope");
        self.0.exec("admin", "app", &["sh", "-c", &script])
    }
}

#[test]
fn on_the_vm_node_each_kind_of_target_is_judged_from_each_rung_under_two_yamas() {
    let node = Node::new();
    let ns = Namespace::scratch("vm-ptrace");
    let mut root = there(pod("root", 0, 0));
    root["spec"]["securityContext"] = json!({"runAsUser": 0});
    root["spec"]["containers"][0]["securityContext"] = json!({});
    let mut filtered = there(pod("filtered", 1234, 2000));
    filtered["spec"]["securityContext"]["seccompProfile"] =
        json!({"type": "Localhost", "localhostProfile": format!("{DENIED}.json")});
    // The target alone: a seat beside it is under the runtime's default profile.
    let mut beside = there(pod("beside", 1234, 2000));
    beside["spec"]["containers"][0]["securityContext"]["appArmorProfile"] = json!({"type": "Unconfined"});
    let mut elsewhere = pod("elsewhere", 1234, 2000);
    elsewhere["spec"]["nodeName"] = "node1".into();
    ns.pods(&[
        there(pod("default", 1234, 2000)),
        confined("unconfined", &json!({"type": "Unconfined"})),
        confined("denied", &json!({"type": "Localhost", "localhostProfile": DENIED})),
        beside,
        root,
        filtered,
        elsewhere,
    ]);
    let person = person(&ns);
    // A pod, a rung, and the blockers of a debugger with Yama 0 and with Yama 1.
    let table = [
        ("default", "full", "", ""),
        ("default", "degraded", "", "yama"),
        ("default", "seat", "uid", "uid, yama"),
        ("unconfined", "full", "", ""),
        ("unconfined", "degraded", "", "yama"),
        ("denied", "full", "lsm", "lsm"),
        ("denied", "degraded", "lsm", "yama, lsm"),
        ("beside", "full", "lsm", "lsm"),
        ("beside", "degraded", "lsm", "yama, lsm"),
        ("root", "full", "", ""),
        ("root", "seat", "uid", "uid"),
        ("filtered", "full", "seccomp", "seccomp"),
        ("filtered", "degraded", "seccomp", "seccomp, yama"),
        // The same pod on a node of the first kind.
        ("elsewhere", "degraded", "", ""),
    ];
    let rows = |scope: u8| {
        node.write_yama(scope).expect_code(0);
        let row =
            |(pod, rung, ..): &(&str, &str, &str, &str)| judged(&ns, &person, pod, &["--max-rung", rung]);
        table.iter().map(row).collect::<Vec<_>>()
    };
    assert_eq!(rows(0), table.map(|(_, rung, blocker, _)| format!("{rung}: {blocker}")));
    assert_eq!(rows(1), table.map(|(_, rung, _, blocker)| format!("{rung}: {blocker}")));
}

/// Nothing of podbench's own is in the way of another kernel: cgroup v2, AppArmor over sshd, slow.
#[test]
fn on_the_vm_node_a_seat_is_measured_and_entered_as_anywhere_else() {
    let ns = Namespace::scratch("vm-seat");
    ns.pods(&[there(pod("app", 1234, 2000))]);
    let person = person(&ns);
    let report = person.attach(&["app", "--check"]);
    assert_eq!(text(&report, "/rung/measured"), "degraded", "{report:#}");
    assert_eq!(number(&report, "/measurement/memory/targetLimit/read"), 256 << 20, "{report:#}");
    let alias = alias(&report);
    assert_eq!(person.ssh(&[&alias, "id -u"]).text(), "1234");
    let kernel = person.ssh(&[&alias, "uname -r; cat /proc/self/attr/current"]).text();
    assert!(kernel.starts_with("6.1.") && kernel.contains("cri-containerd.apparmor.d"), "{kernel}");
    person.podbench(&["detach", "app"]).expect_code(0);
}
