//! A terminal of a test's own.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use podbench_test_support::person::Person;

use crate::world::PODBENCH;

/// Runs a line of sh on a terminal of its own (`script`, which every Debian has): once `question` is on
/// the screen, types each text a moment after the one before. What was on the screen.
pub fn on_a_terminal(person: &Person, line: &str, question: &str, typed: &'static [&'static str]) -> String {
    let mut command: Command = person.command("script");
    command.args(["-qfec", line, "/dev/null"]).env("TERM", "xterm").env("PODBENCH", PODBENCH);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    let mut child = command.spawn().expect("script (bsdutils)");
    let (mut keys, mut out) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let (send, said) = mpsc::channel();
    let reader = std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(n @ 1..) = std::io::Read::read(&mut out, &mut buffer) {
            let _ = send.send(String::from_utf8_lossy(&buffer[..n]).into_owned());
        }
    });
    let mut screen = String::new();
    let until = std::time::Instant::now() + Duration::from_secs(60);
    let mut left = typed.iter();
    loop {
        match said.recv_timeout(until.saturating_duration_since(std::time::Instant::now())) {
            Ok(text) => screen.push_str(&text),
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                let _ = child.kill();
                panic!("it didn't end:\n{screen}");
            }
        }
        if screen.contains(question)
            && let Some(text) = left.next()
        {
            // Between two keys the list is drawn anew.
            std::thread::sleep(Duration::from_millis(300));
            keys.write_all(text.as_bytes()).unwrap();
        }
    }
    reader.join().unwrap();
    let _ = child.wait();
    screen
}
