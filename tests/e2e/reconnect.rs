//! A seat that is there already.

use podbench_test_support::person::alias;

use crate::world::{ladder, number, person, restricted, text, world};

#[test]
fn a_reconnect_writes_nothing_and_takes_four_kubectl_processes() {
    let (ns, person) = restricted("again", &["odd-ids"]);
    let first = person.attach(&["odd-ids"]);
    assert!(number(&first, "/calls/kubectl") <= 9, "{first:#}");
    let before = ns.get("pod", "odd-ids");
    let again = person.attach(&["odd-ids"]);
    assert_eq!(again.pointer("/seat/reused"), Some(&true.into()), "{again:#}");
    assert!(number(&again, "/calls/kubectl") <= 4, "{again:#}");
    assert_eq!(ladder(&again), ["degraded reused launcher"]);
    let after = ns.get("pod", "odd-ids");
    assert_eq!(
        before.pointer("/metadata/generation"),
        after.pointer("/metadata/generation"),
        "the spec was written"
    );
    assert_eq!(before.pointer("/spec"), after.pointer("/spec"));
    assert_eq!(alias(&first), alias(&again));
    person.ssh(&[&alias(&again), "true"]).expect_code(0);
}

#[test]
fn a_new_key_on_the_same_seat_logs_in_after_a_reconnect() {
    let (ns, first) = restricted("second-laptop", &["odd-ids"]);
    let seat = text(&first.attach(&["odd-ids"]), "/seat/name").to_owned();
    let laptop = person(&ns);
    let report = laptop.attach(&["odd-ids"]);
    assert_eq!(text(&report, "/seat/name"), seat, "the same owner's seat is reused");
    laptop.ssh(&[&alias(&report), "true"]).expect_code(0);
    first.ssh(&[&alias(&report), "true"]).expect_code(0);
}

#[test]
fn new_lands_another_seat_beside_the_first_and_both_work() {
    let (ns, person) = restricted("new", &["odd-ids"]);
    let one = alias(&person.attach(&["odd-ids"]));
    let two = alias(&person.attach(&["odd-ids", "--new"]));
    assert_ne!(one, two);
    assert_eq!(ns.seats("odd-ids"), ["podbench-1", "podbench-2"]);
    person.ssh(&[&one, "true"]).expect_code(0);
    person.ssh(&[&two, "true"]).expect_code(0);
}

#[test]
fn a_seat_of_the_right_ids_but_of_somebody_elses_is_not_reused() {
    let (ns, mine) = restricted("owners", &["odd-ids"]);
    let rules = std::fs::read_to_string(podbench_test_support::namespace::observe_rules()).unwrap();
    let theirs = podbench_test_support::person::Person::new(
        crate::world::PODBENCH,
        &ns.kubeconfig_with("colleague", &rules),
        &ns.cluster.image,
    );
    theirs.attach(&["odd-ids"]);
    let report = mine.attach(&["odd-ids"]);
    assert_eq!(report.pointer("/seat/reused"), Some(&false.into()), "{report:#}");
    assert_eq!(ns.seats("odd-ids").len(), 2);
}

#[test]
fn ssh_config_rewrites_the_stanza_of_the_running_seat() {
    let (_ns, person) = restricted("ssh-config", &["odd-ids"]);
    let report = person.attach(&["odd-ids"]);
    let config = text(&report, "/ssh/config").to_owned();
    std::fs::remove_file(&config).unwrap();
    person.podbench(&["ssh-config", "odd-ids"]).expect_code(0);
    assert!(std::path::Path::new(&config).exists());
    person.ssh(&[&alias(&report), "true"]).expect_code(0);
    let printed = person.podbench(&["ssh-config", "odd-ids", "--print-config"]).expect_code(0).stdout;
    assert!(printed.contains("ProxyCommand") && printed.contains("StrictHostKeyChecking yes"), "{printed}");
}

#[test]
fn a_workload_is_a_pod_and_the_report_says_which_and_why() {
    let (ns, poor) = world("workloads", &["web", "db"]);
    // The observe Role reads pods and no workloads: said, with the role that would do.
    let said = poor.podbench(&["attach", "deploy/web"]).expect_code(2);
    assert!(said.stderr.contains("deployments") && said.stderr.contains("try: "), "{}", said.stderr);
    let rules = std::fs::read_to_string(podbench_test_support::namespace::observe_rules()).unwrap()
        + "\n- apiGroups: [apps]\n  resources: [deployments, statefulsets]\n  verbs: [get]\n\
           - apiGroups: [\"\"]\n  resources: [services]\n  verbs: [get]\n";
    let rich = podbench_test_support::person::Person::new(
        crate::world::PODBENCH,
        &ns.kubeconfig_with("reader", &rules),
        &ns.cluster.image,
    );
    for (asked, starts) in [("deploy/web", "web-"), ("svc/web", "web-"), ("sts/db", "db-")] {
        let report = rich.attach(&[asked]);
        assert!(text(&report, "/pod/name").starts_with(starts), "{asked}: {report:#}");
        let (_, name) = asked.split_once('/').unwrap();
        assert!(text(&report, "/pod/why").contains(name), "{asked}: {report:#}");
    }
}
