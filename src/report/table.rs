//! Rows under a head, in columns as wide as what is in them.

use console::{measure_text_width, truncate_str};

use super::style::clean;

/// A table. Its last column is what a person copies: it is never cut, and moves below its row where
/// the row is too wide.
#[derive(Debug)]
pub(crate) struct Table {
    /// The columns' names.
    pub(crate) head: Vec<&'static str>,
    /// The rows; `-` is nothing.
    pub(crate) rows: Vec<Vec<String>>,
    /// The column that may be cut.
    pub(crate) shrinks: usize,
}

/// What the column that may be cut keeps.
const LEAST: usize = 12;
/// Between two columns.
const GAP: usize = 2;
/// In front of what moved below its row.
const INDENT: &str = "  ";

impl Table {
    /// The text. `room`: a terminal's columns; `None`: nobody looks, and every row is one line.
    pub(crate) fn text(mut self, room: Option<usize>) -> String {
        for cell in self.rows.iter_mut().flatten() {
            *cell = clean(cell);
        }
        let room = room.unwrap_or(usize::MAX);
        let all = self.head.len();
        let last = all.saturating_sub(1);
        let spare = self.column(self.shrinks).saturating_sub(LEAST);
        let folded = self.width(all).saturating_sub(spare) > room;
        let columns = if folded { last } else { all };
        self.shrink(self.width(columns).saturating_sub(room));
        let head = self.head.iter().map(|h| (*h).to_owned()).collect::<Vec<_>>();
        let mut out = self.line(&head, columns);
        for row in &self.rows {
            out.push_str(&self.line(row, columns));
            if let Some(cell) = row.get(last).filter(|cell| folded && *cell != "-") {
                out.extend([INDENT, cell, "\n"]);
            }
        }
        out
    }

    fn shrink(&mut self, over: usize) {
        let column = self.shrinks;
        let most = self.column(column).saturating_sub(over).max(LEAST);
        for cell in self.rows.iter_mut().filter_map(|row| row.get_mut(column)) {
            *cell = truncate_str(cell, most, "…").into_owned();
        }
    }

    fn column(&self, n: usize) -> usize {
        let head = self.head.get(n).map_or(0, |h| measure_text_width(h));
        self.rows.iter().filter_map(|r| r.get(n)).map(|c| measure_text_width(c)).max().unwrap_or(0).max(head)
    }

    fn width(&self, columns: usize) -> usize {
        (0..columns).map(|n| self.column(n) + GAP).sum::<usize>().saturating_sub(GAP)
    }

    fn line(&self, row: &[String], columns: usize) -> String {
        let mut line = String::new();
        for (n, cell) in row.iter().enumerate().take(columns) {
            let fill = (self.column(n) + GAP).saturating_sub(measure_text_width(cell));
            line.push_str(cell);
            line.push_str(&" ".repeat(fill));
        }
        format!("{}\n", line.trim_end())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn table(owner: &str, alias: &str) -> Table {
        let row = |pod: &str, owner: &str, alias: &str| [pod, owner, alias].map(str::to_owned).to_vec();
        Table {
            head: vec!["POD", "OWNER", "SSH"],
            rows: vec![row("api", owner, alias), row("b", "you", "-")],
            shrinks: 1,
        }
    }

    #[test]
    fn a_pipe_gets_one_whole_line_a_row() {
        let text = table(&"o".repeat(90), &"a".repeat(90)).text(None);
        assert_eq!(text.lines().count(), 3);
        assert!(text.contains(&"o".repeat(90)) && text.contains(&"a".repeat(90)));
    }

    #[test]
    fn a_narrow_terminal_cuts_the_owner_and_then_moves_the_alias_below() {
        let text = table("somebody@example.org", "podbench-demo-api-1").text(Some(40));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1], "api  somebody@exam…  podbench-demo-api-1");
        assert_eq!(lines[1].chars().count(), 40);
        let text = table("somebody@example.org", &"a".repeat(30)).text(Some(40));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "POD  OWNER");
        assert_eq!(lines[1], "api  somebody@example.org", "what fits isn't cut");
        assert_eq!(lines[2], format!("  {}", "a".repeat(30)), "{text}");
        assert_eq!(lines.len(), 4, "{text}");
    }

    proptest! {
        #[test]
        fn what_is_copied_is_never_cut(alias in "[a-z0-9-]{1,60}", owner in "\\PC{0,40}", room in 20_usize..120) {
            let text = table(&owner, &alias).text(Some(room));
            prop_assert!(text.contains(&alias));
        }
    }
}
