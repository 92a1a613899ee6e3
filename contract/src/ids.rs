//! Identifiers that must not be mixed up: a uid isn't a gid, a container id isn't a name.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A user id, as the kernel counts it in the seat's user namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Uid(pub u32);

/// A group id, as the kernel counts it in the seat's user namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Gid(pub u32);

impl Uid {
    /// root.
    pub const ROOT: Self = Self(0);
    /// The uid of a seat that has no better one: the field's usual "nonroot".
    pub const SEAT: Self = Self(65532);

    /// Is this root?
    #[must_use]
    pub const fn is_root(self) -> bool {
        self.0 == 0
    }
}

impl Gid {
    /// root's group.
    pub const ROOT: Self = Self(0);
    /// The gid that goes with [`Uid::SEAT`].
    pub const SEAT: Self = Self(65532);
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Gid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Uid {
    type Err = std::num::ParseIntError;
    fn from_str(s: &str) -> Result<Self, Self::Err> {
        s.parse().map(Self)
    }
}

impl FromStr for Gid {
    type Err = std::num::ParseIntError;
    fn from_str(s: &str) -> Result<Self, Self::Err> {
        s.parse().map(Self)
    }
}

/// A text that isn't the identifier it was taken for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} expected, not `{got}`")]
pub struct NotAnId {
    /// What was expected.
    pub what: &'static str,
    /// What came, escaped and cut.
    pub got: String,
}

impl NotAnId {
    fn new(what: &'static str, got: &str) -> Self {
        Self { what, got: crate::text::escape(got, 80) }
    }
}

/// A container's id as the runtime spells it, without the `containerd://` scheme.
///
/// Matched as a substring of `/proc/PID/cgroup`, so it is never short: a short one would match
/// somebody else's line.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ContainerId(String);

impl ContainerId {
    /// Takes a bare id, or one as `status.containerStatuses[].containerID` spells it (`scheme://id`).
    ///
    /// # Errors
    /// When what is left isn't 12 to 128 characters of `[0-9a-zA-Z_-]`.
    pub fn parse(raw: &str) -> Result<Self, NotAnId> {
        let id = raw.split_once("://").map_or(raw, |(_, id)| id);
        let ok = (12..=128).contains(&id.len())
            && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        if ok { Ok(Self(id.to_owned())) } else { Err(NotAnId::new("a container id", raw)) }
    }

    /// The id's text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for ContainerId {
    type Error = NotAnId;
    fn try_from(raw: String) -> Result<Self, NotAnId> {
        Self::parse(&raw)
    }
}

impl From<ContainerId> for String {
    fn from(id: ContainerId) -> Self {
        id.0
    }
}

impl fmt::Display for ContainerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The name of a seat: `podbench-N`. A pod keeps every name it ever saw, so N only grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeatName(u32);

impl SeatName {
    /// What every seat's name begins with.
    pub const PREFIX: &'static str = "podbench-";

    /// Parses `podbench-N`; anything else isn't a seat's name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let n = name.strip_prefix(Self::PREFIX)?;
        let plain = !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()) && !n.starts_with('0');
        if plain { n.parse().ok().map(Self) } else { None }
    }

    /// The next name that none of `taken` (container names of any kind, dead ones included) uses.
    pub fn next_free<'a>(taken: impl IntoIterator<Item = &'a str>) -> Self {
        let highest = taken.into_iter().filter_map(Self::parse).map(|s| s.0).max();
        Self(highest.unwrap_or(0).saturating_add(1))
    }

    /// The N of `podbench-N`.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }
}

impl fmt::Display for SeatName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", Self::PREFIX, self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burnt_name_is_never_taken_again() {
        let taken = ["app", "podbench-1", "podbench-7", "podbench-x", "podbench-007"];
        assert_eq!(SeatName::next_free(taken).to_string(), "podbench-8");
        assert_eq!(SeatName::next_free(["app"]).to_string(), "podbench-1");
    }

    #[test]
    fn a_container_id_loses_its_scheme_and_is_never_short() {
        let id = "containerd://0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
        assert_eq!(ContainerId::parse(id).unwrap().as_str().len(), 64);
        assert!(ContainerId::parse("containerd://").is_err());
        assert!(ContainerId::parse("abc").is_err());
        assert!(ContainerId::parse("0123456789abcdef\n0::/").is_err());
    }
}
