//! What `podbench list` says (schema `podbench/list/v1`).

use serde::Serialize;

use super::attach::Calls;
use super::seats::{NotOurs, Seat, Stale};
use super::table::Table;
use super::time::{age, seconds};

/// The value of [`List::schema`].
pub const SCHEMA: &str = "podbench/list/v1";

/// Every seat.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct List {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// The context.
    pub context: String,
    /// The namespace; null with `-A`.
    pub namespace: Option<String>,
    /// How many pods were looked at.
    pub pods: usize,
    /// The seats.
    pub seats: Vec<Row>,
    /// What isn't one.
    pub not_ours: Vec<NotOurs>,
    /// ssh hosts of this place that lead nowhere.
    pub stale: Vec<Stale>,
    /// What it cost.
    pub calls: Calls,
    /// One line each.
    pub warnings: Vec<String>,
}

/// A seat, and where it is.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// The namespace.
    pub namespace: String,
    /// The pod.
    pub pod: String,
    /// `metadata.uid`.
    pub pod_uid: String,
    /// The seat.
    #[serde(flatten)]
    pub seat: Seat,
    /// What `ssh` is told on this machine.
    pub ssh: Option<String>,
}

/// The table; empty where there is no seat. `room`: a terminal's columns.
#[must_use]
pub fn text(list: &List, room: Option<usize>, frozen: bool) -> String {
    if list.seats.is_empty() {
        return String::new();
    }
    let all = list.namespace.is_none();
    // What a rung's name says here is how the container was written, not what the kernel allows it.
    let mut head = vec!["POD", "SEAT", "TARGET", "STATE", "RUNG(SPEC)", "OWNER", "AGE", "SSH"];
    if all {
        head.insert(0, "NAMESPACE");
    }
    let row = |row: &Row| {
        let seat = &row.seat;
        let mut cells = vec![
            row.pod.clone(),
            seat.seat.clone(),
            seat.target.clone(),
            seat.state.text(),
            seat.rung.to_string(),
            owner(seat),
            since(seat, frozen),
            row.ssh.clone().unwrap_or_else(|| "-".to_owned()),
        ];
        if all {
            cells.insert(0, row.namespace.clone());
        }
        cells
    };
    let rows = list.seats.iter().map(row).collect();
    Table { head, rows, shrinks: if all { 6 } else { 5 } }.text(room)
}

/// `you`, or somebody's name without what every service account's begins with.
pub(crate) fn owner(seat: &Seat) -> String {
    if seat.mine {
        return "you".to_owned();
    }
    let owner = seat.owner.as_deref().unwrap_or("-");
    owner.strip_prefix("system:serviceaccount:").unwrap_or(owner).to_owned()
}

/// How long ago it started.
fn since(seat: &Seat, frozen: bool) -> String {
    match seat.state.started_at.as_deref().and_then(seconds) {
        Some(_) if frozen => "0s".to_owned(),
        Some(at) => age(at),
        None => "-".to_owned(),
    }
}
