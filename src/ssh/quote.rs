//! One text, three readers: the tokenizer of ssh's configuration, ssh's `%` expansion, and the
//! user's own shell, which may be bash, dash, ksh, zsh, fish or tcsh and isn't known when a stanza
//! is written.

use crate::shell;

/// One word of a `ProxyCommand`.
///
/// ssh's tokenizer sees balanced quotes in what [`shell::word`] writes, and its own expansion turns
/// `%%` into `%`.
pub(crate) fn word(raw: &str) -> String {
    shell::word(raw).replace('%', "%%")
}

/// A path as the value of an ssh option that expands `%`: `IdentityFile`, `ControlPath`,
/// `UserKnownHostsFile`.
pub(crate) fn path(raw: &str) -> String {
    let raw = raw.replace('%', "%%");
    let plain = |c: char| c.is_ascii_alphanumeric() || "_./@,+-%".contains(c);
    if raw.chars().all(plain) {
        return raw;
    }
    format!("\"{}\"", raw.replace('\\', "\\\\").replace('"', "\\\""))
}

/// What [`path`] wrote.
pub(crate) fn unpath(written: &str) -> String {
    let inner = written.strip_prefix('"').and_then(|w| w.strip_suffix('"'));
    let mut raw = String::new();
    let mut rest = inner.unwrap_or(written).chars();
    while let Some(c) = rest.next() {
        let escaped = c == '%' || (c == '\\' && inner.is_some());
        raw.push(if escaped { rest.next().unwrap_or(c) } else { c });
    }
    raw
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_was_written_as_a_path_reads_as_it_was(raw in r#"/[a-z %"\\\\é]{0,20}"#) {
            prop_assert_eq!(unpath(&path(&raw)), raw);
        }
    }

    #[test]
    fn a_plain_word_stays_as_it_is_and_an_empty_one_is_still_a_word() {
        assert_eq!(word("/usr/bin/kubectl"), "/usr/bin/kubectl");
        assert_eq!(word("--context=kind-a@b"), "--context=kind-a@b");
        assert_eq!(word(""), "''");
        assert_eq!(word("100%"), "100%%");
    }

    #[test]
    fn a_quote_or_backslash_is_never_inside_quotes() {
        assert_eq!(word("it's"), r"'it'\''s'");
        assert_eq!(word("''"), r"\'\'");
        assert_eq!(word(r"a\"), r"'a'\\");
        assert_eq!(word("a b"), "'a b'");
        assert_eq!(word("$x`y`!z"), r"'$x`y`'\!'z'");
    }

    #[test]
    fn a_path_option_is_quoted_as_the_config_reader_reads_it() {
        assert_eq!(path("/home/me/.ssh/id"), "/home/me/.ssh/id");
        assert_eq!(path("/a b%c"), "\"/a b%%c\"");
        assert_eq!(path(r#"/a"b\c"#), r#""/a\"b\\c""#);
    }
}
