use podbench_contract::ids::{Gid, Uid};
use podbench_contract::measurement::{Caps, Failure, Ids};
use podbench_contract::reading::Reading;

use super::*;
use crate::report::text::tests::measured;

const KNOWN: Known<'_> = Known { rung: Rung::Degraded, host_network: false, version: "0.1.0" };

fn lines(m: &Measurement, known: &Known<'_>) -> String {
    warnings(Some(m), known).join("\n")
}

/// Nothing to warn of: a full seat with room.
fn quiet() -> Measurement {
    let mut m = measured();
    m.seat.uids = Reading::Read(Ids { real: Uid(0), effective: Uid(0), saved: Uid(0), fs: Uid(0) });
    m.seat.gids = Reading::Read(Ids { real: Gid(0), effective: Gid(0), saved: Gid(0), fs: Gid(0) });
    m.seat.cap_eff = Reading::Read(Caps(1 << 19));
    m.memory.limit = Reading::Read(u64::MAX);
    m.memory.target_limit = Reading::NotTried;
    m
}

#[test]
fn a_seat_with_nothing_to_say_about_it_has_no_warning() {
    assert_eq!(warnings(Some(&quiet()), &KNOWN), Vec::<String>::new());
}

#[test]
fn peers_are_warned_of_by_what_is_measured_and_else_by_what_was_landed() {
    let mut m = measured();
    m.memory.limit = Reading::Read(u64::MAX);
    m.memory.target_limit = Reading::NotTried;
    let said = warnings(Some(&m), &Known { rung: Rung::Full, ..KNOWN });
    assert_eq!(said.len(), 1);
    assert!(said[0].contains("peers") && said[0].contains("--max-rung full"));
    assert_eq!(warnings(None, &KNOWN).len(), 1);
    assert_eq!(warnings(None, &Known { rung: Rung::Full, ..KNOWN }).len(), 0);
}

#[test]
fn each_condition_has_its_line() {
    let host = Known { host_network: true, ..KNOWN };
    assert!(lines(&quiet(), &host).contains("loopback"));
    let mut m = quiet();
    m.memory.limit = Reading::Read(EDITOR_BYTES + 61 * MIB - 1);
    m.memory.used = Reading::Read(21 * MIB);
    m.memory.target_used = Reading::Read(40 * MIB);
    assert!(lines(&m, &KNOWN).contains("1228 MiB of memory are left"));
    m.memory.limit = Reading::Read(EDITOR_BYTES + 61 * MIB);
    assert_eq!(lines(&m, &KNOWN), "");
    m.memory.limit = Reading::NotTried;
    m.memory.target_limit = Reading::NotTried;
    assert_eq!(lines(&m, &KNOWN), "", "what isn't known is no warning");
    m.failures = vec![Failure { step: "host-key".into(), why: "no space".into() }];
    assert_eq!(lines(&m, &KNOWN), "the seat's start-up step host-key failed: no space");
    let mut m = quiet();
    m.attribution.by = By::Elimination;
    assert!(lines(&m, &KNOWN).contains("by elimination"));
}

#[test]
fn another_version_is_said_and_so_is_none() {
    let mut m = quiet();
    m.version = "0.2.0-dev.1".into();
    assert!(lines(&m, &KNOWN).contains("the seat is podbench 0.2.0-dev.1, this is 0.1.0"));
    m.version = String::new();
    assert!(lines(&m, &KNOWN).contains("doesn't say which version"));
}
