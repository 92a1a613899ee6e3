//! Everything the launcher wants to know after landing, in one reply.
//!
//! Every reading is the kernel's or NSS's answer, taken now. The environment is asked for one thing,
//! a hint at the target, which is verified. The agent's own state is asked for first and read last:
//! its connection to sshd runs beside the probes.

mod memory;
mod node;
pub(crate) mod probe;
mod reads;
mod root;
pub(crate) mod target;

use std::path::Path;
use std::time::{Duration, Instant};

use podbench_contract::debugger::DEBUGGERS;
use podbench_contract::keys::PublicKey;
use podbench_contract::measurement::{Failure, Measurement, Probes, SCHEMA};
use podbench_contract::session::{Request, START_LIMIT_MS, file};
use podbench_contract::{exit, frame};

use crate::agent::identity;
use crate::agent::protocol::{Reply, State};
use crate::cli::Measure;
use crate::client::Client;
use crate::proc::{self, Own};
use crate::runtime::Runtime;
use crate::{out, settings};

/// Past the slowest connection inside the seat, which the agent's answer waits for.
const ANSWER_LIMIT: Duration = Duration::from_secs(4);

/// `podbench measure`.
pub(crate) fn run(asked: &Measure) -> u8 {
    let mut waited = Wait::default();
    let client = waited.during(ask_state);
    let authorized = asked.authorize.as_ref().map_or(Ok(()), authorize);
    let mut measured = collect(&Asked { cid: asked.cid.clone(), pid: None, probe: !asked.no_probe });
    let state = waited.during(|| client.and_then(|mut client| read_state(&mut client)));
    take(&mut measured, state.unwrap_or_else(without_agent));
    if let Err(why) = authorized {
        measured.failures.push(Failure { step: "authorize".to_owned(), why });
    }
    measured.waited_ms = u64::try_from(waited.0.as_millis()).unwrap_or(u64::MAX);
    print(&measured, asked.framed)
}

/// The time spent waiting for the agent.
#[derive(Default)]
struct Wait(Duration);

impl Wait {
    fn during<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let done = work();
        self.0 += start.elapsed();
        done
    }
}

fn print(measured: &Measurement, framed: bool) -> u8 {
    let text = if framed { serde_json::to_string(measured) } else { serde_json::to_string_pretty(measured) };
    match text {
        Ok(text) if framed => out::bytes(&frame::encode(text.as_bytes())),
        Ok(text) => out::text(&(text + "\n")),
        Err(e) => {
            out::note(&e.to_string());
            exit::FAILED
        }
    }
}

fn ask_state() -> Result<Client, String> {
    let client = Client::connect(Duration::from_millis(START_LIMIT_MS)).map_err(|e| e.to_string())?;
    client.send(&Request::State, &[]).map_err(|e| e.to_string())?;
    Ok(client)
}

fn authorize(key: &PublicKey) -> Result<(), String> {
    let ask = || {
        let mut client = Client::connect(Duration::from_millis(START_LIMIT_MS))?;
        client.send(&Request::Authorize(key.clone()), &[])?;
        client.reply(Some(ANSWER_LIMIT))
    };
    match ask().map_err(|e| e.to_string())? {
        Reply::Done => Ok(()),
        Reply::Refused(why) => Err(why),
        Reply::Hello | Reply::Taken | Reply::Exit(_) | Reply::Stopped { .. } => {
            Err("a wrong answer".to_owned())
        }
    }
}

fn read_state(client: &mut Client) -> Result<State, String> {
    let line = client.line(Some(ANSWER_LIMIT)).map_err(|e| e.to_string())?;
    serde_json::from_str(&line).map_err(|e| format!("its answer isn't a state: {e}"))
}

/// What can be said of a seat whose agent doesn't answer: `session` runs sshd itself there, with
/// what an agent left.
fn without_agent(why: String) -> State {
    let mut state = State { version: env!("CARGO_PKG_VERSION").to_owned(), ..State::default() };
    state.failures.push(Failure { step: "agent".to_owned(), why: format!("no agent answers: {why}") });
    let Some(runtime) = Runtime::configured() else { return state };
    (state.login, state.home) = identity::of(&runtime);
    state.sshd.config = runtime.path(file::SSHD_CONFIG);
    let public = runtime.read(&format!("{}.pub", file::HOST_KEY)).ok();
    state.sshd.host_key = public.and_then(|line| PublicKey::parse(&line).ok()).map(|key| key.bare());
    state
}

fn take(measured: &mut Measurement, state: State) {
    let State { version, failures, login, home, sshd, sessions } = state;
    measured.version = version;
    measured.failures = failures;
    measured.login = login;
    measured.home = home;
    measured.sshd = sshd;
    measured.sessions = sessions;
}

/// How many of the target's processes are looked at where one after the other ends.
const CANDIDATES: usize = 4;

/// What is to be measured.
pub(crate) struct Asked {
    /// The target's container id, from somebody who knows.
    pub(crate) cid: Option<podbench_contract::ids::ContainerId>,
    /// One process, instead of the target's best.
    pub(crate) pid: Option<u32>,
    /// Try ptrace.
    pub(crate) probe: bool,
}

/// The target's processes, best first.
pub(crate) fn targets() -> Vec<u32> {
    target::find(&proc::rows(), &Own::read(), None).pids
}

/// Measures everything that needs no agent.
pub(crate) fn collect(asked: &Asked) -> Measurement {
    // A probe that is killed leaves its own child to us, not to the application.
    let _ = nix::sys::prctl::set_child_subreaper(true);
    let own = Own::read();
    let rows = proc::rows();
    let found = target::find(&rows, &own, asked.cid.as_ref());
    let candidates = asked.pid.map_or_else(|| found.pids.clone(), |pid| vec![pid]);
    let mut measured = Measurement {
        schema: SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        seat: proc::process(std::process::id(), "/proc/self"),
        node: node::read(),
        attribution: found.attribution,
        debuggers: debuggers(&settings::path()),
        ..Measurement::default()
    };
    if candidates.is_empty() {
        look(None, asked.probe, &mut measured);
    }
    // A process that ended while it was looked at says nothing of the target: a shell's loop has such.
    for pid in candidates.into_iter().take(CANDIDATES) {
        let began = proc::began(pid);
        look(Some(pid), asked.probe, &mut measured);
        if began.is_some() && proc::began(pid) == began {
            break;
        }
    }
    probe::reap();
    measured
}

/// Everything about one process, or about none.
fn look(pid: Option<u32>, probe: bool, measured: &mut Measurement) {
    measured.memory = memory::read(pid);
    measured.probes = Probes::default();
    // Before the probes: a tracer of our own must not show.
    measured.target = pid.map(|pid| proc::process(pid, &format!("/proc/{pid}")));
    if let Some(pid) = pid {
        measured.probes.reads = proc::in_time(move || reads::all(pid)).unwrap_or_default();
    }
    if probe {
        probe::all(pid, &mut measured.probes);
    }
}

fn debuggers(path: &str) -> Vec<String> {
    let there =
        |name: &&str| path.split(':').any(|dir| !dir.is_empty() && Path::new(dir).join(name).is_file());
    DEBUGGERS.iter().map(|d| d.name).filter(there).map(str::to_owned).collect()
}
