//! A person at a terminal who hasn't said which pod.

use crate::terminal::on_a_terminal;
use crate::world::world;

#[test]
fn several_matches_on_a_terminal_are_a_question_that_a_few_letters_answer() {
    let (ns, person) = world("prompt", &["db", "odd-ids"]);
    let line = "\"$PODBENCH\" attach; echo rc=$?";
    let screen = on_a_terminal(&person, line, "which one?", &["b", "1", "\r"]);
    assert!(screen.contains("3 pods") && screen.contains("rc=0"), "{screen}");
    assert_eq!(ns.seats("db-1"), ["podbench-1"], "{screen}");
    assert!(ns.seats("db-0").is_empty() && ns.seats("odd-ids").is_empty());

    // ctrl-C at the question: nothing is written, and the cursor is there again.
    let screen = on_a_terminal(&person, line, "which one?", &["\u{3}"]);
    assert!(screen.contains("rc=130"), "{screen}");
    assert!(screen.rfind("\u{1b}[?25h") > screen.rfind("\u{1b}[?25l"), "the cursor stays hidden: {screen:?}");

    // Nobody is asked who has said so, or whose answer goes elsewhere.
    for line in
        ["\"$PODBENCH\" attach --no-prompt; echo rc=$?", "\"$PODBENCH\" attach </dev/null; echo rc=$?"]
    {
        let screen = on_a_terminal(&person, line, "which one?", &[]);
        assert!(screen.contains("rc=2") && screen.contains("db-0") && screen.contains("odd-ids"), "{screen}");
        assert!(!screen.contains("which one?"), "{screen}");
    }
}
