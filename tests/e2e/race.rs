//! Several at once on one pod.

use podbench_test_support::person::alias;

use crate::world::{PODBENCH, person, restricted, text};

#[test]
fn two_people_attach_to_one_pod_at_once_and_both_get_a_seat() {
    let (ns, first) = restricted("race", &["odd-ids"]);
    let rules = std::fs::read_to_string(podbench_test_support::namespace::observe_rules()).unwrap();
    let second = podbench_test_support::person::Person::new(
        PODBENCH,
        &ns.kubeconfig_with("colleague", &rules),
        &ns.cluster.image,
    );
    let (a, b) = std::thread::scope(|s| {
        let a = s.spawn(|| first.attach(&["odd-ids"]));
        let b = s.spawn(|| second.attach(&["odd-ids"]));
        (a.join().unwrap(), b.join().unwrap())
    });
    assert_ne!(text(&a, "/seat/name"), text(&b, "/seat/name"));
    first.ssh(&[&alias(&a), "true"]).expect_code(0);
    second.ssh(&[&alias(&b), "true"]).expect_code(0);
}

#[test]
fn five_attaches_of_one_person_at_once_leave_whole_files() {
    let (ns, _) = restricted("five", &["odd-ids"]);
    let person = person(&ns);
    let reports: Vec<_> = std::thread::scope(|s| {
        let started: Vec<_> = (0..5).map(|_| s.spawn(|| person.attach(&["odd-ids", "--new"]))).collect();
        started.into_iter().map(|t| t.join().unwrap()).collect()
    });
    for report in &reports {
        person.ssh(&[&alias(report), "true"]).expect_code(0);
    }
    let hosts = std::fs::read_to_string(person.home().join(".podbench/known_hosts")).unwrap();
    assert_eq!(hosts.lines().filter(|l| !l.starts_with('#') && !l.is_empty()).count(), 5, "{hosts}");
}
