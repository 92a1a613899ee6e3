//! The envelope of a reply that travels over `kubectl exec`.
//!
//! An exec can lose the tail of its output and still exit 0, so a reply says how long it is and
//! what its digest is: `podbench-reply/1 LENGTH SHA256\n` and then the payload. A reply that
//! doesn't add up is an error and is asked for again, never half believed.

use sha2::{Digest as _, Sha256};

/// The first word of a framed reply; the number is the format's version.
const MAGIC: &str = "podbench-reply/1";

/// The longest payload that is looked at. A measurement has a few kilobytes.
pub const LONGEST: usize = 1 << 20;

/// The most that a reader has to take in before it may stop: header and payload.
pub const LONGEST_FRAMED: usize = LONGEST + 256;

/// Why a reply isn't whole.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// There is no header: not a reply at all.
    #[error("the reply has no podbench header")]
    NoHeader,
    /// The header names a length past [`LONGEST`].
    #[error("the reply says it is {0} bytes long; at most {LONGEST} are taken")]
    TooLong(usize),
    /// Fewer bytes came than the header names.
    #[error("the reply was cut: {got} of {want} bytes arrived")]
    Short {
        /// Bytes named by the header.
        want: usize,
        /// Bytes that arrived.
        got: usize,
    },
    /// The bytes aren't the ones that were sent.
    #[error("the reply's digest is wrong")]
    Digest,
}

impl Broken {
    /// May asking again help? A cut stream is a passing thing; a program that answers without a
    /// header will do so again.
    #[must_use]
    pub const fn is_passing(&self) -> bool {
        match self {
            Self::Short { .. } | Self::Digest => true,
            Self::NoHeader | Self::TooLong(_) => false,
        }
    }
}

fn hex(payload: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut out = String::with_capacity(64);
    for byte in Sha256::digest(payload) {
        let _ = write!(out, "{byte:02x}");
    }
    out
}

/// Puts the envelope around a payload.
#[must_use]
pub fn encode(payload: &[u8]) -> Vec<u8> {
    let mut out = format!("{MAGIC} {} {}\n", payload.len(), hex(payload)).into_bytes();
    out.extend_from_slice(payload);
    out
}

/// Takes the payload out of what arrived. Bytes after the payload are ignored.
///
/// # Errors
/// When the reply isn't whole.
pub fn decode(bytes: &[u8]) -> Result<&[u8], Broken> {
    let magic = MAGIC.as_bytes();
    if bytes.is_empty() || (bytes.len() < magic.len() && magic.starts_with(bytes)) {
        return Err(Broken::Short { want: magic.len(), got: bytes.len() });
    }
    if !bytes.starts_with(magic) {
        return Err(Broken::NoHeader);
    }
    let head = bytes.get(..bytes.len().min(128)).unwrap_or_default();
    let Some(end) = head.iter().position(|b| *b == b'\n') else {
        return Err(Broken::Short { want: 128, got: bytes.len() });
    };
    let header = head.get(..end).and_then(|h| std::str::from_utf8(h).ok()).unwrap_or_default();
    let mut words = header.split(' ').skip(1);
    let (Some(want), Some(digest), None) =
        (words.next().and_then(|w| w.parse::<usize>().ok()), words.next(), words.next())
    else {
        return Err(Broken::NoHeader);
    };
    if want > LONGEST {
        return Err(Broken::TooLong(want));
    }
    let rest = bytes.get(end + 1..).unwrap_or_default();
    let Some(payload) = rest.get(..want) else {
        return Err(Broken::Short { want, got: rest.len() });
    };
    if hex(payload) == digest { Ok(payload) } else { Err(Broken::Digest) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_whole_reply_comes_back_and_any_cut_one_is_an_error(
            payload in proptest::collection::vec(any::<u8>(), 0..2000), cut in 0usize..2200,
        ) {
            let framed = encode(&payload);
            prop_assert_eq!(decode(&framed), Ok(payload.as_slice()));
            if cut < framed.len() {
                let broken = decode(framed.get(..cut).unwrap());
                prop_assert!(matches!(broken, Err(Broken::Short { .. })), "{broken:?}");
            }
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = decode(&bytes);
        }
    }

    #[test]
    fn a_gigabyte_announced_is_refused_unread() {
        assert_eq!(decode(b"podbench-reply/1 1073741824 00\n"), Err(Broken::TooLong(1 << 30)));
        assert_eq!(decode(b"login: "), Err(Broken::NoHeader));
        let mut flipped = encode(b"abc");
        *flipped.last_mut().unwrap() = b'x';
        assert_eq!(decode(&flipped), Err(Broken::Digest));
    }
}
