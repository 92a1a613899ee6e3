//! Who said no, told apart on the live cluster: policies, webhooks and Pod Security, each in its own
//! words, whole; where nobody refused the seat itself, no rung is walked in vain and no name is spent.

use std::time::{Duration, Instant};

use podbench_test_support::namespace::Namespace;
use podbench_test_support::person::{Person, alias};
use podbench_test_support::pods::pod;
use podbench_test_support::policy::{Policies, denies, mutates, put, seats_of};
use podbench_test_support::process::{Ran, eventually};
use podbench_test_support::recording::live;
use podbench_test_support::server::Server;
use serde_json::{Value, json};

use crate::world::{PODBENCH, ladder, person, text, world};

const ALL: &str = "object.spec.ephemeralContainers.all(c, ";

/// Any seat: for a policy that takes none, or whose change shows in it.
fn probe() -> Value {
    json!({"name": "probe", "image": "x", "securityContext": {
        "runAsUser": 1234, "capabilities": {"add": ["SYS_PTRACE"]}}})
}

/// A namespace with such pods, uid 1234 and gid 2000, and a person who may observe it.
fn pods(what: &str, names: &[&str]) -> (Namespace, Person) {
    let ns = Namespace::scratch(what);
    ns.pods(&names.iter().map(|n| pod(n, 1234, 2000)).collect::<Vec<_>>());
    let person = person(&ns);
    (ns, person)
}

/// A text without its line breaks and indents: a terminal's width isn't what is tested.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// No seat: exit 2, every one of the words, a next step, in bounded time, and not a name spent.
#[track_caller]
fn refused(ns: &Namespace, person: &Person, pod: &str, words: &[&str]) -> Ran {
    let start = Instant::now();
    let said = person.podbench(&["attach", pod]);
    assert_eq!(said.code, 2, "{pod}: {said:?}");
    assert_eq!(said.stdout, "", "stdout is data");
    for word in words {
        assert!(flat(&said.stderr).contains(word), "{pod}: `{word}` is missing in:\n{}", said.stderr);
    }
    assert!(said.stderr.contains("try: "), "{pod}: no next step in:\n{}", said.stderr);
    assert!(start.elapsed() < Duration::from_secs(40), "{pod}: {:?}", start.elapsed());
    assert_eq!(ns.seats(pod), Vec::<String>::new(), "{pod}: a name was spent");
    said
}

#[test]
fn each_spelling_of_a_policys_no_is_told_whole_with_the_policys_name_and_burns_no_name() {
    // kubectl prints each reason in another frame.
    let reasons =
        [("none", None), ("forbidden", Some("Forbidden")), ("toolarge", Some("RequestEntityTooLarge"))];
    let (ns, person) = pods("spelling", &reasons.map(|(app, _)| app));
    let message = "images come from registry.corp only; see the wiki, page Images, or ask #platform";
    let mut items = Vec::new();
    for (app, reason) in reasons {
        let mut rule =
            json!({"expression": format!("{ALL}c.image.startsWith('registry.corp/'))"), "message": message});
        if let Some(reason) = reason {
            rule["reason"] = json!(reason);
        }
        items.extend(denies(&ns, app, &rule));
    }
    let policies = Policies::apply(&ns, &items);
    for (app, _) in reasons {
        policies.in_force(app, &probe(), |ran| ran.stderr.contains("registry.corp"));
        let name = format!("{}-{app}", ns.name);
        let said = refused(&ns, &person, app, &[message, &name]);
        assert!(
            said.stderr.contains("degraded, full, seat: refused at the rehearsal: "),
            "{app}: {}",
            said.stderr
        );
        let helps = format!("get validatingadmissionpolicy {name} -o yaml");
        assert!(said.stderr.contains(&helps), "{app}: who wrote it? {}", said.stderr);
    }
}

#[test]
fn a_policy_that_refuses_one_rung_lets_the_next_one_land() {
    let (ns, person) = pods("one-rung", &["one", "two"]);
    let rule = |ids: &str| json!({"expression": format!("{ALL}!(c.securityContext.runAsUser in [{ids}]))"), "message": "not these ids"});
    let items = [denies(&ns, "one", &rule("1234")), denies(&ns, "two", &rule("0, 1234"))].concat();
    let policies = Policies::apply(&ns, &items);
    for (app, wanted) in [
        ("one", &["degraded refused rehearsal", "full landed kubelet"][..]),
        ("two", &["degraded refused rehearsal", "full refused rehearsal", "seat landed kubelet"][..]),
    ] {
        policies.in_force(app, &probe(), |ran| ran.stderr.contains("not these ids"));
        let report = person.attach(&[app]);
        assert_eq!(ladder(&report), wanted, "{report:#}");
        assert!(text(&report, "/ladder/0/reason").contains("not these ids"), "{report:#}");
        assert_eq!(ns.seats(app), ["podbench-1"], "a refused rehearsal burns no name");
        assert_eq!(person.ssh(&[&alias(&report), "echo in"]).text(), "in");
    }
}

#[test]
fn a_policy_that_no_ephemeral_container_can_satisfy_is_said_to_be_one() {
    let (ns, person) = pods("limits", &["limits"]);
    let rule = json!({
        "expression": format!("{ALL}has(c.resources.limits) && 'memory' in c.resources.limits)"),
        "message": "CPU and memory resource requests and limits are required",
    });
    let policies = Policies::apply(&ns, &denies(&ns, "limits", &rule));
    policies.in_force("limits", &probe(), |ran| ran.stderr.contains("limits are required"));
    let said = refused(&ns, &person, "limits", &["limits are required", "can't have any", "exempt"]);
    assert!(said.stderr.contains("get validatingadmissionpolicy"), "{}", said.stderr);
}

#[test]
fn a_webhook_that_denies_is_told_whole_and_one_that_fails_to_answer_ends_the_walk_at_once() {
    let apps = ["deny", "code", "unauthorized", "bare", "down", "slow"];
    let (ns, person) = pods("webhook", &apps);
    let kyverno = "\n\nresource Pod/x was blocked due to the following policies\n\nno-root:\n  no-root: 'validation \
                   error: root is not allowed. rule no-root failed at path /spec/ephemeralContainers/0/'\n";
    let hook = Server::webhook(&json!({
        "/deny": {"code": 403, "message": kyverno},
        "/code": {"code": 422, "reason": "Invalid", "message": "[psp] container <podbench-1> is not allowed\n[repo] nor is its image"},
        "/unauthorized": {"code": 401, "reason": "Unauthorized", "message": "sign the change first"},
    }));
    let webhooks: Vec<Value> = apps
        .iter()
        .map(|app| {
            let mut hook_of = seats_of(&ns, app);
            let rules = hook_of.as_object_mut().unwrap().remove("resourceRules").unwrap();
            let port = if *app == "down" { 1 } else { hook.port };
            let client = json!({"url": format!("https://127.0.0.1:{port}/{app}"),
                                "caBundle": base64(hook.certificate.as_bytes())});
            let more = json!({
                "name": format!("{app}.hooks.test"), "admissionReviewVersions": ["v1"], "sideEffects": "None",
                "timeoutSeconds": 2, "failurePolicy": "Fail", "rules": rules, "clientConfig": client,
            });
            hook_of.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            hook_of
        })
        .collect();
    let config = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
                        "metadata": {"name": ns.name}, "webhooks": webhooks});
    let policies = Policies::apply(&ns, &[config]);
    policies.in_force("deny", &probe(), |ran| ran.stderr.contains("deny.hooks.test"));
    for (app, words) in [
        ("deny", &["blocked due to", "rule no-root failed at path /spec/ephemeralContainers/0/"][..]),
        ("code", &["[psp] container <podbench-1> is not allowed", "[repo] nor is its image"][..]),
        ("unauthorized", &["sign the change first"][..]),
        ("bare", &["denied the request"][..]),
    ] {
        let said = refused(&ns, &person, app, words);
        let name = format!("{app}.hooks.test");
        assert!(
            said.stderr.contains("degraded, full, seat: refused at the rehearsal: "),
            "{app}: {}",
            said.stderr
        );
        assert!(said.stderr.contains(&name) && !said.stderr.contains("logged in"), "{app}: {}", said.stderr);
        assert!(said.stderr.contains("get validatingwebhookconfigurations"), "{app}: {}", said.stderr);
    }
    for (app, word) in [("down", "connection refused"), ("slow", "deadline exceeded")] {
        let said =
            refused(&ns, &person, app, &["failed calling webhook", &format!("{app}.hooks.test"), word]);
        assert!(!said.stderr.contains("full: "), "nobody said no to a rung: {}", said.stderr);
        assert!(said.stderr.contains("get validatingwebhookconfigurations"), "{app}: {}", said.stderr);
    }
    let server = ns.cluster.version();
    for (golden, app) in [("attach-webhook-denied", "deny"), ("attach-webhook-down", "down")] {
        let mut fresh = Person::new(PODBENCH, &ns.observer(), &ns.cluster.image);
        live(golden, &mut fresh, &server, &["attach", app]).expect_code(2);
    }
}

fn base64(bytes: &[u8]) -> String {
    let mut base64 = std::process::Command::new("base64");
    base64.arg("-w0");
    podbench_test_support::process::run_with(base64, bytes, Duration::from_secs(10)).text()
}

#[test]
fn what_a_mutating_policy_makes_of_a_seat_is_what_is_measured_and_said() {
    let (ns, person) = pods("mutated", &["ids", "dropped", "nonroot"]);
    let any = "true";
    let items = [
        mutates(&ns, "ids", &put(any, "/securityContext/runAsUser", "5000")),
        mutates(
            &ns,
            "dropped",
            &put(any, "/securityContext/capabilities", "Object{spec: null}")
                .replace("Object{spec: null}", "{\"drop\": [\"ALL\"]}"),
        ),
        mutates(&ns, "nonroot", &put(any, "/securityContext/runAsNonRoot", "true")),
    ]
    .concat();
    let policies = Policies::apply(&ns, &items);
    for (app, sign) in [("ids", "5000"), ("dropped", "ALL"), ("nonroot", "\"runAsNonRoot\": true")] {
        policies.in_force(
            app,
            &json!({"name": "probe", "image": "x", "securityContext": {"runAsUser": 7}}),
            |ran| {
                let seat = ran.code == 0 && !ran.json()["spec"]["ephemeralContainers"].is_null();
                seat && format!("{:#}", ran.json()["spec"]["ephemeralContainers"]).contains(sign)
            },
        );
    }
    // Other ids: both better rungs would be worth nothing, and the third isn't what was asked for.
    let report = person.attach(&["ids"]);
    assert_eq!(
        ladder(&report),
        ["degraded withdrawn rehearsal", "full withdrawn rehearsal", "seat landed kubelet"],
        "{report:#}"
    );
    assert_eq!(report.pointer("/rung/uid"), Some(&json!(5000)), "{report:#}");
    assert!(report.pointer("/warnings").unwrap().to_string().contains("5000"), "{report:#}");
    assert_eq!(person.ssh(&[&alias(&report), "id -u"]).text(), "5000");
    // ALL dropped and runAsNonRoot added: what the degraded rung has anyway, and the full one can't be without.
    for app in ["dropped", "nonroot"] {
        let report = person.attach(&[app, "--max-rung", "full"]);
        assert_eq!(ladder(&report), ["full withdrawn rehearsal", "degraded landed kubelet"], "{report:#}");
        assert_eq!(text(&report, "/rung/measured"), "degraded", "{report:#}");
        assert_eq!(report.pointer("/rung/capEff"), Some(&json!("0000000000000000")), "{report:#}");
    }
}

#[test]
fn a_seat_that_a_policy_changes_on_its_way_in_is_entered_again_and_no_second_name_is_spent() {
    let (ns, person) = pods("mirror", &["image", "proxy"]);
    // The same image by its digest, as a mirror would have it under a name of its own.
    ns.plant(
        "image",
        &json!({"name": "look", "image": ns.cluster.image, "imagePullPolicy": "Never", "command": ["true"]}),
    );
    let digest = eventually("the image's id", Duration::from_secs(20), || {
        let pod = ns.get("pod", "image");
        let id = pod.pointer("/status/ephemeralContainerStatuses/0/imageID")?.as_str()?.to_owned();
        id.rsplit_once("sha256:").map(|(_, hex)| format!("sha256:{hex}"))
    });
    let seat = "c.name.startsWith('podbench-')";
    let variable = "{\"name\": \"HTTPS_PROXY\", \"value\": \"http://proxy.corp:3128\"}";
    let policies = Policies::apply(
        &ns,
        &[
            mutates(&ns, "image", &put(seat, "/image", &format!("\"{digest}\""))),
            mutates(
                &ns,
                "proxy",
                &put(&format!("{seat} && !c.env.exists(e, e.name == 'HTTPS_PROXY')"), "/env/0", variable),
            ),
        ]
        .concat(),
    );
    let probe = json!({"name": "podbench-9", "image": "x", "env": [{"name": "A", "value": "b"}]});
    for (app, sign) in [("image", digest.as_str()), ("proxy", "HTTPS_PROXY")] {
        policies.in_force(app, &probe, |ran| {
            ran.code == 0 && ran.stdout.matches(sign).count() > usize::from(app == "image")
        });
        let first = person.attach(&[app]);
        assert!(
            first.pointer("/warnings").unwrap().to_string().contains("a policy changed the seat"),
            "{first:#}"
        );
        let again = person.attach(&[app]);
        assert_eq!(text(&again, "/seat/name"), "podbench-1", "{again:#}");
        assert_eq!(again.pointer("/seat/reused"), Some(&json!(true)), "{again:#}");
        assert!(!again.pointer("/warnings").unwrap().to_string().contains("isn't used"), "{again:#}");
        assert_eq!(person.ssh(&[&alias(&again), "echo in"]).text(), "in");
        // Another key is let in, and what is asked for anew is landed anew.
        let other = Person::new(PODBENCH, &ns.observer(), &ns.cluster.image);
        let report = other.attach(&[app]);
        assert_eq!(text(&report, "/seat/name"), "podbench-1", "{report:#}");
        assert_eq!(other.ssh(&[&alias(&report), "echo in"]).text(), "in");
        assert_eq!(text(&person.attach(&[app, "--new"]), "/seat/name"), "podbench-2");
    }
}

#[test]
fn a_policy_that_is_newer_than_a_seat_and_would_change_it_is_named_and_no_rung_is_walked_in_vain() {
    let (ns, person) = pods("frozen", &["frozen"]);
    person.attach(&["frozen"]);
    let policies =
        Policies::apply(&ns, &mutates(&ns, "frozen", &put("true", "/securityContext/runAsUser", "5000")));
    policies.in_force("frozen", &probe(), |ran| ran.stderr.contains("may not be"));
    let said = person.podbench(&["attach", "frozen", "--new"]).expect_code(2);
    for word in ["existing ephemeral containers \"podbench-1\"", "newer than podbench-1", "try: "] {
        assert!(said.stderr.contains(word), "{}", said.stderr);
    }
    assert_eq!(ns.seats("frozen"), ["podbench-1"]);
    // The seat that runs is entered as before.
    assert_eq!(person.attach(&["frozen"]).pointer("/seat/reused"), Some(&json!(true)));
}

#[test]
fn a_full_quota_and_a_limit_range_say_nothing_about_a_seat() {
    let (ns, person) = pods("quota", &["full"]);
    ns.create(&[
        json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "full"},
               "spec": {"hard": {"pods": "1", "limits.memory": "256Mi", "count/pods": "1"}}}),
        json!({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "tight"},
               "spec": {"limits": [{"type": "Container", "max": {"memory": "256Mi"}, "min": {"memory": "16Mi"},
                                    "default": {"memory": "64Mi"}, "defaultRequest": {"memory": "64Mi"}}]}}),
    ]);
    let second = ns.kubectl(&["run", "second", "--image=x", "--dry-run=server"]);
    eventually("the quota counts", Duration::from_secs(20), || {
        ns.kubectl(&["run", "second", "--image=x", "--dry-run=server"])
            .stderr
            .contains("exceeded quota")
            .then_some(())
    });
    assert!(second.code != 0 || second.stderr.is_empty());
    assert_eq!(ladder(&person.attach(&["full"])), ["degraded landed kubelet"]);
}

#[test]
fn every_version_of_pod_security_takes_the_degraded_and_the_seat_rung_as_they_are_authored() {
    let (ns, person) = pods("versions", &["api"]);
    ns.label("pod-security.kubernetes.io/enforce=restricted");
    let server = ns.cluster.version();
    let newest: u32 =
        server.split('.').nth(1).and_then(|minor| minor.parse().ok()).expect("a server version");
    for version in (25..=newest).map(|minor| format!("v1.{minor}")).chain(["latest".to_owned()]) {
        ns.label(&format!("pod-security.kubernetes.io/enforce-version={version}"));
        let report = person.attach(&["api", "--dry-run"]);
        assert_eq!(
            ladder(&report),
            ["degraded wouldLand rehearsal", "full refused rehearsal", "seat wouldLand rehearsal"],
            "{version}: {report:#}"
        );
        assert!(text(&report, "/ladder/1/reason").contains(&format!("restricted:{version}")), "{report:#}");
    }
    assert_eq!(ns.seats("api"), Vec::<String>::new());
}

#[test]
fn each_level_of_pod_security_lets_its_rungs_land_and_the_report_says_what_is_missing() {
    let (ns, person) = pods("levels", &["api"]);
    // A warning beside an answer is no refusal.
    ns.label("pod-security.kubernetes.io/warn=restricted");
    for (level, wanted) in [
        ("restricted", &["full refused rehearsal", "degraded landed kubelet"][..]),
        ("baseline", &["full refused rehearsal", "degraded landed kubelet"][..]),
        ("privileged", &["full landed kubelet"][..]),
    ] {
        ns.label(&format!("pod-security.kubernetes.io/enforce={level}"));
        let report = person.attach(&["api", "--new", "--max-rung", "full"]);
        assert_eq!(ladder(&report), wanted, "{level}: {report:#}");
        if level == "restricted" {
            // What the lower rung can and can't do, both in one text.
            let shown = person.podbench(&["attach", "api"]).expect_code(0).stdout;
            for word in ["yes  live attach", "no   iterate", "no capabilities"] {
                assert!(shown.contains(word), "`{word}` is missing in {shown}");
            }
        }
    }
    assert_eq!(ns.seats("api"), ["podbench-1", "podbench-2", "podbench-3"], "no refusal burnt a name");
}

#[test]
fn a_capability_beside_a_uid_that_is_not_root_is_never_authored_and_an_empty_set_is_what_is_reported() {
    let (ns, person) = pods("caps", &["api"]);
    let report = person.attach(&["api", "--max-rung", "degraded"]);
    assert_eq!(report.pointer("/rung/capEff"), Some(&json!("0000000000000000")), "{report:#}");
    let seat = ns.get("pod", "api").pointer("/spec/ephemeralContainers/0").unwrap().clone();
    assert_eq!(seat.pointer("/securityContext/capabilities"), Some(&json!({"drop": ["ALL"]})), "{seat:#}");
}

#[test]
fn a_run_as_non_root_of_another_container_is_no_obstacle_and_one_of_the_pod_is_overridden() {
    let ns = Namespace::scratch("non-root");
    let mut own = pod("own", 1234, 2000);
    own["spec"]["securityContext"] = json!({});
    own["spec"]["containers"][0]["securityContext"] = json!({"runAsNonRoot": true, "runAsUser": 1234, "runAsGroup": 2000, "allowPrivilegeEscalation": false});
    ns.pods(&[own, pod("pods", 1234, 2000)]);
    let person = person(&ns);
    for name in ["own", "pods"] {
        let report = person.attach(&[name, "--max-rung", "full"]);
        assert_eq!(ladder(&report), ["full landed kubelet"], "{report:#}");
        assert_eq!(person.ssh(&[&alias(&report), "id -u"]).text(), "0");
        let seats = ns.get("pod", name);
        let said = seats.pointer("/spec/ephemeralContainers/0/securityContext/runAsNonRoot");
        assert_eq!(said, Some(&json!(false)), "{seats:#}");
        // And without root, as the target.
        let report = person.attach(&[name, "--new"]);
        assert_eq!(ladder(&report), ["degraded landed kubelet"], "{report:#}");
    }
}

#[test]
fn a_missing_right_under_a_policy_is_told_as_a_right_and_no_rung_is_walked() {
    let (ns, _) = world("both", &["odd-ids"]);
    ns.label("pod-security.kubernetes.io/enforce=restricted");
    // Both would say `(Forbidden)`: the right is asked first, and no rung is walked.
    let rules = "- {apiGroups: [\"\"], resources: [pods], verbs: [get, list, watch]}";
    let person = Person::new(PODBENCH, &ns.kubeconfig_with("reader", rules), &ns.cluster.image);
    let said = refused(&ns, &person, "odd-ids", &["cannot", "pods/ephemeralcontainers"]);
    assert!(!said.stderr.contains("PodSecurity"), "{}", said.stderr);
}

#[test]
fn a_server_without_ephemeral_containers_is_said_to_have_none() {
    let (ns, _) = pods("old-server", &["api"]);
    // Whoever may do anything: a path that nobody may write to is refused before it is looked for.
    let rules = "- {apiGroups: [\"\"], resources: [\"*\"], verbs: [\"*\"]}";
    let mut person = Person::new(PODBENCH, &ns.kubeconfig_with("any", rules), &ns.cluster.image);
    // The server's own words for a path that it doesn't know, as an old one answers.
    let shim = person.home().join("kubectl-old");
    let script = "#!/bin/bash\nexec kubectl \"${@//ephemeralcontainers/nosuchthing}\"\n";
    std::fs::write(&shim, script).unwrap();
    std::fs::set_permissions(&shim, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    person.env.push(("PODBENCH_KUBECTL".into(), shim.display().to_string()));
    let words = ["could not find the requested resource", "no ephemeral containers", "1.25"];
    let said = refused(&ns, &person, "api", &words);
    assert!(!said.stderr.contains("full: "), "no rung of any kind: {}", said.stderr);
}
