//! Writes the ssh configuration of one seat. Pure: what comes in decides what comes out.
//!
//! Every option is either needed or one that a `Host *` of the user's could set in a way that
//! breaks the connection or hands something to the pod. Nothing newer than OpenSSH 8.0 is used: an
//! option that ssh doesn't know makes it stop for every host, also inside a block that doesn't
//! match.

use std::path::Path;

use podbench_contract::{session, text};

use super::{Identity, SshSeat, alias, freeze, quote};
use crate::error::Failure;
use crate::pod::is_dns;
use crate::settings::{Cluster, Settings};

/// A socket's path has 104 bytes on macOS and 108 on Linux, its end included; while it is being made,
/// ssh hangs a dot and 16 letters on it.
const LONGEST_SOCKET: usize = 104 - 1 - 17;

/// What carries the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Via {
    /// The seat's agent.
    Agent,
    /// sshd itself.
    Sshd,
}

/// Everything that is decided before a line is written.
#[derive(Clone, Debug)]
pub(crate) struct Plan<'a> {
    pub(crate) alias: &'a str,
    pub(crate) owner: &'a alias::Owner,
    pub(crate) seat: &'a SshSeat,
    pub(crate) identity: &'a Identity,
    pub(crate) known_hosts: &'a Path,
    /// The folder of control sockets.
    pub(crate) sockets: &'a Path,
    /// [`proxy_command`].
    pub(crate) proxy: &'a str,
}

/// Refuses what the cluster or the pod can't have meant as a name: each of these becomes a word of
/// an ssh configuration.
///
/// # Errors
/// Names what is wrong.
pub(crate) fn check(seat: &SshSeat) -> Result<(), Failure> {
    let uid =
        |s: &str| (1..=64).contains(&s.len()) && s.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    let wrong = |what: &str, got: &str| {
        Failure::cluster(format!("the cluster answered a {what} that isn't one: `{}`", text::escape(got, 80)))
    };
    if !is_dns(&seat.namespace) {
        return Err(wrong("namespace", &seat.namespace));
    }
    if !is_dns(&seat.pod) {
        return Err(wrong("pod name", &seat.pod));
    }
    if !uid(&seat.pod_uid) {
        return Err(wrong("pod UID", &seat.pod_uid));
    }
    if !text::is_login(&seat.login) {
        return Err(wrong("login", &seat.login));
    }
    Ok(())
}

/// `/usr/bin/env NAME=VALUE… kubectl … exec -i POD -c SEAT -- …`, each word for ssh and any shell.
///
/// # Errors
/// When something can't be written on a line, or is secret.
pub(crate) fn proxy_command(
    settings: &Settings,
    cluster: &Cluster,
    seat: &SshSeat,
    via: Via,
) -> Result<String, Failure> {
    // env, because the user's shell runs this and `NAME=VALUE command` isn't every shell's syntax.
    let mut words = vec!["/usr/bin/env".to_owned()];
    let env = freeze::environment(settings, cluster, seat.context.is_empty())?;
    words.extend(env.into_iter().map(|(name, value)| format!("{name}={value}")));
    let kubectl = freeze::one_line("the path of kubectl", cluster.kubectl.as_os_str())?;
    if kubectl.contains('=') {
        // env would take it for one more variable.
        words.extend(["/bin/sh", "-c", r#"exec "$0" "$@""#].map(str::to_owned));
    }
    words.push(kubectl);
    if let Some(file) = &cluster.kubeconfig {
        words.push(format!("--kubeconfig={}", freeze::one_line("--kubeconfig", file.as_os_str())?));
    }
    // The current context may be another one tomorrow. There is none inside a pod.
    if !seat.context.is_empty() {
        words.push(format!("--context={}", freeze::one_line("the context", seat.context.as_ref())?));
    }
    for (flag, value) in [("--as", &cluster.as_user), ("--as-uid", &cluster.as_uid)] {
        if let Some(value) = value {
            words.push(format!("{flag}={}", freeze::one_line(flag, value.as_ref())?));
        }
    }
    for group in &cluster.as_groups {
        words.push(format!("--as-group={}", freeze::one_line("--as-group", group.as_ref())?));
    }
    let seat_name = seat.seat.to_string();
    words.extend(["-n", &seat.namespace, "exec", "-i", &seat.pod, "-c", &seat_name, "--"].map(str::to_owned));
    match via {
        Via::Agent => words.extend(session::session_argv().map(str::to_owned)),
        Via::Sshd if text::is_path(&seat.sshd_config) => words.extend(session::sshd_argv(&seat.sshd_config)),
        Via::Sshd => {
            return Err(Failure::cluster(
                "the seat named no sshd configuration, so sshd can't be run directly",
            )
            .hint("podbench ssh-config --print-config"));
        }
    }
    Ok(words.iter().map(|w| quote::word(w)).collect::<Vec<_>>().join(" "))
}

/// The control socket; `None` where its path would be too long for one.
pub(crate) fn control_path(plan: &Plan<'_>) -> Option<String> {
    // Whoever shares a socket shares the connection: another login, key or kubectl is another one.
    let parts = [plan.alias, &plan.owner.host_key_alias(), &plan.seat.login, plan.proxy];
    let name: String = alias::hex(parts.join("\0").as_bytes()).chars().take(12).collect();
    let path = plan.sockets.join(name);
    let path = path.to_str()?;
    (path.len() <= LONGEST_SOCKET).then(|| path.to_owned())
}

/// The whole file.
pub(crate) fn write(plan: &Plan<'_>) -> String {
    let seat = plan.seat;
    let key_type = seat.host_key.bare();
    let key_type = key_type.split(' ').next().unwrap_or_default();
    let control = control_path(plan);
    let mut lines = vec![
        format!("# Seat {} in pod {}/{}. podbench rewrites this file.", seat.seat, seat.namespace, seat.pod),
        // With ControlPersist, ssh throws away what the ProxyCommand says on stderr.
        format!("# When ssh fails without words, kubectl's are shown by: ssh -S none {} true", plan.alias),
        plan.owner.line(),
        format!("Host {}", plan.alias),
    ];
    let mut say = |option: &str, value: &str| lines.push(format!("  {option} {value}"));
    say("HostName", plan.alias);
    say("User", &seat.login);
    // Whichever of ProxyCommand and ProxyJump comes first wins, so a ProxyJump further down is
    // without effect, and `ProxyJump none` would add nothing.
    say("ProxyCommand", plan.proxy);
    say("ProxyUseFdpass", "no");
    say("HostKeyAlias", &plan.owner.host_key_alias());
    say("UserKnownHostsFile", &quote::path(&plan.known_hosts.to_string_lossy()));
    say("GlobalKnownHostsFile", "/dev/null");
    say("StrictHostKeyChecking", "yes");
    // The key came over exec, from the API server; nothing else may add or change one.
    say("UpdateHostKeys", "no");
    say("VerifyHostKeyDNS", "no");
    if key_type == "ssh-ed25519" {
        say("HostKeyAlgorithms", key_type);
    }
    say("IdentityFile", &quote::path(&plan.identity.file.to_string_lossy()));
    say("IdentitiesOnly", "yes");
    say("PubkeyAuthentication", "yes");
    say("PreferredAuthentications", "publickey");
    say("GSSAPIAuthentication", "no");
    // The pod isn't trusted with the user's agent, display, tunnel devices or environment.
    say("ForwardAgent", "no");
    say("ForwardX11", "no");
    say("ForwardX11Trusted", "no");
    say("Tunnel", "no");
    say("PermitLocalCommand", "no");
    // Takes back what stands above; what a `Host *` below adds, no stanza can, and the seat's sshd
    // accepts none of it.
    say("SendEnv", "-*");
    say("RemoteCommand", "none");
    say("RequestTTY", "auto");
    say("CanonicalizeHostname", "no");
    // A forward that the user's other hosts need mustn't end this connection.
    say("ExitOnForwardFailure", "no");
    // One kubectl exec for all sessions of ten minutes.
    if let Some(control) = &control {
        say("ControlMaster", "auto");
        say("ControlPath", &quote::path(control));
        say("ControlPersist", "10m");
    } else {
        say("ControlMaster", "no");
        say("ControlPath", "none");
    }
    // An idle exec is cut by load balancers, in the strictest that were seen after 20 s.
    say("ServerAliveInterval", "15");
    say("ServerAliveCountMax", "3");
    // For a credential plugin that hangs: never forever.
    say("ConnectTimeout", "60");
    lines.join("\n") + "\n"
}
