//! What policies do to the ladder.

use podbench_test_support::namespace::Namespace;
use podbench_test_support::person::alias;
use podbench_test_support::policy::{Policies, mutates, put};
use serde_json::json;

use crate::world::{ids, ladder, person, restricted, text, world};

#[test]
fn a_restricted_namespace_lands_degraded_at_once_and_ssh_runs_as_the_target() {
    let (ns, person) = restricted("restricted", &["odd-ids"]);
    let report = person.attach(&["odd-ids"]);
    assert_eq!(ladder(&report), ["degraded landed kubelet"], "{report:#}");
    assert_eq!(text(&report, "/rung/measured"), "degraded");
    let (uid, gid) = ids(&ns, "odd-ids");
    let who = person.ssh(&[&alias(&report), "id -u; id -g"]).text();
    assert_eq!(who, format!("{uid}\n{gid}"));
}

#[test]
fn full_is_refused_at_the_rehearsal_in_the_servers_words_and_burns_no_name() {
    let (ns, person) = restricted("max-rung", &["odd-ids"]);
    let report = person.attach(&["odd-ids", "--max-rung", "full"]);
    assert_eq!(ladder(&report), ["full refused rehearsal", "degraded landed kubelet"], "{report:#}");
    assert!(text(&report, "/ladder/0/reason").contains("violates PodSecurity"), "{report:#}");
    assert_eq!(ns.seats("odd-ids"), ["podbench-1"], "a refused rehearsal burns no name");
    let shown = person.podbench(&["attach", "odd-ids", "--max-rung", "full", "--new"]).expect_code(0).stdout;
    assert!(shown.contains("SYS_PTRACE") && shown.contains("PodSecurity"), "{shown}");
}

#[test]
fn full_lands_beside_the_pods_own_run_as_non_root_and_gdb_attaches() {
    let (ns, person) = world("full", &["odd-ids"]);
    let pod = ns.get("pod", "odd-ids");
    assert_eq!(
        pod.pointer("/spec/securityContext/runAsNonRoot"),
        Some(&true.into()),
        "the zoo pod has changed"
    );
    let report = person.attach(&["odd-ids", "--max-rung", "full"]);
    assert_eq!(text(&report, "/rung/measured"), "full", "{report:#}");
    assert_eq!(report.pointer("/supports/liveAttach/ok"), Some(&true.into()));
    let alias = alias(&report);
    assert_eq!(person.ssh(&[&alias, "id -u"]).text(), "0");
    let before = person.ssh(&[&alias, "curl -s localhost:8080/"]).text();
    let gdb =
        "gdb -q -nx -batch -ex 'set sysroot /proc/1/root' -ex 'attach 1' -ex 'info inferiors' -ex detach";
    let said = person.ssh(&[&alias, gdb]).expect_code(0);
    assert!(said.stdout.contains("process 1") && said.stdout.contains("detached"), "{said:?}");
    let after = person.ssh(&[&alias, "curl -s localhost:8080/"]).text();
    assert!(before.starts_with("request ") && after.starts_with("request ") && before != after);
}

/// A mutating policy that takes SYS_PTRACE out of every ephemeral container of one pod.
fn strip<'a>(ns: &'a Namespace, pod: &str) -> Policies<'a> {
    let added = "has(c.securityContext) && has(c.securityContext.capabilities) && has(c.securityContext.capabilities.add)";
    let items = mutates(ns, pod, &put(added, "/securityContext/capabilities", "{\"drop\": [\"MKNOD\"]}"));
    let policies = Policies::apply(ns, &items);
    let probe =
        json!({"name": "probe", "image": "x", "securityContext": {"capabilities": {"add": ["SYS_PTRACE"]}}});
    policies.in_force(pod, &probe, |ran| ran.code == 0 && !ran.stdout.contains("SYS_PTRACE"));
    policies
}

#[test]
fn a_stripped_ptrace_capability_withdraws_the_full_rung_and_burns_no_name() {
    let (ns, person) = world("strip", &["odd-ids"]);
    let _policy = strip(&ns, "odd-ids");
    let report = person.attach(&["odd-ids", "--max-rung", "full"]);
    assert_eq!(ladder(&report), ["full withdrawn rehearsal", "degraded landed kubelet"], "{report:#}");
    assert_eq!(ns.seats("odd-ids"), ["podbench-1"]);
}

#[test]
fn a_root_target_under_that_policy_gets_a_root_seat_that_says_what_is_gone() {
    let (ns, person) = world("strip-root", &["root"]);
    let _policy = strip(&ns, "root");
    let report = person.attach(&["root"]);
    assert_eq!(text(&report, "/rung/name"), "full", "{report:#}");
    assert_ne!(text(&report, "/rung/measured"), "full", "the kernel gave no SYS_PTRACE");
    let warnings = report.pointer("/warnings").unwrap().to_string();
    assert!(warnings.contains("SYS_PTRACE"), "{warnings}");
    assert_eq!(person.ssh(&[&alias(&report), "id -u"]).text(), "0");
}

#[test]
fn an_older_seat_that_violates_the_policy_is_named_and_no_rung_is_walked_in_vain() {
    let ns = Namespace::scratch("older");
    ns.zoo(&["odd-ids"]);
    let person = person(&ns);
    let first = person.attach(&["odd-ids", "--max-rung", "full"]);
    assert_eq!(text(&first, "/rung/measured"), "full");
    ns.label("pod-security.kubernetes.io/enforce=restricted");
    let said = person.podbench(&["attach", "odd-ids", "--new"]).expect_code(2);
    assert!(said.stderr.contains("podbench-1"), "{}", said.stderr);
    assert_eq!(ns.seats("odd-ids"), ["podbench-1"], "nothing was written");
}

#[test]
fn a_dry_run_says_what_would_land_and_writes_nothing() {
    let (ns, person) = restricted("dry", &["odd-ids"]);
    let before = ns.get("pod", "odd-ids");
    let said = person.podbench(&["attach", "odd-ids", "--dry-run", "-o", "json"]).expect_code(0).json();
    assert!(ladder(&said).iter().any(|l| l.starts_with("degraded wouldLand")), "{said:#}");
    assert_eq!(
        before.pointer("/metadata/resourceVersion"),
        ns.get("pod", "odd-ids").pointer("/metadata/resourceVersion")
    );
    assert!(!person.home().join(".podbench").exists(), "a dry run leaves no file either");
}

#[test]
fn require_turns_a_rung_that_was_not_reached_into_exit_3_and_spends_no_name_on_less() {
    let (ns, person) = restricted("require", &["odd-ids"]);
    let said = person.podbench(&["attach", "odd-ids", "--require", "full"]).expect_code(3);
    assert!(said.stderr.contains("violates PodSecurity") && said.stderr.contains("try:"), "{}", said.stderr);
    assert!(ns.seats("odd-ids").is_empty(), "a lower rung was landed for nothing");
    person.podbench(&["attach", "odd-ids", "--require", "full", "--max-rung", "degraded"]).expect_code(2);
    person.podbench(&["attach", "odd-ids", "--require", "degraded"]).expect_code(0);

    // Where the namespace allows it, what is required is what is landed, beside a lower seat too.
    ns.label("pod-security.kubernetes.io/enforce=privileged");
    let report = person.attach(&["odd-ids", "--require", "full"]);
    assert_eq!(text(&report, "/rung/measured"), "full", "{report:#}");
    assert_eq!(ns.seats("odd-ids").len(), 2);
    let again = person.attach(&["odd-ids", "--require", "full"]);
    assert_eq!(text(&again, "/seat/name"), "podbench-2", "{again:#}");
}
