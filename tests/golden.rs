//! Whole runs of `podbench` against recorded kubectl calls: what it asks, what it prints, what it
//! writes. `tests/golden/NAME/` is one run; `./dev record` makes them, nobody types them.
#![allow(clippy::disallowed_methods, reason = "tests start programs")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, missing_docs)]

use std::path::{Path, PathBuf};
use std::time::Duration;

use podbench_test_support::process::run_with;
use podbench_test_support::recording::{Outcome, digest, goldens, read};

/// Every golden: a folder with a `cmd`.
fn all() -> Vec<PathBuf> {
    let mut found: Vec<_> = std::fs::read_dir(goldens())
        .unwrap()
        .flatten()
        .map(|e| e.path())
        .filter(|p| p.join("cmd").exists())
        .collect();
    found.sort();
    assert!(found.len() >= 10, "goldens are missing: {found:?}");
    found
}

fn fake_kubectl() -> PathBuf {
    // Both are built by the same `cargo test --workspace` into neighbouring folders.
    let podbench = Path::new(env!("CARGO_BIN_EXE_podbench"));
    let fake = podbench.with_file_name("fake-kubectl");
    assert!(fake.exists(), "{} isn't built: cargo build -p podbench-test-support", fake.display());
    fake
}

/// Runs a golden's command with a fake kubectl; its outcome, and the calls that nobody asked for.
fn replay(golden: &Path) -> (Outcome, Vec<String>) {
    let home = tempfile::Builder::new().prefix("pb").tempdir().unwrap();
    let tools = home.path().join("tools");
    std::fs::create_dir_all(&tools).unwrap();
    std::os::unix::fs::symlink(fake_kubectl(), tools.join("kubectl")).unwrap();
    let key = golden.join("home/.ssh/id_ed25519.pub");
    std::fs::create_dir_all(home.path().join(".ssh")).unwrap();
    if key.exists() {
        std::fs::copy(key, home.path().join(".ssh/id_ed25519.pub")).unwrap();
        // The stanza names the private half; nobody reads it here.
        std::fs::write(home.path().join(".ssh/id_ed25519"), "").unwrap();
    }
    let recording = home.path().join("kubectl.jsonl");
    std::fs::copy(golden.join("kubectl.jsonl"), &recording).unwrap();
    let line = |file: &str| std::fs::read_to_string(golden.join(file)).unwrap();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_podbench"));
    command.args(line("cmd").lines()).current_dir(home.path()).env_clear();
    command.env("HOME", home.path()).env("PATH", format!("{}:/usr/bin:/bin", tools.display()));
    command.env("TERM", "dumb").env("LC_ALL", "C.UTF-8").env("PODBENCH_CLOCK", "frozen");
    command.env("PODBENCH_IMAGE", line("image").trim()).env("FAKE_KUBECTL", &recording);
    let ran = run_with(command, b"", Duration::from_secs(60));
    let unused: Vec<String> = read(&recording)
        .iter()
        .enumerate()
        .filter(|(n, _)| !home.path().join(format!("kubectl.jsonl.used-{n}")).exists())
        .map(|(_, call)| call.argv.join(" "))
        .collect();
    (Outcome::of(home.path(), &ran), unused)
}

#[test]
fn every_golden_comes_out_as_it_was_recorded() {
    let mut wrong = Vec::new();
    for golden in all() {
        let name = golden.file_name().unwrap().to_string_lossy().into_owned();
        let (now, mut unused) = replay(&golden);
        let kept = Outcome::kept(&golden);
        if kept.code != 0 {
            // It is asked beside the first call, and a run that ends by that call's answer waits for
            // nobody: on a busy machine it ends before this kubectl has begun.
            unused.retain(|call| !call.starts_with("auth whoami "));
        }
        if now != kept {
            wrong.push(format!("{name}:\n--- kept\n{kept:#?}\n--- now\n{now:#?}"));
        }
        if !unused.is_empty() {
            wrong.push(format!("{name}: nobody asked for {unused:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{}\nIf that is meant: ./dev record", wrong.join("\n\n"));
}

#[test]
fn every_golden_was_recorded_on_a_live_cluster() {
    for golden in all() {
        let recorded = std::fs::read_to_string(golden.join("recorded")).unwrap();
        let server = recorded.lines().find_map(|l| l.strip_prefix("server: v")).unwrap_or_default();
        assert!(
            server.split('.').count() >= 3 && recorded.contains("date: "),
            "{}: {recorded}",
            golden.display()
        );
        let transcript = std::fs::read(golden.join("kubectl.jsonl")).unwrap();
        let mark = format!("sha256: {}\n", digest(&transcript));
        assert!(recorded.contains(&mark), "{}: edited by hand", golden.display());
    }
}

/// How many kubectl processes each situation costs. More is a regression that a user pays for.
#[test]
fn no_verb_starts_more_kubectl_processes_than_its_budget() {
    let budget = |name: &str| match name {
        "attach-no-key" => 0,
        "list" | "attach-wrong-target" => 3,
        "attach-reconnect" | "attach-reconnect-json" | "ssh-config" | "status" => 4,
        "attach-crash" | "attach-initialising" | "attach-unknown-pod" => 4,
        // One rehearsal, one review, no write.
        "attach-require" | "attach-webhook-down" | "detach" => 5,
        "attach-dry-run" | "attach-no-rights" | "attach-webhook-denied" => 7,
        "attach-degraded" | "attach-full" | "attach-hostile" | "attach-mesh" | "attach-no-exec"
        | "attach-root" | "attach-seat" => 8,
        // A rehearsal more.
        "attach-full-refused" => 9,
        // The LimitRanges, the patch, and the watch that follows it.
        "attach-resize" => 11,
        other => panic!("{other} has no budget"),
    };
    for golden in all() {
        let name = golden.file_name().unwrap().to_string_lossy().into_owned();
        let calls = read(&golden.join("kubectl.jsonl"));
        assert!(calls.len() <= budget(&name), "{name}: {} calls", calls.len());
    }
}

#[test]
fn a_fake_kubectl_that_is_asked_something_else_ends_with_97() {
    let golden = goldens().join("attach-degraded");
    let home = tempfile::tempdir().unwrap();
    let recording = home.path().join("kubectl.jsonl");
    std::fs::copy(golden.join("kubectl.jsonl"), &recording).unwrap();
    let mut command = std::process::Command::new(fake_kubectl());
    command.args(["delete", "pod", "odd-ids"]).env("FAKE_KUBECTL", &recording);
    let said = run_with(command, b"", Duration::from_secs(10));
    assert_eq!(said.code, 97);
    assert!(said.stderr.contains("nearest"), "{}", said.stderr);
}
