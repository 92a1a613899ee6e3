//! docs/cases.md names tests, and each of them exists.
#![allow(clippy::disallowed_methods, reason = "tests read the environment")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, missing_docs)]

use std::collections::BTreeSet;
use std::path::Path;

use podbench_test_support::cluster::root;

/// The names of all functions behind a `#[test]` in this folder.
fn tests(folder: &Path, into: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            tests(&path, into);
        } else if path.extension().is_some_and(|e| e == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let mut marked = false;
            for line in text.lines().map(str::trim) {
                if line == "#[test]" {
                    marked = true;
                } else if let Some(name) = line.strip_prefix("fn ").and_then(|l| l.split(['(', '<']).next()) {
                    if marked {
                        into.insert(name.to_owned());
                    }
                    marked = false;
                }
            }
        }
    }
}

#[test]
fn every_test_that_the_cases_name_exists() {
    let mut have = BTreeSet::new();
    for folder in ["tests", "src", "agent", "contract"] {
        tests(&root().join(folder), &mut have);
    }
    let text = std::fs::read_to_string(root().join("docs/cases.md")).unwrap();
    let (mut ids, mut wrong, mut open) = (BTreeSet::new(), Vec::new(), Vec::new());
    for row in text.lines().filter(|l| l.starts_with("| ") && !l.starts_with("| case ")) {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        assert!(ids.insert(cells[0]), "{} stands twice", cells[0]);
        match cells.as_slice() {
            [_, why] => assert!(!why.is_empty(), "{row}"),
            [id, _, _, "?"] => open.push(*id),
            [id, _, does, shown] => {
                assert!(does.len() > 3, "{id} says what is shown, and not what podbench does");
                let names: Vec<&str> = shown.split('`').skip(1).step_by(2).collect();
                assert!(!names.is_empty(), "{id} names no test");
                wrong.extend(names.iter().filter(|n| !have.contains(**n)).map(|n| format!("{id}: {n}")));
            }
            _ => panic!("a row of {} cells: {row}", cells.len()),
        }
    }
    assert!(ids.len() > 50, "the table isn't read: {ids:?}");
    assert!(wrong.is_empty(), "no such test:\n{}", wrong.join("\n"));
    assert!(open.is_empty(), "without a test: {}", open.join(", "));
}
