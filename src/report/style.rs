//! Columns, wrapping and colour of what a person reads. Colour is emphasis only: nothing is said by
//! it alone.

use console::measure_text_width;
use podbench_contract::text::{escape, escape_lines};

use crate::settings::Settings;

/// The width of a report's first column: the longest label and a space.
pub(crate) const LABEL: usize = 8;

/// The most that is shown of one text out of a cluster or a pod, in characters.
const LONGEST: usize = 4000;

/// How wide, and in colour?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Columns.
    pub width: usize,
    /// ANSI colours.
    pub color: bool,
}

impl Style {
    /// For stdout.
    #[must_use]
    pub const fn stdout(settings: &Settings) -> Self {
        Self { width: settings.width, color: settings.stdout_color }
    }

    /// For stderr.
    #[must_use]
    pub const fn stderr(settings: &Settings) -> Self {
        Self { width: settings.stderr_width, color: settings.stderr_color }
    }

    /// The text in a colour, if there are colours.
    pub(crate) fn paint(self, ink: Ink, text: &str) -> String {
        if self.color && !text.is_empty() {
            format!("\u{1b}[{}m{text}\u{1b}[0m", ink.code())
        } else {
            text.to_owned()
        }
    }
}

/// What a colour is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ink {
    /// A label, a name that matters.
    Strong,
    /// It works.
    Good,
    /// It doesn't.
    Bad,
    /// Look here.
    Warn,
    /// Can be skipped.
    Faint,
}

impl Ink {
    const fn code(self) -> &'static str {
        match self {
            Self::Strong => "1",
            Self::Good => "32",
            Self::Bad => "31",
            Self::Warn => "33",
            Self::Faint => "2",
        }
    }
}

/// A report in the making: labelled rows, a line at a time.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) style: Style,
    out: String,
}

impl Page {
    pub(crate) const fn new(style: Style) -> Self {
        Self { style, out: String::new() }
    }

    /// A whole line, as it is.
    pub(crate) fn line(&mut self, text: &str) {
        self.out.push_str(text.trim_end());
        self.out.push('\n');
    }

    /// An empty line between groups.
    pub(crate) fn gap(&mut self) {
        if !self.out.is_empty() && !self.out.ends_with("\n\n") {
            self.out.push('\n');
        }
    }

    /// A label and its text, wrapped behind the label.
    pub(crate) fn row(&mut self, label: &str, ink: Ink, text: &str) {
        self.hang(&self.label(label, ink), LABEL, text);
    }

    /// The label, painted, and filled up to the column behind it.
    pub(crate) fn label(&self, label: &str, ink: Ink) -> String {
        let fill = " ".repeat(LABEL.saturating_sub(label.len()));
        self.style.paint(ink, label) + &fill
    }

    /// `head`, which takes `indent` columns, and the text behind it; its further lines stand under
    /// its first.
    pub(crate) fn hang(&mut self, head: &str, indent: usize, text: &str) {
        let room = self.style.width.saturating_sub(indent);
        for (n, line) in wrap(text, room).iter().enumerate() {
            let before = if n == 0 { head.to_owned() } else { " ".repeat(indent) };
            self.line(&(before + line));
        }
    }

    /// A command to paste: never wrapped, however long.
    pub(crate) fn command(&mut self, head: &str, command: &str) {
        let command = self.style.paint(Ink::Strong, &clean(command));
        self.line(&format!("{head}{command}"));
    }

    pub(crate) fn finish(self) -> String {
        self.out
    }
}

/// One line of text from anywhere, safe for a terminal.
pub(crate) fn clean(raw: &str) -> String {
    escape(raw, LONGEST)
}

/// Breaks text into lines of at most `width` columns, at spaces where there are any. Its own line
/// breaks stay, and a line that fits stays as it is (a table's row); control characters don't.
pub(crate) fn wrap(raw: &str, width: usize) -> Vec<String> {
    let width = width.max(16);
    let mut lines = Vec::new();
    for line in escape_lines(raw, LONGEST).replace('\t', " ").lines() {
        if !line.trim().is_empty() && measure_text_width(line) <= width {
            lines.push(line.trim_end().to_owned());
            continue;
        }
        let mut current = String::new();
        for word in line.split_whitespace() {
            for piece in pieces(word, width) {
                let needed = measure_text_width(&current) + 1 + measure_text_width(&piece);
                if !current.is_empty() && needed > width {
                    lines.push(std::mem::take(&mut current));
                }
                if !current.is_empty() {
                    current.push(' ');
                }
                current.push_str(&piece);
            }
        }
        if !current.is_empty() {
            lines.push(current);
        }
    }
    if lines.is_empty() { vec![String::new()] } else { lines }
}

/// A word in pieces that fit: only one that is wider than a whole line is broken.
fn pieces(word: &str, width: usize) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut piece = String::new();
    let mut columns = 0;
    for c in word.chars() {
        let wide = measure_text_width(c.encode_utf8(&mut [0; 4]));
        if columns + wide > width {
            pieces.push(std::mem::take(&mut piece));
            columns = 0;
        }
        piece.push(c);
        columns += wide;
    }
    pieces.push(piece);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_wrapped_and_only_a_giant_is_broken() {
        assert_eq!(wrap("one two three four five", 16), ["one two three", "four five"]);
        assert_eq!(wrap(&"x".repeat(40), 16), ["x".repeat(16), "x".repeat(16), "x".repeat(8)]);
        assert_eq!(wrap("a\n\nb\tc", 20), ["a", "b c"]);
        assert_eq!(wrap("", 20), [""]);
        assert_eq!(wrap("NAME   READY\na  b   1/1", 20), ["NAME   READY", "a  b   1/1"]);
        assert_eq!(wrap("日本語日本語日本語", 16), ["日本語日本語日本", "語"]);
    }

    #[test]
    fn an_escape_sequence_is_shown_and_not_sent() {
        let lines = wrap("\u{1b}]0;owned\u{7} and \u{202e}more", 80);
        assert_eq!(lines, ["\\u{1b}]0;owned\\u{7} and \\u{202e}more"]);
    }

    #[test]
    fn colour_is_left_out_where_nobody_sees_it() {
        assert_eq!(Style { width: 80, color: false }.paint(Ink::Good, "yes"), "yes");
        assert_eq!(Style { width: 80, color: true }.paint(Ink::Good, "yes"), "\u{1b}[32myes\u{1b}[0m");
    }
}
