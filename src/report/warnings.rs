//! What a person should know about every such seat, one line each: a closed set.

use podbench_contract::measurement::{By, Measurement};
use podbench_contract::oracle;
use podbench_contract::reading::Reading;
use podbench_contract::rung::Rung;

/// What an editor's server takes, with a language server: bytes.
pub const EDITOR_BYTES: u64 = 1_288_490_188;

const MIB: u64 = 1024 * 1024;

/// What the launcher knows beside the measurement.
#[derive(Clone, Copy, Debug)]
pub struct Known<'a> {
    /// The rung that was landed.
    pub rung: Rung,
    /// Does the pod share the node's network?
    pub host_network: bool,
    /// This launcher's version.
    pub version: &'a str,
}

/// The standing warnings of a seat.
#[must_use]
pub fn warnings(measurement: Option<&Measurement>, known: &Known<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    let rung = measurement.and_then(oracle::measured_rung).unwrap_or(known.rung);
    match rung {
        Rung::Degraded => lines.push(
            "the seat and its target are peers: their ids are the same, so the application can read, write, kill \
             and trace the seat; --new --max-rung full is the way out where the namespace admits it"
                .to_owned(),
        ),
        Rung::Full | Rung::Seat => {}
    }
    if known.host_network {
        lines.push(
            "the pod shares the node's network: a forward through this seat reaches what listens on the node's \
             loopback"
                .to_owned(),
        );
    }
    if let Some(m) = measurement {
        lines.extend(attribution(m));
        lines.extend(memory(m));
        lines.extend(
            m.failures.iter().map(|f| format!("the seat's start-up step {} failed: {}", f.step, f.why)),
        );
        lines.extend(skew(m, known.version));
    }
    lines
}

fn attribution(m: &Measurement) -> Option<String> {
    match m.attribution.by {
        By::Elimination => Some(
            "the target's processes carry no container id here: they were told from others by elimination, and the \
             pid may be another container's"
                .to_owned(),
        ),
        By::ContainerId | By::Nothing => None,
    }
}

/// Only where both uses were read: a guess would warn of nothing, or not warn.
fn memory(m: &Measurement) -> Option<String> {
    let used = m.memory.used.value()?.saturating_add(*m.memory.target_used.value()?);
    let finite = |limit: &Reading<u64>| limit.value().copied().filter(|l| *l != u64::MAX);
    let left = finite(&m.memory.limit).or_else(|| finite(&m.memory.target_limit))?.saturating_sub(used);
    (left < EDITOR_BYTES).then(|| {
        format!(
            "{} MiB of memory are left for the seat; an editor's server wants about 1.2 GiB, and where memory ends \
             the kernel may kill the target too",
            left / MIB
        )
    })
}

fn skew(m: &Measurement, ours: &str) -> Option<String> {
    match m.version.as_str() {
        "" => Some(format!("the seat doesn't say which version of podbench it is; this is {ours}")),
        theirs if theirs == ours => None,
        theirs => {
            Some(format!("the seat is podbench {theirs}, this is {ours}: --new lands one of this version"))
        }
    }
}

#[cfg(test)]
mod tests;
