//! podbench: args in, an answer on stdout, everything else on stderr, an exit code out.

use std::io::Write as _;
use std::process::ExitCode;

use podbench::cli::{self, Output};
use podbench::commands::{self, Done};
use podbench::error::{Failure, Kind};
use podbench::kubectl::run::Interrupt;
use podbench::report::failure;
use podbench::report::style::Style;
use podbench::settings::{self, Settings};

fn main() -> ExitCode {
    let cli = match cli::parse(std::env::args_os()) {
        Ok(cli) => cli,
        Err(stop) if stop.to_stderr => {
            err(stop.text(settings::stderr_color()));
            return stop.code.into();
        }
        Err(stop) => {
            return out(stop.text(settings::stdout_color())).map_or_else(|c| c, |()| stop.code.into());
        }
    };
    let done = Interrupt::listen()
        .map_err(|e| Failure::new(Kind::Bug, "signals can't be handled").because(e.to_string()))
        .and_then(|interrupt| {
            let settings = Settings::read()?;
            let Done { answer, failure } = commands::run(&cli, &settings, interrupt)?;
            Ok((commands::printed(&answer, cli.output, &settings)?, settings, failure))
        });
    match done {
        Ok((text, settings, failure)) => {
            if let Err(code) = out(&text) {
                return code;
            }
            failure.map_or(ExitCode::SUCCESS, |failure| {
                // stdout has its one object already.
                err(&failure::text(&failure, Style::stderr(&settings)));
                failure.kind.exit().into()
            })
        }
        Err(failure) => {
            match cli.output {
                Output::Json => {
                    if let Err(code) = out(&failure::json(&failure)) {
                        return code;
                    }
                }
                Output::Text => {
                    err(&failure::text(
                        &failure,
                        Style { width: settings::stderr_width(), color: settings::stderr_color() },
                    ));
                }
            }
            failure.kind.exit().into()
        }
    }
}

/// A reader that has seen enough (`| head`) isn't an error; a full disk is.
fn out(text: &str) -> Result<(), ExitCode> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => Err(ExitCode::SUCCESS),
        Err(e) => {
            err(&format!("error: stdout can't be written\n  {e}\n"));
            Err(Kind::Disk.exit().into())
        }
    }
}

fn err(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}
