//! What a person at a terminal sees while something runs: one line that replaces itself, notes, and
//! the question which pod. All of it on stderr; without a terminal there is no progress and no
//! question.

use std::io::Write as _;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::error::{Failure, Kind};
use crate::report::style::clean;
use crate::settings::Settings;

/// How often the line is written again, so that it is seen to live.
const TICK: Duration = Duration::from_millis(500);
/// Seconds are told from here on: most things are done before anyone looks.
const PATIENCE: Duration = Duration::from_secs(3);

/// stderr, as a person sees it.
#[derive(Debug)]
pub struct Ui {
    tty: bool,
    can_ask: bool,
    shared: Arc<Mutex<Line>>,
    ticker: Mutex<Option<(Sender<()>, JoinHandle<()>)>>,
}

/// The line that replaces itself.
#[derive(Debug, Default)]
struct Line {
    text: Option<(String, Instant)>,
    width: usize,
}

impl Ui {
    /// For this machine's terminal.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        Self {
            tty: settings.stderr_tty,
            can_ask: settings.stdin_tty && settings.stderr_tty,
            shared: Arc::new(Mutex::new(Line { text: None, width: settings.stderr_width })),
            ticker: Mutex::new(None),
        }
    }

    /// May a person be asked? Only with a terminal to ask on and one to answer on.
    #[must_use]
    pub const fn can_ask(&self) -> bool {
        self.can_ask
    }

    /// What is going on now. Nothing without a terminal.
    pub fn progress(&self, text: &str) {
        if !self.tty {
            return;
        }
        {
            let mut line = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
            line.text = Some((clean(text), Instant::now()));
            line.draw();
        }
        let mut ticker = self.ticker.lock().unwrap_or_else(PoisonError::into_inner);
        if ticker.is_none() {
            let shared = Arc::clone(&self.shared);
            let (stop, stopped) = channel::<()>();
            let thread = std::thread::spawn(move || {
                while stopped.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                    shared.lock().unwrap_or_else(PoisonError::into_inner).draw();
                }
            });
            *ticker = Some((stop, thread));
        }
    }

    /// Takes the progress line away: before anything else writes to the terminal, a credential
    /// plugin that asks for a code included.
    pub fn clear(&self) {
        let ticker = self.ticker.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((stop, thread)) = ticker {
            drop(stop);
            let _ = thread.join();
        }
        let mut line = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        if line.text.take().is_some() {
            put("\r\u{1b}[K");
        }
    }

    /// A line about what was decided for the user (`the only match for …`).
    pub fn note(&self, text: &str) {
        self.above(&format!("{}\n", clean(text)));
    }

    /// Asks which one; `None`: nobody answered.
    ///
    /// # Errors
    /// When there is no terminal to ask on, or ctrl-C was the answer.
    pub fn pick(&self, question: &str, items: &[String]) -> Result<Option<usize>, Failure> {
        if !self.can_ask {
            return Err(Failure::input(format!("{question}: there is no terminal to ask on")));
        }
        self.clear();
        let items: Vec<String> = items.iter().map(|i| clean(i)).collect();
        let term = console::Term::stderr();
        let theme: &dyn dialoguer::theme::Theme = &dialoguer::theme::SimpleTheme;
        let picked = dialoguer::FuzzySelect::with_theme(theme)
            .with_prompt(clean(question))
            .items(&items)
            .default(0)
            .max_length(15)
            .interact_on_opt(&term);
        // The question hides the cursor, and leaves it hidden when it is interrupted.
        let _ = term.show_cursor();
        picked.map_err(|dialoguer::Error::IO(e)| match e.kind() {
            std::io::ErrorKind::Interrupted => Failure::new(Kind::Interrupted, "interrupted"),
            _ => Failure::input(format!("{question}: the terminal can't be asked")).because(e.to_string()),
        })
    }

    /// Writes above the progress line.
    fn above(&self, text: &str) {
        let line = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        if line.text.is_some() {
            put("\r\u{1b}[K");
        }
        put(text);
        line.draw();
    }
}

impl Drop for Ui {
    fn drop(&mut self) {
        self.clear();
    }
}

impl Line {
    fn draw(&self) {
        if let Some((text, since)) = &self.text {
            put(&format!("\r\u{1b}[K{}", shown(text, since.elapsed(), self.width)));
        }
    }
}

/// The line, cut so that it never wraps: a wrapped one can't replace itself.
fn shown(text: &str, elapsed: Duration, width: usize) -> String {
    let waited = if elapsed < PATIENCE { String::new() } else { format!(" ({} s)", elapsed.as_secs()) };
    let room = width.saturating_sub(waited.len() + 2);
    format!("{}…{waited}", console::truncate_str(text.trim_end_matches('…'), room, ""))
}

/// A terminal that went away is nobody to tell.
fn put(text: &str) {
    let mut stderr = std::io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes());
    let _ = stderr.flush();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_progress_line_never_wraps_and_tells_the_time_when_it_takes_long() {
        assert_eq!(shown("landing podbench-1", Duration::ZERO, 80), "landing podbench-1…");
        assert_eq!(shown("landing", Duration::from_secs(12), 80), "landing… (12 s)");
        let long = shown(&"x".repeat(200), Duration::from_secs(5), 40);
        assert!(console::measure_text_width(&long) < 40, "{long}");
    }

    #[test]
    fn without_a_terminal_nobody_is_asked() {
        let ui = Ui::new(&Settings::bare("/home/u"));
        ui.progress("nothing of this is seen");
        assert!(!ui.can_ask());
        assert_eq!(ui.pick("which pod", &["a".into()]).unwrap_err().kind, Kind::Input);
    }
}
