//! The user's ssh: which key, the stanza of one seat, its line in known_hosts.

use std::path::PathBuf;

use podbench_contract::ids::SeatName;
use podbench_contract::keys::PublicKey;

use crate::error::Failure;
use crate::settings::{Cluster, Settings};

/// The key that a seat will let in.
#[derive(Clone, Debug)]
pub struct Identity {
    /// What the stanza's `IdentityFile` names.
    pub file: PathBuf,
    /// Its public half.
    pub public: PublicKey,
}

/// Everything a stanza needs to know about one seat. Texts out of the pod are validated already.
#[derive(Clone, Debug)]
pub struct SshSeat {
    /// The resolved context's name.
    pub context: String,
    /// The namespace.
    pub namespace: String,
    /// The pod's name.
    pub pod: String,
    /// `metadata.uid`.
    pub pod_uid: String,
    /// The seat.
    pub seat: SeatName,
    /// The login, as measured.
    pub login: String,
    /// The host's public key, as it came over exec.
    pub host_key: PublicKey,
    /// The path of the seat's sshd configuration, for the plain argv.
    pub sshd_config: String,
    /// `--host-alias`.
    pub alias: Option<String>,
}

/// What was written.
#[derive(Clone, Debug)]
pub struct Installed {
    /// The `Host` of the stanza.
    pub alias: String,
    /// The stanza's file.
    pub config: PathBuf,
    /// The user's `~/.ssh/config` doesn't include it yet: what to do, one line.
    pub include_missing: Option<String>,
}
