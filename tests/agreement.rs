//! The two sides say a thing once: what the launcher writes and runs is what the contract says, and
//! every wire file that was ever shipped can still be read.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, missing_docs)]

use std::path::Path;

use podbench_contract::measurement::Measurement;
use podbench_contract::{env, oracle, session};
use podbench_test_support::cluster::root;
use podbench_test_support::recording::{goldens, read};

fn sources(folder: &str) -> Vec<(String, String)> {
    fn walk(folder: &Path, into: &mut Vec<(String, String)>) {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
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
    assert!(all.len() > 5, "{folder}: {all:?}");
    all
}

/// A file of tests and nothing else.
fn is_tests(file: &str) -> bool {
    file.split('/').any(|part| matches!(part, "tests" | "tests.rs") || part.ends_with("_tests.rs"))
}

/// Without remarks, and without each item behind a `#[cfg(test)]`; what stands below one is code.
fn code(text: &str) -> String {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut out = String::new();
    let mut lines = text.lines().filter(|l| !l.trim_start().starts_with("//"));
    while let Some(line) = lines.next() {
        if line.trim() != "#[cfg(test)]" {
            out += line;
            out.push('\n');
            continue;
        }
        let is_last = |l: &str| {
            let first = indent(l) == indent(line);
            first && (l.ends_with('}') || l.ends_with(';'))
        };
        lines.by_ref().find(|l| is_last(l)).expect("the item's end");
    }
    out
}

#[test]
fn an_item_for_tests_hides_nothing_below_it() {
    let text = "a\n#[cfg(test)]\nmod x;\nb\n#[cfg(test)]\nmod tests {\n    c;\n}\n// d\ne\n";
    assert_eq!(code(text), "a\nb\ne\n");
    assert!(is_tests("src/ssh/tests.rs") && is_tests("tests/x.rs") && !is_tests("src/contests.rs"));
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
    for folder in ["src", "agent"] {
        for (file, text) in sources(folder) {
            let code = code(&text);
            for word in spelled {
                assert!(
                    is_tests(&file) || !code.contains(&format!("\"{word}")),
                    "{file} spells {word} itself"
                );
            }
        }
    }
}

#[test]
fn the_image_installs_the_agent_where_the_contract_says() {
    let dockerfile = std::fs::read_to_string(root().join("Dockerfile")).unwrap();
    assert!(dockerfile.contains(session::AGENT));
}

#[test]
fn the_launcher_links_no_part_of_the_agent_and_the_agent_none_of_the_launcher() {
    for (folder, banned) in [("src", "podbench_seat"), ("agent", "podbench::"), ("contract", "podbench::")] {
        for (file, text) in sources(folder) {
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
