//! The agent's questions for a person: the login and the host key, one line each.

use std::time::Duration;

use podbench_contract::exit;
use podbench_contract::session::{Request, START_LIMIT_MS};

use super::protocol::State;
use crate::client::Client;
use crate::out;

/// Past the slowest connection inside the seat.
const ANSWER_LIMIT: Duration = Duration::from_secs(4);

/// What the agent knows, once its start-up steps and its own connection are through.
fn state() -> Result<State, String> {
    let ask = || {
        let mut client = Client::connect(Duration::from_millis(START_LIMIT_MS))?;
        client.send(&Request::State, &[])?;
        client.line(Some(ANSWER_LIMIT))
    };
    let line = ask().map_err(|e| format!("no agent answers: {e}"))?;
    serde_json::from_str(&line).map_err(|e| format!("the agent's answer isn't a state: {e}"))
}

/// `podbench agent --print-login-user`.
pub(crate) fn login() -> u8 {
    one_line(state().and_then(|s| s.login.name.ok_or_else(|| s.login.why.unwrap_or_default())))
}

/// `podbench agent --print-host-key`.
pub(crate) fn host_key(check: bool) -> u8 {
    one_line(state().and_then(|state| {
        let trip = state.sshd.round_trip;
        if check && !trip.ok {
            let why = trip.why.unwrap_or_else(|| "it wasn't tried".to_owned());
            return Err(format!("a connection inside this seat doesn't work: {why}"));
        }
        state.sshd.host_key.ok_or_else(|| "this seat has no host key".to_owned())
    }))
}

fn one_line(answer: Result<String, String>) -> u8 {
    match answer {
        Ok(line) => out::text(&format!("{line}\n")),
        Err(why) => {
            out::note(&why);
            exit::FAILED
        }
    }
}
