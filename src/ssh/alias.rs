//! What a seat is called on the user's machine, and whose a stanza file is.
//!
//! The alias is `podbench-NAMESPACE-POD-N`, its file `ALIAS.conf`. That text isn't unique: `a-b` + `c`
//! reads as `a` + `b-c`, and two clusters may have the same pod. So the file says whose it is, and a
//! second owner gets a short digest behind the name.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::files::{self, Found, Layout};
use crate::error::Failure;

/// The longest alias. An alias is a file name, a window title and a word of a command.
const LONGEST: usize = 100;

/// What begins the line that says whose a stanza is.
const MARK: &str = "# podbench: ";

/// Whose a stanza is. A JSON object on one comment line: names in a kubeconfig may hold anything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Owner {
    /// The context's name.
    pub context: String,
    /// The kubeconfig files, as the stanza freezes them.
    pub kubeconfig: String,
    /// The namespace.
    pub namespace: String,
    /// The pod's name.
    pub pod: String,
    /// `metadata.uid`.
    pub pod_uid: String,
    /// The seat.
    pub seat: String,
}

impl Owner {
    /// The line that says so.
    pub(crate) fn line(&self) -> String {
        // A struct of strings always serializes.
        format!("{MARK}{}", serde_json::to_string(self).unwrap_or_default())
    }

    /// What the seat is called in known_hosts. Keyed on the pod's UID, so that a pod made anew under
    /// its old name is a new host, not one whose key changed.
    pub(crate) fn host_key_alias(&self) -> String {
        let number = self.seat.rsplit('-').next().unwrap_or_default();
        format!("podbench-{}-{number}", self.pod_uid)
    }

    /// Whose a stanza is; `None`: nobody's that we know.
    #[must_use]
    pub fn of(stanza: &str) -> Option<Self> {
        let line = stanza.lines().find_map(|l| l.strip_prefix(MARK))?;
        serde_json::from_str(line).ok()
    }

    /// Leads the other stanza to what this one leads to, or to a pod that this one replaces? A pod
    /// of the same name in the same context and kubeconfig is the old one, made anew.
    fn succeeds(&self, other: &Self) -> bool {
        self.same_place(other) && self.seat == other.seat
    }

    fn same_place(&self, other: &Self) -> bool {
        let name = |o: &Self| (o.context.clone(), o.namespace.clone(), o.pod.clone());
        name(self) == name(other) && (self.pod_uid == other.pod_uid || self.kubeconfig == other.kubeconfig)
    }

    /// What tells this seat from another whose plain alias is the same; without the pod's UID,
    /// because a pod made anew keeps its alias. Two kubeconfigs may call two clusters the same:
    /// the second digest tells those apart too.
    fn digests(&self) -> [String; 2] {
        let place = [&self.context, &self.namespace, &self.pod, &self.seat].map(String::as_str).join("\0");
        [hex(place.as_bytes()), hex(format!("{place}\0{}", self.kubeconfig).as_bytes())]
    }
}

/// Could this be an alias? It becomes a word of an ssh config, of a command, and a file's name.
#[must_use]
pub fn is_alias(raw: &str) -> bool {
    raw.len() <= LONGEST
        && raw.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric())
        && raw.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
}

/// The alias of a seat: `wanted` (`--host-alias`), else the plain one, else that with a digest.
pub(crate) fn choose(layout: &Layout, owner: &Owner, wanted: Option<&str>) -> Result<String, Failure> {
    if let Some(wanted) = wanted {
        return named(layout, owner, wanted);
    }
    let candidates = candidates(owner);
    // One that is ours already comes first: an alias doesn't change when a neighbour's goes away.
    let mut free = None;
    for alias in candidates {
        match files::read(&layout.stanza(&alias))? {
            Found::Nothing => free = free.or(Some(alias)),
            Found::Text(text) if Owner::of(&text).is_some_and(|o| owner.succeeds(&o)) => return Ok(alias),
            Found::Text(_) | Found::Foreign => {}
        }
    }
    free.ok_or_else(|| {
        Failure::input("every alias for this seat is taken").hint("podbench attach --host-alias NAME")
    })
}

fn named(layout: &Layout, owner: &Owner, wanted: &str) -> Result<String, Failure> {
    let file = layout.stanza(wanted);
    let other = match files::read(&file)? {
        Found::Nothing => return Ok(wanted.to_owned()),
        // A name that a person chose moves on to the pod's next seat.
        Found::Text(text) => match Owner::of(&text) {
            Some(other) if owner.same_place(&other) => return Ok(wanted.to_owned()),
            Some(other) => {
                let context = podbench_contract::text::escape(&other.context, 100);
                format!("pod {}/{} of context {context}", other.namespace, other.pod)
            }
            None => "something that podbench didn't write".to_owned(),
        },
        Found::Foreign => "something that podbench didn't write".to_owned(),
    };
    let shown = file.to_string_lossy();
    Err(Failure::input(format!("the alias `{wanted}` is taken: it leads to {other}"))
        .because("another --host-alias, or none, works")
        .hint(format!("rm {}", crate::shell::word(&shown))))
}

/// The plain one, then those with a digest.
fn candidates(owner: &Owner) -> Vec<String> {
    let number = owner.seat.rsplit('-').next().unwrap_or_default();
    let [place, cluster] = owner.digests();
    let plain = format!("podbench-{}-{}", owner.namespace, owner.pod);
    let with = |digest: &str, most: usize| {
        let tail = format!("-{number}-{}", digest.chars().take(most).collect::<String>());
        let room = LONGEST.saturating_sub(tail.len());
        plain.chars().take(room).collect::<String>() + &tail
    };
    let whole = format!("{plain}-{number}");
    let short = (whole.len() <= LONGEST).then_some(whole);
    short.into_iter().chain([with(&place, 6), with(&cluster, 6), with(&cluster, 12)]).collect()
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests;
