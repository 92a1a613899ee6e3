//! Recorded runs: what a fake kubectl answers was said by a real one before.
//!
//! A golden is a folder: `cmd` (the command line, a word a line), `kubectl.jsonl` (the recorded
//! calls), `recorded` (date and server version of the live run), `home/` (what lay there), and
//! `stdout`, `stderr`, `code`, `files/` (what came of it).

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::Digest as _;

use crate::cluster::root;
use crate::person::Person;
use crate::process::{Ran, run};

/// One recorded kubectl call: a line of `kubectl.jsonl`, as the launcher's transcript writes it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Call {
    /// The words after the program's name.
    pub argv: Vec<String>,
    /// What was written to its stdin.
    #[serde(default)]
    pub stdin: Option<String>,
    /// What it printed.
    pub stdout: String,
    /// What it said.
    pub stderr: String,
    /// Its exit code; null where the launcher had read enough and ended it.
    pub status: Option<i32>,
}

/// Reads a transcript.
///
/// # Panics
/// When a line isn't a call.
#[must_use]
pub fn read(file: &Path) -> Vec<Call> {
    let text = std::fs::read_to_string(file).unwrap_or_else(|why| panic!("{}: {why}", file.display()));
    text.lines().map(|l| serde_json::from_str(l).unwrap_or_else(|why| panic!("{why}: {l}"))).collect()
}

/// The SHA-256 of a transcript, in hexadecimal: what `recorded` keeps of it, so that nobody edits one.
#[must_use]
pub fn digest(transcript: &[u8]) -> String {
    sha2::Sha256::digest(transcript).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Where goldens live.
#[must_use]
pub fn goldens() -> PathBuf {
    root().join("tests/golden")
}

/// Are the live tests recording (`./dev record`)?
#[must_use]
pub fn is_on() -> bool {
    std::env::var("PODBENCH_RECORD").is_ok_and(|v| v == "1")
}

/// Runs a command of `podbench` live; when recording, keeps it as the golden `name`.
///
/// # Panics
/// When the golden can't be written.
pub fn live(name: &str, person: &mut Person, server: &str, args: &[&str]) -> Ran {
    let file = person.home().join("transcript.jsonl");
    let _ = std::fs::remove_file(&file);
    let before = person.env.len();
    person.env.push(("PODBENCH_TRANSCRIPT".into(), file.display().to_string()));
    person.env.push(("PODBENCH_CLOCK".into(), "frozen".into()));
    let ran = person.podbench(args);
    person.env.truncate(before);
    if is_on() {
        keep(&goldens().join(name), person, server, args, &file, &ran);
    }
    ran
}

fn keep(folder: &Path, person: &Person, server: &str, args: &[&str], transcript: &Path, ran: &Ran) {
    let _ = std::fs::remove_dir_all(folder);
    std::fs::create_dir_all(folder.join("home/.ssh")).unwrap();
    let write = |file: &str, text: &str| std::fs::write(folder.join(file), text).unwrap();
    let calls = if transcript.exists() { read(transcript) } else { Vec::new() };
    let lines = calls.iter().map(|c| serde_json::to_string(c).unwrap() + "\n").collect::<String>();
    write("kubectl.jsonl", &lines);
    write("cmd", &(args.join("\n") + "\n"));
    write("image", &(person.variable("PODBENCH_IMAGE").unwrap_or_default() + "\n"));
    let date = run(std::process::Command::new("date")).stdout;
    let digest = digest(lines.as_bytes());
    write("recorded", &format!("date: {date}server: {server}\ncalls: {}\nsha256: {digest}\n", calls.len()));
    let key = person.home().join(".ssh/id_ed25519.pub");
    if key.exists() {
        std::fs::copy(key, folder.join("home/.ssh/id_ed25519.pub")).unwrap();
    }
    Outcome::of(person.home(), ran).write(folder);
}

/// What came of a run, with the home folder's path spelled `$HOME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The exit code.
    pub code: i32,
    /// The run's stdout.
    pub stdout: String,
    /// The run's stderr.
    pub stderr: String,
    /// The files below `~/.podbench` that a person would look at, by name.
    pub files: Vec<(String, String)>,
}

impl Outcome {
    /// Takes it from a home folder after a run.
    ///
    /// # Panics
    /// When a file can't be read.
    #[must_use]
    pub fn of(home: &Path, ran: &Ran) -> Self {
        let plain = |text: &str| text.replace(&home.display().to_string(), "$HOME");
        let mut files = Vec::new();
        for folder in [".podbench", ".podbench/config.d"] {
            for entry in std::fs::read_dir(home.join(folder)).into_iter().flatten().flatten() {
                let name = entry.file_name().to_string_lossy().into_owned();
                if entry.path().is_file() && (name.ends_with(".conf") || name == "known_hosts") {
                    files.push((name, frozen(&plain(&std::fs::read_to_string(entry.path()).unwrap()))));
                }
            }
        }
        files.sort();
        Self { code: ran.code, stdout: plain(&ran.stdout), stderr: plain(&ran.stderr), files }
    }

    fn write(&self, folder: &Path) {
        std::fs::create_dir_all(folder.join("files")).unwrap();
        std::fs::write(folder.join("code"), format!("{}\n", self.code)).unwrap();
        std::fs::write(folder.join("stdout"), &self.stdout).unwrap();
        std::fs::write(folder.join("stderr"), &self.stderr).unwrap();
        for (name, text) in &self.files {
            std::fs::write(folder.join("files").join(name), text).unwrap();
        }
    }

    /// Reads it from a golden.
    ///
    /// # Panics
    /// When the golden isn't whole.
    #[must_use]
    pub fn kept(folder: &Path) -> Self {
        let text = |file: PathBuf| {
            std::fs::read_to_string(&file).unwrap_or_else(|why| panic!("{}: {why}", file.display()))
        };
        let mut files = Vec::new();
        for entry in std::fs::read_dir(folder.join("files")).into_iter().flatten().flatten() {
            files.push((entry.file_name().to_string_lossy().into_owned(), text(entry.path())));
        }
        files.sort();
        Self {
            code: text(folder.join("code")).trim().parse().unwrap(),
            stdout: text(folder.join("stdout")),
            stderr: text(folder.join("stderr")),
            files,
        }
    }
}

/// A stanza freezes the machine's PATH and kubectl, and names a socket: other ones elsewhere.
fn frozen(text: &str) -> String {
    let line = |l: &str| match l.trim_start().split_once(' ') {
        Some(("ProxyCommand", rest)) => {
            let from = rest.find("--context").or_else(|| rest.find(" -n ")).unwrap_or(0);
            format!("  ProxyCommand … {}", rest.get(from..).unwrap_or_default().trim_start())
        }
        // The socket's name is a digest of the home folder's path among others.
        Some(("ControlPath", path)) => {
            format!("  ControlPath {}/…", path.rsplit_once('/').map_or("", |p| p.0))
        }
        _ => l.to_owned(),
    };
    text.lines().map(|l| line(l) + "\n").collect()
}
