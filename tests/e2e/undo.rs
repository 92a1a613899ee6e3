//! What podbench leaves behind, and how each verb takes it back (docs/undo.md).

use std::os::unix::fs::FileTypeExt as _;
use std::time::Duration;

use podbench_contract::session;
use podbench_test_support::namespace::{Namespace, observe_rules};
use podbench_test_support::person::{Person, alias};
use podbench_test_support::process::{eventually, run_with};
use podbench_test_support::recording::read;
use serde_json::{Value, json};

use crate::world::{PODBENCH, person, restricted, text};

/// Another person with the same rights.
fn person_named(ns: &Namespace, account: &str) -> Person {
    let rules = std::fs::read_to_string(observe_rules()).unwrap();
    Person::new(PODBENCH, &ns.kubeconfig_with(account, &rules), &ns.cluster.image)
}

fn colleague(ns: &Namespace) -> Person {
    person_named(ns, "colleague")
}

/// A verb's answer as JSON.
#[track_caller]
fn json_of(person: &Person, code: i32, args: &[&str]) -> Value {
    let mut all = args.to_vec();
    all.extend(["-o", "json"]);
    let value = person.podbench(&all).expect_code(code).json();
    let schema = format!("podbench/{}/v1", args[0]);
    assert_eq!(text(&value, "/schema"), schema, "{value:#}");
    value
}

/// `SEAT WORD` of each seat of an answer.
fn seats(report: &Value, word: &str) -> Vec<String> {
    let list = report["seats"].as_array().cloned().unwrap_or_default();
    list.iter().map(|s| format!("{} {}", text(s, "/seat"), text(s, word))).collect()
}

/// A report without its line breaks, which depend on how long a namespace's name is.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What lies in `~/.podbench`: stanzas, lines of known_hosts, control sockets.
fn on_disk(person: &Person) -> (usize, usize, usize) {
    let dir = person.home().join(".podbench");
    let list =
        |name: &str| std::fs::read_dir(dir.join(name)).into_iter().flatten().flatten().collect::<Vec<_>>();
    let sockets = list("cm").iter().filter(|e| e.file_type().unwrap().is_socket()).count();
    let known = std::fs::read_to_string(dir.join("known_hosts")).unwrap_or_default();
    (list("config.d").len(), known.lines().count(), sockets)
}

/// The command lines in a pod's PID namespace, as a seat sees them.
fn processes(ns: &Namespace, pod: &str, seat: &str) -> Vec<String> {
    let listed = ns.exec(pod, seat, &["ps", "-e", "-ww", "-o", "args="]).text();
    listed.lines().map(str::to_owned).filter(|l| !l.starts_with("ps -e")).collect()
}

fn ephemeral_state(ns: &Namespace, pod: &str, seat: &str) -> Value {
    let pod = ns.get("pod", pod);
    let list = pod["status"]["ephemeralContainerStatuses"].as_array().cloned().unwrap_or_default();
    list.into_iter().find(|s| s["name"] == seat).map(|s| s["state"].clone()).unwrap_or_default()
}

#[test]
fn detach_ends_everything_of_the_seat_and_nothing_of_anybody_else() {
    let (ns, mine) = restricted("detach", &["odd-ids"]);
    let theirs = colleague(&ns);
    let report = mine.attach(&["odd-ids"]);
    let (host, seat) = (alias(&report), text(&report, "/seat/name").to_owned());
    let witness = theirs.attach(&["odd-ids"]);
    let their_seat = text(&witness, "/seat/name").to_owned();
    // A daemon that outlives its connection, and a shared connection.
    mine.ssh(&[&host, "setsid sleep 4321 </dev/null >/dev/null 2>&1 &"]).expect_code(0);
    assert_eq!(on_disk(&mine), (1, 1, 1));
    let status = json_of(&mine, 0, &["status", "odd-ids"]);
    assert_eq!(status["seats"][0]["measured"]["sessions"], 1, "{status:#}");
    assert_eq!(status["seats"][0]["ssh"]["connected"], true, "{status:#}");
    let before = processes(&ns, "odd-ids", &their_seat);
    assert!(before.iter().any(|p| p == "sleep 4321"), "{before:#?}");

    let dry = json_of(&mine, 0, &["detach", "odd-ids", "--dry-run"]);
    assert_eq!(seats(&dry, "/outcome"), [format!("{seat} wouldEnd")]);
    assert!(
        processes(&ns, "odd-ids", &their_seat).iter().any(|p| p == "sleep 4321"),
        "a dry run ends nothing"
    );
    assert_eq!(on_disk(&mine), (1, 1, 1), "a dry run removes nothing");

    let said = flat(&mine.podbench(&["detach", "odd-ids"]).expect_code(0).stdout);
    assert!(said.contains(&format!("{seat} beside app ended")), "{said}");
    assert!(said.contains("the container's entry stays in the pod"), "{said}");
    assert!(ephemeral_state(&ns, "odd-ids", &seat)["terminated"].is_object());
    let after = processes(&ns, "odd-ids", &their_seat);
    assert!(!after.iter().any(|p| p.contains("4321") || p.contains("sshd")), "{after:#?}");
    let agents = after.iter().filter(|p| **p == session::agent_argv().join(" ")).count();
    assert_eq!(agents, 1, "only the colleague's: {after:#?}");
    let signals = ns.exec("odd-ids", &their_seat, &["curl", "-s", "localhost:8080/signals"]).json();
    assert_eq!(signals, json!({}), "the application got signals");
    assert_eq!(ns.get("pod", "odd-ids")["status"]["containerStatuses"][0]["restartCount"], 0);
    eventually("nothing is left on the disk", Duration::from_secs(10), || {
        (on_disk(&mine) == (0, 0, 0)).then_some(())
    });
    theirs.ssh(&[&alias(&witness), "true"]).expect_code(0);
    let stranger = person_named(&ns, "stranger");
    let nothing = flat(&stranger.podbench(&["detach", "odd-ids"]).expect_code(0).stdout);
    assert!(nothing.contains(&format!("{their_seat} runs, and it is")), "{nothing}");

    // Once more: nothing to take back, and no failure.
    let again = mine.podbench(&["detach", "odd-ids"]).expect_code(0);
    assert!(flat(&again.stdout).contains("nothing to take back"), "{}", again.stdout);
    // Somebody else's ends only when it is named and meant.
    let no = mine.podbench(&["detach", "odd-ids", "--seat", &their_seat]).expect_code(2);
    assert!(no.stderr.contains("colleague") && no.stderr.contains("--force"), "{}", no.stderr);
    let forced = json_of(&mine, 0, &["detach", "odd-ids", "--seat", &their_seat, "--force"]);
    assert_eq!(seats(&forced, "/outcome"), [format!("{their_seat} ended")]);
    let cleaned = json_of(&theirs, 0, &["clean"]);
    assert_eq!(cleaned["stale"].as_array().unwrap().len(), 1, "{cleaned:#}");
    assert_eq!(on_disk(&theirs).0, 0);
}

#[test]
fn a_seat_whose_agent_was_stopped_by_a_peer_still_ends_with_all_that_it_started() {
    let (ns, mine) = restricted("detach-hung", &["odd-ids"]);
    let theirs = colleague(&ns);
    let report = mine.attach(&["odd-ids"]);
    let seat = text(&report, "/seat/name").to_owned();
    mine.ssh(&[&alias(&report), "setsid sleep 4321 </dev/null >/dev/null 2>&1 &"]).expect_code(0);
    mine.hang_up(&alias(&report));
    ns.exec("odd-ids", &seat, &["pkill", "-STOP", "-f", "^/usr/local/bin/podbench agent$"]).expect_code(0);
    let ended = json_of(&mine, 0, &["detach", "odd-ids"]);
    assert_eq!(seats(&ended, "/outcome"), [format!("{seat} ended")], "{ended:#}");
    let witness = theirs.attach(&["odd-ids"]);
    let left = processes(&ns, "odd-ids", text(&witness, "/seat/name"));
    assert!(!left.iter().any(|p| p.contains("4321")), "{left:#?}");
    assert_eq!(ns.get("pod", "odd-ids")["status"]["containerStatuses"][0]["restartCount"], 0);
}

#[test]
fn detach_after_the_pod_was_deleted_takes_back_what_is_on_the_disk() {
    let (ns, person) = restricted("detach-gone", &["odd-ids"]);
    person.attach(&["odd-ids"]);
    ns.kubectl(&["delete", "pod", "odd-ids", "--force", "--grace-period=0"]).expect_code(0);
    eventually("the pod is gone", Duration::from_secs(30), || {
        (ns.kubectl(&["get", "pod", "odd-ids"]).code != 0).then_some(())
    });
    let said = person.podbench(&["status", "odd-ids"]).expect_code(2);
    assert!(said.stderr.contains("try:   podbench detach odd-ids"), "{}", said.stderr);
    let report = json_of(&person, 0, &["detach", "odd-ids"]);
    assert_eq!(seats(&report, "/outcome"), ["podbench-1 podGone"]);
    assert_eq!(report["podUid"], Value::Null);
    let (stanzas, known, _) = on_disk(&person);
    assert_eq!((stanzas, known), (0, 0));
    person.podbench(&["detach", "odd-ids"]).expect_code(2);
}

#[test]
fn detach_without_the_right_to_exec_removes_nothing_and_says_what_remains() {
    let (ns, person) = restricted("detach-denied", &["odd-ids"]);
    person.attach(&["odd-ids"]);
    let rules = std::fs::read_to_string(observe_rules()).unwrap();
    let kept: Vec<&str> = rules.split("- apiGroups").filter(|r| !r.contains("pods/exec")).collect();
    // The same account, whose Role loses a rule.
    ns.kubeconfig_with("observer", &kept.join("- apiGroups"));
    let said = eventually("the right is gone", Duration::from_secs(20), || {
        let said = person.podbench(&["detach", "odd-ids"]);
        (said.code == 2).then_some(said)
    });
    assert!(flat(&said.stdout).contains("podbench-1 beside app is left"), "{}", said.stdout);
    assert!(said.stderr.contains("pods/exec") && said.stderr.contains("agent --stop"), "{}", said.stderr);
    assert_eq!((on_disk(&person).0, on_disk(&person).1), (1, 1));
    assert!(ephemeral_state(&ns, "odd-ids", "podbench-1")["running"].is_object());
    ns.kubeconfig_with("observer", &rules);
    eventually("the right is back", Duration::from_secs(20), || {
        (person.podbench(&["detach", "odd-ids"]).code == 0).then_some(())
    });
    assert_eq!(on_disk(&person).0, 0);
}

/// A container that ends with code 3 when somebody says so.
const MORTAL: &str = r#"
apiVersion: v1
kind: Pod
metadata: {name: mortal}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: app
    image: podbench.test/debian:1
    imagePullPolicy: Never
    command: [sh, -c, "while [ ! -e /tmp/end ]; do sleep 0.1; done; exit 3"]
    securityContext: {runAsUser: 1234, runAsGroup: 1234}
"#;

fn apply(ns: &Namespace, yaml: &str) {
    run_with(ns.command(&["apply", "-f", "-"]), yaml.as_bytes(), Duration::from_secs(30)).expect_code(0);
}

#[test]
fn list_and_status_tell_what_runs_what_ended_and_what_only_looks_like_a_seat() {
    let ns = Namespace::scratch("status");
    apply(&ns, MORTAL);
    ns.kubectl(&["wait", "--for=condition=Ready", "pod/mortal", "--timeout=60s"]).expect_code(0);
    let (mine, theirs) = (person(&ns), colleague(&ns));
    let none = mine.podbench(&["detach"]).expect_code(2);
    assert!(none.stderr.contains("has a seat"), "{}", none.stderr);
    let empty = mine.podbench(&["list"]).expect_code(0);
    assert!(empty.stdout.is_empty() && empty.stderr.contains("no seat"), "{empty:?}");

    mine.attach(&["mortal"]);
    ns.exec("mortal", "app", &["touch", "/tmp/end"]);
    eventually("the target runs again, and its seat has ended", Duration::from_secs(60), || {
        let pod = ns.get("pod", "mortal");
        let app = &pod["status"]["containerStatuses"][0];
        (app["restartCount"] == 1 && app["state"]["running"].is_object()).then_some(())?;
        ephemeral_state(&ns, "mortal", "podbench-1")["terminated"].is_object().then_some(())
    });
    let report = mine.attach(&["mortal"]);
    assert_eq!(text(&report, "/seat/name"), "podbench-2");
    let told = report["warnings"].to_string();
    assert!(
        told.contains("your seat podbench-1 is gone") && told.contains("app ended with exit code 3"),
        "{told}"
    );
    let first = theirs.attach(&["mortal"]);
    assert!(!first["warnings"].to_string().contains("is gone"), "a colleague's seat is no news: {first:#}");
    // A seat's name and target, and another command.
    let mut pod = ns.get("pod", "mortal");
    let list = pod["spec"]["ephemeralContainers"].as_array_mut().unwrap();
    let mut fake = list[0].clone();
    fake["name"] = json!("podbench-9");
    fake["command"] = json!(["sleep", "3600"]);
    list.push(fake);
    let path = format!("/api/v1/namespaces/{}/pods/mortal/ephemeralcontainers", ns.name);
    let put = ns.command(&["replace", "--raw", &path, "-f", "-"]);
    run_with(put, pod.to_string().as_bytes(), Duration::from_secs(30)).expect_code(0);

    let list = json_of(&mine, 0, &["list"]);
    let states = seats(&list, "/state/name");
    assert_eq!(states, ["podbench-1 ended", "podbench-2 running", "podbench-3 running"]);
    let row = |n: usize| &list["seats"][n];
    assert_eq!(row(0)["state"]["exitCode"], 137, "{list:#}");
    assert_eq!((&row(1)["mine"], &row(2)["mine"]), (&json!(true), &json!(false)));
    assert_eq!(row(1)["ssh"], json!(alias(&report)));
    assert_eq!(text(&list, "/notOurs/0/container"), "podbench-9");
    assert!(text(&list, "/stale/0/why").contains("ended"), "{list:#}");
    // A selector looks at some pods, and says nothing about the ssh hosts of others.
    let some = json_of(&mine, 0, &["list", "-l", "app=nosuch"]);
    assert_eq!((&some["pods"], &some["seats"], &some["stale"]), (&json!(0), &json!([]), &json!([])));
    let shown = mine.podbench(&["list"]).expect_code(0);
    assert!(!shown.stdout.contains("podbench-9"), "{}", shown.stdout);
    assert!(shown.stderr.contains("podbench-9 looks like a seat and isn't one"), "{}", shown.stderr);
    assert!(shown.stderr.contains("podbench clean"), "{}", shown.stderr);
    assert_eq!(seats(&json_of(&theirs, 0, &["list", "--mine"]), "/state/name"), ["podbench-3 running"]);

    let status = json_of(&mine, 0, &["status", "mortal"]);
    let why = text(&status, "/seats/0/endedBecause");
    assert!(why.contains("app ended with exit code 3"), "{why}");
    assert_eq!(status["seats"][1]["measured"]["uid"], 1234, "{status:#}");
    assert!(status["seats"][1]["measured"]["memory"].is_object());
    assert_eq!(status["seats"][2]["measured"], Value::Null, "a colleague's seat is entered");
    assert!(text(&status, "/next").contains(&alias(&report)), "{status:#}");
    // The only pod with a seat; one without is no choice.
    ns.zoo(&["odd-ids"]);
    // On a busy machine a measurement may miss its deadline, which is then what is said.
    let shown = eventually("the seat was measured in time", Duration::from_secs(90), || {
        let shown = flat(&mine.podbench(&["status"]).expect_code(0).stdout);
        (!shown.contains("not measured")).then_some(shown)
    });
    assert!(shown.contains("terminated with its target") && shown.contains("measured: degraded"), "{shown}");
    assert!(shown.contains("podbench-9 looks like a seat"), "{shown}");

    // Neither verb takes the fake for one.
    mine.podbench(&["detach", "mortal", "--seat", "podbench-9", "--force"]).expect_code(2);
    mine.podbench(&["status", "mortal", "-c", "nosuch"]).expect_code(2);
    let ended = json_of(&mine, 0, &["detach", "mortal"]);
    assert_eq!(seats(&ended, "/outcome"), ["podbench-1 endedBefore", "podbench-2 ended"]);
    assert!(ephemeral_state(&ns, "mortal", "podbench-3")["running"].is_object());
}

#[test]
fn clean_takes_back_a_replaced_pods_stanza_and_keeps_what_it_cannot_ask_about() {
    let (ns, person) = restricted("clean", &["odd-ids"]);
    let host = alias(&person.attach(&["odd-ids"]));
    let dir = person.home().join(".podbench/config.d");
    // A second cluster, which nobody answers for, and a file of the user's own.
    let away = person.home().join("away.yaml");
    let config = std::fs::read_to_string(person.home().join(".kube/config")).unwrap();
    let mut config: Value = serde_json::from_str(&config).unwrap();
    config["clusters"][0]["cluster"]["server"] = json!("https://127.0.0.1:1");
    std::fs::write(&away, config.to_string()).unwrap();
    let stanza = std::fs::read_to_string(dir.join(format!("{host}.conf"))).unwrap();
    let here = person.home().join(".kube/config").display().to_string();
    let there = stanza
        .replace(&format!("\"kubeconfig\":\"{here}\""), &format!("\"kubeconfig\":\"{}\"", away.display()));
    assert_ne!(there, stanza);
    std::fs::write(dir.join("away.conf"), there.replace(&format!("Host {host}"), "Host away")).unwrap();
    std::fs::write(dir.join("mine.conf"), "Host mine\n").unwrap();
    let untouched = json_of(&person, 0, &["clean"]);
    assert_eq!(untouched["stale"], json!([]), "a seat that runs isn't stale: {untouched:#}");

    // As a StatefulSet does: the same name, another pod.
    ns.kubectl(&["delete", "pod", "odd-ids", "--wait=true"]).expect_code(0);
    ns.zoo(&["odd-ids"]);
    let dry = json_of(&person, 0, &["clean", "--dry-run"]);
    assert!(dir.join(format!("{host}.conf")).exists(), "a dry run removes nothing");
    let said = flat(&person.podbench(&["clean"]).expect_code(0).stdout);
    assert!(said.contains(&host) && said.contains("another has its name"), "{said}");
    assert!(said.contains("the ssh host away"), "{said}");
    assert!(text(&dry, "/unchecked/0/why").contains("127.0.0.1:1"), "{dry:#}");
    assert_eq!(dry["stale"].as_array().unwrap().len(), 1);
    assert!(!dir.join(format!("{host}.conf")).exists());
    assert!(dir.join("away.conf").exists() && dir.join("mine.conf").exists());

    // With no cluster at all nothing is known, and that is a failure.
    let down =
        person.podbench(&["detach", "odd-ids", "--kubeconfig", &away.display().to_string()]).expect_code(2);
    assert!(
        dir.join("away.conf").exists() && down.stderr.contains("nothing was taken back"),
        "{}",
        down.stderr
    );
    let nowhere = person.podbench(&["clean", "--kubeconfig", &away.display().to_string()]).expect_code(2);
    assert!(dir.join("away.conf").exists(), "{nowhere:?}");
}

#[test]
fn clean_ends_a_superseded_seat_and_leaves_the_newer_one() {
    let (ns, person) = restricted("superseded", &["odd-ids"]);
    let theirs = colleague(&ns);
    theirs.attach(&["odd-ids"]);
    let old = alias(&person.attach(&["odd-ids"]));
    let new = alias(&person.attach(&["odd-ids", "--new"]));
    let status = json_of(&person, 0, &["status", "odd-ids"]);
    assert_eq!(text(&status, "/seats/1/supersededBy"), "podbench-3", "{status:#}");
    let cleaned = json_of(&person, 0, &["clean"]);
    assert_eq!(seats(&cleaned, "/outcome"), ["podbench-2 ended"]);
    assert_ne!(person.ssh(&[&old, "true"]).code, 0);
    person.ssh(&[&new, "true"]).expect_code(0);
    let left = json_of(&person, 0, &["list"]);
    let states = seats(&left, "/state/name");
    assert_eq!(states, ["podbench-1 running", "podbench-2 ended", "podbench-3 running"]);
}

#[test]
fn a_seat_that_never_started_is_told_and_nothing_of_it_can_be_ended() {
    let (ns, person) = restricted("stuck", &["odd-ids"]);
    let image = ["--image", "podbench.test/nosuch:1", "--pull", "Never"];
    let mut args = vec!["attach", "odd-ids"];
    args.extend(image);
    person.podbench(&args).expect_code(2);
    assert!(!ns.seats("odd-ids").is_empty());
    let list = json_of(&person, 0, &["list"]);
    assert_eq!(text(&list, "/seats/0/state/name"), "waiting", "{list:#}");
    let told = json_of(&person, 2, &["detach", "odd-ids"]);
    assert_eq!(text(&told, "/seats/0/outcome"), "left", "{told:#}");
    assert!(text(&told, "/seats/0/why").contains("goes with its pod"), "{told:#}");
}

#[test]
fn every_namespace_needs_a_right_that_the_refusal_names() {
    let ns = Namespace::scratch("all");
    let person = person(&ns);
    let said = person.podbench(&["list", "-A"]).expect_code(2);
    assert!(said.stderr.contains("pods") && said.stderr.contains("cluster scope"), "{}", said.stderr);
    assert!(said.stderr.contains("kubectl create clusterrole podbench-list-pods"), "{}", said.stderr);
    let json = person.podbench(&["list", "-A", "-o", "json"]).expect_code(2).json();
    assert_eq!(text(&json, "/schema"), "podbench/error/v1");
}

#[test]
fn two_hundred_pods_cost_one_list() {
    let (ns, person) = restricted("many", &["odd-ids"]);
    person.attach(&["odd-ids"]);
    let pending = |n: usize| {
        json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("pending-{n}")},
            "spec": {
                "nodeSelector": {"nowhere": "true"},
                "securityContext": {"runAsNonRoot": true, "runAsUser": 7, "seccompProfile": {"type": "RuntimeDefault"}},
                "containers": [{"name": "app", "image": "podbench.test/static:1", "securityContext": {
                    "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}}}],
            },
        })
    };
    let all = json!({"apiVersion": "v1", "kind": "List", "items": (0..199).map(pending).collect::<Vec<_>>()});
    let create = ns.command(&["create", "-f", "-"]);
    run_with(create, all.to_string().as_bytes(), Duration::from_secs(120)).expect_code(0);
    let file = person.home().join("transcript.jsonl");
    let mut command = person.podbench_command(&["list", "-o", "json"]);
    command.env("PODBENCH_TRANSCRIPT", &file);
    let list = run_with(command, b"", Duration::from_secs(120)).expect_code(0).json();
    assert_eq!((&list["pods"], list["seats"].as_array().unwrap().len()), (&json!(200), 1));
    let calls = read(&file);
    let to_pods = calls.iter().filter(|c| c.argv.iter().any(|w| w == "pods")).count();
    assert_eq!((to_pods, calls.len()), (1, 3), "{:#?}", calls.iter().map(|c| &c.argv).collect::<Vec<_>>());
    assert_eq!(list["calls"]["kubectl"], 3);
}

#[test]
fn detach_gives_a_resized_target_its_old_memory_back_from_another_machine_too() {
    let (ns, _) = restricted("detach-resize", &["odd-ids"]);
    let rules = std::fs::read_to_string(observe_rules()).unwrap()
        + "\n- apiGroups: [\"\"]\n  resources: [pods/resize]\n  verbs: [get, patch]\n\
           - apiGroups: [\"\"]\n  resources: [limitranges]\n  verbs: [list]\n";
    let config = ns.kubeconfig_with("resizer", &rules);
    let person = || Person::new(PODBENCH, &config, &ns.cluster.image);
    let mine = person();
    let memory = || {
        let pod = ns.get("pod", "odd-ids");
        pod.pointer("/spec/containers/0/resources/limits/memory").and_then(Value::as_str).unwrap().to_owned()
    };
    let before = memory();
    let report = mine.attach(&["odd-ids", "--resize", "400Mi"]);
    assert_eq!(memory(), "400Mi", "{report:#}");
    // Another laptop of the same person's: only the seat's environment remembers.
    let laptop = person();
    let status = json_of(&laptop, 0, &["status", "odd-ids"]);
    assert!(text(&status, "/seats/0/resizedFrom").contains("400Mi"), "{status:#}");
    let dry = json_of(&laptop, 0, &["detach", "odd-ids", "--dry-run"]);
    assert_eq!(text(&dry, "/resized/0/outcome"), "wouldRestore", "{dry:#}");
    assert_eq!(memory(), "400Mi");
    let done = json_of(&laptop, 0, &["detach", "odd-ids"]);
    assert!(["restored", "pending"].contains(&text(&done, "/resized/0/outcome")), "{done:#}");
    assert_eq!(memory(), before);
    let again = json_of(&mine, 0, &["detach", "odd-ids"]);
    assert_eq!(text(&again, "/resized/0/outcome"), "nothing", "{again:#}");
    assert_eq!(memory(), before);
}
