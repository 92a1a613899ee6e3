//! docs/cli.md is the help, verb by verb. `PODBENCH_BLESS=1 cargo test --test cli_docs` writes it.
#![allow(clippy::disallowed_methods, reason = "a test reads the environment")]
#![allow(clippy::unwrap_used, missing_docs)]

use podbench_test_support::cluster::root;

fn page() -> String {
    let mut command = podbench::cli::command().term_width(100);
    command.build();
    let mut page = "# Command line\n\nGenerated from the help by `tests/cli_docs.rs`.\n".to_owned();
    let mut add = |title: &str, help: String| {
        let plain: Vec<&str> = help.lines().map(str::trim_end).collect();
        page.push_str(&["\n## ", title, "\n\n```text\n", plain.join("\n").trim_end(), "\n```\n"].concat());
    };
    add("podbench", command.render_long_help().to_string());
    for verb in command.get_subcommands_mut().filter(|v| !v.is_hide_set() && v.get_name() != "help") {
        let title = format!("podbench {}", verb.get_name());
        add(&title, verb.render_long_help().to_string());
    }
    page
}

#[test]
fn the_page_is_what_the_help_says() {
    let file = root().join("docs/cli.md");
    if std::env::var("PODBENCH_BLESS").is_ok_and(|v| v == "1") {
        std::fs::write(&file, page()).unwrap();
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(kept, page(), "the help has changed: PODBENCH_BLESS=1 cargo test --test cli_docs");
}
