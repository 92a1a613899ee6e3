//! How a failure is told: to people on stderr, to programs as an object on stdout.

use podbench_contract::text::escape_json;

use super::style::{Ink, Page, Style};
use crate::error::Failure;

/// For people: what happened, why, and what to type next.
#[must_use]
pub fn text(failure: &Failure, style: Style) -> String {
    let mut page = Page::new(style);
    page.hang(&style.paint(Ink::Bad, "error: "), 7, &failure.message);
    for cause in &failure.causes {
        page.hang("       ", 7, cause);
    }
    for hint in &failure.hints {
        page.command(&style.paint(Ink::Good, "try:   "), hint);
    }
    page.finish()
}

/// For programs.
#[must_use]
pub fn json(failure: &Failure) -> String {
    escape_json(&format!("{:#}\n", failure.to_json()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Style = Style { width: 60, color: false };

    #[test]
    fn a_refusal_keeps_the_servers_words_and_ends_with_a_command() {
        let failure = Failure::cluster(
            "pods \"api\" is forbidden: violates PodSecurity \"restricted:latest\": unrestricted capabilities",
        )
        .because("the namespace demo enforces restricted")
        .hint("podbench attach api --max-rung degraded --namespace a-very-long-namespace-that-does-not-fit");
        assert_eq!(
            text(&failure, PLAIN),
            "error: pods \"api\" is forbidden: violates PodSecurity\n\
             \x20      \"restricted:latest\": unrestricted capabilities\n\
             \x20      the namespace demo enforces restricted\n\
             try:   podbench attach api --max-rung degraded --namespace a-very-long-namespace-that-does-not-fit\n"
        );
    }

    #[test]
    fn a_hostile_message_does_nothing_to_the_terminal() {
        let failure =
            Failure::cluster("a\u{1b}[2J\u{9b}1mb").because("c\rd\u{7}").hint("x\u{1b}]52;c;AAAA\u{7}");
        let said = text(&failure, PLAIN);
        assert!(!said.chars().any(|c| c.is_control() && c != '\n'), "{said:?}");
        let value: serde_json::Value = serde_json::from_str(&json(&failure)).unwrap();
        assert_eq!(value["kind"], "cluster");
        assert!(!json(&failure).chars().any(|c| c.is_control() && c != '\n'), "JSON escapes it");
    }
}
