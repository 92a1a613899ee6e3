//! What `--resize` changed in a container, as it is remembered: in the environment of the seat that
//! was landed with it, and on the user's machine. Anyone may have written either, so only a text
//! that podbench would have written is read.

use std::fmt;
use std::str::FromStr;

use crate::quantity::Quantity;

/// A resource that a running container's share of can be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resource {
    /// `memory`.
    Memory,
    /// `cpu`.
    Cpu,
}

impl Resource {
    /// Each of them.
    pub const ALL: [Self; 2] = [Self::Memory, Self::Cpu];

    /// Kubernetes' name for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Cpu => "cpu",
        }
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A request and its limit, spelled `REQUEST:LIMIT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// `resources.requests`.
    pub request: Quantity,
    /// `resources.limits`.
    pub limit: Quantity,
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.request, self.limit)
    }
}

/// One resource of one container, before and after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The container.
    pub container: String,
    /// What of it.
    pub resource: Resource,
    /// What it had before podbench first changed it: what a restore gives back.
    pub from: Share,
    /// What podbench set. Where it is something else now, somebody else changed it.
    pub to: Share,
}

/// Changes are at most so many: two for each container that was ever a target.
const MOST: usize = 16;
const LONGEST: usize = 4096;

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {} -> {}", self.container, self.resource, self.from, self.to)
    }
}

/// Not a text that podbench writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAChange;

impl FromStr for Change {
    type Err = NotAChange;

    fn from_str(raw: &str) -> Result<Self, NotAChange> {
        let words: Vec<&str> = raw.split(' ').collect();
        let [container, resource, from, "->", to] = words.as_slice() else { return Err(NotAChange) };
        let resource = Resource::ALL.into_iter().find(|r| r.as_str() == *resource).ok_or(NotAChange)?;
        let change = Self {
            container: label(container).ok_or(NotAChange)?,
            resource,
            from: share(from)?,
            to: share(to)?,
        };
        // Exactly what would be written, or not ours.
        if change.to_string() == raw { Ok(change) } else { Err(NotAChange) }
    }
}

fn share(raw: &str) -> Result<Share, NotAChange> {
    let (request, limit) = raw.split_once(':').ok_or(NotAChange)?;
    let amount = |text: &str| text.parse::<Quantity>().map_err(|_| NotAChange);
    let share = Share { request: amount(request)?, limit: amount(limit)? };
    if share.request <= share.limit && !share.limit.is_zero() { Ok(share) } else { Err(NotAChange) }
}

/// A container's name is a DNS label.
fn label(raw: &str) -> Option<String> {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    let is_one = (1..=63).contains(&raw.len())
        && raw.bytes().all(plain)
        && !raw.starts_with('-')
        && !raw.ends_with('-');
    is_one.then(|| raw.to_owned())
}

/// Several, as one line.
#[must_use]
pub fn write(changes: &[Change]) -> String {
    changes.iter().map(Change::to_string).collect::<Vec<_>>().join(", ")
}

/// Reads [`write()`]'s line; `None` where podbench wouldn't have written it.
#[must_use]
pub fn read(raw: &str) -> Option<Vec<Change>> {
    if raw.len() > LONGEST {
        return None;
    }
    let parts: Vec<&str> = raw.split(", ").collect();
    if parts.len() > MOST {
        return None;
    }
    let changes: Vec<Change> = parts.into_iter().map(|p| p.parse().ok()).collect::<Option<_>>()?;
    let twice = changes.iter().enumerate().any(|(n, change)| {
        changes.iter().take(n).any(|c| c.container == change.container && c.resource == change.resource)
    });
    (!twice).then_some(changes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LINE: &str = "app memory 64Mi:128Mi -> 128Mi:256Mi, app cpu 5m:100m -> 1:2";

    #[test]
    fn what_is_written_is_read_back() {
        let changes = read(LINE).unwrap();
        assert_eq!(changes.len(), 2);
        assert_eq!(write(&changes), LINE);
    }

    #[test]
    fn a_line_that_podbench_would_not_have_written_says_nothing() {
        for bad in [
            "",
            "app",
            "app memory 64Mi:128Mi",
            "app memory 64Mi:128Mi -> 256Mi",
            "app disk 1:2 -> 1:3",
            "-n memory 1Mi:2Mi -> 1Mi:3Mi",
            "app memory 2Mi:1Mi -> 1Mi:3Mi",
            "app memory 0:0 -> 1Mi:3Mi",
            "app memory 1Mi:2Mi -> 1Mi:3Mi ",
            "app  memory 1Mi:2Mi -> 1Mi:3Mi",
            "app memory 1024Ki:2Mi -> 1Mi:3Mi",
            "app memory 1Mi:2Mi -> 1Mi:3Mi,app cpu 1:2 -> 1:3",
            "app memory 1Mi:2Mi -> 1Mi:3Mi, app memory 1Mi:2Mi -> 1Mi:3Mi",
            "a\u{1b}[2J memory 1Mi:2Mi -> 1Mi:3Mi",
        ] {
            assert_eq!(read(bad), None, "{bad:?}");
        }
        assert_eq!(read(&vec!["app memory 1Mi:2Mi -> 1Mi:3Mi"; 400].join(", ")), None);
    }

    proptest! {
        #[test]
        fn whatever_is_read_is_what_would_be_written(raw in "(app|[a-z-]{1,4}) (memory|cpu) [0-9]{1,3}(m|Mi|):[0-9]{1,3}(m|Mi|) -> [0-9]{1,3}(m|Mi|):[0-9]{1,3}(m|Mi|)") {
            if let Some(changes) = read(&raw) {
                prop_assert_eq!(write(&changes), raw);
            }
        }
    }
}
