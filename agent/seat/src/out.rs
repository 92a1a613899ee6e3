//! The seat's own words on stdout and stderr. A closed stream is nobody's error: whoever asked is gone.

use std::io::Write as _;

use podbench_contract::exit;

/// Writes data to stdout, and answers the verb's exit code.
pub(crate) fn bytes(data: &[u8]) -> u8 {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(data).and_then(|()| stdout.flush()) {
        Ok(()) => exit::OK,
        Err(_) => exit::FAILED,
    }
}

/// Writes text to stdout, and answers the verb's exit code.
pub(crate) fn text(text: &str) -> u8 {
    bytes(text.as_bytes())
}

/// One line to stderr: in the agent that is the container's log.
pub(crate) fn note(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "podbench: {}", podbench_contract::text::escape(line, 1000));
}
