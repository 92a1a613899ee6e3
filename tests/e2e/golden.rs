//! The situations that `tests/golden` holds, on a live cluster. `./dev record` keeps what kubectl
//! said; without it the same runs prove that the situations still come about.

use podbench_test_support::namespace::{Namespace, observe_rules};
use podbench_test_support::person::Person;
use podbench_test_support::recording::{goldens, is_on, live};

use crate::world::PODBENCH;

#[test]
fn the_golden_runs_still_come_about() {
    let ns = Namespace::labelled("golden", &["pod-security.kubernetes.io/enforce=restricted"]);
    ns.zoo(&["odd-ids"]);
    let server = ns.cluster.version();
    let config = ns.observer();
    // A home of its own for each run: what a golden holds is what that run wrote.
    let run = |name: &str, code: i32, args: &[&str]| {
        live(name, &mut Person::new(PODBENCH, &config, &ns.cluster.image), &server, args).expect_code(code)
    };
    run("attach-unknown-pod", 2, &["attach", "nosuch"]);
    run("attach-degraded", 0, &["attach", "odd-ids"]);
    run("attach-reconnect", 0, &["attach", "odd-ids"]);
    let report = run("attach-reconnect-json", 0, &["attach", "odd-ids", "-o", "json"]).json();
    if is_on() {
        // One wire file for every version ever shipped: tests/agreement.rs reads them all.
        let wire = goldens().join("wire");
        std::fs::create_dir_all(&wire).unwrap();
        let file = wire.join(concat!(env!("CARGO_PKG_VERSION"), ".json"));
        std::fs::write(file, format!("{:#}\n", report["measurement"])).unwrap();
    }
    run("attach-full-refused", 0, &["attach", "odd-ids", "--max-rung", "full", "--new"]);
    run("attach-seat", 0, &["attach", "odd-ids", "--max-rung", "seat", "--no-correct-ids", "--new"]);
    run("attach-dry-run", 0, &["attach", "odd-ids", "--dry-run", "--new"]);
    run("attach-wrong-target", 2, &["attach", "odd-ids", "-c", "nosuch"]);
    run("attach-require", 3, &["attach", "odd-ids", "--require", "full"]);
    run("ssh-config", 0, &["ssh-config", "odd-ids"]);

    let rules = std::fs::read_to_string(observe_rules()).unwrap();
    let kept: Vec<&str> = rules.split("- apiGroups").filter(|r| !r.contains("pods/exec")).collect();
    let config = ns.kubeconfig_with("poor", &kept.join("- apiGroups"));
    let mut poor = Person::new(PODBENCH, &config, &ns.cluster.image);
    live("attach-no-exec", &mut poor, &server, &["attach", "odd-ids"]).expect_code(2);
    let mut keyless = Person::without_key(PODBENCH, &ns.observer(), &ns.cluster.image);
    live("attach-no-key", &mut keyless, &server, &["attach", "odd-ids"]).expect_code(2);
}

#[test]
fn the_golden_runs_without_a_policy_still_come_about() {
    let ns = Namespace::scratch("golden-open");
    ns.zoo(&["odd-ids", "crash", "stuck-init", "mesh", "hostile", "root"]);
    let server = ns.cluster.version();
    let config = ns.observer();
    // A home of its own for each run: what a golden holds is what that run wrote.
    let run = |name: &str, code: i32, args: &[&str]| {
        live(name, &mut Person::new(PODBENCH, &config, &ns.cluster.image), &server, args).expect_code(code)
    };
    run("attach-full", 0, &["attach", "odd-ids", "--max-rung", "full"]);
    run("attach-crash", 2, &["attach", "crash"]);
    run("attach-initialising", 2, &["attach", "stuck-init"]);
    run("attach-mesh", 0, &["attach", "mesh"]);
    run("attach-hostile", 0, &["attach", "hostile"]);
    run("attach-root", 0, &["attach", "root", "--reason", "INC-7: the queue grows"]);
    let rules = "- apiGroups: [\"\"]\n  resources: [pods]\n  verbs: [get]\n";
    let mut looker = Person::new(PODBENCH, &ns.kubeconfig_with("looker", rules), &ns.cluster.image);
    live("attach-no-rights", &mut looker, &server, &["attach", "odd-ids"]).expect_code(2);
}

#[test]
fn the_golden_runs_that_take_back_still_come_about() {
    let ns = Namespace::labelled("golden-undo", &["pod-security.kubernetes.io/enforce=restricted"]);
    ns.zoo(&["odd-ids"]);
    let server = ns.cluster.version();
    let config = ns.observer();
    let person = || Person::new(PODBENCH, &config, &ns.cluster.image);
    person().attach(&["odd-ids"]);
    live("list", &mut person(), &server, &["list"]).expect_code(0);
    live("status", &mut person(), &server, &["status", "odd-ids"]).expect_code(0);
    live("detach", &mut person(), &server, &["detach", "odd-ids"]).expect_code(0);
}
