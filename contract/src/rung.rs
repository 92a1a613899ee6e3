//! The rungs of the ladder: what a seat may do.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What a seat may do, from most to least. `Full > Degraded > Seat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rung {
    /// Whatever the namespace admits: an editor, a shell, git; no view of the target.
    Seat,
    /// The target's own uid and gid, no capabilities: the kernel's credential check matches.
    Degraded,
    /// Root with `CAP_SYS_PTRACE`.
    Full,
}

impl Rung {
    /// All of them, from most to least.
    pub const ALL: [Self; 3] = [Self::Full, Self::Degraded, Self::Seat];

    /// The word for it, in flags, JSON and reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Degraded => "degraded",
            Self::Seat => "seat",
        }
    }
}

impl fmt::Display for Rung {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Rung {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|r| r.as_str() == s)
            .ok_or_else(|| format!("a rung is full, degraded or seat, not `{}`", crate::text::escape(s, 40)))
    }
}
