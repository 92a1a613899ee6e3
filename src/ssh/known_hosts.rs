//! `~/.podbench/known_hosts`: one line for each seat, under the name that its stanza looks up.

use podbench_contract::keys::PublicKey;

/// The text with the line of `name` in place: replaced where it stands, else at the end. Every
/// other line stays as it is.
pub(crate) fn with(text: &str, name: &str, key: &PublicKey) -> String {
    let line = line(name, key);
    let mut placed = false;
    let mut lines: Vec<&str> = Vec::new();
    for old in text.lines() {
        if old.split(' ').next() != Some(name) {
            lines.push(old);
        } else if !placed {
            placed = true;
            lines.push(&line);
        }
    }
    if !placed {
        lines.push(&line);
    }
    lines.join("\n") + "\n"
}

/// The text without the lines of `name`.
pub(crate) fn without(text: &str, name: &str) -> String {
    text.lines().filter(|line| line.split(' ').next() != Some(name)).map(|line| format!("{line}\n")).collect()
}

/// The line itself. The comment of a key stays out: nothing reads it.
pub(crate) fn line(name: &str, key: &PublicKey) -> String {
    format!("{name} {}", key.bare())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(c: char) -> PublicKey {
        let body = format!("AAAAC3NzaC1lZDI1NTE5AAAAIKHEChAgLwFqB3pJzkGm2E7VJ0sL9hVYx4kq0J3j5m{c}p");
        PublicKey::parse(&format!("ssh-ed25519 {body} root@seat")).unwrap()
    }

    #[test]
    fn a_seat_has_one_line_and_keeps_its_place() {
        let one = with("", "podbench-u1-1", &key('1'));
        let two = with(&one, "podbench-u1-10", &key('2'));
        let again = with(&two, "podbench-u1-1", &key('3'));
        let lines: Vec<&str> = again.lines().collect();
        assert_eq!(lines.len(), 2, "{again}");
        assert!(lines[0].starts_with("podbench-u1-1 ") && lines[0].contains("m3p"));
        assert!(lines[1].starts_with("podbench-u1-10 ") && !again.contains("root@seat"));
        assert_eq!(with(&again, "podbench-u1-1", &key('3')), again);
    }

    #[test]
    fn a_seat_that_is_gone_takes_its_own_line_along() {
        let both = with(&with("# mine\n", "a", &key('1')), "ab", &key('2'));
        assert_eq!(without(&both, "a"), with("# mine\n", "ab", &key('2')));
        assert_eq!(without("", "a"), "");
    }

    #[test]
    fn what_somebody_else_wrote_stays_and_a_doubled_line_goes() {
        let text = format!("# mine\nexample.org ssh-rsa AAAA\n\n{0}\n{0}\n", line("a", &key('1')));
        let out = with(&text, "a", &key('2'));
        assert!(out.starts_with("# mine\nexample.org ssh-rsa AAAA\n\n"));
        assert_eq!(out.matches("\na ").count(), 1);
    }
}
