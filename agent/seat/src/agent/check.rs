//! The seat's own connection to its sshd, once at every start: what a user's ssh will meet.
//!
//! A hidden verb does it, beside the agent's loop: a real ssh whose ProxyCommand is sshd. The host
//! key is also the client's key here, authorised on that one sshd's command line and nowhere else,
//! so that the way is gone to its end: the login, the shell and the folder modes that sshd is
//! strict about are what breaks in practice.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use podbench_contract::keys::PublicKey;
use podbench_contract::measurement::RoundTrip;
use podbench_contract::session::{SSHD, file, sshd_argv};
use podbench_contract::text::{is_login, is_path};

use crate::exec::{self, Output, Program, spawn_reading};
use crate::out;

/// How long the whole of it may take.
const LIMIT: Duration = Duration::from_millis(2500);
/// How long sshd's test of its configuration may take, where there is need for it.
const TEST_LIMIT: Duration = Duration::from_millis(400);
/// The client, by its path like everything that is started here.
const SSH: &str = "/usr/bin/ssh";
/// And what the loop gives it on top.
const SLACK: Duration = Duration::from_millis(100);
/// Its answer has some hundred bytes.
const LONGEST: usize = 16 * 1024;
/// The name under which the host key is known to this one ssh.
const ALIAS: &str = "podbench-check";
const KNOWN_HOSTS: &str = "check_known_hosts";

/// The hidden verb: prints a round trip as one JSON line.
pub(crate) fn run(runtime: &str, login: &str) -> u8 {
    let trip = attempt(runtime, login);
    out::text(&format!("{}\n", serde_json::to_string(&trip).unwrap_or_default()))
}

/// The connection while it runs, as the agent's loop sees it.
pub(crate) struct Running {
    pipe: File,
    got: Vec<u8>,
    until: Instant,
}

impl Running {
    /// Starts it. The loop reaps it.
    pub(crate) fn start(
        runtime: &str,
        login: &str,
        overlay: &[(String, String)],
        now: Instant,
    ) -> io::Result<Self> {
        let pipe = spawn_reading(&Program::itself(["check", runtime, login]).with_env(overlay))?;
        rustix::io::ioctl_fionbio(&pipe, true)?;
        Ok(Self { pipe: pipe.into(), got: Vec::new(), until: now + LIMIT + TEST_LIMIT + SLACK })
    }

    /// When it is no longer waited for.
    pub(crate) const fn deadline(&self) -> Instant {
        self.until
    }

    /// Takes what is there of the answer; the outcome once it is whole.
    pub(crate) fn read(&mut self) -> Option<RoundTrip> {
        let mut buffer = [0u8; 2048];
        loop {
            match self.pipe.read(&mut buffer) {
                Ok(n) if n > 0 && self.got.len() + n <= LONGEST => self.got.extend(buffer.iter().take(n)),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return None,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Ok(_) | Err(_) => break,
            }
        }
        Some(serde_json::from_slice(&self.got).unwrap_or_else(|_| failed("it ended without an answer")))
    }
}

impl AsFd for Running {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}

/// A connection that never came about.
pub(crate) fn failed(why: &str) -> RoundTrip {
    RoundTrip { why: Some(why.to_owned()), ..RoundTrip::default() }
}

/// One that took too long: a busy node is not a broken sshd.
pub(crate) fn late() -> RoundTrip {
    RoundTrip { late: true, ..failed("it didn't end in time") }
}

fn attempt(runtime: &str, login: &str) -> RoundTrip {
    let start = Instant::now();
    let mut trip = match prepare(runtime, login) {
        Ok(argv) => {
            let shell = [("SHELL".to_owned(), "/bin/sh".to_owned())];
            judge(&exec::run(&Program::from_argv(argv).with_env(&shell), LIMIT), || {
                let config = format!("{runtime}/{}", file::SSHD_CONFIG);
                exec::run(&Program::new([SSHD, "-t", "-f", &config]), TEST_LIMIT)
            })
        }
        Err(why) => failed(&why),
    };
    let _ = std::fs::remove_file(format!("{runtime}/{KNOWN_HOSTS}"));
    trip.ms = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
    trip
}

/// Writes what this one ssh knows of the host, and answers its argv.
fn prepare(runtime: &str, login: &str) -> Result<Vec<String>, String> {
    // Both are ours; but the ProxyCommand goes through a shell.
    if !is_path(runtime) || !is_login(login) {
        return Err("the runtime folder or the login isn't one".to_owned());
    }
    let key = format!("{runtime}/{}", file::HOST_KEY);
    let public =
        crate::runtime::read_bounded(&format!("{key}.pub"), 10_000).map_err(|e| format!("{key}.pub: {e}"))?;
    let public = PublicKey::parse(&public).map_err(|e| e.to_string())?;
    let known = format!("{runtime}/{KNOWN_HOSTS}");
    crate::runtime::write_whole(&known, &format!("{ALIAS} {}\n", public.bare()), 0o600)
        .map_err(|e| format!("{known}: {e}"))?;
    let sshd = sshd_argv(&format!("{runtime}/{}", file::SSHD_CONFIG)).join(" ");
    let mut argv: Vec<String> = [SSH, "-v", "-F", "none", "-T", "-i", &key].map(str::to_owned).to_vec();
    for option in [
        format!("ProxyCommand={sshd} -o AuthorizedKeysFile={key}.pub"),
        format!("UserKnownHostsFile={known}"),
        "GlobalKnownHostsFile=none".to_owned(),
        format!("HostKeyAlias={ALIAS}"),
        "StrictHostKeyChecking=yes".to_owned(),
        // The default exchange takes six times the CPU, and the launcher waits for this.
        "KexAlgorithms=^curve25519-sha256".to_owned(),
        "BatchMode=yes".to_owned(),
        "IdentitiesOnly=yes".to_owned(),
        "IdentityAgent=none".to_owned(),
        "PreferredAuthentications=publickey".to_owned(),
    ] {
        argv.extend(["-o".to_owned(), option]);
    }
    argv.extend(["-l".to_owned(), login.to_owned(), ALIAS.to_owned(), "exit 0".to_owned()]);
    Ok(argv)
}

/// How far it came, from what ssh said. sshd's own test of its configuration is asked for where not
/// even a banner came: a connection that works has proved the configuration.
fn judge(ssh: &Output, test: impl FnOnce() -> Output) -> RoundTrip {
    let said =
        |words: &str| ssh.stderr.lines().any(|line| line.starts_with("debug1: ") && line.contains(words));
    let trip = |stage: &str, why| RoundTrip {
        ok: false,
        stage: stage.to_owned(),
        why: Some(why),
        late: ssh.late,
        ms: 0,
    };
    if ssh.stderr.lines().any(|line| line.starts_with("Authenticated to ")) {
        RoundTrip { ok: true, stage: "auth".to_owned(), ..RoundTrip::default() }
    } else if said("SSH2_MSG_NEWKEYS received") {
        trip("kex", last_word(ssh))
    } else if said("Remote protocol version ") {
        trip("banner", last_word(ssh))
    } else {
        let test = test();
        if test.ok() {
            trip("config", last_word(ssh))
        } else {
            RoundTrip { late: test.late, ..trip("", format!("sshd -t: {}", test.why())) }
        }
    }
}

/// What ssh, or sshd through it, said last apart from its own tracing.
fn last_word(ssh: &Output) -> String {
    let own =
        |line: &&str| !line.starts_with("debug") && !line.starts_with("OpenSSH_") && !line.trim().is_empty();
    match ssh.stderr.lines().rev().find(own) {
        Some(line) if !ssh.late => line.trim().to_owned(),
        _ => Output { stderr: String::new(), ..ssh.clone() }.why(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ssh(stderr: &str) -> Output {
        Output { code: Some(255), stderr: stderr.to_owned(), ..Output::default() }
    }

    fn fine() -> Output {
        Output { code: Some(0), ..Output::default() }
    }

    const BANNER: &str =
        "OpenSSH_9.2p1 Debian\ndebug1: Remote protocol version 2.0, remote software version x\n";
    const KEX: &str = "debug1: SSH2_MSG_NEWKEYS received\n";

    #[test]
    fn a_connection_is_told_by_how_far_it_came() {
        let whole =
            format!("{BANNER}{KEX}Authenticated to podbench-check (via proxy) using \"publickey\".\n");
        assert_eq!(
            judge(&ssh(&whole), fine),
            RoundTrip { ok: true, stage: "auth".into(), ..RoundTrip::default() }
        );
        let refused = format!("{BANNER}{KEX}podbench@podbench-check: Permission denied (publickey).\n");
        let trip = judge(&ssh(&refused), fine);
        assert_eq!((trip.ok, trip.stage.as_str()), (false, "kex"));
        assert!(trip.why.unwrap().contains("Permission denied"));
        let early = judge(&ssh("OpenSSH_9.2p1\nno hostkeys available -- exiting.\r\n"), fine);
        assert_eq!(
            (early.stage.as_str(), early.why.as_deref()),
            ("config", Some("no hostkeys available -- exiting."))
        );
    }

    #[test]
    fn a_configuration_that_sshd_refuses_is_told_first() {
        let test = Output { code: Some(255), stderr: "line 3: Bad option\n".into(), ..Output::default() };
        let trip = judge(&ssh(""), || test);
        assert_eq!((trip.ok, trip.stage.as_str()), (false, ""));
        assert_eq!(trip.why.as_deref(), Some("sshd -t: line 3: Bad option"));
    }

    #[test]
    fn a_connection_that_hangs_is_late_and_not_a_success() {
        let late = Output { late: true, stderr: BANNER.to_owned(), ..Output::default() };
        let trip = judge(&late, fine);
        assert_eq!(
            (trip.ok, trip.stage.as_str(), trip.why.as_deref()),
            (false, "banner", Some("it didn't end in time"))
        );
        assert!(trip.late && !judge(&ssh(BANNER), fine).late);
    }

    #[test]
    fn nothing_that_a_shell_would_read_gets_into_the_proxy_command() {
        assert!(prepare("/run/x;touch /tmp/y", "podbench").is_err());
        assert!(prepare("/run/podbench/1", "-oProxyCommand=x").is_err());
    }
}
