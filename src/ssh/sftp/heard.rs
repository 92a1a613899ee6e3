//! What sftp says while a batch runs: which line it is at, what it leaves out, and why it stops.

use crate::ssh::run::{keep, told};

/// How many of the paths that were left out are kept: a seat may have any number.
const MOST_SKIPPED: usize = 1000;
/// A line longer than this isn't a path that was left out.
const LONGEST: usize = 8 << 10;
/// What follows the name of what sftp leaves out of a folder.
const LEFT_OUT: &str = ": not a regular file";
/// What sftp writes in front of a line of the batch when it begins with it.
const PROMPT: &[u8] = b"sftp> ";

/// What was left out of a folder, because it is neither a file nor a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    /// The paths, as many as are kept.
    pub paths: Vec<String>,
    /// How many more there were.
    pub more: u64,
}

impl Skipped {
    /// One more.
    pub fn add(&mut self, path: &str) {
        if self.paths.len() < MOST_SKIPPED {
            self.paths.push(path.to_owned());
        } else {
            self.more += 1;
        }
    }
}

/// Counts the lines of the batch that were begun.
#[derive(Debug, Default)]
pub(super) struct Begun {
    lines: usize,
    /// How a line of stdout begins, as far as it has come.
    start: Vec<u8>,
}

impl Begun {
    pub(super) fn hear(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            if byte == b'\n' {
                self.start.clear();
            } else if self.start.len() < PROMPT.len() {
                self.start.push(byte);
                self.lines += usize::from(self.start == PROMPT);
            }
        }
    }

    pub(super) const fn lines(&self) -> usize {
        self.lines
    }
}

/// stderr, a line at a time: what is left out apart from the rest.
#[derive(Debug, Default)]
pub(super) struct Lines {
    open: Vec<u8>,
    words: Vec<u8>,
}

impl Lines {
    pub(super) fn hear(&mut self, bytes: &[u8], skipped: &mut Skipped) {
        for piece in bytes.split_inclusive(|b| *b == b'\n') {
            self.open.extend_from_slice(piece);
            if piece.ends_with(b"\n") || self.open.len() > LONGEST {
                self.end(skipped);
            }
        }
    }

    /// Nothing follows.
    pub(super) fn end(&mut self, skipped: &mut Skipped) {
        let line = std::mem::take(&mut self.open);
        match left_out(&line) {
            Some(path) => skipped.add(&path),
            None => keep(&mut self.words, &line),
        }
    }

    /// The rest, on one line.
    pub(super) fn told(&self) -> String {
        told(&self.words)
    }
}

/// The path in a line about what is left out: `download "PATH": not a regular file`, before 9.0
/// without the word and the quotes.
fn left_out(line: &[u8]) -> Option<String> {
    let line = String::from_utf8_lossy(line);
    let path = line.trim_end_matches(['\r', '\n']).strip_suffix(LEFT_OUT)?;
    let path = path.strip_prefix("download ").unwrap_or(path);
    let path = path.strip_prefix('"').and_then(|p| p.strip_suffix('"')).unwrap_or(path);
    Some(unescaped(path))
}

/// OpenSSH writes a byte that isn't printable ASCII as `\ooo`, and a backslash twice.
fn unescaped(raw: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = raw.as_bytes();
    while let Some((&first, more)) = rest.split_first() {
        let octal = more.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        let code = octal.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        let byte;
        (byte, rest) = match (first, more.split_first(), code) {
            (b'\\', Some((b'\\', more)), _) => (b'\\', more),
            (b'\\', _, Some(byte)) => (byte, more.get(3..).unwrap_or_default()),
            _ => (first, more),
        };
        bytes.push(byte);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_known_in_the_words_of_old_and_new_releases() {
        let known = |line: &str| left_out(line.as_bytes());
        assert_eq!(known("download \"/a/\\303\\274 b\": not a regular file\r\n").unwrap(), "/a/ü b");
        assert_eq!(known("/a/q\"x\\\\y: not a regular file\n").unwrap(), "/a/q\"x\\y");
        assert_eq!(known("download /a/dev: not a regular file\n").unwrap(), "/a/dev");
        for other in ["local \"/a\" is not a regular file", "remote open \"/a\": Permission denied", ""] {
            assert_eq!(known(other), None, "{other}");
        }
    }

    #[test]
    fn lines_are_heard_whole_however_they_arrive() {
        let (mut lines, mut skipped, mut begun) = (Lines::default(), Skipped::default(), Begun::default());
        for byte in b"a: not a regular file\nsome trouble\nb\x1b: not a regular file" {
            lines.hear(&[*byte], &mut skipped);
        }
        lines.end(&mut skipped);
        assert_eq!((skipped.paths.join(" ").as_str(), lines.told().as_str()), ("a b\u{1b}", "some trouble"));
        for byte in b"sftp> put a b\nEntering sftp> x\nsftp> rename b c\n" {
            begun.hear(&[*byte]);
        }
        assert_eq!(begun.lines(), 2);
    }

    #[test]
    fn a_seat_with_any_number_of_links_costs_no_more_memory() {
        let (mut lines, mut skipped) = (Lines::default(), Skipped::default());
        for n in 0..5000 {
            lines.hear(format!("download \"/{n}\": not a regular file\n").as_bytes(), &mut skipped);
        }
        assert_eq!((skipped.paths.len(), skipped.more), (1000, 4000));
        lines.hear(&vec![b'x'; 100 << 10], &mut skipped);
        assert!(lines.open.len() <= LONGEST && lines.words.len() <= LONGEST);
    }
}
