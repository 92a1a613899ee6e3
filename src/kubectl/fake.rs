//! A kubectl that a test scripts: a function from what is started to what it says.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::call::Scope;
use super::run::{Process, Runner, Said, Spawn};
use super::transcript::Transcript;
use super::{Context, Kubectl};

/// What a call says.
pub(crate) struct Says {
    /// stdout.
    pub(crate) out: String,
    /// stderr.
    pub(crate) err: String,
    /// The exit code; `None`: it goes on for ever.
    pub(crate) code: Option<i32>,
    /// The user presses ctrl-C after what it said.
    pub(crate) interrupted: bool,
}

pub(crate) fn ok(out: impl ToString) -> Says {
    Says { out: out.to_string(), err: String::new(), code: Some(0), interrupted: false }
}

pub(crate) fn fails(err: &str) -> Says {
    Says { out: String::new(), err: err.to_owned(), code: Some(1), interrupted: false }
}

pub(crate) fn stays(out: impl ToString, err: &str) -> Says {
    Says { out: out.to_string(), err: err.to_owned(), code: None, interrupted: false }
}

/// What was started, for the test to look at.
pub(crate) type Calls = Arc<Mutex<Vec<(String, Option<String>)>>>;

struct Fake<F> {
    answer: F,
    calls: Calls,
}

struct FakeProcess(VecDeque<Said>, bool);

impl<F: Fn(&str, Option<&str>) -> Says + Send + Sync> Runner for Fake<F> {
    fn start(&self, spawn: &Spawn) -> io::Result<Box<dyn Process>> {
        let words: Vec<_> = spawn.args.iter().map(|a| a.to_string_lossy()).collect();
        let line = words.join(" ");
        self.calls.lock().unwrap().push((line.clone(), spawn.stdin.clone()));
        let says = (self.answer)(&line, spawn.stdin.as_deref());
        let mut said = VecDeque::new();
        if !says.out.is_empty() {
            said.push_back(Said::Out(says.out.into_bytes()));
        }
        if !says.err.is_empty() {
            said.push_back(Said::Err(says.err.into_bytes()));
        }
        if says.interrupted {
            said.push_back(Said::Interrupted);
        }
        said.extend(says.code.map(|c| Said::End(Some(c))));
        Ok(Box::new(FakeProcess(said, says.code.is_none())))
    }
}

impl Process for FakeProcess {
    fn next(&mut self, wait: Duration) -> Said {
        self.0.pop_front().unwrap_or_else(|| {
            assert!(self.1, "asked after its end");
            std::thread::sleep(wait.min(Duration::from_millis(5)));
            Said::Nothing
        })
    }

    fn kill(&mut self) {}
}

/// A cluster whose kubectl answers as the function says: its words, its stdin.
pub(crate) fn kubectl(
    answer: impl Fn(&str, Option<&str>) -> Says + Send + Sync + 'static,
) -> (Kubectl, Calls) {
    let calls = Calls::default();
    let runner = Box::new(Fake { answer, calls: Arc::clone(&calls) });
    let kubectl = Kubectl::new(Scope::default(), runner, Transcript::default(), false);
    kubectl.pin(&Context { name: "ctx".into(), namespace: "demo".into(), plugin: None });
    (kubectl, calls)
}
