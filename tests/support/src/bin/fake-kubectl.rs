//! A kubectl that answers from a recording, and is strict: an argv that wasn't recorded, or other
//! bytes on stdin than were recorded, end it with 97 and the nearest recorded call.
//!
//! `FAKE_KUBECTL` names the recording; what was consumed is noted beside it, so that calls that
//! run side by side don't take the same line and the test can see what nobody asked for.
#![allow(clippy::print_stdout, clippy::print_stderr, clippy::unwrap_used, clippy::exit)]

use std::fs::OpenOptions;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::ExitCode;

use podbench_test_support::recording::{Call, read};

fn main() -> ExitCode {
    let file = std::env::var("FAKE_KUBECTL").unwrap();
    let argv: Vec<String> = std::env::args().skip(1).collect();
    let calls = read(Path::new(&file));
    let mut stdin = None;
    for (n, call) in calls.iter().enumerate() {
        if call.argv != argv {
            continue;
        }
        if let Some(want) = &call.stdin {
            let got = stdin.get_or_insert_with(|| {
                let mut text = String::new();
                let _ = std::io::stdin().read_to_string(&mut text);
                text
            });
            if !same(want, got) {
                continue;
            }
        }
        // create_new is the lock: whoever makes the file has the line.
        let taken = OpenOptions::new().write(true).create_new(true).open(format!("{file}.used-{n}"));
        if taken.is_err() {
            continue;
        }
        let _ = std::io::stdout().write_all(call.stdout.as_bytes());
        let _ = std::io::stderr().write_all(call.stderr.as_bytes());
        let Some(status) = call.status else {
            // A watch that the launcher ended: it goes on until the launcher does so again.
            let _ = std::io::stdout().flush();
            std::thread::sleep(std::time::Duration::from_secs(60));
            return ExitCode::from(97);
        };
        return ExitCode::from(u8::try_from(status).unwrap_or(1));
    }
    eprintln!("fake kubectl: not recorded: {argv:?}");
    if let Some(nearest) = nearest(&calls, &argv) {
        eprintln!("fake kubectl: nearest:      {:?}", nearest.argv);
        if let (Some(want), Some(got)) = (&nearest.stdin, &stdin)
            && !same(want, got)
        {
            eprintln!("fake kubectl: its stdin was {want}\nfake kubectl: this one is {got}");
        }
    }
    ExitCode::from(97)
}

/// The same JSON, or the same text.
fn same(want: &str, got: &str) -> bool {
    let parse = |text: &str| serde_json::from_str::<serde_json::Value>(text).ok();
    match (parse(want), parse(got)) {
        (Some(a), Some(b)) => a == b,
        _ => want == got,
    }
}

fn nearest<'a>(calls: &'a [Call], argv: &[String]) -> Option<&'a Call> {
    calls.iter().max_by_key(|c| c.argv.iter().filter(|w| argv.contains(w)).count())
}
