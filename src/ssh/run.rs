//! The user's own OpenSSH: the launcher's one home for starting it. Always with a stanza's file as its
//! whole configuration (`-F`), so that a missing Include line changes nothing.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use podbench_contract::text;

use crate::error::{Failure, Kind};
use crate::kubectl::run::{Interrupt, Real, Runner as _, Said, Spawn};
use crate::settings::Settings;

/// What of ssh's stderr is kept: its end, because ssh's own words come after kubectl's.
const MOST_STDERR: usize = 8 << 10;
/// What of it is told, in characters.
const MOST_TOLD: usize = 600;

/// The `ssh` on the user's PATH.
#[derive(Clone, Debug)]
pub struct OpenSsh {
    real: Real,
}

/// One way into a seat.
#[derive(Clone, Copy, Debug)]
pub struct Host<'a> {
    /// The stanza's file.
    pub config: &'a Path,
    /// Its `Host`.
    pub alias: &'a str,
}

/// Why a login came to nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoLogin {
    /// In ssh's words.
    Said(String),
    /// ctrl-C.
    Interrupted,
}

impl OpenSsh {
    /// Looks for it.
    ///
    /// # Errors
    /// When there is none.
    pub fn find(settings: &Settings, interrupt: Interrupt) -> Result<Self, Failure> {
        Ok(Self { real: Self::program("ssh", settings, interrupt)? })
    }

    /// A program of OpenSSH's.
    ///
    /// # Errors
    /// When there is none on PATH.
    pub(super) fn program(name: &str, settings: &Settings, interrupt: Interrupt) -> Result<Real, Failure> {
        let found = which::which_in(name, Some(&settings.path), &settings.cwd);
        let program: PathBuf = found.map_err(|_| {
            Failure::input(format!("{name} is not on PATH"))
                .because("podbench logs in with your own OpenSSH client")
                .because("install the package openssh-client or openssh-clients, or add its folder to PATH")
        })?;
        Ok(Real { program, env: Vec::new(), interrupt })
    }

    /// Logs in with a connection of its own, runs `true`, and tells why that failed.
    ///
    /// # Errors
    /// Why there was no login.
    pub fn login(&self, host: Host<'_>, limit: Duration) -> Result<(), NoLogin> {
        let args = alone(host, &["-o", "BatchMode=yes"], &["true"]);
        // A group of its own and no stdin: nobody is asked, and the deadline ends kubectl too.
        let spawn = Spawn { args, env: Vec::new(), stdin: None, terminal: false };
        let mut process = self.real.start(&spawn).map_err(|e| NoLogin::Said(e.to_string()))?;
        let until = Instant::now() + limit;
        let mut words = Vec::new();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                process.kill();
                let heard = told(&words);
                let heard = if heard.is_empty() { heard } else { format!(": {heard}") };
                return Err(NoLogin::Said(format!("no login within {} s{heard}", limit.as_secs())));
            }
            match process.next(left) {
                // What a start-up file prints says nothing about the login.
                Said::Out(_) | Said::Nothing => {}
                Said::Err(bytes) => keep(&mut words, &bytes),
                Said::End(Some(0)) => return Ok(()),
                Said::End(code) => return Err(NoLogin::Said(ended(&words, code))),
                Said::Interrupted => {
                    process.kill();
                    return Err(NoLogin::Interrupted);
                }
            }
        }
    }

    /// Becomes ssh: terminal, signals and exit code are ssh's own from here on. Returns only when that
    /// fails.
    #[must_use]
    pub fn exec(&self, args: Vec<OsString>) -> Failure {
        #[expect(clippy::disallowed_methods, reason = "the launcher's one home for ssh")]
        let mut command = Command::new(&self.real.program);
        let error = std::os::unix::process::CommandExt::exec(command.args(args));
        Failure::new(Kind::Input, format!("{} can't be started", self.real.program.display()))
            .because(error.to_string())
    }
}

/// A connection that nobody shares (`-S none`): with `ControlPersist` ssh throws away what kubectl
/// says, and a master that runs already proves nothing about a new login.
pub(super) fn alone(host: Host<'_>, options: &[&str], command: &[&str]) -> Vec<OsString> {
    let mut args: Vec<OsString> = vec!["-F".into(), host.config.into(), "-S".into(), "none".into()];
    args.extend(["-o", "ControlMaster=no"].map(OsString::from));
    args.extend(options.iter().map(OsString::from));
    args.push(host.alias.into());
    args.push("--".into());
    args.extend(command.iter().map(OsString::from));
    args
}

/// Keeps the end of what was said.
pub(super) fn keep(words: &mut Vec<u8>, more: &[u8]) {
    words.extend_from_slice(more);
    let over = words.len().saturating_sub(MOST_STDERR);
    words.drain(..over);
}

/// On one line, harmless to a terminal, and bounded.
pub(super) fn told(words: &[u8]) -> String {
    let raw = String::from_utf8_lossy(words);
    let lines: Vec<&str> = raw.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
    let line = lines.join("; ");
    let over = line.chars().count().saturating_sub(MOST_TOLD);
    let end: String = line.chars().skip(over).collect();
    let cut = if over == 0 { "" } else { "…" };
    // Escaping makes it longer.
    format!("{cut}{}", text::escape(&end, MOST_TOLD * 8))
}

/// Why ssh ended.
fn ended(words: &[u8], code: Option<i32>) -> String {
    let words = told(words);
    match (words.is_empty(), code) {
        (false, _) => words,
        (true, Some(code)) => format!("ssh ended with exit code {code} and without a word"),
        (true, None) => "ssh was ended by a signal".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ssh_says_is_one_harmless_line_and_its_end_is_kept() {
        assert_eq!(told(b"kubectl: no\n\nConnection closed\r\n"), "kubectl: no; Connection closed");
        assert_eq!(told(b"\x1b]0;x\x07end"), "\\u{1b}]0;x\\u{7}end");
        let mut words = Vec::new();
        for n in 0..10_000 {
            keep(&mut words, format!("line {n}\n").as_bytes());
        }
        assert!(words.len() <= MOST_STDERR);
        let said = told(&words);
        assert!(
            said.starts_with('…') && said.ends_with("line 9999") && said.chars().count() <= MOST_TOLD + 1
        );
        assert!(ended(b"", Some(255)).contains("255"));
    }

    #[test]
    fn a_command_that_begins_with_a_dash_is_no_option_of_ssh() {
        let host = Host { config: Path::new("/x y.conf"), alias: "a" };
        let args = alone(host, &[], &["-v"]);
        assert_eq!(args.iter().rposition(|a| a == "--"), Some(args.len() - 2));
        assert_eq!(args[1], "/x y.conf");
    }
}
