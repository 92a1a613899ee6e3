//! `--spec-patch` and `--reason`, on the live cluster.

use podbench_test_support::person::alias;
use podbench_test_support::policy::{Policies, denies};
use serde_json::{Value, json};

use crate::world::{text, world};

/// A policy that lets no container be added which doesn't name its team and write-protect its root.
const DEMANDS: &str = "object.spec.ephemeralContainers.all(c, has(c.env) && c.env.exists(e, e.name == 'TEAM') \
                       && has(c.securityContext) && has(c.securityContext.readOnlyRootFilesystem) && c.securityContext.readOnlyRootFilesystem)";

#[test]
fn a_patch_gives_a_policy_what_it_asks_for_and_the_seat_is_entered_again() {
    let (ns, person) = world("patch", &["odd-ids"]);
    let rule = json!({"expression": DEMANDS, "message": "a seat names its TEAM and can't write its root"});
    let policies = Policies::apply(&ns, &denies(&ns, "odd-ids", &rule));
    policies.in_force("odd-ids", &json!({"name": "probe", "image": "x"}), |said| {
        said.stderr.contains("names its TEAM")
    });
    let said = person.podbench(&["attach", "odd-ids"]).expect_code(2);
    assert!(said.stderr.contains("a seat names its TEAM"), "{}", said.stderr);

    let file = person.home().join("seat.yaml");
    std::fs::write(
        &file,
        "env:\n- {name: TEAM, value: night shift}\nsecurityContext:\n  readOnlyRootFilesystem: true\n",
    )
    .unwrap();
    let report = person.attach(&["odd-ids", "--spec-patch", "seat.yaml"]);
    assert_eq!(text(&report, "/rung/measured"), "degraded", "{report:#}");
    assert!(
        !report["warnings"].to_string().contains("a policy changed"),
        "what was asked for is no policy's doing: {report:#}"
    );
    let alias = alias(&report);
    assert_eq!(person.ssh(&[&alias, "touch /x 2>/dev/null; echo $?"]).text(), "1", "its root is read-only");
    let seat = ns.get("pod", "odd-ids").pointer("/spec/ephemeralContainers/0").cloned().unwrap();
    assert!(
        seat["env"].as_array().unwrap().contains(&json!({"name": "TEAM", "value": "night shift"})),
        "{seat:#}"
    );

    // The same patch, from config.toml this time: nothing is written.
    std::fs::write(
        person.home().join(".podbench/config.toml"),
        "[defaults]\nspec-patch = \"../seat.yaml\"\n",
    )
    .unwrap();
    let again = person.attach(&["odd-ids"]);
    assert_eq!(
        (text(&again, "/seat/name"), &again["seat"]["reused"]),
        ("podbench-1", &json!(true)),
        "{again:#}"
    );
    assert_eq!(ns.seats("odd-ids").len(), 1);
    std::fs::remove_file(person.home().join(".podbench/config.toml")).unwrap();
    // What a run says about itself makes no other seat of it.
    let reasoned = person.attach(&["odd-ids", "--spec-patch", "seat.yaml", "--reason", "INC-8"]);
    assert_eq!(text(&reasoned, "/seat/name"), "podbench-1", "{reasoned:#}");
    // And a run without the patch doesn't take the seat for one that it would have written.
    let said = person.podbench(&["attach", "odd-ids"]).expect_code(2);
    assert!(said.stderr.contains("a seat names its TEAM"), "{}", said.stderr);

    // Another patch is another container, and what still isn't allowed is told in the policy's words.
    std::fs::write(&file, "env:\n- {name: TEAM, value: night shift}\n").unwrap();
    let said = person.podbench(&["attach", "odd-ids", "--spec-patch", "seat.yaml"]).expect_code(2);
    assert!(said.stderr.contains("a seat names its TEAM"), "{}", said.stderr);
    assert_eq!(ns.seats("odd-ids").len(), 1, "a name was burnt");
}

#[test]
fn a_patch_that_would_make_another_thing_of_the_seat_touches_no_cluster() {
    let (ns, mut person) = world("no-patch", &["odd-ids"]);
    let transcript = person.home().join("transcript");
    person.env.push(("PODBENCH_TRANSCRIPT".into(), transcript.display().to_string()));
    for (patch, words) in [
        ("securityContext: {privileged: true}", "securityContext.privileged"),
        ("command: [sh]", "the seat's agent is what runs"),
        ("env: [", "line"),
    ] {
        let file = person.home().join("seat.yaml");
        std::fs::write(&file, patch).unwrap();
        let said = person.podbench(&["attach", "odd-ids", "--spec-patch", "seat.yaml"]).expect_code(2);
        assert!(said.stderr.contains(words) && said.stderr.contains("try:"), "{patch}: {}", said.stderr);
    }
    let said = person.podbench(&["attach", "odd-ids", "--spec-patch", "nosuch.yaml"]).expect_code(2);
    assert!(said.stderr.contains("nosuch.yaml can't be read"), "{}", said.stderr);
    assert!(!transcript.exists(), "the cluster was asked");
    assert!(ns.seats("odd-ids").is_empty());
}

#[test]
fn a_reason_is_read_by_whoever_reads_the_pod_and_stays_the_seats_own() {
    let (ns, person) = world("reason", &["odd-ids"]);
    let report = person.attach(&["odd-ids", "--reason", "INC-7: the queue grows"]);
    assert_eq!(text(&report, "/seat/reason"), "INC-7: the queue grows");
    let env = ns.get("pod", "odd-ids").pointer("/spec/ephemeralContainers/0/env").cloned().unwrap();
    let stored: Vec<&Value> =
        env.as_array().unwrap().iter().filter(|e| e["name"] == "PODBENCH_REASON").collect();
    assert_eq!(stored, [&json!({"name": "PODBENCH_REASON", "value": "INC-7: the queue grows"})]);
    let again = person.podbench(&["attach", "odd-ids"]).expect_code(0).stdout;
    assert!(again.contains("reason  INC-7: the queue grows") && again.contains("reused"), "{again}");
    let other = person.attach(&["odd-ids", "--reason", "lunch"]);
    assert_eq!(text(&other, "/seat/reason"), "INC-7: the queue grows");
    assert!(other["warnings"].to_string().contains("`lunch` isn't stored"), "{other:#}");
    assert_eq!(ns.seats("odd-ids").len(), 1);
    for bad in ["", "two\nlines", &"x".repeat(201)] {
        person.podbench(&["attach", "odd-ids", "--reason", bad]).expect_code(2);
    }
}
