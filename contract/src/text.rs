//! What text out of a pod must look like before anyone uses it. The pod is not trusted.

/// Makes text safe for a person's terminal: control characters (also C1 and the bidirectional
/// overrides) become `\u{…}`, and what is longer than `most` characters is cut with `…`.
#[must_use]
pub fn escape(raw: &str, most: usize) -> String {
    let mut out = String::new();
    for (n, c) in raw.chars().enumerate() {
        if n == most {
            out.push('…');
            break;
        }
        if hidden(c) { out.extend(c.escape_unicode()) } else { out.push(c) }
    }
    out
}

/// As [`escape`], but line breaks and tabs stay: for a message of several lines.
#[must_use]
pub fn escape_lines(raw: &str, most: usize) -> String {
    let mut out = String::new();
    for (n, c) in raw.chars().enumerate() {
        if n == most {
            out.push('…');
            break;
        }
        if hidden(c) && c != '\n' && c != '\t' { out.extend(c.escape_unicode()) } else { out.push(c) }
    }
    out
}

/// Makes a JSON text safe for a terminal, and the same value still: what is hidden in its strings
/// becomes `\uXXXX`. (A JSON writer escapes the C0 controls and no others.)
#[must_use]
pub fn escape_json(json: &str) -> String {
    use std::fmt::Write as _;
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if hidden(c) && c != '\n' {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
    }
    out
}

fn hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// The text itself if it is one line of at most `most` characters with nothing hidden in it.
#[must_use]
pub fn printable(raw: &str, most: usize) -> Option<String> {
    (raw.chars().count() <= most && !raw.chars().any(hidden)).then(|| raw.to_owned())
}

/// Could this be a login name? Portable POSIX names only: it goes into an ssh config.
#[must_use]
pub fn is_login(raw: &str) -> bool {
    let mut bytes = raw.bytes();
    raw.len() <= 32
        && bytes.next().is_some_and(|b| b.is_ascii_lowercase() || b == b'_')
        && bytes.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-')
}

/// Could this be a path of the seat that podbench made? Absolute, plain characters, no `..`.
#[must_use]
pub fn is_path(raw: &str) -> bool {
    raw.len() <= 512
        && raw.starts_with('/')
        && raw.bytes().all(|b| b.is_ascii_alphanumeric() || b"/._-".contains(&b))
        && !raw.split('/').any(|part| part == "..")
}

/// Could this be a version, such as `0.1.0` or `0.2.0-dev.3+g1a2b3c4`?
#[must_use]
pub fn is_version(raw: &str) -> bool {
    raw.len() <= 64
        && raw.bytes().next().is_some_and(|b| b.is_ascii_digit())
        && raw.bytes().all(|b| b.is_ascii_alphanumeric() || b".-+_".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_escape_sequence_never_reaches_a_terminal() {
        let shown = escape("a\u{1b}]0;owned\u{7}b\u{9b}31m\u{202e}\r\n", 100);
        assert!(!shown.chars().any(hidden), "{shown}");
        assert!(shown.contains("\\u{1b}"));
        assert_eq!(escape("abcdef", 3), "abc…");
        assert_eq!(escape_lines("a\nb\u{1b}", 10), "a\nb\\u{1b}");
    }

    #[test]
    fn json_for_a_terminal_hides_nothing_and_says_the_same() {
        let value = serde_json::json!({"a": "\u{9b}31m\u{202e}\u{7f}\u{feff}é\n"});
        let shown = escape_json(&format!("{value:#}\n"));
        assert!(!shown.chars().any(|c| hidden(c) && c != '\n'), "{shown}");
        assert!(shown.contains("\\u009b31m\\u202e") && shown.contains('é'), "{shown}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
    }

    #[test]
    fn a_login_that_could_be_a_directive_is_no_login() {
        assert!(is_login("podbench") && is_login("podbench-33") && is_login("_apt"));
        for bad in ["", "-oProxyCommand=x", "a b", "a\nProxyCommand x", "root;", "A", &"a".repeat(33)] {
            assert!(!is_login(bad), "{bad:?}");
        }
    }

    #[test]
    fn a_path_that_could_be_a_flag_or_climb_is_no_path() {
        assert!(is_path("/run/podbench/1234/sshd_config"));
        for bad in ["", "sshd", "-f", "/a/../b", "/a b", "/a\n", "/a;b", "/$(x)"] {
            assert!(!is_path(bad), "{bad:?}");
        }
    }
}
