//! The first process of a seat, and the verbs inside it. Linux, static, no unsafe.
//!
//! - [`cli`]: words to a verb, and the help
//! - [`agent`]: the seat's first process: start-up steps, socket, sessions, reaping, stop
//! - [`session`]: what `kubectl exec` runs for one ssh connection
//! - [`measure`]: everything the launcher wants to know, in one reply
//! - [`capreport`], [`pids`]: the same measurements for a person in the seat
//! - [`mod@dbg`]: gdb on the target
//! - [`client`]: how the verbs talk to the agent
//! - [`exec`]: the one home for starting programs
//! - [`proc`], [`runtime`], [`settings`], [`out`]: the seat's files, environment and streams

mod agent;
mod capreport;
mod cli;
mod client;
mod dbg;
mod exec;
mod measure;
mod out;
mod pids;
mod proc;
mod runtime;
mod session;
mod settings;

use std::process::ExitCode;

use podbench_contract::exit;

use cli::Verb;

fn main() -> ExitCode {
    if settings::called_as("gdb") {
        return ExitCode::from(dbg::as_gdb(&settings::words()));
    }
    let verb = match cli::parse(settings::args()) {
        Ok(verb) => verb,
        Err(wrong) => {
            out::note(&wrong.to_string());
            out::note("podbench --help shows what there is");
            return ExitCode::from(exit::USAGE);
        }
    };
    ExitCode::from(run(verb))
}

fn run(verb: Verb) -> u8 {
    match verb {
        Verb::Help(text) => out::text(text),
        Verb::Version => out::text(concat!("podbench ", env!("CARGO_PKG_VERSION"), "\n")),
        Verb::Agent => agent::run(),
        Verb::Stop => client::stop(),
        Verb::PrintLoginUser => agent::print::login(),
        Verb::PrintHostKey { check } => agent::print::host_key(check),
        Verb::Session => session::run(),
        Verb::Measure(asked) => measure::run(&asked),
        Verb::Capreport(asked) => capreport::run(&asked),
        Verb::Pids(asked) => pids::run(&asked),
        Verb::Dbg(asked) => dbg::run(&asked),
        Verb::Guard(pids) => dbg::guard::run(&pids),
        Verb::Exec(argv) => exec::become_program(&argv),
        Verb::Check { runtime, login } => agent::check::run(&runtime, &login),
        Verb::ProbeSeize(pid) => measure::probe::seize(pid),
        Verb::ProbeChild => measure::probe::child(),
        Verb::ProbePackets => measure::probe::packets(),
        Verb::ProbeHold => measure::probe::hold(),
    }
}
