//! Bad input and bad weather: each a clear sentence, a next step, exit 2 (or 124), nothing half-written.

use std::time::{Duration, Instant};

use podbench_test_support::namespace::{Namespace, observe_rules};
use podbench_test_support::person::Person;
use podbench_test_support::process::{Ran, eventually};
use serde_json::{Value, json};

use crate::world::{PODBENCH, person, restricted, world};

/// It failed with `code`, said why and what to do next on stderr, and wrote nothing.
#[track_caller]
fn refused(person: &Person, said: &Ran, code: i32, words: &[&str]) {
    assert_eq!(said.code, code, "{said:?}");
    assert_eq!(said.stdout, "", "stdout is data");
    for word in words {
        assert!(said.stderr.contains(word), "`{word}` is missing in:\n{}", said.stderr);
    }
    assert!(said.stderr.contains("try: "), "no next step in:\n{}", said.stderr);
    assert!(!person.home().join(".podbench/config.d").exists(), "a stanza was written");
}

#[test]
fn without_a_public_key_the_cluster_is_never_called() {
    let ns = Namespace::scratch("no-key");
    let mut person = Person::without_key(PODBENCH, &ns.observer(), &ns.cluster.image);
    let transcript = person.home().join("transcript");
    person.env.push(("PODBENCH_TRANSCRIPT".into(), transcript.display().to_string()));
    let said = person.podbench(&["attach", "whatever"]);
    refused(&person, &said, 2, &["public key", "ssh-keygen"]);
    let calls = std::fs::read_to_string(&transcript).unwrap_or_default();
    assert_eq!(calls, "", "kubectl was called");
}

#[test]
fn an_unknown_pod_is_said_to_be_unknown() {
    let (_ns, person) = restricted("unknown", &["odd-ids"]);
    refused(&person, &person.podbench(&["attach", "nosuch"]), 2, &["nosuch", "odd-ids"]);
}

#[test]
fn several_matches_without_a_terminal_are_listed() {
    let (_ns, person) = world("several", &["web"]);
    refused(&person, &person.podbench(&["attach", "web"]), 2, &["web-"]);
}

#[test]
fn a_substring_with_one_match_is_used_and_echoed() {
    let (_ns, person) = restricted("substring", &["odd-ids"]);
    let said = person.podbench(&["attach", "DD-I"]).expect_code(0);
    assert!(said.stderr.contains("odd-ids"), "{}", said.stderr);
}

#[test]
fn a_wrong_target_is_refused_with_the_right_ones() {
    let (_ns, person) = world("target", &["mesh"]);
    let said = person.podbench(&["attach", "mesh", "-c", "nosuch"]);
    refused(&person, &said, 2, &["nosuch", "istio-proxy"]);
}

#[test]
fn a_mesh_sidecar_in_front_is_not_taken_for_the_application() {
    let (_ns, person) = world("mesh", &["mesh"]);
    let report = person.attach(&["mesh"]);
    assert_ne!(report.pointer("/target/container").unwrap(), "istio-proxy");
    assert!(report.pointer("/target/others").unwrap().to_string().contains("istio-proxy"));
}

#[test]
fn a_bogus_image_ends_in_seconds_with_the_kubelets_words() {
    let (_ns, person) = restricted("image", &["odd-ids"]);
    let start = Instant::now();
    let said = person.podbench(&["attach", "odd-ids", "--image", "registry.invalid/nosuch:1"]);
    refused(&person, &said, 2, &["registry.invalid/nosuch:1", "podbench-1"]);
    // A kubelet beside a busy API server takes its time; the seat's own limit is 120 s.
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
    let said = person.podbench(&["attach", "odd-ids", "--image", "NOT AN IMAGE", "--new"]);
    assert_eq!(said.code, 2, "{said:?}");
}

#[test]
fn an_unreachable_server_is_named_and_a_silent_one_ends_at_our_deadline() {
    let ns = Namespace::scratch("unreachable");
    let good = ns.observer();
    let server = serde_json::from_str::<serde_json::Value>(&good).unwrap();
    let server = server.pointer("/clusters/0/cluster/server").unwrap().as_str().unwrap().to_owned();
    let person = Person::new(PODBENCH, &good.replace(&server, "https://127.0.0.1:1"), &ns.cluster.image);
    refused(&person, &person.podbench(&["attach", "odd-ids"]), 2, &["127.0.0.1:1"]);
    // A server that accepts and never answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("https://{}", silent.local_addr().unwrap());
    let person = Person::new(PODBENCH, &good.replace(&server, &address), &ns.cluster.image);
    let start = Instant::now();
    let said = person.podbench(&["attach", "odd-ids"]);
    assert!(said.code == 124 || said.code == 2, "{said:?}");
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
    assert!(said.stderr.contains("try: "), "{}", said.stderr);
}

#[test]
fn each_missing_right_is_named_and_the_role_that_has_it() {
    let ns = Namespace::labelled("rbac", &["pod-security.kubernetes.io/enforce=restricted"]);
    ns.zoo(&["odd-ids"]);
    let rules = std::fs::read_to_string(observe_rules()).unwrap();
    let without = |resource: &str| {
        // The chart's rules without one resource's.
        let kept: Vec<&str> =
            rules.split("- apiGroups").filter(|r| !r.contains(&format!("resources: [{resource}]"))).collect();
        kept.join("- apiGroups")
    };
    for (account, resource, words) in [
        ("no-pods", "pods", &["pods"][..]),
        ("no-seats", "pods/ephemeralcontainers", &["ephemeralcontainers"][..]),
        ("no-exec", "pods/exec", &["exec"][..]),
    ] {
        let person =
            Person::new(PODBENCH, &ns.kubeconfig_with(account, &without(resource)), &ns.cluster.image);
        let said = person.podbench(&["attach", "odd-ids"]);
        assert_eq!(said.code, 2, "{resource}: {said:?}");
        for word in words {
            assert!(said.stderr.contains(word), "{resource}: `{word}` is missing in {}", said.stderr);
        }
        assert!(
            said.stderr.contains("cannot") && said.stderr.contains("try: "),
            "{resource}: {}",
            said.stderr
        );
        assert!(!person.home().join(".podbench/config.d").exists(), "{resource}: a stanza was written");
    }
}

#[test]
fn every_missing_right_is_named_at_once() {
    let ns = Namespace::scratch("rbac-all");
    ns.zoo(&["odd-ids"]);
    let rules = "- apiGroups: [\"\"]\n  resources: [pods]\n  verbs: [get]\n";
    let person = Person::new(PODBENCH, &ns.kubeconfig_with("looker", rules), &ns.cluster.image);
    let said = person.podbench(&["attach", "odd-ids"]).expect_code(2);
    for words in [
        "cannot update pods/ephemeralcontainers",
        "missing too, for the same: create pods/exec",
        "--verb=update --resource=pods/ephemeralcontainers",
        "--verb=create,get --resource=pods/exec",
    ] {
        assert!(said.stderr.contains(words), "`{words}` is missing in:\n{}", said.stderr);
    }
    // What it says to paste is all that is missing.
    for line in said.stderr.lines().filter_map(|l| l.strip_prefix("try:").map(str::trim)) {
        let words: Vec<&str> = line.split_whitespace().skip(1).collect();
        assert!(line.starts_with("kubectl create role"), "{line}");
        ns.cluster.kubectl(&words).expect_code(0);
    }
    person.attach(&["odd-ids"]);
}

#[test]
fn get_without_list_is_enough_for_an_exact_name() {
    let ns = Namespace::labelled("no-list", &["pod-security.kubernetes.io/enforce=restricted"]);
    ns.zoo(&["odd-ids"]);
    let rules =
        std::fs::read_to_string(observe_rules()).unwrap().replace("[get, list, watch]", "[get, watch]");
    assert!(rules.contains("[get, watch]"));
    let person = Person::new(PODBENCH, &ns.kubeconfig_with("no-list", &rules), &ns.cluster.image);
    person.attach(&["odd-ids"]);
}

#[test]
fn without_watch_the_landing_is_polled() {
    let ns = Namespace::labelled("no-watch", &["pod-security.kubernetes.io/enforce=restricted"]);
    ns.zoo(&["odd-ids"]);
    let rules =
        std::fs::read_to_string(observe_rules()).unwrap().replace("[get, list, watch]", "[get, list]");
    assert!(rules.contains("[get, list]"));
    let person = Person::new(PODBENCH, &ns.kubeconfig_with("no-watch", &rules), &ns.cluster.image);
    person.attach(&["odd-ids"]);
}

#[test]
fn a_target_that_crashes_or_initialises_gets_no_seat() {
    let (ns, person) = world("not-running", &["crash", "stuck-init"]);
    let pods = ns.kubectl(&["get", "pods", "-o", "name"]).text();
    let crash = pods.lines().find(|p| p.contains("crash")).unwrap().to_owned();
    // Just after a crash: for a moment of each start it runs, and then a seat is tried.
    let restarts = |pod: &Value| pod.pointer("/status/containerStatuses/0/restartCount").cloned();
    let name = crash.trim_start_matches("pod/");
    let before = restarts(&ns.get("pod", name));
    eventually("it crashes once more", Duration::from_secs(120), || {
        let pod = ns.get("pod", name);
        let waits = pod.pointer("/status/containerStatuses/0/state/waiting/reason");
        (restarts(&pod) != before && waits == Some(&json!("CrashLoopBackOff"))).then_some(())
    });
    let said = person.podbench(&["attach", &crash]);
    refused(&person, &said, 2, &["exit", "3", "cannot open the ledger"]);
    let said = person.podbench(&["attach", "stuck-init"]);
    refused(&person, &said, 2, &["init"]);
    for pod in pods.lines() {
        let name = pod.trim_start_matches("pod/");
        assert_eq!(ns.seats(name), Vec::<String>::new(), "{name} was written to");
    }
}

#[test]
fn an_error_is_an_object_with_o_json() {
    let (_ns, person) = restricted("json-error", &["odd-ids"]);
    let said = person.podbench(&["attach", "nosuch", "-o", "json"]).expect_code(2);
    let error = said.json();
    assert_eq!(error.pointer("/schema").unwrap(), "podbench/error/v1");
    assert!(!error.pointer("/hints").unwrap().as_array().unwrap().is_empty(), "{error:#}");
}

#[test]
fn ctrl_c_ends_it_with_130_and_no_half_written_file() {
    let (ns, _) = restricted("ctrl-c", &["odd-ids"]);
    let person = person(&ns);
    for wait in [20, 80, 160, 300] {
        let child = person
            .podbench_command(&["attach", "odd-ids", "--new"])
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(wait));
        let _ = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
        let code = wait_for(child);
        assert!(code == 130 || code == 0, "after {wait} ms: {code}");
        let files = std::fs::read_dir(person.home().join(".podbench/config.d"));
        for file in files.into_iter().flatten().flatten() {
            let name = file.file_name().to_string_lossy().into_owned();
            assert!(name.ends_with(".conf"), "left behind: {name}");
            let text = std::fs::read_to_string(file.path()).unwrap();
            assert!(text.contains("ProxyCommand") && text.ends_with('\n'), "half-written: {text}");
        }
    }
}

fn wait_for(mut child: std::process::Child) -> i32 {
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code().unwrap_or(-1);
        }
        assert!(Instant::now() < end, "ctrl-C was ignored");
        std::thread::sleep(Duration::from_millis(10));
    }
}
