//! Thrown away when ui.rs and report/ are there.
use crate::error::Failure;
use crate::report::attach::{Ssh, Support, Supports};
use podbench_contract::measurement::Measurement;
pub(crate) fn choose(_what: &str, _rows: &[String]) -> Result<usize, Failure> {
    Err(Failure::input("no prompt yet"))
}
pub(crate) fn supports(m: Option<&Measurement>, _why: Option<&str>, _ssh: &Ssh) -> Supports {
    let s = || Support { ok: m.map(|m| m.probes.seize.is_ok()), why: String::new() };
    Supports { live_attach: s(), read_only: s(), launch: s(), iterate: s(), ssh: s(), exec: s() }
}
