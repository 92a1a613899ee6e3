//! Between the write and a running seat: what the kubelet, the runtime and a registry say, and what
//! happens to the pod meanwhile. What is known after two seconds is told after two seconds.

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use podbench_test_support::namespace::Namespace;
use podbench_test_support::person::{Person, alias};
use podbench_test_support::pods::pod;
use podbench_test_support::policy::{Policies, mutates, put};
use podbench_test_support::process::{Ran, eventually};
use podbench_test_support::server::Server;
use serde_json::{Value, json};

use crate::world::{ladder, person, text};

/// No seat: exit 2, every one of the words, a next step, and soon.
#[track_caller]
fn refused(person: &Person, args: &[&str], words: &[&str]) -> Ran {
    let start = Instant::now();
    let said = person.podbench(&[&["attach"], args].concat());
    assert_eq!(said.code, 2, "{args:?}: {said:?}");
    let flat = said.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    for word in words {
        assert!(flat.contains(word), "{args:?}: `{word}` is missing in:\n{}", said.stderr);
    }
    assert!(said.stderr.contains("try: "), "{args:?}: no next step in:\n{}", said.stderr);
    assert!(start.elapsed() < Duration::from_secs(30), "{args:?}: {:?}", start.elapsed());
    said
}

/// A pod that declares a volume with a program of another architecture in it.
fn foreign(name: &str) -> [Value; 2] {
    let mut elf = vec![0u8; 64];
    // The head of a little-endian 64-bit executable for AArch64 (machine 183).
    elf[..20].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 183, 0]);
    let mut base64 = Command::new("base64");
    base64.arg("-w0");
    let elf = podbench_test_support::process::run_with(base64, &elf, Duration::from_secs(10)).text();
    let mut pod = pod(name, 1234, 2000);
    pod["spec"]["volumes"] = json!([{"name": "agent", "configMap": {"name": "agent", "defaultMode": 0o755}}]);
    [
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "agent"}, "binaryData": {"podbench": elf}}),
        pod,
    ]
}

#[test]
fn an_image_that_is_no_seat_image_is_told_from_one_of_another_architecture() {
    let ns = Namespace::scratch("no-agent");
    let [config, other] = foreign("foreign");
    ns.create(&[config]);
    ns.pods(&[other, pod("none", 1234, 2000)]);
    let person = person(&ns);
    refused(
        &person,
        &["none", "--image", "podbench.test/static:1"],
        &["/usr/local/bin/podbench", "podbench.test/static:1 isn't a seat image", "podbench-1 is burnt"],
    );
    let image = ns.cluster.image.clone();
    // A volume over the agent is nothing that podbench lets anybody ask for; a policy may add one.
    person.podbench(&["attach", "foreign", "--mount", "agent:/usr/local/bin"]).expect_code(2);
    let over = r#"[{"name": "agent", "mountPath": "/usr/local/bin"}]"#;
    let policies = Policies::apply(&ns, &mutates(&ns, "foreign", &put("true", "/volumeMounts", over)));
    policies.in_force("foreign", &json!({"name": "probe", "image": "x"}), |ran| {
        ran.stdout.contains("/usr/local/bin")
    });
    let said = refused(
        &person,
        &["foreign"],
        &["exec format error", &image, "another architecture", "podbench-1 is burnt"],
    );
    drop(policies);
    assert!(!said.stderr.contains("isn't a seat image"), "{}", said.stderr);
    eventually("the policy is gone", Duration::from_secs(20), || {
        // The dead seat keeps what the policy gave it.
        let pod = ns.rehearse("foreign", &json!({"name": "probe", "image": "x"})).json();
        let seats =
            pod.pointer("/spec/ephemeralContainers").and_then(Value::as_array).cloned().unwrap_or_default();
        let probe = seats.iter().find(|c| c["name"] == "probe")?.clone();
        probe.get("volumeMounts").is_none().then_some(())
    });
    // The dead seat is never entered, and the next one has a name of its own.
    let report = person.attach(&["foreign"]);
    assert_eq!(
        (text(&report, "/seat/name"), report.pointer("/seat/reused")),
        ("podbench-2", Some(&json!(false)))
    );
}

#[test]
fn an_image_that_cannot_be_had_is_told_in_the_kubelets_words_and_burns_one_name() {
    let ns = Namespace::scratch("pull");
    // A pod each: a kubelet that has just failed to start a container waits before it looks at its pod again.
    let names = ["never", "upper", "secret", "absent", "logged-in"];
    let mut pods = names.map(|name| pod(name, 1234, 2000));
    pods[4]["spec"]["imagePullSecrets"] = json!([{"name": "corp-login"}]);
    ns.pods(&pods);
    let person = person(&ns);
    let registries = [Server::registry("node1"), Server::registry("node2")];
    let host = |pod: &str| {
        let node = text(&ns.get("pod", pod), "/spec/nodeName").to_owned();
        let number: usize = node.trim_start_matches("node").parse().unwrap();
        format!("127.0.0.1:{}", registries[number - 1].port)
    };
    let login = ["authorization failed", "wants a login", "a running pod can't get another"];
    // Side by side: the kubelet shows what it met at its next look at the pod, some ten seconds later.
    thread::scope(|scope| {
        for (pod, image, words) in [
            ("never", "nosuch.test/seat:1".to_owned(), vec!["ErrImageNeverPull"]),
            ("upper", "nosuch.test/Upper:1".to_owned(), vec!["InvalidImageName"]),
            (
                "secret",
                format!("{}/secret/seat:1", host("secret")),
                [&login[..], &["has no pull secret"]].concat(),
            ),
            (
                "logged-in",
                format!("{}/secret/seat:1", host("logged-in")),
                [&login[..], &["has one pull secret, corp-login"]].concat(),
            ),
            ("absent", format!("{}/nothing/seat:1", host("absent")), vec!["not found"]),
        ] {
            let person = &person;
            scope.spawn(move || {
                let pull = if pod == "never" { "Never" } else { "IfNotPresent" };
                let said = refused(person, &[pod, "--image", &image, "--pull", pull], &words);
                let registry = image.split('/').next().unwrap();
                assert!(
                    said.stderr.contains(registry) && said.stderr.contains("podbench-1 is burnt"),
                    "{said:?}"
                );
                assert_eq!(said.stderr.contains("pull secret"), words.len() > 1, "{pod}: {}", said.stderr);
            });
        }
    });
    for name in names {
        assert_eq!(ns.seats(name), ["podbench-1"], "one name each: no other rung has another image");
    }
}

#[test]
fn what_only_the_kubelet_can_refuse_ends_in_seconds_and_names_the_burnt_name() {
    let ns = Namespace::scratch("config-error");
    let mut pod = pod("api", 1234, 2000);
    // The ids are the container's own: a pod's would count for the seat too.
    pod["spec"]["containers"][0]["securityContext"] = pod["spec"]["securityContext"].take();
    pod["spec"]["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = json!(false);
    pod["spec"]["securityContext"] = json!({});
    ns.pods(&[pod]);
    let person = person(&ns);
    // Without a uid the image's own counts, and that of this image is root.
    let expression =
        put("true", "/securityContext", "{\"runAsNonRoot\": true, \"allowPrivilegeEscalation\": false}");
    let policies = Policies::apply(&ns, &mutates(&ns, "api", &expression));
    policies.in_force("api", &json!({"name": "probe", "image": "x"}), |ran| {
        ran.code == 0 && ran.json()["spec"]["ephemeralContainers"].to_string().contains("runAsNonRoot")
    });
    let said = refused(
        &person,
        &["api", "--image", "podbench.test/static:1"],
        &[
            "refused by the node",
            "CreateContainerConfigError",
            "run as root",
            "podbench-1 is burnt",
            "withdrawn",
        ],
    );
    assert!(!said.stderr.contains("podbench-2"), "one name was enough: {}", said.stderr);
}

#[test]
fn a_pod_that_can_take_no_seat_is_refused_before_any_write() {
    let ns = Namespace::scratch("cannot");
    let named = |name: &str, change: &dyn Fn(&mut Value)| {
        let mut pod = pod(name, 1234, 2000);
        change(&mut pod);
        pod
    };
    let pods = [
        named("mirror", &|p| {
            p["metadata"]["annotations"] =
                json!({"kubernetes.io/config.mirror": "0123", "kubernetes.io/config.source": "file"});
            // No kubelet looks after it, so it stays for a while.
            p["spec"]["nodeName"] = json!("no-such-node");
        }),
        named("windows", &|p| {
            p["spec"]["os"] = json!({"name": "windows"});
            p["spec"]["securityContext"] = json!({});
            p["spec"]["containers"][0]["securityContext"] = json!({});
        }),
        named("unscheduled", &|p| p["spec"]["nodeSelector"] = json!({"no": "such-node"})),
        named("done", &|p| {
            p["spec"]["restartPolicy"] = json!("Never");
            p["spec"]["containers"][0]["args"] = json!(["-nosuchflag"]);
        }),
        named("leaving", &|p| p["spec"]["terminationGracePeriodSeconds"] = json!(60)),
    ];
    ns.create(&pods);
    ns.kubectl(&["wait", "--for=condition=Ready", "pod/leaving", "--timeout=60s"]).expect_code(0);
    ns.kubectl(&["wait", "--for=jsonpath={.status.phase}=Failed", "pod/done", "--timeout=60s"])
        .expect_code(0);
    ns.kubectl(&["wait", "--for=condition=PodScheduled=false", "pod/unscheduled", "--timeout=60s"])
        .expect_code(0);
    ns.kubectl(&["delete", "pod", "leaving", "--wait=false"]).expect_code(0);
    let person = person(&ns);
    for (name, words) in [
        ("mirror", &["is a static pod"][..]),
        ("windows", &["runs Windows containers"][..]),
        ("unscheduled", &["has no node yet", "node"][..]),
        ("done", &["is completed (Failed)"][..]),
        ("leaving", &["is being deleted"][..]),
    ] {
        let said = refused(&person, &[name], words);
        assert!(said.stderr.contains("nothing was written"), "{name}: {}", said.stderr);
        assert_eq!(ns.seats(name), Vec::<String>::new(), "{name} was written to");
    }
    ns.kubectl(&["delete", "pod", "--all", "--force", "--grace-period=0", "--wait=false"]).expect_code(0);
}

#[test]
fn a_pod_that_is_deleted_while_its_seat_starts_ends_the_wait() {
    let ns = Namespace::scratch("half-way");
    let mut slow = pod("slow", 1234, 2000);
    slow["spec"]["terminationGracePeriodSeconds"] = json!(60);
    ns.pods(&[slow, pod("fast", 1234, 2000)]);
    for (name, how) in [("slow", &["--grace-period=60"][..]), ("fast", &["--force", "--grace-period=0"][..])]
    {
        let node = text(&ns.get("pod", name), "/spec/nodeName").to_owned();
        let registry = Server::registry(&node);
        let image = format!("127.0.0.1:{}/silent/seat:1", registry.port);
        thread::scope(|scope| {
            scope.spawn(|| {
                eventually("the seat is stored", Duration::from_secs(20), || {
                    (!ns.seats(name).is_empty()).then_some(())
                });
                ns.kubectl(&[&["delete", "pod", name, "--wait=false"], how].concat()).expect_code(0);
            });
            refused(&person(&ns), &[name, "--image", &image], &["deleted", "get", "pods"]);
        });
    }
    ns.kubectl(&["delete", "pod", "--all", "--force", "--grace-period=0", "--wait=false"]).expect_code(0);
}

#[test]
fn fifty_attaches_exec_into_a_seat_that_has_just_started_and_none_fails() {
    let ns = Namespace::scratch("fifty");
    let names = ["a", "b", "c", "d", "e"];
    ns.pods(&names.map(|n| pod(n, 1234, 2000)));
    let kubeconfig = ns.observer();
    thread::scope(|scope| {
        for name in names {
            let (ns, kubeconfig) = (&ns, &kubeconfig);
            scope.spawn(move || {
                let person = Person::new(crate::world::PODBENCH, kubeconfig, &ns.cluster.image);
                for n in 1..=10 {
                    let report = person.attach(&[name, "--new", "--no-probe"]);
                    assert_eq!(text(&report, "/seat/name"), format!("podbench-{n}"), "{report:#}");
                    assert_eq!(report.pointer("/supports/ssh/ok"), Some(&json!(true)), "{report:#}");
                }
            });
        }
    });
}

#[test]
fn names_as_long_as_they_get_and_with_dots_are_attached_to_and_entered() {
    // A pod's log folder is NAMESPACE_POD_UID, and a file name has 255 bytes: 217 for the two.
    let label = "a".repeat(63);
    let ns = Namespace::scratch("long");
    let dots = format!("{}.{}.{}", &label[..60], &label[..60], "b".repeat(217 - ns.name.len() - 122));
    let names = [label.clone(), dots];
    let pods: Vec<Value> = names
        .iter()
        .map(|name| {
            let mut pod = pod(name, 1234, 2000);
            pod["metadata"]["labels"] = json!({"app": "long"});
            pod
        })
        .collect();
    ns.pods(&pods);
    let person = person(&ns);
    for name in &names {
        let report = person.attach(&[name]);
        assert_eq!(ladder(&report), ["degraded landed kubelet"]);
        let alias = alias(&report);
        assert!(alias.len() <= 255 && !alias.contains(char::is_whitespace), "{alias}");
        assert_eq!(person.ssh(&[&alias, "hostname"]).text().len(), 63.min(name.find('.').map_or(63, |_| 63)));
    }
}

#[test]
fn a_seat_whose_host_key_is_another_is_refused_by_ssh_and_healed_by_the_next_attach() {
    let ns = Namespace::scratch("rekeyed");
    ns.pods(&[pod("api", 1234, 2000)]);
    let person = person(&ns);
    let first = person.attach(&["api"]);
    let alias = alias(&first);
    assert_eq!(person.ssh(&[&alias, "echo in"]).text(), "in");
    person.hang_up(&alias);
    // What the laptop knows, against what the seat serves: as after the runtime made the container anew.
    let file = person.home().join(".podbench/known_hosts");
    let known = std::fs::read_to_string(&file).unwrap();
    let key = text(&first, "/measurement/sshd/hostKey").split(' ').nth(1).unwrap().to_owned();
    let own = std::fs::read_to_string(person.home().join(".ssh/id_ed25519.pub")).unwrap();
    let other = own.split(' ').nth(1).unwrap();
    assert!(known.contains(&key) && key != other);
    std::fs::write(&file, known.replace(&key, other)).unwrap();
    let said = person.ssh(&[&alias, "echo in"]);
    assert_eq!(said.code, 255, "a changed key was accepted: {said:?}");
    assert!(said.stderr.contains("Host key verification failed"), "{said:?}");
    let again = person.attach(&["api"]);
    assert_eq!(again.pointer("/seat/reused"), Some(&json!(true)), "{again:#}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), known, "one line, and the right key again");
    assert_eq!(person.ssh(&[&alias, "echo in"]).text(), "in");
}
