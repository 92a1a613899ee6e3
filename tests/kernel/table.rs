//! The generated part of `docs/capreport.md`. `PODBENCH_BLESS=1` writes it.

use std::fmt::Write as _;

use podbench_test_support::cluster::root;
use serde_json::Value;

use crate::conditions::{self, Condition};
use crate::{Machine, attempt, named};

const BEGIN: &str = "<!-- generated from tests/kernel: PODBENCH_BLESS=1 ./dev test kernel -->\n";
const END: &str = "<!-- end of what is generated -->\n";

/// Compares the page with what the kernels said.
pub(crate) fn check(machines: &[Machine]) {
    let file = root().join("docs/capreport.md");
    let page = std::fs::read_to_string(&file).unwrap();
    let (head, rest) = page.split_once(BEGIN).expect("the page has a place for the table");
    let (_, tail) = rest.split_once(END).expect("the table has an end");
    let wanted = format!("{head}{BEGIN}{}{END}{tail}", table(machines));
    if std::env::var_os("PODBENCH_BLESS").is_some() {
        std::fs::write(&file, wanted).unwrap();
    } else {
        assert!(
            page == wanted,
            "docs/capreport.md is out of date: PODBENCH_BLESS=1 ./dev test kernel\n{wanted}"
        );
    }
}

fn table(machines: &[Machine]) -> String {
    let mut text = String::new();
    let all = conditions::all();
    for machine in machines {
        let right = all.iter().filter(|c| is_right(c, &machine.said[&c.name])).count();
        let _ = writeln!(text, "* Linux {}: {right} of {} as their files expect", machine.release, all.len());
    }
    let _ = writeln!(text, "\n| condition | how it was made | a debugger got | capreport said |");
    let _ = writeln!(text, "|---|---|---|---|");
    for condition in &all {
        let cells = |of: fn(&Value) -> String| {
            let said: Vec<String> = machines.iter().map(|m| of(&m.said[&condition.name])).collect();
            match said.as_slice() {
                [one, other] if one != other => format!("6.1: {one}; 6.12: {other}"),
                [one, ..] => one.clone(),
                [] => String::new(),
            }
        };
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} |",
            condition.name,
            condition.made,
            cells(|line| line["kernel"].as_str().unwrap_or("not made").to_owned()),
            cells(said)
        );
    }
    text
}

fn said(line: &Value) -> String {
    let report = &line["agent"]["report"];
    let verdict = match report["verdict"].as_str() {
        Some("liveAttach") => "attach",
        Some("readOnly") => "read only",
        Some("launchOnly") => "launch only",
        Some("nothing") => "nothing",
        _ => "no verdict",
    };
    match named(report).as_slice() {
        [] => verdict.to_owned(),
        blockers => format!("{verdict}: **{}**", blockers.join("**, then **")),
    }
}

fn is_right(condition: &Condition, line: &Value) -> bool {
    let report = &line["agent"]["report"];
    let expect = &condition.expect;
    line["kernel"] == expect.attach.as_str()
        && report["verdict"] == expect.verdict.as_str()
        && named(report) == expect.blockers
        && attempt(&report["probes"]["child"]) == expect.child
}
