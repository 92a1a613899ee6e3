//! What works from a seat, and why: the six rows, from what was measured and from nothing else.
//! "Not measured" is an answer; it is never taken for "fine".

use podbench_contract::debugger::{DEBUGGERS, Debugger};
use podbench_contract::measurement::Measurement;
use podbench_contract::oracle::{self, Verdict};
use podbench_contract::reading::Attempt;

use super::attach::{Ssh, Support, Supports};

/// The six rows. `Err`: why there is no measurement; nothing is known then, but what is written down
/// on this side. `exec`: the command that gives a shell in the seat.
#[must_use]
pub fn supports(measured: Result<&Measurement, &str>, ssh: &Ssh, exec: &str) -> Supports {
    let known = |judge: fn(&Measurement) -> Support| measured.map_or_else(|_| unknown(), judge);
    Supports {
        live_attach: measured.map_or_else(unmeasured, live_attach),
        read_only: known(read_only),
        launch: known(launch),
        iterate: row(Some(false), "a live pod can't restart its app with other code"),
        ssh: ssh_row(measured.ok(), ssh),
        exec: match measured {
            // The measurement itself came by exec.
            Ok(_) => row(Some(true), exec),
            Err(_) => unknown(),
        },
    }
}

/// The reason stands once, in the first row.
fn unmeasured(why: &str) -> Support {
    if why.is_empty() { unknown() } else { row(None, format!("not measured: {why}")) }
}

fn row(ok: Option<bool>, why: impl Into<String>) -> Support {
    Support { ok, why: why.into() }
}

fn unknown() -> Support {
    row(None, "not measured")
}

/// The target, where one was found; a seat that sees none has nothing to attach to.
fn no_target(m: &Measurement) -> Option<Support> {
    m.target.is_none().then(|| row(Some(false), "no process of the target was found"))
}

fn probed(m: &Measurement) -> bool {
    m.probes.seize.is_tried() || m.probes.child.is_tried() || m.probes.reads.root.is_tried()
}

fn live_attach(m: &Measurement) -> Support {
    if !probed(m) {
        return unknown();
    }
    if let Some(none) = no_target(m) {
        return none;
    }
    match (oracle::verdict(m), m.probes.seize) {
        (Verdict::LiveAttach, _) => row(Some(true), with_debugger(m, |d| d.attach(pid(m)))),
        (_, Attempt::NotTried) => unknown(),
        (Verdict::ReadOnly | Verdict::LaunchOnly | Verdict::Nothing | Verdict::NotMeasured, said) => {
            let kind = oracle::primary(m).map_or("unknown", |b| b.kind.as_str());
            row(Some(false), format!("{said}, blocked by: {kind}"))
        }
    }
}

fn read_only(m: &Measurement) -> Support {
    let reads =
        [("root", m.probes.reads.root), ("maps", m.probes.reads.maps), ("environ", m.probes.reads.environ)];
    if oracle::can_read(m) {
        return row(Some(true), format!("/proc/{}/root, maps, environ", pid(m)));
    }
    if !probed(m) {
        return unknown();
    }
    if let Some(none) = no_target(m) {
        return none;
    }
    if reads.iter().any(|(_, attempt)| !attempt.is_tried()) {
        return unknown();
    }
    let said: Vec<String> = reads.iter().map(|(name, attempt)| format!("{name} {attempt}")).collect();
    row(Some(false), said.join(", "))
}

fn launch(m: &Measurement) -> Support {
    match m.probes.child {
        Attempt::Ok => row(Some(true), with_debugger(m, |d| Some(d.launch("PROGRAM")))),
        Attempt::NotTried => unknown(),
        said @ (Attempt::Errno(_) | Attempt::Signal(_)) => {
            row(Some(false), format!("{said}, on a process of the seat's own"))
        }
    }
}

/// A command with a debugger that is there; ptrace works without one too.
fn with_debugger(m: &Measurement, command: impl Fn(&Debugger) -> Option<String>) -> String {
    let there: Vec<&Debugger> =
        DEBUGGERS.iter().filter(|known| m.debuggers.iter().any(|d| d == known.name)).collect();
    match (there.iter().find_map(|d| command(d)), there.first()) {
        (Some(command), _) => command,
        (None, Some(other)) => {
            format!("ptrace works; {}, the only debugger in the seat's image, can't", other.name)
        }
        (None, None) => "ptrace works; the seat's image has no debugger".to_owned(),
    }
}

fn pid(m: &Measurement) -> u32 {
    m.target.as_ref().map_or(0, |t| t.pid)
}

fn ssh_row(measurement: Option<&Measurement>, ssh: &Ssh) -> Support {
    let trip = measurement.map(|m| &m.sshd.round_trip);
    match (&ssh.alias, trip) {
        // Stuck or slow: a busy node is no reason to keep somebody out.
        (Some(alias), Some(trip)) if !trip.ok && trip.late => {
            row(None, format!("{alias}; sshd's own test in the seat didn't end in time"))
        }
        (Some(_), Some(trip)) if !trip.ok && !trip.stage.is_empty() => {
            let why = trip.why.as_deref().unwrap_or("without a reason");
            row(Some(false), format!("sshd in the seat got no further than {}: {why}", trip.stage))
        }
        (Some(alias), _) => row(Some(true), alias.clone()),
        (None, _) => row(Some(false), ssh.why.clone().unwrap_or_else(|| "no stanza was written".to_owned())),
    }
}

#[cfg(test)]
mod tests;
