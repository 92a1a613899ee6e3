//! The user's own `sftp` in batch mode: no shell of the seat's reads a path, and a connection that is
//! cut is an error on every release of OpenSSH, which `kubectl cp`'s tar isn't.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::run::{Host, OpenSsh, alone, keep, told};
use crate::error::Failure;
use crate::kubectl::run::{Interrupt, Real, Runner as _, Said, Spawn};
use crate::settings::Settings;
use crate::shell::word;

mod heard;

pub use heard::Skipped;
use heard::{Begun, Lines};

/// A transfer takes as long as it takes; what ends it early is ctrl-C, which is looked for meanwhile.
const WAIT: Duration = Duration::from_secs(60);
/// How long taking back what had arrived may take.
const REMOVAL: Duration = Duration::from_secs(20);

/// The `sftp` beside the user's `ssh`, and that.
#[derive(Clone, Debug)]
pub struct Sftp {
    program: PathBuf,
    shell: Real,
    ssh: Real,
}

/// Why a batch came to nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoTransfer {
    /// A line of it failed, here or there; the connection stood.
    Refused {
        /// Which line, from 0.
        line: usize,
        /// In sftp's words.
        words: String,
    },
    /// The connection ended, or never came about, or sftp itself ended early.
    Lost {
        /// How many lines were begun.
        begun: usize,
        /// Which of these, and ssh's and sftp's own words.
        words: String,
    },
    /// ctrl-C.
    Interrupted {
        /// How many lines were begun.
        begun: usize,
    },
}

impl Sftp {
    /// Looks for it.
    ///
    /// # Errors
    /// When there is none.
    pub fn find(settings: &Settings, interrupt: Interrupt) -> Result<Self, Failure> {
        let sftp = OpenSsh::program("sftp", settings, interrupt)?;
        // It takes back what was begun, so ctrl-C doesn't end it.
        let ssh = OpenSsh::program("ssh", settings, Interrupt::default())?;
        let Real { program, .. } = sftp.clone();
        Ok(Self { program, shell: Real { program: "/bin/sh".into(), ..sftp }, ssh })
    }

    /// Removes a file or a folder with all that is in it, though the user wants to stop. sftp's `rm`
    /// takes no folder, and the names that arrived in one are known to nobody here.
    ///
    /// # Errors
    /// Why it may still be there.
    pub fn remove(&self, host: Host<'_>, path: &str) -> Result<(), String> {
        // A connection of its own: the shared one may be the one that was cut.
        let args = alone(host, &["-o", "BatchMode=yes"], &["rm", "-rf", "--", &word(path)]);
        let spawn = Spawn { args, env: Vec::new(), stdin: None, terminal: false };
        let mut process = self.ssh.start(&spawn).map_err(|e| e.to_string())?;
        let until = Instant::now() + REMOVAL;
        let mut words = Vec::new();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match process.next(left) {
                Said::Err(bytes) => keep(&mut words, &bytes),
                Said::End(Some(0)) => return Ok(()),
                Said::End(_) => return Err(told(&words)),
                Said::Out(_) | Said::Nothing | Said::Interrupted if left.is_zero() => {
                    process.kill();
                    return Err(format!("no answer within {} s", REMOVAL.as_secs()));
                }
                Said::Out(_) | Said::Nothing | Said::Interrupted => {}
            }
        }
    }

    /// Runs these lines; the first that fails ends it, unless it begins with a dash. What was left out
    /// of a folder is the answer.
    ///
    /// # Errors
    /// Why it ended.
    pub fn batch(&self, host: Host<'_>, lines: &[String]) -> Result<Skipped, NoTransfer> {
        // A connection that is cut would end sftp by this signal, without a word and like any other.
        let mut args: Vec<OsString> = ["-c", r#"trap '' PIPE; exec "$0" "$@""#].map(OsString::from).to_vec();
        args.push(self.program.clone().into());
        // Without -q: what is left out of a folder is told no louder than that.
        args.extend(["-b", "-", "-F"].map(OsString::from));
        args.extend([host.config.into(), host.alias.into()]);
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let spawn = Spawn { args, env: Vec::new(), stdin: Some(text), terminal: false };
        let lost = |begun: usize, words: String| NoTransfer::Lost { begun, words };
        let mut process =
            self.shell.start(&spawn).map_err(|e| lost(0, format!("sftp can't be started: {e}")))?;
        let (mut words, mut skipped) = (Lines::default(), Skipped::default());
        let mut begun = Begun::default();
        loop {
            match process.next(WAIT) {
                Said::Nothing => {}
                Said::Out(bytes) => begun.hear(&bytes),
                Said::Err(bytes) => words.hear(&bytes, &mut skipped),
                Said::End(Some(0)) => {
                    words.end(&mut skipped);
                    return Ok(skipped);
                }
                Said::End(code) => {
                    words.end(&mut skipped);
                    let begun = begun.lines();
                    let mut words = words.told();
                    // Alone it isn't left out, it is the reason.
                    if words.is_empty()
                        && let Some(path) = skipped.paths.first()
                    {
                        words = format!("{path} is not a regular file");
                    }
                    if words.is_empty() {
                        let by =
                            code.map_or_else(|| "by a signal".to_owned(), |c| format!("with exit code {c}"));
                        words = format!("sftp was ended {by}");
                    }
                    // 1 is a line that failed, 255 the connection.
                    return Err(match (code, begun.checked_sub(1)) {
                        (Some(1), Some(line)) => NoTransfer::Refused { line, words },
                        (None, _) => lost(begun, words),
                        (_, None) => lost(begun, format!("there is no connection to the seat: {words}")),
                        (_, Some(_)) => lost(begun, format!("the connection was cut: {words}")),
                    });
                }
                Said::Interrupted => {
                    process.kill();
                    return Err(NoTransfer::Interrupted { begun: begun.lines() });
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

/// Are these words about a folder that isn't there, or that is something else? sftp has no code for it.
/// 8.x writes `Couldn't stat remote file: No such file or directory`, 9.x `stat remote: …`, and where a
/// file is in the way `realpath PATH: No such file`.
#[must_use]
pub fn is_absent(words: &str) -> bool {
    ["No such file", "is not a directory", "Not a directory"].iter().any(|w| words.contains(w))
}

/// Are these words about this machine's disk? What a seat's disk says arrives as `Failure`: the
/// protocol has no code for it, so a system's own words are from here.
#[must_use]
pub fn is_local_disk(words: &str) -> bool {
    [
        "No space left on device",
        "Disk quota exceeded",
        "Quota exceeded",
        "File too large",
        "Read-only file system",
        "Input/output error",
    ]
    .iter()
    .any(|w| words.contains(w))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test runs the real sftp")]
mod tests {
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    use proptest::prelude::{ProptestConfig, prop_assert, proptest};

    use super::*;

    /// Runs a batch against a server of this machine's, without ssh; its stdout, stderr and exit code.
    fn local(batch: &str) -> (String, String, Option<i32>) {
        let server = "/usr/lib/openssh/sftp-server";
        let mut child = Command::new("sftp")
            .args(["-b", "-", "-D", server])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("sftp");
        child.stdin.take().unwrap().write_all(batch.as_bytes()).unwrap();
        let out = child.wait_with_output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (text(out.stdout), text(out.stderr), out.status.code())
    }

    fn heard(stdout: &str, stderr: &str) -> (usize, Skipped, String) {
        let (mut begun, mut words, mut skipped) = (Begun::default(), Lines::default(), Skipped::default());
        begun.hear(stdout.as_bytes());
        words.hear(stderr.as_bytes(), &mut skipped);
        words.end(&mut skipped);
        (begun.lines(), skipped, words.told())
    }

    #[test]
    fn a_word_that_begins_with_a_dash_is_no_option() {
        assert_eq!(quoted("-r"), "\"./-r\"");
        assert_eq!(quoted("a\"b\\c"), "\"a\\\"b\\\\c\"");
    }

    #[test]
    fn what_sftp_leaves_out_of_a_folder_is_heard_by_name_and_its_errors_are_told_apart() {
        let tmp = tempfile::tempdir().unwrap();
        let at = |name: &str| tmp.path().join(name).to_str().unwrap().to_owned();
        std::fs::create_dir_all(tmp.path().join("from/below")).unwrap();
        std::fs::write(at("from/file"), "x").unwrap();
        for (name, to) in [("link", "file"), ("below/ü \"q\\", "."), ("loop", "loop"), ("dangling", "no")] {
            std::os::unix::fs::symlink(to, at(&format!("from/{name}"))).unwrap();
        }
        let _socket = std::os::unix::net::UnixListener::bind(at("from/socket")).unwrap();
        let (out, err, code) =
            local(&format!("get -pR {} {}\npwd\n", quoted(&at("from")), quoted(&at("to"))));
        assert_eq!(code, Some(0), "{err}");
        let (begun, skipped, words) = heard(&out, &err);
        let mut names: Vec<&str> =
            skipped.paths.iter().map(|p| p.strip_prefix(&at("from/")).unwrap()).collect();
        names.sort_unstable();
        assert_eq!(names, ["below/ü \"q\\", "dangling", "link", "loop", "socket"], "{err}");
        assert_eq!((begun, words.as_str()), (2, ""));

        for (line, absent, disk) in [
            (format!("cd {}", quoted(&at("nosuch"))), true, false),
            (format!("cd {}", quoted(&at("from/file"))), true, false),
            (format!("cd {}", quoted(&at("from/file/below"))), true, false),
            (format!("cd {}", quoted(&at("from/loop"))), true, false),
            (format!("get {} /dev/full", quoted(&at("from/file"))), false, true),
        ] {
            let (out, err, code) = local(&format!("pwd\n{line}\npwd\n"));
            let (begun, _, words) = heard(&out, &err);
            assert_eq!((code, begun), (Some(1), 2), "{line}: {err}");
            assert_eq!((is_absent(&words), is_local_disk(&words)), (absent, disk), "{line}: {words}");
        }
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
            let (to, part) = (at("to"), format!("{}.part", at("to")));
            let lines = format!(
                "put {0} {2}\nrename {2} {1}\nget {1} {3}\n",
                quoted(&at("from")), quoted(&to), quoted(&part), quoted(&format!("{to}2")),
            );
            let (_, err, code) = local(&lines);
            prop_assert!(code == Some(0), "{lines}{err}");
            for arrived in [to.clone(), format!("{to}2")] {
                prop_assert!(std::fs::read_to_string(arrived).is_ok_and(|text| text == name), "{lines}");
            }
        }
    }
}
