//! podbench as an ssh client: `attach --check`, `podbench ssh`, `podbench cp`.

use std::path::Path;

use podbench_test_support::namespace::Namespace;
use podbench_test_support::person::{Person, alias};
use podbench_test_support::pods::pod;
use podbench_test_support::process::run;

use crate::world::{PODBENCH, number, restricted, text};

/// Runs a program of the seat's with an admin's rights, past ssh.
#[track_caller]
fn in_seat(ns: &Namespace, report: &serde_json::Value, script: &str) {
    let seat = text(report, "/seat/name");
    ns.exec(text(report, "/pod/name"), seat, &["sh", "-c", script]).expect_code(0);
}

/// Where the seat keeps the keys that may log in.
fn keys(report: &serde_json::Value) -> String {
    let config = text(report, "/measurement/sshd/config");
    Path::new(config).with_file_name("authorized_keys").display().to_string()
}

/// podbench where PATH holds kubectl and nothing else.
fn without_ssh(person: &Person, args: &[&str]) -> podbench_test_support::process::Ran {
    let tools = person.home().join("tools");
    let kubectl = run({
        let mut which = person.command("sh");
        which.args(["-c", "command -v kubectl"]);
        which
    });
    if !tools.exists() {
        std::fs::create_dir(&tools).unwrap();
        std::os::unix::fs::symlink(kubectl.text(), tools.join("kubectl")).unwrap();
    }
    let mut command = person.podbench_command(args);
    command.env("PATH", tools);
    run(command)
}

#[test]
fn a_check_logs_in_and_the_report_says_how_long_it_took() {
    let (_ns, person) = restricted("check", &["odd-ids"]);
    let report = person.attach(&["odd-ids", "--check"]);
    assert_eq!(report.pointer("/ssh/checked/ok"), Some(&true.into()), "{report:#}");
    assert!(number(&report, "/ssh/checked/ms") > 0 && report.pointer("/ssh/checked/why").unwrap().is_null());
    // The home has no ~/.ssh/config at all: the check needs no Include line.
    let said = person.podbench(&["attach", "odd-ids", "--check"]).expect_code(0);
    assert!(
        said.stdout.contains(&format!("check   `ssh {} true` logged in", alias(&report))),
        "{}",
        said.stdout
    );
    let plain = person.attach(&["odd-ids"]);
    assert!(plain.pointer("/ssh/checked").is_none(), "it wasn't asked for: {plain:#}");
}

#[test]
fn a_private_key_that_is_not_the_public_ones_fails_the_check_and_the_report_is_printed() {
    let (_ns, person) = restricted("check-key", &["odd-ids"]);
    let other = person.home().join("other");
    let mut keygen = person.command("ssh-keygen");
    keygen.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&other);
    run(keygen).expect_code(0);
    std::fs::rename(&other, person.home().join(".ssh/id_ed25519")).unwrap();
    let said = person.podbench(&["attach", "odd-ids", "--check", "-o", "json"]).expect_code(2);
    let report = said.json();
    assert_eq!(report.pointer("/ssh/checked/ok"), Some(&false.into()), "{report:#}");
    assert!(text(&report, "/ssh/checked/why").contains("Permission denied"), "{report:#}");
    assert_eq!(report.pointer("/supports/ssh/ok"), Some(&false.into()));
    assert!(said.stderr.contains("Permission denied") && said.stderr.contains("try:   ssh -v -S none -F "));
    let said = person.podbench(&["attach", "odd-ids", "--check"]).expect_code(2);
    assert!(said.stdout.contains("failed: ") && said.stdout.contains("rung "), "{}", said.stdout);
}

#[test]
fn an_authorized_key_that_was_removed_comes_back_with_the_next_attach() {
    let (ns, person) = restricted("check-heal", &["odd-ids"]);
    let report = person.attach(&["odd-ids"]);
    in_seat(&ns, &report, &format!("rm {}", keys(&report)));
    let refused = person.ssh(&["-S", "none", "-o", "BatchMode=yes", &alias(&report), "true"]);
    assert_eq!(refused.code, 255, "the key is gone: {refused:?}");
    let again = person.attach(&["odd-ids", "--check"]);
    assert!(number(&again, "/calls/kubectl") <= 4, "{again:#}");
    assert_eq!(text(&again, "/seat/name"), text(&report, "/seat/name"));
    person.ssh(&[&alias(&again), "true"]).expect_code(0);
}

#[test]
fn an_authorized_key_that_cannot_come_back_is_no_success() {
    let (ns, person) = restricted("check-keys", &["odd-ids"]);
    let report = person.attach(&["odd-ids"]);
    // Nothing can be renamed over a folder that isn't empty.
    in_seat(&ns, &report, &format!("rm {0} && mkdir -p {0}/x", keys(&report)));
    let said = person.podbench(&["attach", "odd-ids", "--check", "-o", "json"]).expect_code(2);
    let report = said.json();
    assert_eq!(report.pointer("/ssh/checked/ok"), Some(&false.into()), "{report:#}");
    assert!(said.stderr.contains("a login by ssh failed"), "{}", said.stderr);
}

#[test]
fn a_check_without_an_ssh_on_path_says_so() {
    let (_ns, person) = restricted("check-none", &["odd-ids"]);
    let said = without_ssh(&person, &["attach", "odd-ids", "--check", "-o", "json"]).expect_code(2);
    assert!(text(&said.json(), "/ssh/checked/why").contains("ssh is not on PATH"), "{}", said.stdout);
}

#[test]
fn ssh_lands_a_seat_then_uses_it_and_words_arrive_as_they_are() {
    let (ns, person) = restricted("ssh-verb", &["odd-ids"]);
    let none = person.podbench(&["ssh", "odd-ids", "--no-attach", "--", "true"]).expect_code(2);
    assert!(none.stderr.contains("no seat of yours runs") && none.stderr.contains("podbench attach odd-ids"));
    assert!(ns.seats("odd-ids").is_empty(), "--no-attach wrote something");
    let first = person.podbench(&["ssh", "odd-ids", "--", "echo in"]).expect_code(0);
    assert_eq!(first.stdout, "in\n", "stdout is the command's alone");
    assert!(first.stderr.contains("landed"), "{}", first.stderr);
    let words = ["a b", "it's", "\"q\"", "$HOME", "*", "ü", "", "-x", "\\", "!"];
    let mut args = vec!["ssh", "odd-ids", "--no-attach", "--", "printf", "[%s]\\n"];
    args.extend(words);
    let again = person.podbench(&args).expect_code(0);
    let expected: String = words.iter().map(|w| format!("[{w}]\n")).collect();
    assert_eq!(again.stdout, expected);
    assert_eq!(again.stderr.lines().count(), 1, "one line says which seat: {}", again.stderr);
    assert_eq!(person.podbench(&["ssh", "odd-ids", "--", "exit 7"]).code, 7, "the command's own exit code");
    assert_eq!(ns.seats("odd-ids"), ["podbench-1"]);
}

#[test]
fn a_control_path_for_every_host_and_the_longest_names_leave_ssh_working() {
    let name = format!("e2e-control-{}-", std::process::id());
    let ns = Namespace::named(&format!("{name}{}", "n".repeat(63 - name.len())));
    let long = "p".repeat(63);
    let mut pod = pod(&long, 1234, 2000);
    pod["metadata"]["labels"] = serde_json::json!({"app": "long"});
    ns.pods(&[pod]);
    let person = Person::new(PODBENCH, &ns.observer(), &ns.cluster.image);
    let alias = alias(&person.attach(&[&long]));
    let masters = person.home().join("masters");
    std::fs::create_dir(&masters).unwrap();
    let path = format!("{}/%r@%h:%p", masters.display());
    let all = format!("Host *\n  ControlMaster auto\n  ControlPath {path}\n");
    let main = person.home().join("main");
    let include = std::fs::read_to_string(person.ssh_config()).unwrap();
    std::fs::write(&main, format!("{include}\n{all}")).unwrap();
    let ssh = |args: &[&str]| {
        let mut command = person.command("ssh");
        command.arg("-F").arg(&main).args(args);
        run(command)
    };
    // With the users' own path for it there is no way in.
    let theirs = ssh(&["-o", &format!("ControlPath={path}"), &alias, "true"]);
    assert!(
        theirs.code == 255 && theirs.stderr.contains("too long"),
        "the names aren't long enough: {theirs:?}"
    );
    ssh(&[&alias, "true"]).expect_code(0);
    ssh(&["-O", "check", &alias]).expect_code(0);
    assert_eq!(
        std::fs::read_dir(&masters).unwrap().count(),
        0,
        "the connection is shared by the user's own path"
    );
}
