//! Processes with a deadline.

use std::io::{Read, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

/// What a process printed and how it ended.
#[derive(Clone, Debug)]
pub struct Ran {
    /// The exit code; 128 + N where signal N ended it, 124 where the deadline did.
    pub code: i32,
    /// Its stdout.
    pub stdout: String,
    /// Its stderr.
    pub stderr: String,
}

impl Ran {
    /// Panics with everything unless it ended with `code`.
    #[track_caller]
    pub fn expect_code(self, code: i32) -> Self {
        assert_eq!(self.code, code, "\n--- stdout\n{}\n--- stderr\n{}", self.stdout, self.stderr);
        self
    }

    /// Its stdout without surrounding white space, after a success.
    #[track_caller]
    pub fn text(self) -> String {
        self.expect_code(0).stdout.trim().to_owned()
    }

    /// Its stdout as JSON, whatever the exit code.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|why| {
            panic!(
                "not JSON ({why}), exit {}\n--- stdout\n{}\n--- stderr\n{}",
                self.code, self.stdout, self.stderr
            )
        })
    }
}

/// Runs it to its end, with `input` on stdin; kills it after `limit`.
#[track_caller]
pub fn run_with(mut command: Command, input: &[u8], limit: Duration) -> Ran {
    let shown = format!("{command:?}");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|why| panic!("{shown}: {why}"));
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    // A child that ends without reading its input breaks the pipe, which is no fault of the test.
    std::thread::spawn(move || drop(stdin.write_all(&input)));
    let (done, ended) = mpsc::channel();
    let stdout = keep(child.stdout.take().unwrap(), done.clone());
    let stderr = keep(child.stderr.take().unwrap(), done);
    let end = std::time::Instant::now() + limit;
    let mut late = false;
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if std::time::Instant::now() > end {
            late = true;
            let _ = child.kill();
            break child.wait().unwrap();
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    for _ in 0..2 {
        // A grandchild may hold a pipe open: what has come by then is enough.
        let _ = ended.recv_timeout(Duration::from_secs(2));
    }
    let code = if late { 124 } else { status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)) };
    let text = |kept: &Mutex<Vec<u8>>| String::from_utf8_lossy(&kept.lock().unwrap()).into_owned();
    Ran { code, stdout: text(&stdout), stderr: text(&stderr) }
}

/// Reads on in the background; what has come so far is there at any time, and `done` hears of the end.
fn keep(mut from: impl Read + Send + 'static, done: mpsc::Sender<()>) -> Arc<Mutex<Vec<u8>>> {
    let kept = Arc::new(Mutex::new(Vec::new()));
    let into = Arc::clone(&kept);
    std::thread::spawn(move || {
        let mut piece = [0; 8192];
        while let Ok(length @ 1..) = from.read(&mut piece) {
            into.lock().unwrap().extend_from_slice(&piece[..length]);
        }
        let _ = done.send(());
    });
    kept
}

/// Runs it to its end with nothing on stdin, for at most two minutes.
#[track_caller]
pub fn run(command: Command) -> Ran {
    run_with(command, b"", Duration::from_secs(120))
}

/// Asks again until `answer` is there; panics with `what` after `limit`.
#[track_caller]
pub fn eventually<T>(what: &str, limit: Duration, mut answer: impl FnMut() -> Option<T>) -> T {
    let end = std::time::Instant::now() + limit;
    loop {
        if let Some(value) = answer() {
            return value;
        }
        assert!(std::time::Instant::now() < end, "not within {limit:?}: {what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}
