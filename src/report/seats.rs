//! A seat as `list` and `status` show it: what the pod's object says, nothing that was measured.

use podbench_contract::rung::Rung;
use podbench_contract::text::escape;
use serde::Serialize;
use serde_json::Value;

use super::time::seconds;
use crate::pod::Container;
use crate::pod::container::State as Said;

/// A container's state, as the kubelet says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct State {
    /// `running`, `ended`, `waiting` or `unknown`.
    pub name: &'static str,
    /// The exit code of one that ended.
    pub exit_code: Option<i64>,
    /// Such as `Error`, `OOMKilled` or `ImagePullBackOff`.
    pub reason: Option<String>,
    /// The kubelet's words.
    pub message: Option<String>,
    /// When it started, as Kubernetes writes it.
    pub started_at: Option<String>,
    /// When it ended.
    pub finished_at: Option<String>,
}

impl State {
    /// A container's.
    #[must_use]
    pub fn of(container: &Container<'_>) -> Self {
        let some = |text: String| (!text.is_empty()).then_some(text);
        let at = |pointer: &str| time(container.status?.pointer(pointer)?);
        match container.state() {
            Said::Running => {
                Self { name: "running", started_at: at("/state/running/startedAt"), ..Self::default() }
            }
            Said::Waiting { reason, message } => {
                Self { name: "waiting", reason: some(reason), message: some(message), ..Self::default() }
            }
            Said::Terminated { reason, message, code } => Self {
                name: "ended",
                exit_code: Some(code),
                reason: some(reason),
                message: some(message),
                started_at: at("/state/terminated/startedAt"),
                finished_at: at("/state/terminated/finishedAt"),
            },
            Said::Unknown => Self { name: "unknown", ..Self::default() },
        }
    }

    /// `running`, `ended: exit 137 (Error)`, `waiting: ImagePullBackOff`.
    #[must_use]
    pub fn text(&self) -> String {
        let reason = self.reason.as_deref();
        match self.exit_code {
            Some(code) => {
                format!("ended: exit {code}{}", reason.map(|r| format!(" ({r})")).unwrap_or_default())
            }
            None => match reason {
                Some(reason) => format!("{}: {reason}", self.name),
                None => self.name.to_owned(),
            },
        }
    }
}

/// A time of Kubernetes', where it is one.
pub(crate) fn time(value: &Value) -> Option<String> {
    value.as_str().filter(|t| t.len() <= 40 && seconds(t).is_some()).map(|t| escape(t, 40))
}

/// One seat.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Seat {
    /// `podbench-N`.
    pub seat: String,
    /// The container that it looks at.
    pub target: String,
    /// What the kubelet says.
    pub state: State,
    /// The rung that its spec is authored for; `status` measures.
    pub rung: Rung,
    /// Whose it is, as its environment says.
    pub owner: Option<String>,
    /// Is that the caller?
    pub mine: bool,
    /// Its image.
    pub image: String,
    /// Why it isn't what podbench authors.
    pub untrusted: Option<String>,
    /// The newer seat that took its place.
    pub superseded_by: Option<String>,
}

/// A container that looks like a seat and isn't one.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NotOurs {
    /// The namespace.
    pub namespace: String,
    /// The pod.
    pub pod: String,
    /// The container.
    pub container: String,
    /// What it lacks.
    pub why: String,
    /// What the kubelet says.
    pub state: State,
}

impl NotOurs {
    /// One line.
    #[must_use]
    pub fn text(&self) -> String {
        format!(
            "{}/{} {} looks like a seat and isn't one: {}",
            self.namespace, self.pod, self.container, self.why
        )
    }
}

/// A stanza on this disk that leads to nothing any more.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Stale {
    /// What `ssh` is told.
    pub alias: String,
    /// The file.
    pub config: String,
    /// The namespace that it leads to.
    pub namespace: String,
    /// The pod.
    pub pod: String,
    /// The seat.
    pub seat: String,
    /// Why it leads nowhere.
    pub why: String,
}

impl Stale {
    /// One line.
    #[must_use]
    pub fn text(&self) -> String {
        format!("the ssh host {} leads nowhere any more: {}", self.alias, self.why)
    }
}
