//! The user's ssh: which key, the stanza of one seat, its line in known_hosts.
//!
//! - [`keys`]: the key that a seat lets in
//! - [`run`], [`sftp`]: the user's own OpenSSH
//! - [`alias`]: what a seat is called here, and whose a stanza is
//! - [`inventory`]: the stanzas on this disk, and how they are taken back
//! - `freeze`: what a stanza keeps of the shell it was made in
//! - `quote`: one text for ssh's own readers and any shell
//! - `stanza`: the author of the configuration
//! - `known_hosts`, `files`, `include`: what is on the disk

pub mod alias;
pub mod inventory;
pub mod keys;
pub mod run;
pub mod sftp;

pub(crate) mod files;
mod freeze;
mod include;
mod known_hosts;
mod quote;
mod stanza;

use std::path::PathBuf;

use podbench_contract::ids::SeatName;
use podbench_contract::keys::PublicKey;

use self::files::{Found, Layout};
use self::stanza::{Plan, Via};
use crate::error::{Failure, Kind};
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
    /// The line that the user's `~/.ssh/config` lacks, or doesn't have first.
    pub include_missing: Option<String>,
    /// What works less well than it could, one line each.
    pub warnings: Vec<String>,
}

/// Refuses, before the cluster is touched, what no stanza could be written for. `writes`: the disk is
/// tried too; nothing is written otherwise.
///
/// # Errors
/// When the environment holds a secret or something that can't stand in an ssh configuration, or
/// the disk says no.
pub fn check(settings: &Settings, cluster: &Cluster, writes: bool) -> Result<(), Failure> {
    freeze::environment(settings, cluster, true)?;
    if let Some(file) = &cluster.kubeconfig {
        freeze::one_line("--kubeconfig", file.as_os_str())?;
    }
    freeze::one_line("the path of kubectl", cluster.kubectl.as_os_str())?;
    let layout = Layout::new(settings);
    if !writes {
        return layout.check(settings);
    }
    layout.rehearse(settings).map_err(|failure| match failure.kind {
        Kind::Disk => failure
            .because("podbench keeps its ssh stanzas there; the cluster wasn't touched")
            .hint("export PODBENCH_CONFIG_DIR=FOLDER"),
        Kind::Bug | Kind::Input | Kind::Cluster | Kind::Require | Kind::Deadline | Kind::Interrupted => {
            failure
        }
    })
}

/// Writes the stanza and the host's key.
///
/// # Errors
/// When something can't stand in a stanza, or the disk says no.
pub fn install(
    settings: &Settings,
    cluster: &Cluster,
    identity: &Identity,
    seat: &SshSeat,
) -> Result<Installed, Failure> {
    let layout = Layout::new(settings);
    let draft = Draft::new(settings, cluster, seat, Via::Agent)?;
    let (owner, known_hosts) = (&draft.owner, &draft.known_hosts);
    let lock = layout.open(settings)?;
    let alias = alias::choose(&layout, owner, seat.alias.as_deref())?;
    let plan = draft.plan(&alias, seat, identity);
    // The key first: a stanza without its key is a host that can't be reached.
    let known = layout.known()?;
    let config = layout.stanza(&alias);
    let name = owner.host_key_alias();
    let mut hosts = known_hosts::with(&known, &name, &seat.host_key);
    if let Found::Text(old) = files::read(&config)?
        && let Some(old) = alias::Owner::of(&old).filter(|old| old.pod_uid != owner.pod_uid)
    {
        // The stanza's last way to a pod that is gone.
        hosts = known_hosts::without(&hosts, &old.host_key_alias());
    }
    write_if_new(known_hosts, &hosts)?;
    write_if_new(&config, &stanza::write(&plan))?;
    drop(lock);
    let mut warnings: Vec<String> = include::given_away(settings).into_iter().collect();
    if stanza::control_path(&plan).is_none() {
        warnings.push(format!(
            "{} is too long for a socket: each ssh session is a kubectl exec of its own; a shorter \
             PODBENCH_CONFIG_DIR lets them share one",
            draft.sockets.display()
        ));
    }
    let missing = include::missing(settings, &layout);
    warnings.extend(missing.as_ref().and_then(|m| m.shadowed.clone()));
    Ok(Installed { alias, config, include_missing: missing.map(|m| m.line), warnings })
}

/// The stanza as [`install`] would write it, or with sshd run directly (`plain`); nothing is
/// written. The line that known_hosts needs stands in a comment.
///
/// # Errors
/// As [`install`].
pub fn render(
    settings: &Settings,
    cluster: &Cluster,
    identity: &Identity,
    seat: &SshSeat,
    plain: bool,
) -> Result<String, Failure> {
    let draft = Draft::new(settings, cluster, seat, if plain { Via::Sshd } else { Via::Agent })?;
    let alias = alias::choose(&Layout::new(settings), &draft.owner, seat.alias.as_deref())?;
    let line = known_hosts::line(&draft.owner.host_key_alias(), &seat.host_key);
    let stanza = stanza::write(&draft.plan(&alias, seat, identity));
    Ok(format!("{stanza}# The line for {}:\n# {line}\n", draft.known_hosts.display()))
}

/// Everything of a stanza but its alias, which is chosen under the lock.
struct Draft {
    owner: alias::Owner,
    known_hosts: PathBuf,
    sockets: PathBuf,
    proxy: String,
}

impl Draft {
    fn new(settings: &Settings, cluster: &Cluster, seat: &SshSeat, via: Via) -> Result<Self, Failure> {
        stanza::check(seat)?;
        let kubeconfig = kubeconfig(settings, cluster)?;
        let owner = alias::Owner {
            context: seat.context.clone(),
            kubeconfig,
            namespace: seat.namespace.clone(),
            pod: seat.pod.clone(),
            pod_uid: seat.pod_uid.clone(),
            seat: seat.seat.to_string(),
        };
        let layout = Layout::new(settings);
        let proxy = stanza::proxy_command(settings, cluster, seat, via)?;
        Ok(Self { owner, known_hosts: layout.known_hosts(), sockets: layout.sockets(), proxy })
    }

    fn plan<'a>(&'a self, alias: &'a str, seat: &'a SshSeat, identity: &'a Identity) -> Plan<'a> {
        Plan {
            alias,
            owner: &self.owner,
            seat,
            identity,
            known_hosts: &self.known_hosts,
            sockets: &self.sockets,
            proxy: &self.proxy,
        }
    }
}

/// The kubeconfig files that this run reads, as a stanza names them.
fn kubeconfig(settings: &Settings, cluster: &Cluster) -> Result<String, Failure> {
    match &cluster.kubeconfig {
        Some(file) => freeze::one_line("--kubeconfig", file.as_os_str()),
        None => freeze::kubeconfig(settings),
    }
}

/// A reconnect mostly finds everything as it should be, and then writes nothing.
fn write_if_new(path: &std::path::Path, text: &str) -> Result<(), Failure> {
    if files::read(path)? == Found::Text(text.to_owned()) { Ok(()) } else { files::replace(path, text) }
}

#[cfg(test)]
mod tests;
