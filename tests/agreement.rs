//! The two sides say a thing once: what the launcher writes and runs is what the contract says, and
//! every wire file that was ever shipped can still be read.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, missing_docs)]

use std::path::Path;

use podbench_contract::measurement::Measurement;
use podbench_contract::{env, oracle, session};
use podbench_test_support::cluster::root;
use podbench_test_support::recording::{goldens, read};

/// The Rust files below a folder of the checkout, by their paths in it. The paths decide which are
/// tests, so they mustn't hold what the checkout itself is called.
fn sources(folder: &str, at_least: usize) -> Vec<(String, String)> {
    fn walk(folder: &Path, into: &mut Vec<(String, String)>) {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                walk(&path, into);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let name = path.strip_prefix(root()).unwrap().display().to_string();
                into.push((name, std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    let mut all = Vec::new();
    walk(&root().join(folder), &mut all);
    assert!(all.len() >= at_least, "{folder}: only {} files were read", all.len());
    all
}

/// Is this file a test's? `tests.rs`, `NAME_tests.rs`, or below a folder `tests`.
fn is_test(file: &str) -> bool {
    let mut parts = file.trim_end_matches(".rs").split('/');
    parts.any(|p| p == "tests" || p.ends_with("_tests"))
}

/// A file without its comments and without each item behind `#[cfg(test)]`; what follows such an item
/// is code again. It leans on how rustfmt indents: an item ends on a line of its own indentation.
fn code(text: &str) -> String {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut kept = String::new();
    let mut lines = text.lines().filter(|l| !l.trim_start().starts_with("//"));
    while let Some(line) = lines.next() {
        if line.trim() != "#[cfg(test)]" {
            kept.push_str(line);
            kept.push('\n');
            continue;
        }
        let mut item = lines.by_ref().skip_while(|l| l.trim_start().starts_with("#["));
        let first = item.next().unwrap_or_default();
        if !first.ends_with([';', ',', '}']) {
            let end = item.find(|l| indent(l) == indent(line) && l.trim_start().starts_with('}'));
            assert!(end.is_some(), "no end of the item behind {first:?}");
        }
    }
    kept
}

#[test]
fn what_stands_behind_a_tests_item_is_read_again() {
    let text = "a\n#[cfg(test)]\nmod tests;\nb\n#[cfg(test)]\n#[path = \"x.rs\"]\nmod x;\n// c\nimpl X {\n    d\n    \
                #[cfg(test)]\n    fn e(\n        f: F,\n    ) {\n        g {\n        }\n    }\n    h\n}\n#[cfg(test)]\nmod y \
                {\n    i {\n    }\n}\nj\n";
    assert_eq!(
        code(text).split_whitespace().collect::<Vec<_>>(),
        ["a", "b", "impl", "X", "{", "d", "h", "}", "j"]
    );
    assert!(is_test("src/ssh/tests.rs") && is_test("src/a_tests.rs") && is_test("agent/seat/tests/x.rs"));
    assert!(!is_test("src/testsuite.rs") && !is_test("agent/seat/src/main.rs"));
}

#[test]
fn the_recorded_writes_carry_the_agents_command_and_only_known_variables() {
    let mut seen = 0;
    for entry in std::fs::read_dir(goldens()).unwrap().flatten() {
        let file = entry.path().join("kubectl.jsonl");
        if !file.exists() {
            continue;
        }
        for call in read(&file) {
            if !call.argv.iter().any(|w| w == "replace") {
                continue;
            }
            let pod: serde_json::Value = serde_json::from_str(call.stdin.as_deref().unwrap()).unwrap();
            let seat =
                pod.pointer("/spec/ephemeralContainers").unwrap().as_array().unwrap().last().unwrap().clone();
            let command: Vec<String> = serde_json::from_value(seat["command"].clone()).unwrap();
            assert_eq!(command, session::agent_argv());
            for variable in seat["env"].as_array().unwrap() {
                let name = variable["name"].as_str().unwrap();
                assert!(name == "HOME" || env::NAMES.contains(&name), "{name}");
            }
            assert!(seat.get("resources").is_none(), "an ephemeral container may not have resources");
            seen += 1;
        }
    }
    assert!(seen > 0, "no golden writes anything");
}

#[test]
fn the_contracts_paths_and_names_are_spelled_nowhere_else() {
    let spelled =
        [session::AGENT, session::SSHD, "PODBENCH_TARGET_CID", "PODBENCH_PUBKEY", "podbench-reply/"];
    let mut read = 0;
    for (folder, at_least) in [("src", 100), ("agent", 20)] {
        for (file, text) in sources(folder, at_least) {
            if is_test(&file) {
                continue;
            }
            let code = code(&text);
            read += code.lines().count();
            for word in spelled {
                assert!(!code.contains(&format!("\"{word}")), "{file} spells {word} itself");
            }
        }
    }
    assert!(read > 10_000, "only {read} lines were read");
    // Read in the same way, the contract does spell them.
    let contract: String = sources("contract", 15).iter().map(|(_, text)| code(text)).collect();
    for word in spelled {
        assert!(contract.contains(&format!("\"{word}")), "the contract doesn't spell {word}");
    }
}

#[test]
fn the_image_installs_the_agent_where_the_contract_says() {
    let dockerfile = std::fs::read_to_string(root().join("Dockerfile")).unwrap();
    assert!(dockerfile.contains(session::AGENT));
}

#[test]
fn the_launcher_links_no_part_of_the_agent_and_the_agent_none_of_the_launcher() {
    for (folder, at_least, banned) in
        [("src", 100, "podbench_seat"), ("agent", 20, "podbench::"), ("contract", 15, "podbench::")]
    {
        for (file, text) in sources(folder, at_least) {
            assert!(!text.contains(banned), "{file} names {banned}");
        }
    }
}

#[test]
fn every_wire_file_ever_shipped_can_still_be_read() {
    let mut seen = 0;
    for entry in std::fs::read_dir(goldens().join("wire")).unwrap().flatten() {
        let m = Measurement::parse(&std::fs::read(entry.path()).unwrap()).unwrap();
        let name = entry.file_name().to_string_lossy().into_owned();
        assert!(!m.version.is_empty() && m.target.is_some(), "{name}");
        assert_ne!(oracle::verdict(&m), oracle::Verdict::NotMeasured, "{name}");
        assert!(oracle::measured_rung(&m).is_some(), "{name}");
        seen += 1;
    }
    assert!(seen > 0);
}

/// What is in the image stands in the Dockerfile; what the scripts install is for this machine.
#[test]
fn the_image_is_installed_by_the_dockerfile_alone() {
    for script in ["image/build.sh", "image/base.sh", "image/export.sh"] {
        let text = std::fs::read_to_string(root().join(script)).unwrap();
        let code: Vec<&str> = text.lines().filter(|l| !l.trim_start().starts_with('#')).collect();
        for word in ["apt-get install", "apt install", "dpkg -i", "pip install", "curl "] {
            assert!(!code.iter().any(|l| l.contains(word)), "{script} runs `{word}`");
        }
    }
    let dockerfile = std::fs::read_to_string(root().join("Dockerfile")).unwrap();
    assert!(
        dockerfile.contains("apt-get install")
            && dockerfile.contains("AS slim")
            && dockerfile.contains("AS full")
    );
}
