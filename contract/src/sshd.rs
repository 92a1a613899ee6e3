//! The sshd configuration of a seat: one user, the keys handed to that seat, local forwards only.

use crate::session::{PATH, file};

/// What a seat's configuration depends on.
#[derive(Clone, Debug)]
pub struct Plan<'a> {
    /// The one login that may enter.
    pub login: &'a str,
    /// Is the seat root?
    pub root: bool,
    /// The seat's runtime folder.
    pub runtime: &'a str,
    /// Variables for every session, beyond PATH. A value with white space is left out: sshd would
    /// split it, and it takes the first `SetEnv` line only, so there is exactly one.
    pub env: &'a [(String, String)],
}

/// Writes the configuration.
#[must_use]
pub fn config(plan: &Plan<'_>) -> String {
    let Plan { login, root, runtime, env } = plan;
    // SHLVL: bash takes itself for a session's first shell and reads ~/.bashrc even for a single command
    // otherwise, and a line that one prints there ends `scp -O`, rsync and an editor's bootstrap.
    let mut set = format!("SetEnv PATH={PATH} SHLVL=1");
    for (name, value) in *env {
        let safe =
            !value.is_empty() && value.bytes().all(|b| b.is_ascii_graphic() && !b"\"'\\#".contains(&b));
        if safe {
            set.extend([" ", name, "=", value]);
        }
    }
    // prohibit-password says no more than PubkeyAuthentication alone would; it is written so that
    // a person who reads the file sees it.
    let root_login = if *root { "prohibit-password" } else { "no" };
    [
        "# Written by podbench at every start of this seat.".to_owned(),
        format!("HostKey {runtime}/{}", file::HOST_KEY),
        format!("AuthorizedKeysFile {runtime}/{}", file::AUTHORIZED_KEYS),
        format!("AllowUsers {login}"),
        format!("PermitRootLogin {root_login}"),
        // sshd's own check goes up the whole path and refuses /run/podbench and /dev/shm, which
        // anybody may write to (sticky); with it root's key was denied on a live seat. The keys lie
        // in a 0700 folder that the agent looked at, and no key is taken from the home.
        "StrictModes no".to_owned(),
        "PidFile none".to_owned(),
        "UsePAM no".to_owned(),
        "PubkeyAuthentication yes".to_owned(),
        "AuthenticationMethods publickey".to_owned(),
        "PasswordAuthentication no".to_owned(),
        "KbdInteractiveAuthentication no".to_owned(),
        "HostbasedAuthentication no".to_owned(),
        "PermitEmptyPasswords no".to_owned(),
        "PermitUserEnvironment no".to_owned(),
        "PermitUserRC no".to_owned(),
        "AllowTcpForwarding local".to_owned(),
        "AllowStreamLocalForwarding local".to_owned(),
        "GatewayPorts no".to_owned(),
        "PermitTunnel no".to_owned(),
        "X11Forwarding no".to_owned(),
        "PrintMotd no".to_owned(),
        "PrintLastLog no".to_owned(),
        "UseDNS no".to_owned(),
        "MaxSessions 100".to_owned(),
        "ClientAliveInterval 15".to_owned(),
        "ClientAliveCountMax 3".to_owned(),
        // In sshd itself: a shell start-up file that prints something would break scp and sftp.
        "Subsystem sftp internal-sftp".to_owned(),
        set,
        String::new(),
    ]
    .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_setenv_line_and_no_value_that_sshd_would_split() {
        let env = [
            ("A".to_owned(), "1".to_owned()),
            ("B".to_owned(), "two words".to_owned()),
            ("C".to_owned(), "x\nPermitTunnel yes".to_owned()),
        ];
        let plan = Plan { login: "podbench", root: false, runtime: "/run/podbench/1", env: &env };
        let text = config(&plan);
        assert_eq!(text.matches("SetEnv").count(), 1);
        assert!(text.contains(" A=1\n") && !text.contains("two words") && !text.contains("PermitTunnel yes"));
        assert!(text.contains("AllowUsers podbench\n") && text.contains("PermitRootLogin no\n"));
        assert!(text.contains("AuthorizedKeysFile /run/podbench/1/authorized_keys\n"));
    }
}
