//! On Windows there is no `sh` to play kubectl.
#![cfg(unix)]

use std::time::{Duration, Instant};

use podbench_contract::rung::Rung;

use super::*;
use crate::kubectl::call::{Limits, Scope};
use crate::kubectl::transcript::Transcript;
use crate::kubectl::{Error, Kubectl, Started};

fn kubectl(interrupt: Interrupt) -> Kubectl {
    let program = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/src/kubectl/samples/kubectl.sh"));
    let runner = Box::new(Real { program, env: Vec::new(), interrupt });
    Kubectl::new(Scope::default(), runner, Transcript::default(), false)
}

fn run(
    script: &str,
    total_ms: u64,
    first_ms: Option<u64>,
    most: usize,
) -> (Result<Vec<u8>, Error>, Duration) {
    let kubectl = kubectl(Interrupt::default());
    let limits = Limits {
        total: Duration::from_millis(total_ms),
        first_byte: first_ms.map(Duration::from_millis),
        most,
    };
    let began = Instant::now();
    let answer = kubectl.exec("pod", "c", &["sh", "-c", script], limits, "test").and_then(Started::finish);
    (answer, began.elapsed())
}

#[test]
fn both_streams_and_the_exit_code_arrive() {
    assert_eq!(run("printf out; printf noise >&2", 5000, None, 100).0.unwrap(), b"out");
    let failed = run("echo 'error: nobody knows' >&2; exit 3", 5000, None, 100).0;
    assert_eq!(failed, Err(Error::Failed { words: "error: nobody knows".into(), status: Some(3) }));
}

#[test]
fn a_flood_is_cut_at_its_limit_and_never_held() {
    let (answer, took) = run("exec cat /dev/zero", 30_000, None, 1 << 20);
    assert_eq!(answer, Err(Error::TooMuch { most: 1 << 20 }));
    assert!(took < Duration::from_secs(5), "{took:?}");
}

#[test]
fn a_flood_on_stderr_ends_with_the_call() {
    let (answer, _) = run("head -c 3000000 /dev/zero >&2; printf out", 20_000, None, 100);
    assert_eq!(answer.unwrap(), b"out");
}

#[test]
fn a_grandchild_that_holds_the_pipe_ends_with_the_call() {
    let (answer, took) = run("sleep 77 & sleep 77", 300, None, 100);
    assert!(matches!(answer, Err(Error::Deadline { .. })));
    assert!(took < Duration::from_secs(3), "{took:?}");
}

#[test]
fn a_daemon_that_keeps_the_pipe_does_not_keep_the_answer() {
    let (answer, took) = run("printf out; sleep 77 & exit 0", 20_000, None, 100);
    assert_eq!(answer.unwrap(), b"out");
    assert!(took < Duration::from_secs(3), "{took:?}");
}

#[test]
fn silence_ends_at_the_first_byte_deadline_and_talking_does_not() {
    let (silent, took) = run("sleep 77", 20_000, Some(300), 100);
    assert!(matches!(silent, Err(Error::Deadline { .. })));
    assert!(took < Duration::from_secs(3), "{took:?}");
    assert_eq!(run("printf a; sleep 1; printf b", 20_000, Some(500), 100).0.unwrap(), b"ab");
}

#[test]
fn ctrl_c_ends_a_call_at_once() {
    let interrupt = Interrupt::default();
    let kubectl = kubectl(interrupt.clone());
    let started = kubectl.get_pod("x").unwrap();
    interrupt.0.store(true, Ordering::Relaxed);
    let began = Instant::now();
    assert_eq!(started.finish(), Err(Error::Interrupted));
    assert!(began.elapsed() < Duration::from_secs(2));
}

#[test]
fn what_is_written_to_stdin_arrives_whole() {
    let kubectl = kubectl(Interrupt::default());
    let big = serde_json::json!({"a": "x".repeat(2_000_000)});
    let answer =
        kubectl.put_ephemeral("n", "p", &big, crate::kubectl::Mode::DryRun, Rung::Full).unwrap().finish();
    assert_eq!(answer.unwrap(), big);
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let runner = Box::new(Real {
        program: "/no/such/kubectl".into(),
        env: Vec::new(),
        interrupt: Interrupt::default(),
    });
    let kubectl = Kubectl::new(Scope::default(), runner, Transcript::default(), false);
    assert!(matches!(kubectl.get_pod("x").map(|_| ()), Err(Error::Start { .. })));
}
