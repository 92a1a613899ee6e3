//! `attach --resize`: what changes in the container, what doesn't, and the way back.

use podbench::commands::Session;
use podbench::kubectl::call::Scope;
use podbench::kubectl::run::{Interrupt, Real};
use podbench::kubectl::transcript::Transcript;
use podbench::kubectl::{Context, Kubectl, Mode};
use podbench::pod::Pod;
use podbench::resize::{Restored, journalled, restore};
use podbench::seat::inventory::Caller;
use podbench::settings::{Cluster, Settings};
use podbench::ui::Ui;
use podbench_test_support::namespace::{Namespace, observe_rules, resize_rules};
use podbench_test_support::person::Person;
use podbench_test_support::proxy::{Cut, Faults, Kind, Proxy, Way};
use podbench_test_support::recording::live;
use serde_json::{Value, json};

use crate::world::{PODBENCH, number, text};

/// A pod of one container with these resources.
fn apply(ns: &Namespace, name: &str, resources: &Value) {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": ns.name},
        "spec": {
            "terminationGracePeriodSeconds": 1, "nodeName": "node1",
            "securityContext": {"runAsUser": 4242, "runAsGroup": 4242},
            "containers": [{"name": "app", "image": "podbench.test/static:1", "imagePullPolicy": "Never",
                            "resources": resources}],
        },
    });
    ns.cluster.apply(&pod.to_string());
    ns.kubectl(&["wait", "--for=condition=Ready", &format!("pod/{name}"), "--timeout=60s"]).expect_code(0);
}

fn burstable() -> Value {
    json!({"requests": {"memory": "16Mi", "cpu": "10m"}, "limits": {"memory": "64Mi", "cpu": "100m"}})
}

fn world(what: &str, resources: &Value) -> (Namespace, Person) {
    let ns = Namespace::scratch(what);
    apply(&ns, "app", resources);
    let person = person(&ns);
    (ns, person)
}

/// Someone with the observe and the resize Role.
fn person(ns: &Namespace) -> Person {
    let rules = [observe_rules(), resize_rules()].map(|f| std::fs::read_to_string(f).unwrap()).concat();
    Person::new(PODBENCH, &ns.kubeconfig_with("resizer", &rules), &ns.cluster.image)
}

fn resources(ns: &Namespace) -> Value {
    ns.get("pod", "app").pointer("/spec/containers/0/resources").unwrap().clone()
}

/// Which run of the container it is.
fn run_of(ns: &Namespace) -> (Value, Value) {
    let pod = ns.get("pod", "app");
    let at = |p: &str| pod.pointer(&format!("/status/containerStatuses/0/{p}")).unwrap().clone();
    (at("containerID"), at("restartCount"))
}

/// The one warning about the resize, beside a seat that landed all the same.
fn refused(person: &Person, args: &[&str]) -> String {
    let attach = || person.attach(&[&["app"], args].concat());
    let mut report = attach();
    // A kubelet of a busy machine takes longer than attach waits, which then says so: given back, again.
    for _ in 0..3 {
        if report.pointer("/resized/state") != Some(&json!("pending")) {
            break;
        }
        person.podbench(&["detach", "app"]).expect_code(0);
        report = attach();
    }
    assert_eq!(report["resized"], Value::Null, "{report:#}");
    assert!(text(&report, "/seat/name").starts_with("podbench-"));
    let all: Vec<&str> = report["warnings"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let ours: Vec<&&str> = all.iter().filter(|w| w.starts_with("not resized: ")).collect();
    assert_eq!(ours.len(), 1, "{all:?}");
    assert!(
        !person.home().join(".podbench/state").join(format!("{}.json", text(&report, "/pod/uid"))).exists()
    );
    (*ours[0]).to_owned()
}

const MIB: u64 = 1 << 20;

#[test]
fn memory_and_cpu_go_up_and_down_in_the_running_container_and_come_back() {
    let (ns, person) = world("rsz-up", &burstable());
    let (before, run) = (resources(&ns), run_of(&ns));
    let report = person.attach(&["app", "--resize", "128Mi", "--resize-cpu", "20m:200m"]);
    assert_eq!(
        report["resized"]["from"]["memory"],
        json!({"request": "16Mi", "limit": "64Mi"}),
        "{report:#}"
    );
    assert_eq!(report["resized"]["to"]["cpu"], json!({"request": "20m", "limit": "200m"}));
    assert_eq!(report["resized"]["state"], "actual");
    assert_eq!(
        number(&report, "/measurement/memory/targetLimit/read"),
        128 * MIB,
        "{:#}",
        report["measurement"]
    );
    // A seat that is reused can't be told: this machine remembers the first values.
    let report = person.attach(&["app", "--resize", "48Mi"]);
    assert_eq!(report["seat"]["reused"], true, "{report:#}");
    assert_eq!(report["resized"]["from"]["memory"], json!({"request": "16Mi", "limit": "64Mi"}));
    assert_eq!(number(&report, "/measurement/memory/targetLimit/read"), 48 * MIB);
    assert_eq!(run_of(&ns), run, "the container wasn't restarted");
    let (entry, said) = restored(&ns, &person, Mode::Store);
    assert!(matches!(said, Restored::Done { left: None, .. }), "{said:?}");
    assert_eq!(entry, 2, "memory and cpu");
    assert_eq!(resources(&ns), before, "exactly the old values");
    assert_eq!(run_of(&ns), run);
}

/// What `detach` does: restores what is remembered of the pod, and how many resources that is.
fn restored(ns: &Namespace, person: &Person, mode: Mode) -> (usize, Restored) {
    let settings = Settings::bare(person.home());
    let cluster = Cluster { kubeconfig: Some(ns.cluster.kubeconfig().to_owned()), ..Cluster::default() };
    let scope = Scope { cluster: cluster.clone(), context: None, namespace: None };
    let runner =
        Box::new(Real { program: "kubectl".into(), env: Vec::new(), interrupt: Interrupt::default() });
    let kubectl = Kubectl::new(scope, runner, Transcript::default(), false);
    kubectl.pin(&Context { name: String::new(), namespace: ns.name.clone(), plugin: None });
    let ui = Ui::new(&settings);
    let session = Session {
        settings: &settings,
        cluster: &cluster,
        kubectl: &kubectl,
        verb: podbench::commands::Running::Detach,
        ui,
    };
    let mut pod = Pod::new(ns.get("pod", "app")).unwrap();
    let owner = format!("system:serviceaccount:{}:resizer", ns.name);
    let caller = Caller { owner: Some(owner), key: None };
    let entries = journalled(&pod, &settings, &caller).unwrap();
    let [entry] = entries.as_slice() else { panic!("{entries:?}") };
    (entry.changes.len(), restore(&session, &mut pod, entry, mode).unwrap())
}

#[test]
fn another_machine_restores_from_the_seat_and_what_somebody_else_changed_stays() {
    let (ns, owner) = world("rsz-else", &burstable());
    let before = resources(&ns);
    owner.attach(&["app", "--resize", "128Mi"]);
    let elsewhere = person(&ns);
    let (_, said) = restored(&ns, &elsewhere, Mode::DryRun);
    assert!(matches!(said, Restored::Would { .. }), "{said:?}");
    assert_ne!(resources(&ns), before, "a dry run writes nothing");
    let patch = r#"{"spec":{"containers":[{"name":"app","resources":{"limits":{"memory":"100Mi"}}}]}}"#;
    let by_hand = ["patch", "pod", "app", "--subresource=resize", "-p"];
    ns.kubectl(&[&by_hand[..], &[patch]].concat()).expect_code(0);
    let changed = resources(&ns);
    let (_, said) = restored(&ns, &elsewhere, Mode::Store);
    assert!(matches!(&said, Restored::NothingToDo { why } if why.contains("somebody else")), "{said:?}");
    assert_eq!(resources(&ns), changed);
    ns.kubectl(&[&by_hand[..], &[&patch.replace("100Mi", "128Mi")]].concat()).expect_code(0);
    let (_, said) = restored(&ns, &elsewhere, Mode::Store);
    assert!(matches!(said, Restored::Done { .. }), "{said:?}");
    assert_eq!(resources(&ns), before);
}

#[test]
fn a_guaranteed_pod_stays_one_and_a_best_effort_pod_gets_nothing() {
    let same = json!({"memory": "64Mi", "cpu": "50m"});
    let (ns, person) = world("rsz-qos", &json!({"requests": same, "limits": same}));
    let report = person.attach(&["app", "--resize", "96Mi"]);
    assert_eq!(report["resized"]["to"]["memory"], json!({"request": "96Mi", "limit": "96Mi"}), "{report:#}");
    assert_eq!(text(&ns.get("pod", "app"), "/status/qosClass"), "Guaranteed");
    let (ns, person) = world("rsz-best", &json!({}));
    let said = refused(&person, &["--resize", "96Mi"]);
    assert!(said.contains("BestEffort"), "{said}");
    assert_eq!(resources(&ns), json!({}));
}

#[test]
fn a_limit_range_moves_the_request_and_its_maximum_is_told_with_what_fits() {
    let (ns, person) = world("rsz-range", &burstable());
    ns.cluster.apply(&format!(
        "apiVersion: v1\nkind: LimitRange\nmetadata: {{name: lr, namespace: {}}}\nspec:\n  limits:\n  \
         - {{type: Container, max: {{memory: 512Mi}}, maxLimitRequestRatio: {{memory: '10'}}}}\n  \
         - {{type: Pod, max: {{memory: 600Mi}}}}\n",
        ns.name
    ));
    let before = resources(&ns);
    let said = refused(&person, &["--resize", "1Gi"]);
    assert!(
        said.contains("LimitRange lr") && said.contains("the greatest limit that fits is 512Mi"),
        "{said}"
    );
    let said = refused(&person, &["--resize", "16Mi:400Mi"]);
    assert!(said.contains("ratio per Container is 10") && said.contains("160Mi"), "{said}");
    assert_eq!(resources(&ns), before);
    let report = person.attach(&["app", "--resize", "400Mi"]);
    assert_eq!(report["resized"]["to"]["memory"], json!({"request": "40Mi", "limit": "400Mi"}), "{report:#}");
}

#[test]
fn what_the_node_or_a_quota_refuses_leaves_the_spec_as_it_was_in_their_own_words() {
    let (ns, person) = world("rsz-no", &burstable());
    let before = resources(&ns);
    let said = refused(&person, &["--resize", "500Gi:500Gi"]);
    assert!(
        said.contains("node didn't have enough allocatable resources") || said.contains("Infeasible"),
        "{said}"
    );
    assert_eq!(resources(&ns), before, "never left behind");
    // The kubelet doesn't take memory away that is in use.
    let said = refused(&person, &["--resize", "1Mi:1Mi"]);
    assert!(
        said.contains("below current usage") && said.contains("the values from before are back"),
        "{said}"
    );
    assert_eq!(resources(&ns), before);
    ns.kubectl(&["create", "quota", "q", "--hard=limits.memory=200Mi"]).expect_code(0);
    podbench_test_support::process::eventually(
        "the quota counts",
        std::time::Duration::from_secs(30),
        || ns.get("quota", "q").pointer("/status/used/limits.memory").map(|_| ()),
    );
    let said = refused(&person, &["--resize", "400Mi"]);
    assert!(said.contains("exceeded quota: q"), "{said}");
    assert_eq!(resources(&ns), before);
}

#[test]
fn a_node_that_is_full_defers_and_the_values_from_before_are_put_back() {
    let (ns, person) = world("rsz-full", &burstable());
    apply(&ns, "neighbour", &json!({"requests": {"memory": "64Mi"}, "limits": {"memory": "64Mi"}}));
    let before = resources(&ns);
    let node = ns.get("node", "node1");
    let all = text(&node, "/status/allocatable/memory").to_owned();
    let said = refused(&person, &["--resize", &format!("{all}:{all}")]);
    assert!(said.contains("Deferred") && said.contains("the values from before are back"), "{said}");
    assert_eq!(resources(&ns), before);
}

#[test]
fn without_the_right_the_seat_lands_and_the_right_is_named() {
    let ns = Namespace::scratch("rsz-rbac");
    apply(&ns, "app", &burstable());
    let person = crate::world::person(&ns);
    let said = refused(&person, &["--resize", "128Mi"]);
    assert!(said.contains("cannot") && said.contains("get and patch on pods/resize"), "{said}");
}

#[test]
fn a_seat_that_does_not_start_after_a_resize_says_that_it_was_done_and_how_to_undo_it() {
    let (ns, person) = world("rsz-after", &burstable());
    let args = ["attach", "app", "--resize", "128Mi", "--image", "podbench.test/nosuch:1", "--pull", "Never"];
    let said = person.podbench(&args).expect_code(2).stderr;
    assert!(said.contains("app is resized all the same: memory 16Mi:64Mi -> 16Mi:128Mi"), "{said}");
    assert!(said.contains(&format!("podbench detach app -n {}", ns.name)), "{said}");
    let (_, back) = restored(&ns, &person, Mode::Store);
    assert!(matches!(back, Restored::Done { .. }), "{back:?}");
}

#[test]
fn a_dry_run_asks_the_server_and_writes_nothing() {
    let (ns, person) = world("rsz-dry", &burstable());
    let before = ns.get("pod", "app").pointer("/metadata/resourceVersion").cloned();
    let report = person.attach(&["app", "--resize", "128Mi", "--dry-run"]);
    assert_eq!(report["resized"]["state"], "rehearsed", "{report:#}");
    assert_eq!(ns.get("pod", "app").pointer("/metadata/resourceVersion").cloned(), before);
    assert!(!person.home().join(".podbench").exists());
}

#[test]
fn a_quantity_that_is_none_is_an_input_error_before_any_call() {
    let person = Person::new(PODBENCH, "nonsense", "image");
    for (bad, why) in
        [("6", "6 of memory"), ("100m", "mebibyte"), ("2Gi:1Gi", "more than the limit"), ("6gb", "quantity")]
    {
        let said = person.podbench(&["attach", "app", "--resize", bad]).expect_code(2);
        assert!(said.stderr.contains(why), "{bad}: {}", said.stderr);
    }
    person.podbench(&["attach", "app", "--resize-cpu", "100u"]).expect_code(2);
}

#[test]
fn the_golden_resize_still_comes_about() {
    let (ns, _) = world("rsz-golden", &burstable());
    let mut person = person(&ns);
    live("attach-resize", &mut person, &ns.cluster.version(), &["attach", "app", "--resize", "128Mi"])
        .expect_code(0);
    assert_eq!(resources(&ns)["limits"]["memory"], "128Mi");
}

#[test]
fn what_is_remembered_of_a_pod_goes_with_the_pod_and_another_clusters_stays() {
    let (ns, person) = world("rsz-gone", &burstable());
    let report = person.attach(&["app", "--resize", "48Mi"]);
    let uid = text(&report, "/pod/uid").to_owned();
    let state = person.home().join(".podbench/state");
    let file = state.join(format!("{uid}.json"));
    let content = std::fs::read_to_string(&file).unwrap();
    // Of a cluster that nobody can ask.
    let elsewhere = state.join("11111111-2222-4333-8444-555555555555.json");
    let mut other: Value = serde_json::from_str(&content).unwrap();
    other["context"] = "nosuch".into();
    std::fs::write(&elsewhere, other.to_string()).unwrap();
    let cleaned = person.podbench(&["clean", "-o", "json"]).expect_code(0).json();
    assert!(file.exists() && elsewhere.exists(), "the pod is there: {cleaned:#}");
    assert!(cleaned["warnings"].to_string().contains("stays remembered"), "{cleaned:#}");
    ns.kubectl(&["delete", "pod", "app", "--wait=true"]).expect_code(0);
    let cleaned = person.podbench(&["clean", "-o", "json"]).expect_code(0).json();
    assert!(!file.exists() && elsewhere.exists(), "{cleaned:#}");
    assert!(cleaned["removed"]["files"].to_string().contains(&uid), "{cleaned:#}");
}

#[test]
fn a_write_whose_answer_is_lost_is_looked_for_and_can_be_taken_back() {
    let ns = Namespace::scratch("rsz-lost");
    let rules = [observe_rules(), resize_rules()].map(|f| std::fs::read_to_string(f).unwrap()).concat();
    let proxy = Proxy::before(&ns.kubeconfig_with("resizer", &rules));
    let person = Person::new(PODBENCH, proxy.kubeconfig(), &ns.cluster.image);
    for (pod, way, arrives) in [("heard", Way::Down, true), ("unheard", Way::Up, false)] {
        apply(&ns, pod, &burstable());
        let old = json!({"request": "16Mi", "limit": "64Mi"});
        let cut = Cut { of: |kind| kind == Kind::Resize, way, after: 0, times: u64::MAX };
        proxy.set(Faults { cut: Some(cut), ..Faults::default() });
        let report = person.attach(&[pod, "--resize", "48Mi"]);
        let warnings = report["warnings"].to_string();
        assert!(proxy.traffic().cuts > 0, "nothing was cut");
        if arrives {
            assert_eq!(report["resized"]["from"]["memory"], old, "{report:#}");
            assert!(!warnings.contains("not resized"), "{warnings}");
        } else {
            assert!(warnings.contains("may be stored all the same"), "{warnings}");
            assert!(warnings.contains(&format!("podbench detach {pod}")), "{warnings}");
        }
        let limit = || ns.get("pod", pod)["spec"]["containers"][0]["resources"]["limits"]["memory"].clone();
        assert_eq!(limit(), if arrives { "48Mi" } else { "64Mi" });
        proxy.set(Faults::default());
        person.podbench(&["detach", pod]).expect_code(0);
        assert_eq!(limit(), "64Mi", "given back");
        let state = std::fs::read_dir(person.home().join(".podbench/state")).unwrap().count();
        assert_eq!(state, 0, "nothing is remembered of what is as it was");
    }
}
