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
                into.push((path.display().to_string(), std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    let mut all = Vec::new();
    walk(&root().join(folder), &mut all);
    assert!(!all.is_empty(), "{folder}");
    all
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
            let code = text.split("#[cfg(test)]").next().unwrap();
            let code: String = code.lines().filter(|l| !l.trim_start().starts_with("//")).collect();
            for word in spelled {
                assert!(
                    file.contains("tests") || !code.contains(&format!("\"{word}")),
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
