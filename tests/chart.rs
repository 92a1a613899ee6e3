//! The observe Role is what the recorded calls need: no verb less, no verb more.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, missing_docs)]

use std::collections::BTreeSet;
use std::path::Path;

use podbench_test_support::namespace::{observe_rules, resize_rules};
use podbench_test_support::recording::{goldens, read};

/// `verb resource` pairs of one recorded call. Rights that every authenticated user has (asking who
/// one is, what one may do, which version the server is) aren't in a Role.
fn needs(argv: &[String]) -> Vec<&'static str> {
    let words: Vec<&str> = argv.iter().map(String::as_str).collect();
    let has = |w: &str| words.contains(&w);
    let is_review = words.iter().any(|w| w.ends_with("/selfsubjectaccessreviews") || *w == "/version");
    if has("exec") {
        // A websocket is a GET, and the server asks for `get` and (since 1.35) for `create`. Without
        // `get` kubectl is refused first and then falls back to SPDY: a round trip more for every
        // exec, a transport that ends with 0 when it is cut, and none where SPDY doesn't pass.
        return vec!["create pods/exec", "get pods/exec"];
    }
    if has("logs") {
        return vec!["get pods/log"];
    }
    if has("patch") {
        assert!(has("--subresource=resize"), "{words:?}");
        // kubectl reads what it patches.
        return vec!["get pods/resize", "patch pods/resize"];
    }
    if has("get") && has("limitranges") {
        return vec!["list limitranges"];
    }
    if has("replace") {
        assert!(words.iter().any(|w| w.contains("/ephemeralcontainers")), "{words:?}");
        return vec!["update pods/ephemeralcontainers"];
    }
    if has("get") && has("--watch") {
        return vec!["get pods", "watch pods"];
    }
    if has("get") && has("pods") {
        return vec!["list pods"];
    }
    if has("get") && has("pod") {
        return vec!["get pods"];
    }
    assert!(has("config") || has("auth") || has("whoami") || is_review, "what does this need? {words:?}");
    Vec::new()
}

fn granted(rules: &Path) -> BTreeSet<String> {
    let text = std::fs::read_to_string(rules).unwrap();
    let list = |line: &str| -> Vec<String> {
        let inner = line.split_once('[').unwrap().1.trim_end_matches(']');
        inner.split(',').map(|w| w.trim().to_owned()).collect()
    };
    let mut out = BTreeSet::new();
    let mut resources = Vec::new();
    for line in text.lines().map(str::trim) {
        if line.starts_with("resources:") {
            resources = list(line);
        } else if line.starts_with("verbs:") {
            for verb in list(line) {
                out.extend(resources.iter().map(|r| format!("{verb} {r}")));
            }
        }
    }
    assert!(!out.is_empty());
    out
}

/// What the recorded calls need: those of the runs that resize, and those of the others.
fn used() -> [BTreeSet<String>; 2] {
    let mut used = [BTreeSet::new(), BTreeSet::new()];
    for entry in std::fs::read_dir(goldens()).unwrap().flatten() {
        let file = entry.path().join("kubectl.jsonl");
        if file.exists() {
            let typed = std::fs::read_to_string(entry.path().join("cmd")).unwrap();
            let resizes = usize::from(typed.lines().any(|word| word.starts_with("--resize")));
            used[resizes].extend(read(&file).iter().flat_map(|c| needs(&c.argv)).map(str::to_owned));
        }
    }
    used
}

#[test]
fn the_observe_role_has_the_verbs_of_the_recorded_calls_and_no_others() {
    assert_eq!(granted(&observe_rules()), used()[0]);
}

#[test]
fn the_resize_role_has_what_a_recorded_resize_needs_beside_the_observe_role() {
    let observe = granted(&observe_rules());
    let beside: BTreeSet<String> = used()[1].difference(&observe).cloned().collect();
    assert_eq!(granted(&resize_rules()), beside);
}

#[test]
fn the_chart_renders_those_rules_and_not_a_copy() {
    for way in ["observe", "resize"] {
        let file = format!("chart/templates/{way}.yaml");
        let template = std::fs::read_to_string(podbench_test_support::cluster::root().join(file)).unwrap();
        assert!(template.contains(&format!(".Files.Get \"files/{way}.yaml\"")));
        assert!(!template.contains("verbs:"));
    }
}
