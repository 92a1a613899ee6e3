//! Arguments in; a [`Cli`], or something to print and an exit code, out.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use clap::{CommandFactory as _, FromArgMatches as _};

use super::Cli;
use crate::error::{Failure, Kind};
use crate::report::failure;
use crate::report::style::Style;

/// Why nothing is run: help was asked for, or the command line is wrong.
#[derive(Clone, Debug)]
pub struct Stop {
    /// Does it belong on stderr?
    pub to_stderr: bool,
    /// The exit code.
    pub code: u8,
    plain: String,
    colored: String,
}

impl Stop {
    /// What to print, with its line end.
    #[must_use]
    pub fn text(&self, color: bool) -> &str {
        if color { &self.colored } else { &self.plain }
    }
}

/// The whole command line, for completions and docs/cli.md.
#[must_use]
pub fn command() -> clap::Command {
    Cli::command()
}

/// The completion script for a shell.
#[must_use]
pub fn completion(shell: clap_complete::Shell) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command(), "podbench", &mut script);
    script
}

/// Reads the arguments, the program's own name first.
///
/// # Errors
/// When there is something to print instead of something to do.
pub fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Cli, Stop> {
    let args = spell_levels(args.into_iter().collect());
    let mut cmd = command();
    if args.first().is_some_and(|name| is_plugin(name)) {
        // What the help and the errors call it is what the user typed.
        cmd = cmd.bin_name("kubectl podbench");
    }
    let parsed = cmd.try_get_matches_from_mut(&args).and_then(|matches| Cli::from_arg_matches(&matches));
    parsed.map_err(|e| stop(&e, wants_json(&args)))
}

/// Started by kubectl as its plugin?
fn is_plugin(name: &OsStr) -> bool {
    Path::new(name).file_stem().is_some_and(|stem| stem == "kubectl-podbench")
}

/// kubectl takes `-v 6`, `-v6`, `-v=6`, and people type `-v` and `-vv`. A level is made to hang on
/// its flag by `=`, so that `attach -v api` is still a pod.
fn spell_levels(args: Vec<OsString>) -> Vec<OsString> {
    let level = |word: &str| !word.is_empty() && word.len() <= 2 && word.bytes().all(|b| b.is_ascii_digit());
    let mut spelled: Vec<OsString> = Vec::with_capacity(args.len());
    let mut rest = args.into_iter().peekable();
    while let Some(arg) = rest.next() {
        if arg == "--" {
            spelled.push(arg);
            spelled.extend(rest.by_ref());
            break;
        }
        let joined = match arg.to_str() {
            Some("-v" | "--v") => rest
                .next_if(|next| next.to_str().is_some_and(level))
                .and_then(|next| Some(format!("-v={}", next.to_str()?))),
            Some(word) => word.strip_prefix("-v").filter(|n| level(n)).map(|n| format!("-v={n}")),
            None => None,
        };
        spelled.push(joined.map_or(arg, OsString::from));
    }
    spelled
}

/// The flag may be what is wrong, so this looks at the words themselves.
fn wants_json(args: &[OsString]) -> bool {
    let words: Vec<&str> = args.iter().filter_map(|a| a.to_str()).take_while(|a| *a != "--").collect();
    let joined = words.iter().any(|w| matches!(*w, "-ojson" | "-o=json" | "--output=json"));
    joined || words.windows(2).any(|pair| matches!(pair, ["-o" | "--output", "json"]))
}

/// What the program of a seat is asked in there, and people type here.
const SEATS_VERBS: [&str; 6] = ["agent", "capreport", "dbg", "measure", "pids", "stop"];

/// A verb that a seat has and this program hasn't.
fn seats_verb(error: &clap::Error) -> Option<Failure> {
    use clap::error::{ContextKind, ContextValue};
    let Some(ContextValue::String(verb)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    SEATS_VERBS.contains(&verb.as_str()).then(|| {
        Failure::input(format!("`{verb}` is for use in a seat, beside the target"))
            .hint(format!("podbench ssh POD -t -- podbench {verb}"))
    })
}

fn stop(error: &clap::Error, json: bool) -> Stop {
    use clap::error::ErrorKind;
    if let Some(failure) = seats_verb(error) {
        let told = |color| failure::text(&failure, Style { width: 80, color });
        let (plain, colored) =
            if json { (failure::json(&failure), failure::json(&failure)) } else { (told(false), told(true)) };
        return Stop { to_stderr: !json, code: Kind::Input.exit(), plain, colored };
    }
    let rendered = error.render();
    let help = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    let code = if help { 0 } else { Kind::Input.exit() };
    if json && !help {
        let said = rendered.to_string();
        let said = said.trim().strip_prefix("error: ").unwrap_or(said.trim());
        let mut parts = said.split("\n\n").map(str::trim).filter(|p| !p.is_empty());
        let mut failure = Failure::input(parts.next().unwrap_or("the command line is wrong"));
        failure.causes = parts.map(str::to_owned).collect();
        let failure = failure.hint("podbench --help");
        let text = format!("{:#}\n", failure.to_json());
        return Stop { to_stderr: false, code, plain: text.clone(), colored: text };
    }
    Stop { to_stderr: !help, code, plain: rendered.to_string(), colored: rendered.ansi().to_string() }
}
