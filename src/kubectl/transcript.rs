//! What was asked of kubectl in this run: counted, shown with `-v`, written as JSON lines.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use podbench_contract::text::escape_lines;
use serde_json::json;

use crate::error::{Failure, Kind};
use crate::shell::word;

/// One call that ended.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The arguments after the program's name.
    pub argv: Vec<String>,
    /// Its stdin.
    pub stdin: Option<String>,
    /// What was read of its stdout; of a watch, the events that were looked at.
    pub stdout: String,
    /// Its stderr.
    pub stderr: String,
    /// Its exit code; `None` where it was ended or died by a signal.
    pub status: Option<i32>,
    /// When it started, in milliseconds after the run's start.
    pub started_ms: u64,
    /// When it ended, likewise.
    pub ended_ms: u64,
    /// Why it was made.
    pub why: &'static str,
}

/// Collects the calls of a run.
#[derive(Debug, Default)]
pub struct Transcript {
    count: AtomicUsize,
    file: Option<Mutex<File>>,
    verbosity: u8,
    program: String,
}

impl Transcript {
    /// Opens the file, if one is named. `program` is how `-v` spells kubectl.
    ///
    /// # Errors
    /// When the file can't be opened for appending.
    pub fn new(file: Option<&Path>, verbosity: u8, program: String) -> Result<Self, Failure> {
        let open = |path: &Path| {
            let mut options = OpenOptions::new();
            options.create(true).append(true);
            // It holds whole pods, whose environment may hold secrets.
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            options.open(path).map_err(|e| {
                Failure::new(Kind::Disk, format!("the transcript {} can't be written", path.display()))
                    .because(e.to_string())
            })
        };
        let file = file.map(open).transpose()?.map(Mutex::new);
        Ok(Self { count: AtomicUsize::new(0), file, verbosity, program })
    }

    /// A call was started.
    pub fn started(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// How many calls were started.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// A call ended.
    pub fn ended(&self, entry: &Entry) {
        if self.verbosity > 0 {
            // An argv may name what a pod chose, and with -vv a whole pod is shown.
            let _ = std::io::stderr().write_all(escape_lines(&self.line(entry), usize::MAX).as_bytes());
        }
        if let Some(file) = &self.file {
            let line = json!({
                "argv": entry.argv,
                "stdin": entry.stdin,
                "stdout": entry.stdout,
                "stderr": entry.stderr,
                "status": entry.status,
                "startedMs": entry.started_ms,
                "endedMs": entry.ended_ms,
                "why": entry.why,
            });
            if let Ok(mut file) = file.lock() {
                // One write a line: two podbenches may append to one file.
                let _ = file.write_all(format!("{line}\n").as_bytes());
            }
        }
    }

    /// The call as a person would type it, after its times.
    fn line(&self, entry: &Entry) -> String {
        let words: Vec<String> = entry.argv.iter().map(|w| word(w)).collect();
        let took = entry.ended_ms.saturating_sub(entry.started_ms);
        let status = match entry.status {
            Some(0) => String::new(),
            Some(code) => format!(" -> {code}"),
            None => " -> ended".to_owned(),
        };
        let body = match &entry.stdin {
            Some(text) if self.verbosity > 1 => format!(" <<'EOF'\n{text}\nEOF"),
            Some(text) => format!("  # stdin: {} bytes, shown by -vv", text.len()),
            None => String::new(),
        };
        format!(
            "# {:>5} ms +{took} ms{status}: {}\n{} {}{body}\n",
            entry.started_ms,
            entry.why,
            word(&self.program),
            words.join(" "),
        )
    }
}
