//! Which container, whose process, which version, which spelling: what a person meant.

use podbench_test_support::namespace::Namespace;
use podbench_test_support::person::{Person, alias};
use podbench_test_support::pods::{container, pod};
use podbench_test_support::process::run;
use serde_json::{Value, json};

use crate::hostile::{framed, with_reply};
use crate::world::{PODBENCH, number, person, text};

/// A pod of containers that answer on ports from 8080 on, in this order.
fn of(name: &str, containers: &[&str]) -> Value {
    let mut pod = pod(name, 1234, 2000);
    let list = containers.iter().zip(8080..).map(|(name, port)| container(name, port)).collect::<Vec<_>>();
    pod["spec"]["containers"] = json!(list);
    pod
}

fn world(what: &str, pods: &[Value]) -> (Namespace, Person) {
    let ns = Namespace::scratch(what);
    ns.pods(pods);
    let person = person(&ns);
    (ns, person)
}

fn annotated(mut pod: Value, container: &str) -> Value {
    pod["metadata"]["annotations"] = json!({"kubectl.kubernetes.io/default-container": container});
    pod
}

#[test]
fn the_target_is_the_annotated_container_else_the_first_that_is_no_sidecar_and_the_report_says_why() {
    let (_ns, person) = world(
        "default",
        &[
            of("mesh", &["istio-proxy", "shop"]),
            of("three", &["istio-proxy", "a", "b"]),
            annotated(of("named", &["istio-proxy", "a", "b"]), "b"),
            annotated(of("proxy", &["shop", "istio-proxy"]), "istio-proxy"),
            annotated(of("wrong", &["istio-proxy", "shop"]), "nosuch"),
            of("plain", &["one", "two"]),
        ],
    );
    for (name, target, why) in [
        ("mesh", "shop", "isn't a known sidecar such as istio-proxy"),
        ("three", "a", "isn't a known sidecar such as istio-proxy"),
        ("named", "b", "the annotation kubectl.kubernetes.io/default-container names it"),
        ("proxy", "istio-proxy", "the annotation"),
        ("wrong", "shop", "isn't a known sidecar"),
        ("plain", "one", "the pod's first container"),
    ] {
        let report = person.attach(&[name, "--dry-run"]);
        assert_eq!(text(&report, "/target/container"), target, "{name}: {report:#}");
        assert!(text(&report, "/target/why").contains(why), "{name}: {report:#}");
        let others = report.pointer("/target/others").and_then(Value::as_array).unwrap().len();
        assert!(others >= 1, "{name}: -c reaches the others, and the report doesn't say so");
    }
    let report = person.attach(&["three", "-c", "b", "--dry-run"]);
    assert_eq!(text(&report, "/target/container"), "b");
}

#[test]
fn every_verb_takes_the_same_container_and_refuses_the_same_wrong_one() {
    let (_ns, person) = world("verbs", &[of("three", &["istio-proxy", "a", "b"])]);
    let seats = [(&["three"][..], "a", "podbench-1"), (&["three", "-c", "b"], "b", "podbench-2")];
    for (args, target, seat) in seats {
        let report = person.attach(args);
        assert_eq!((text(&report, "/target/container"), text(&report, "/seat/name")), (target, seat));
    }
    // Every other verb finds the seat of that container and of no other.
    std::fs::write(person.home().join("file"), "text").unwrap();
    for (args, target, seat) in seats {
        let printed = person.podbench(&[&["ssh-config"], args, &["--print-config"]].concat()).text();
        assert!(
            printed.contains(&format!("-c {seat}")) || printed.contains(&format!("{seat} ")),
            "{printed}"
        );
        let entered = format!("{seat} in ");
        let ssh = person.podbench(&[&["ssh", "--no-attach"], args, &["--", "true"]].concat()).expect_code(0);
        assert!(ssh.stderr.starts_with(&entered), "ssh -c {target}: {}", ssh.stderr);
        let to = format!("three:/tmp/{target}");
        let cp = [&["cp", "--no-attach"], &args[1..], &["file", &to]].concat();
        let cp = person.podbench(&cp).expect_code(0);
        assert!(cp.stderr.contains(&entered), "cp -c {target}: {}", cp.stderr);
        // Of these two, no container means every seat, each with its target.
        let status = person.podbench(&[&["status"], args, &["-o", "json"]].concat()).expect_code(0).json();
        let detach = [&["detach"], args, &["--dry-run", "-o", "json"]].concat();
        let detach = person.podbench(&detach).expect_code(0).json();
        for (verb, report) in [("status", status), ("detach", detach)] {
            let named = |s: &Value| (text(s, "/seat").to_owned(), text(s, "/target").to_owned());
            let got: Vec<_> = report["seats"].as_array().unwrap().iter().map(named).collect();
            let all = seats.iter().map(|(_, target, seat)| ((*seat).to_owned(), (*target).to_owned()));
            let wanted: Vec<_> = all.filter(|(s, _)| args.len() == 1 || s == seat).collect();
            assert_eq!(got, wanted, "{verb} {args:?}");
        }
    }
    // And ended is the seat of that container alone.
    let ended = person.podbench(&["detach", "three", "-c", "a", "-o", "json"]).expect_code(0).json();
    assert_eq!(ended["seats"].as_array().unwrap().len(), 1, "{ended:#}");
    let left = person.podbench(&["status", "three", "-o", "json"]).expect_code(0).json();
    let runs = |s: &Value| (text(s, "/seat").to_owned(), text(s, "/state/name") == "running");
    let got: Vec<_> = left["seats"].as_array().unwrap().iter().map(runs).collect();
    assert_eq!(got, [("podbench-1".to_owned(), false), ("podbench-2".to_owned(), true)]);
    // A pod's name for a container's, as people type it.
    let said: Vec<String> = [
        &["attach", "three"][..],
        &["ssh-config", "three"],
        &["ssh", "three", "--no-attach"],
        &["status", "three"],
        &["detach", "three"],
        &["cp", "file", "three:/tmp/x"],
    ]
    .iter()
    .map(|args| {
        let said = person.podbench(&[*args, &["-c", "three"]].concat()).expect_code(2).stderr;
        said.replace(&format!("podbench {}", args[0]), "podbench VERB")
    })
    .collect();
    for other in &said {
        assert_eq!(said[0].lines().next(), other.lines().next());
        for word in ["no container `three`", "istio-proxy, a, b", "podbench VERB ", " -c a"] {
            assert!(other.contains(word), "`{word}` is missing in {other}");
        }
    }
}

#[test]
fn each_of_three_containers_has_its_own_process_in_a_shared_pid_namespace_and_in_none() {
    let names = ["a", "b", "c"];
    let mut shared = of("shared", &names);
    shared["spec"]["shareProcessNamespace"] = json!(true);
    let (ns, person) = world("pids", &[shared, of("apart", &names)]);
    for pod in ["shared", "apart"] {
        let mut pids = Vec::new();
        for (name, port) in names.iter().zip(8080..) {
            let report = person.attach(&[pod, "-c", name]);
            let pid = number(&report, "/target/pid");
            let line = format!("tr '\\0' ' ' </proc/{pid}/cmdline");
            let said = ns.exec(pod, text(&report, "/seat/name"), &["sh", "-c", &line]).text();
            assert!(said.contains(&format!("-port {port}")), "{pod} -c {name} is pid {pid}: {said}");
            pids.push(pid);
        }
        pids.dedup();
        assert_eq!(pids == [1], pod == "apart", "{pod}: {pids:?}");
    }
}

#[test]
fn a_seat_image_that_is_older_than_the_launcher_is_told_with_both_versions() {
    let (ns, person) = world("skew", &[pod("api", 1234, 2000)]);
    let mut measured = person.attach(&["api"]).pointer("/measurement").unwrap().clone();
    // The same tag, and another agent in it.
    measured["version"] = json!("0.0.7");
    let reply = framed(&person, &measured.to_string());
    let report = with_reply(&ns, &reply).attach(&["api"]);
    assert_eq!(text(&report, "/seat/version"), "0.0.7");
    let warnings = report.pointer("/warnings").unwrap().to_string();
    assert!(warnings.contains("0.0.7") && warnings.contains(env!("CARGO_PKG_VERSION")), "{warnings}");
}

#[test]
fn as_a_plugin_of_kubectl_it_is_the_same_program_and_its_flags_come_behind_its_name() {
    let (ns, mut person) = world("plugin", &[pod("api", 1234, 2000)]);
    let bin = person.home().join("bin");
    std::fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(PODBENCH, bin.join("kubectl-podbench")).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    person.env.push(("PATH".into(), path));
    // Another namespace in the kubeconfig, so that -n counts.
    let set = ["config", "set-context", "--current", "--namespace=default"];
    let mut kubectl = person.command("kubectl");
    kubectl.args(set);
    run(kubectl).expect_code(0);
    let args = ["-n", &ns.name, "attach", "api", "-o", "json"];
    let mut plugin = person.command("kubectl");
    plugin.arg("podbench").args(args);
    let first = run(plugin).expect_code(0).json();
    assert_eq!(text(&first, "/namespace"), ns.name);
    let again = person.podbench(&args).expect_code(0).json();
    assert_eq!(again.pointer("/seat/reused"), Some(&json!(true)), "the same owner, the same seat: {again:#}");
    assert_eq!(alias(&first), alias(&again));
    // In front of the plugin's name kubectl takes none: its own words, and nothing was started.
    let mut wrong = person.command("kubectl");
    wrong.args(["-n", &ns.name, "podbench", "attach", "api"]);
    let said = run(wrong);
    assert!(said.code != 0 && said.stderr.contains("flags cannot be placed before plugin name"), "{said:?}");
}
