//! Several clusters, namespaces and pods: no alias, file or known_hosts line ever collides.

use std::collections::BTreeSet;

use podbench_test_support::namespace::{Namespace, observe_rules};
use podbench_test_support::person::{Person, alias};
use podbench_test_support::pods::pod;
use serde_json::Value;

use crate::world::{PODBENCH, person, text};

fn hosts(person: &Person) -> Vec<String> {
    let text = std::fs::read_to_string(person.home().join(".podbench/known_hosts")).unwrap();
    text.lines().filter_map(|l| l.split(' ').next().map(str::to_owned)).collect()
}

fn stanzas(person: &Person) -> Vec<String> {
    let folder = std::fs::read_dir(person.home().join(".podbench/config.d")).unwrap();
    folder.flatten().map(|e| e.file_name().to_string_lossy().into_owned()).collect()
}

/// The kubeconfig of an observer of both namespaces, one context each, called after it.
fn of_both(one: &Namespace, other: &Namespace) -> String {
    let mut first: Value = serde_json::from_str(&one.observer()).unwrap();
    let second: Value = serde_json::from_str(&other.observer()).unwrap();
    for (config, ns) in [(None, one), (Some(second), other)] {
        let list = |what: &str| config.as_ref().map(|c| c[what][0].clone());
        let user = format!("observer-{}", ns.name);
        let context = serde_json::json!({"name": ns.name, "context": {"cluster": "e2e", "user": user, "namespace": ns.name}});
        match list("users") {
            None => {
                first["users"][0]["name"] = user.into();
                first["contexts"] = serde_json::json!([context]);
                first["current-context"] = ns.name.clone().into();
            }
            Some(mut theirs) => {
                theirs["name"] = user.into();
                first["users"].as_array_mut().unwrap().push(theirs);
                first["contexts"].as_array_mut().unwrap().push(context);
            }
        }
    }
    first.to_string()
}

#[test]
fn twenty_pods_at_once_are_twenty_hosts_and_no_file_is_lost() {
    let ns = Namespace::scratch("twenty");
    let names: Vec<String> = (0..20).map(|n| format!("p{n}")).collect();
    ns.pods(&names.iter().map(|n| pod(n, 1234, 2000)).collect::<Vec<_>>());
    let person = person(&ns);
    let reports: Vec<Value> = std::thread::scope(|s| {
        let attach = |name: &String| {
            let (person, name) = (&person, name.clone());
            s.spawn(move || person.attach(&[&name, "--no-probe"]))
        };
        let started: Vec<_> = names.iter().map(attach).collect();
        started.into_iter().map(|t| t.join().unwrap()).collect()
    });
    let aliases: BTreeSet<String> = reports.iter().map(alias).collect();
    assert_eq!(aliases.len(), 20);
    let known = hosts(&person);
    assert_eq!((known.len(), known.iter().collect::<BTreeSet<_>>().len()), (20, 20), "{known:?}");
    let files = stanzas(&person);
    assert_eq!(files.len(), 20, "{files:?}");
    let root = std::fs::read_dir(person.home().join(".podbench")).unwrap().flatten();
    let left: Vec<String> = root.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    assert!(!left.iter().any(|n| n.ends_with(".tmp")), "a temporary is left: {left:?}");
    assert!(
        files.iter().all(|f| f.ends_with(".conf") && !f.starts_with('.')),
        "a temporary is left: {files:?}"
    );
    for (name, report) in names.iter().zip(&reports) {
        assert_eq!(person.ssh(&[&alias(report), "hostname"]).text(), *name, "an alias leads to another pod");
    }
}

#[test]
fn names_that_read_alike_and_clusters_of_one_name_are_hosts_of_their_own() {
    // `e2e-alike-P-N` with pod `x-one`, and `e2e-alike-P-N-x` with pod `one`, read the same.
    let near = Namespace::scratch("alike");
    let far = Namespace::named(&format!("{}-x", near.name));
    near.pods(&[pod("x-one", 1234, 2000), pod("one", 1234, 2000)]);
    far.pods(&[pod("one", 1234, 2000)]);
    let person = Person::new(PODBENCH, &of_both(&near, &far), &near.cluster.image);
    let reports = [
        person.attach(&["x-one", "--context", &near.name]),
        person.attach(&["one", "--context", &near.name]),
        person.attach(&["one", "--context", &far.name]),
    ];
    let aliases: BTreeSet<String> = reports.iter().map(alias).collect();
    assert_eq!(aliases.len(), 3, "{aliases:?}");
    for (report, namespace) in reports.iter().zip([&near.name, &near.name, &far.name]) {
        assert_eq!(text(report, "/namespace"), namespace);
        let whose = person.ssh(&[&alias(report), "hostname"]).text();
        assert_eq!(whose, text(report, "/pod/name"));
    }

    // Another kubeconfig, whose context has the same name and leads to the same pod by another way.
    let other = person.home().join("other.kubeconfig");
    let kubeconfig = std::fs::read_to_string(person.home().join(".kube/config")).unwrap();
    assert!(kubeconfig.contains("127.0.0.1"), "the cluster has another address");
    std::fs::write(&other, kubeconfig.replace("127.0.0.1", "localhost")).unwrap();
    let again = person.attach(&["one", "--context", &near.name, "--kubeconfig", "other.kubeconfig"]);
    assert_eq!(text(&again, "/pod/uid"), text(&reports[1], "/pod/uid"));
    // It is the same pod: one host, which goes the way that was taken last.
    assert_eq!(alias(&again), alias(&reports[1]));
    person.hang_up(&alias(&again));
    person.ssh(&[&alias(&again), "true"]).expect_code(0);
    assert_eq!(hosts(&person).len(), 3, "one line for each pod's seat");
}

#[test]
fn a_pod_made_anew_keeps_its_alias_and_its_old_key_is_never_taken_for_the_new_one() {
    let ns = Namespace::scratch("anew");
    ns.pods(&[pod("app", 1234, 2000)]);
    let person = person(&ns);
    let before = person.attach(&["app"]);
    person.ssh(&[&alias(&before), "true"]).expect_code(0);
    let old = hosts(&person);
    ns.kubectl(&["delete", "pod", "app", "--wait=true"]).expect_code(0);
    ns.pods(&[pod("app", 1234, 2000)]);
    person.hang_up(&alias(&before));
    assert_eq!(person.ssh(&[&alias(&before), "true"]).code, 255, "there is no seat in the new pod yet");
    let key = std::fs::read_to_string(person.home().join(".podbench/known_hosts")).unwrap();
    let after = person.attach(&["app"]);
    assert_eq!(alias(&after), alias(&before));
    assert_ne!(text(&after, "/pod/uid"), text(&before, "/pod/uid"));
    person.ssh(&[&alias(&after), "true"]).expect_code(0);
    let new = hosts(&person);
    assert_eq!(new.len(), 1, "{new:?}");
    assert_ne!(old, new, "the new pod's key stands under the old pod's name");
    // With the old pod's key under the new pod's name, ssh refuses the new pod.
    let wrong = key.replace(&old[0], &new[0]);
    std::fs::write(person.home().join(".podbench/known_hosts"), wrong).unwrap();
    person.hang_up(&alias(&after));
    let said = person.ssh(&[&alias(&after), "true"]);
    assert_eq!(said.code, 255);
    assert!(said.stderr.contains("HOST IDENTIFICATION HAS CHANGED"), "{}", said.stderr);
}

#[test]
fn a_colleagues_seat_in_the_pod_made_anew_is_not_entered_by_the_old_alias() {
    let ns = Namespace::scratch("colleague");
    ns.pods(&[pod("app", 1234, 2000)]);
    let rules = std::fs::read_to_string(observe_rules()).unwrap();
    let colleague = Person::new(PODBENCH, &ns.kubeconfig_with("colleague", &rules), &ns.cluster.image);
    let person = person(&ns);
    let before = person.attach(&["app"]);
    ns.kubectl(&["delete", "pod", "app", "--wait=true"]).expect_code(0);
    ns.pods(&[pod("app", 1234, 2000)]);
    let theirs = colleague.attach(&["app"]);
    assert_eq!(
        text(&theirs, "/seat/name"),
        text(&before, "/seat/name"),
        "the same way leads to another seat"
    );
    let said = person.ssh(&["-S", "none", &alias(&before), "true"]);
    // Before any key of the person's is offered to it.
    assert_eq!(said.code, 255, "{said:?}");
    assert!(said.stderr.contains("Host key verification failed"), "{}", said.stderr);
    assert!(!said.stderr.contains("Permission denied"), "{}", said.stderr);
    let after = person.attach(&["app"]);
    assert_ne!(text(&after, "/seat/name"), text(&theirs, "/seat/name"));
    assert_eq!(person.ssh(&[&alias(&after), "hostname"]).text(), "app");
}

#[test]
fn four_people_attach_to_one_pod_at_once_and_each_gets_a_seat() {
    let ns = Namespace::scratch("four");
    ns.pods(&[pod("app", 1234, 2000)]);
    let rules = std::fs::read_to_string(observe_rules()).unwrap();
    let people: Vec<Person> = (0..4)
        .map(|n| Person::new(PODBENCH, &ns.kubeconfig_with(&format!("p{n}"), &rules), &ns.cluster.image))
        .collect();
    let reports: Vec<Value> = std::thread::scope(|s| {
        let started: Vec<_> = people.iter().map(|p| s.spawn(|| p.attach(&["app"]))).collect();
        started.into_iter().map(|t| t.join().unwrap()).collect()
    });
    let seats: BTreeSet<&str> = reports.iter().map(|r| text(r, "/seat/name")).collect();
    assert_eq!(seats.len(), 4, "{seats:?}");
    assert_eq!(ns.seats("app").len(), 4, "a conflict burnt a name");
    for (person, report) in people.iter().zip(&reports) {
        person.ssh(&[&alias(report), "true"]).expect_code(0);
    }
}
