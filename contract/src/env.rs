//! The environment of a seat: one typed item each, written by the launcher and read by the agent
//! through the same item.
//!
//! An ephemeral container's environment is permanent and readable by everyone who may read the
//! pod. No reading of a measurement comes from here: a test lies in all of these.

use crate::ids::ContainerId;
use crate::keys::PublicKey;
use crate::resized::{self, Change};

/// One variable: its name, and how its value is spelled and read back.
pub struct Var<T> {
    /// The variable's name.
    pub name: &'static str,
    write: fn(&T) -> String,
    read: fn(&str) -> Option<T>,
}

impl<T> Var<T> {
    /// The pair for the container's `env`.
    pub fn entry(&self, value: &T) -> (&'static str, String) {
        (self.name, (self.write)(value))
    }

    /// What a raw value says; `None` when unset or not what this variable may hold.
    pub fn parse(&self, raw: Option<&str>) -> Option<T> {
        raw.and_then(self.read)
    }
}

const fn text(name: &'static str) -> Var<String> {
    Var { name, write: String::clone, read: |raw| crate::text::printable(raw, 512) }
}

/// The target container's name.
pub const TARGET: Var<String> = text("PODBENCH_TARGET");

/// The *target's* runtime id, without its scheme; never the seat's own.
pub const TARGET_CID: Var<ContainerId> = Var {
    name: "PODBENCH_TARGET_CID",
    write: |id| id.as_str().to_owned(),
    read: |raw| ContainerId::parse(raw).ok(),
};

/// The names of the pod's containers.
pub const POD_CONTAINERS: Var<Vec<String>> = Var {
    name: "PODBENCH_POD_CONTAINERS",
    write: |names| names.join(","),
    read: |raw| Some(crate::text::printable(raw, 8192)?.split(',').map(str::to_owned).collect()),
};

/// Who landed the seat, as the API server calls them. Advisory: anyone may have written it.
pub const OWNER: Var<String> = text("PODBENCH_OWNER");

/// The node the pod runs on.
pub const NODE_NAME: Var<String> = text("PODBENCH_NODE_NAME");

/// Does the pod share the node's network?
pub const HOST_NETWORK: Var<bool> =
    Var { name: "PODBENCH_HOST_NETWORK", write: bool::to_string, read: |raw| raw.parse().ok() };

/// The public key that may log in.
pub const PUBKEY: Var<PublicKey> =
    Var { name: "PODBENCH_PUBKEY", write: PublicKey::to_string, read: |raw| PublicKey::parse(raw).ok() };

/// What `--resize` changed in the pod when this seat was landed: the old values and the new ones, so
/// that they can be given back, and so that it shows where somebody else changed them since.
/// Advisory: anyone may have written it.
pub const RESIZED_FROM: Var<Vec<Change>> =
    Var { name: "PODBENCH_RESIZED_FROM", write: |changes| resized::write(changes), read: resized::read };

/// Why a person sits there (`--reason`), for whoever reads the pod.
pub const REASON: Var<String> = Var {
    name: "PODBENCH_REASON",
    write: String::clone,
    read: |raw| crate::text::printable(raw, MOST_REASON),
};

/// The longest reason: bytes.
pub const MOST_REASON: usize = 200;

/// Every name above, for whoever compares or strips them.
pub const NAMES: [&str; 9] = [
    TARGET.name,
    TARGET_CID.name,
    POD_CONTAINERS.name,
    OWNER.name,
    NODE_NAME.name,
    HOST_NETWORK.name,
    PUBKEY.name,
    RESIZED_FROM.name,
    REASON.name,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_launcher_writes_the_agent_reads() {
        let cid = ContainerId::parse("0123456789abcdef").unwrap();
        assert_eq!(TARGET_CID.parse(Some(&TARGET_CID.entry(&cid).1)), Some(cid));
        assert_eq!(HOST_NETWORK.parse(Some(&HOST_NETWORK.entry(&true).1)), Some(true));
        let names = vec!["app".to_owned(), "side".to_owned()];
        assert_eq!(POD_CONTAINERS.parse(Some(&POD_CONTAINERS.entry(&names).1)), Some(names));
    }

    #[test]
    fn a_value_that_is_not_what_it_should_be_is_no_value() {
        assert_eq!(TARGET_CID.parse(Some("nonsense\n")), None);
        assert_eq!(PUBKEY.parse(Some("not a key")), None);
        assert_eq!(OWNER.parse(Some("evil\nProxyCommand x")), None);
        assert_eq!(OWNER.parse(None), None);
    }
}
