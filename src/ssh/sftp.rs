//! The user's own `sftp` in batch mode: no shell of the seat's reads a path, and a connection that is
//! cut is an error on every release of OpenSSH, which `kubectl cp`'s tar isn't.

use std::ffi::OsString;
use std::time::Duration;

use super::run::{Host, OpenSsh, keep, told};
use crate::error::Failure;
use crate::kubectl::run::{Interrupt, Real, Runner as _, Said, Spawn};
use crate::settings::Settings;

/// A transfer takes as long as it takes; what ends it early is ctrl-C, which is looked for meanwhile.
const WAIT: Duration = Duration::from_secs(60);

/// The `sftp` beside the user's `ssh`.
#[derive(Clone, Debug)]
pub struct Sftp {
    real: Real,
}

/// Why a batch came to nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoTransfer {
    /// In sftp's words, or the seat's system's.
    Said(String),
    /// ctrl-C.
    Interrupted,
}

impl Sftp {
    /// Looks for it.
    ///
    /// # Errors
    /// When there is none.
    pub fn find(settings: &Settings, interrupt: Interrupt) -> Result<Self, Failure> {
        Ok(Self { real: OpenSsh::program("sftp", settings, interrupt)? })
    }

    /// Runs these lines though the user wants to stop: they take back what was begun.
    pub fn tidy(&self, host: Host<'_>, lines: &[String]) {
        let real = Real { interrupt: Interrupt::default(), ..self.real.clone() };
        let _ = Self { real }.batch(host, lines);
    }

    /// Runs these lines; the first that fails ends it.
    ///
    /// # Errors
    /// Why it ended.
    pub fn batch(&self, host: Host<'_>, lines: &[String]) -> Result<(), NoTransfer> {
        let mut args: Vec<OsString> = ["-q", "-b", "-", "-F"].map(OsString::from).to_vec();
        args.extend([host.config.into(), host.alias.into()]);
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let spawn = Spawn { args, env: Vec::new(), stdin: Some(text), terminal: false };
        let mut process = self.real.start(&spawn).map_err(|e| NoTransfer::Said(e.to_string()))?;
        let mut words = Vec::new();
        loop {
            match process.next(WAIT) {
                // The batch's echo, and the names of what is copied.
                Said::Out(_) | Said::Nothing => {}
                Said::Err(bytes) => keep(&mut words, &bytes),
                Said::End(Some(0)) => return Ok(()),
                Said::End(code) => {
                    let words = told(&words);
                    let code = code.map_or_else(|| "a signal".to_owned(), |c| format!("exit code {c}"));
                    let words = if words.is_empty() { format!("sftp ended with {code}") } else { words };
                    return Err(NoTransfer::Said(words));
                }
                Said::Interrupted => {
                    process.kill();
                    return Err(NoTransfer::Interrupted);
                }
            }
        }
    }
}

/// A path as a word of a batch: within quotes sftp takes what it would expand literally.
#[must_use]
pub fn quoted(path: &str) -> String {
    // A word that begins with a dash would be an option, within quotes too.
    let path = if path.starts_with('-') { format!("./{path}") } else { path.to_owned() };
    format!("\"{}\"", path.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test runs the real sftp")]
mod tests {
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    use proptest::prelude::{ProptestConfig, prop_assert, proptest};

    use super::*;

    /// Runs a batch against a server of this machine's, without ssh.
    fn local(batch: &str) -> bool {
        let server = "/usr/lib/openssh/sftp-server";
        let mut child = Command::new("sftp")
            .args(["-q", "-b", "-", "-D", server])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("sftp");
        child.stdin.take().unwrap().write_all(batch.as_bytes()).unwrap();
        child.wait().unwrap().success()
    }

    #[test]
    fn a_word_that_begins_with_a_dash_is_no_option() {
        assert_eq!(quoted("-r"), "\"./-r\"");
        assert_eq!(quoted("a\"b\\c"), "\"a\\\"b\\\\c\"");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn any_name_arrives_as_it_is(name in "[a-zA-Z0-9 \"'\\\\*?\\[\\]#$;{}~äß!&|<>-]{1,20}") {
            let tmp = tempfile::tempdir().unwrap();
            let at = |folder: &str| tmp.path().join(folder).join(&name).to_str().unwrap().to_owned();
            std::fs::create_dir(tmp.path().join("from")).unwrap();
            std::fs::create_dir(tmp.path().join("to")).unwrap();
            std::fs::write(at("from"), &name).unwrap();
            let lines = format!("put {} {}\nget {0} {}\n", quoted(&at("from")), quoted(&at("to")), quoted(&format!("{}2", at("to"))));
            prop_assert!(local(&lines), "{lines}");
            prop_assert!(std::fs::read_to_string(at("to")).is_ok_and(|text| text == name), "{lines}");
        }
    }
}
