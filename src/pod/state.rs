//! Can a seat be landed beside the target now? Asked before anything is written: a name that is
//! spent on a container which can't start is spent for the pod's life.

use podbench_contract::text::escape;
use serde_json::Value;

use super::container::LastExit;
use super::{Kind, Pod, State};

/// Why nothing is landed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotNow {
    /// A static pod: the kubelet made it from a file, and the API server can't change it.
    Static,
    /// Its phase is `Succeeded` or `Failed`.
    Completed(String),
    /// It is being deleted.
    Deleted,
    /// Its containers are Windows ones.
    Windows,
    /// No node has taken it.
    Unscheduled(String),
    /// The target doesn't run.
    Target(Stopped),
}

/// A target that doesn't run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// Its container's name.
    pub container: String,
    /// The container that it waits for: itself, or an init container.
    pub waits_for: String,
    /// What the kubelet says: a reason, and a message that may be empty.
    pub reason: String,
    /// See [`Self::reason`].
    pub message: String,
    /// How often it was restarted.
    pub restarts: u64,
    /// How it last ended.
    pub last: Option<LastExit>,
    /// It ended, and nobody will start it again.
    pub ended: bool,
}

/// The annotation of a static pod's mirror.
const MIRROR: &str = "kubernetes.io/config.mirror";

/// Asks the pod. `None`: go on.
#[must_use]
pub fn not_now(pod: &Pod, target: &str) -> Option<NotNow> {
    let spec = |pointer: &str| pod.value().pointer(pointer).and_then(Value::as_str);
    if pod.annotation(MIRROR).is_some() {
        return Some(NotNow::Static);
    }
    if spec("/spec/os/name") == Some("windows")
        || spec("/spec/nodeSelector/kubernetes.io~1os") == Some("windows")
    {
        return Some(NotNow::Windows);
    }
    if pod.is_being_deleted() {
        return Some(NotNow::Deleted);
    }
    if matches!(pod.phase(), "Succeeded" | "Failed") {
        return Some(NotNow::Completed(pod.phase().to_owned()));
    }
    if pod.node().is_empty() {
        let why = pod.condition("PodScheduled").and_then(|c| c.get("message")).and_then(Value::as_str);
        return Some(NotNow::Unscheduled(escape(why.unwrap_or("no node has taken it yet"), 300)));
    }
    stopped(pod, target).map(NotNow::Target)
}

fn stopped(pod: &Pod, target: &str) -> Option<Stopped> {
    let container = pod.container(target)?;
    let (reason, message, ended) = match container.state() {
        State::Running => return None,
        State::Waiting { reason, message } => (reason, message, false),
        State::Terminated { reason, message, code } => {
            let restarts =
                pod.value().pointer("/spec/restartPolicy").and_then(Value::as_str) != Some("Never");
            let message = if message.is_empty() { format!("exit code {code}") } else { message };
            (reason, message, !restarts || container.kind == Kind::Init)
        }
        State::Unknown => ("the kubelet hasn't started it".to_owned(), String::new(), false),
    };
    // A target that waits for an init container says only `PodInitializing`; that one says why.
    let init = pod
        .containers()
        .into_iter()
        .filter(|c| c.kind == Kind::Init && c.name() != target)
        .find(|c| !matches!(c.state(), State::Terminated { code: 0, .. }));
    if let Some(init) = init.filter(|_| reason == "PodInitializing" || reason.is_empty()) {
        let (reason, message) = match init.state() {
            State::Waiting { reason, message } | State::Terminated { reason, message, .. } => {
                (reason, message)
            }
            State::Running => ("running".to_owned(), String::new()),
            State::Unknown => ("waiting".to_owned(), String::new()),
        };
        return Some(Stopped {
            container: target.to_owned(),
            waits_for: init.name().to_owned(),
            reason,
            message,
            restarts: init.restarts(),
            last: init.last_exit(),
            ended: false,
        });
    }
    Some(Stopped {
        container: target.to_owned(),
        waits_for: target.to_owned(),
        reason,
        message,
        restarts: container.restarts(),
        last: container.last_exit(),
        ended,
    })
}

/// Does the pod look as if its node had stopped answering? The node controller then sets `Ready` to
/// false and leaves `ContainersReady` as the kubelet last set it; only a readiness gate does the same.
#[must_use]
pub fn node_looks_dead(pod: &Pod) -> bool {
    let status = |kind: &str| pod.condition(kind)?.get("status")?.as_str();
    let gates =
        pod.value().pointer("/spec/readinessGates").and_then(Value::as_array).is_some_and(|g| !g.is_empty());
    pod.phase() == "Unknown"
        || (!gates && status("Ready") == Some("False") && status("ContainersReady") == Some("True"))
}

/// Why a node isn't ready, from its object; `None` where it is.
#[must_use]
pub fn node_trouble(node: &Value) -> Option<String> {
    let conditions = node.pointer("/status/conditions").and_then(Value::as_array)?;
    let ready = conditions.iter().find(|c| c.get("type").is_some_and(|t| t == "Ready"))?;
    let text = |field: &str| escape(ready.get(field).and_then(Value::as_str).unwrap_or_default(), 300);
    (text("status") != "True").then(|| {
        format!("Ready is {} since {}: {}", text("status"), text("lastTransitionTime"), text("message"))
    })
}
