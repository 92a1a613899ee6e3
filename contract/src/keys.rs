//! OpenSSH public keys. One strict parser for the user's key, the seat's host key and whatever a
//! pod claims to be one: a key's line ends up in `authorized_keys` and `known_hosts`.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::text;

/// Key types that OpenSSH 9 accepts by default, certificates excluded.
const TYPES: [&str; 7] = [
    "ssh-ed25519",
    "sk-ssh-ed25519@openssh.com",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "sk-ecdsa-sha2-nistp256@openssh.com",
    "ssh-rsa",
];

/// The longest line taken for a key: an RSA key of 16384 bits needs about 2800 characters.
const LONGEST: usize = 8192;

/// Why a line isn't a public key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAKey {
    /// Not one printable line of sensible length.
    #[error("not one printable line of at most {LONGEST} characters")]
    NotALine,
    /// A private key was given.
    #[error("a private key, not a public one")]
    Private,
    /// The first word isn't a key type OpenSSH accepts.
    #[error("key type `{0}` isn't one that OpenSSH accepts by default")]
    Type(String),
    /// The second word isn't the base64 form of a key of that type.
    #[error("the key's data isn't a key of type {0}")]
    Data(&'static str),
}

/// One public key: type, data, and a comment that may be empty. Its text is always one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey {
    kind: &'static str,
    data: String,
    comment: String,
}

impl PublicKey {
    /// Parses one line of a `.pub` file. Options in front (`from=…`) are refused.
    ///
    /// # Errors
    /// When the line isn't exactly a key.
    pub fn parse(line: &str) -> Result<Self, NotAKey> {
        let line = line.trim_end_matches(['\n', '\r', ' ', '\t']);
        if line.starts_with("-----BEGIN") {
            return Err(NotAKey::Private);
        }
        let line = text::printable(line, LONGEST).ok_or(NotAKey::NotALine)?;
        let mut words = line.splitn(3, ' ');
        let kind = words.next().unwrap_or_default();
        let data = words.next().unwrap_or_default();
        let comment = words.next().unwrap_or_default();
        let Some(kind) = TYPES.into_iter().find(|t| *t == kind) else {
            return Err(NotAKey::Type(text::escape(kind, 40)));
        };
        let blob = STANDARD.decode(data).map_err(|_| NotAKey::Data(kind))?;
        // RFC 4253: the data repeats the type, with a 32-bit length in front.
        let named = blob
            .split_first_chunk::<4>()
            .and_then(|(len, rest)| rest.split_at_checked(u32::from_be_bytes(*len) as usize));
        match named {
            Some((name, rest)) if name == kind.as_bytes() && rest.len() >= 32 => {
                Ok(Self { kind, data: data.to_owned(), comment: comment.to_owned() })
            }
            _ => Err(NotAKey::Data(kind)),
        }
    }

    /// Type and data without the comment: what `known_hosts` takes, and what says whether two
    /// lines are the same key.
    #[must_use]
    pub fn bare(&self) -> String {
        format!("{} {}", self.kind, self.data)
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.data)?;
        if self.comment.is_empty() { Ok(()) } else { write!(f, " {}", self.comment) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ED: &str =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKHEChAgLwFqB3pJzkGm2E7VJ0sL9hVYx4kq0J3j5m1p me@laptop";

    #[test]
    fn a_key_keeps_its_comment_and_can_lose_it() {
        let key = PublicKey::parse(&format!("{ED}\n")).unwrap();
        assert_eq!(key.to_string(), ED);
        assert!(!key.bare().contains("laptop"));
    }

    #[test]
    fn a_line_that_is_more_than_a_key_is_no_key() {
        for bad in [
            "",
            "-----BEGIN OPENSSH PRIVATE KEY-----",
            "ssh-ed25519",
            "ssh-ed25519 AAAA",
            "ssh-ed25519 !!!!",
            &format!("command=\"x\" {ED}"),
            &format!("{ED}\n{ED}"),
            &format!("{ED}\u{1b}[31m"),
            &ED.replace("ssh-ed25519 ", "ssh-rsa "),
            &format!("@cert-authority {ED}"),
        ] {
            assert!(PublicKey::parse(bad).is_err(), "{bad:?}");
        }
    }
}
