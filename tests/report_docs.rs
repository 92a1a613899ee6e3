//! docs/report.md explains every line that the report can print. Its samples are the ones that the
//! renderer's own tests expect: `PODBENCH_BLESS=1 cargo test --test report_docs` puts them in.
#![allow(clippy::disallowed_methods, reason = "a test reads the environment")]
#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::BTreeSet;
use std::path::PathBuf;

use podbench_test_support::cluster::root;
use podbench_test_support::recording::goldens;

/// The page with each sample as it is rendered now: a comment names the file, the block follows.
fn page(kept: &str) -> String {
    let mut page = String::new();
    let mut rest = kept;
    while let Some((before, after)) = rest.split_once("<!-- ") {
        let (file, after) = after.split_once(" -->\n```text\n").unwrap();
        let (_, after) = after.split_once("```\n").unwrap();
        let sample = std::fs::read_to_string(root().join(file)).unwrap();
        page.push_str(&[before, "<!-- ", file, " -->\n```text\n", &sample, "```\n"].concat());
        rest = after;
    }
    page + rest
}

fn texts(folder: PathBuf, name: impl Fn(&std::path::Path) -> Option<PathBuf>) -> Vec<String> {
    std::fs::read_dir(folder)
        .unwrap()
        .flatten()
        .filter_map(|entry| std::fs::read_to_string(name(&entry.path())?).ok())
        .filter(|text| text.starts_with("seat "))
        .collect()
}

#[test]
fn its_samples_are_what_the_renderer_prints() {
    let file = root().join("docs/report.md");
    let kept = std::fs::read_to_string(&file).unwrap();
    let now = page(&kept);
    if std::env::var("PODBENCH_BLESS").is_ok_and(|v| v == "1") {
        std::fs::write(&file, &now).unwrap();
    }
    assert_eq!(
        std::fs::read_to_string(&file).unwrap(),
        now,
        "PODBENCH_BLESS=1 cargo test --test report_docs"
    );
}

#[test]
fn every_line_that_a_report_has_printed_is_explained() {
    let page = std::fs::read_to_string(root().join("docs/report.md")).unwrap();
    let mut reports = texts(root().join("src/report/text"), |p| Some(p.to_owned()));
    let rendered = reports.len();
    reports.extend(texts(goldens(), |p| Some(p.join("stdout"))));
    assert!(rendered >= 5 && reports.len() >= rendered + 5, "reports are missing");
    let labels: BTreeSet<&str> = reports
        .iter()
        .flat_map(|text| text.lines())
        .filter(|line| line.starts_with(|c: char| c.is_ascii_lowercase()))
        .filter_map(|line| line.split(' ').next())
        .collect();
    let unexplained: Vec<&&str> = labels.iter().filter(|l| !page.contains(&format!("| `{l}` |"))).collect();
    assert!(unexplained.is_empty(), "docs/report.md doesn't explain {unexplained:?}");
}

#[test]
fn every_report_fits_eighty_columns_but_for_what_is_pasted() {
    for text in texts(root().join("src/report/text"), |p| Some(p.to_owned())) {
        for line in text.lines().filter(|l| l.chars().count() > 80) {
            assert!(["ssh ", "kubectl ", "podbench "].iter().any(|p| line.contains(p)), "{line}");
        }
    }
}
