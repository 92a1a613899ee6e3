//! One word of a command that a person pastes, or that ssh hands to the user's shell.

/// The word, quoted where that is needed.
///
/// What bash, dash, ksh, zsh, fish and tcsh read alike: a text in single quotes without `'`, `\` and
/// `!` in it, and those three behind a backslash outside of quotes (inside single quotes fish takes
/// `\` for an escape, and tcsh looks `!` up in its history). It never writes `''` inside a word,
/// which zsh may be told to read as a quote.
#[must_use]
pub fn word(raw: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_./:@,+-=%".contains(c);
    if !raw.is_empty() && raw.chars().all(plain) {
        return raw.to_owned();
    }
    let mut out = String::new();
    let mut open = false;
    for c in raw.chars() {
        let special = matches!(c, '\'' | '\\' | '!');
        if special == open {
            out.push('\'');
            open = !open;
        }
        if special {
            out.push('\\');
        }
        out.push(c);
    }
    if open {
        out.push('\'');
    }
    if raw.is_empty() { "''".to_owned() } else { out }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_can_be_pasted() {
        assert_eq!(word("get"), "get");
        assert_eq!(word(""), "''");
        assert_eq!(word("100%"), "100%");
        assert_eq!(word("--kubeconfig=/my files/it's"), r"'--kubeconfig=/my files/it'\''s'");
    }

    #[test]
    fn a_quote_or_backslash_is_never_inside_quotes() {
        assert_eq!(word("''"), r"\'\'");
        assert_eq!(word(r"a\"), r"'a'\\");
        assert_eq!(word("$x`y`!z"), r"'$x`y`'\!'z'");
    }
}
