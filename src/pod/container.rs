//! One container of a pod.

use podbench_contract::ids::ContainerId;
use podbench_contract::text::escape;
use serde_json::Value;

/// Which list of the pod it is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `spec.containers`.
    Regular,
    /// `spec.initContainers` with `restartPolicy: Always`: a native sidecar.
    Sidecar,
    /// `spec.initContainers`.
    Init,
    /// `spec.ephemeralContainers`.
    Ephemeral,
}

/// What the kubelet says about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// It runs.
    Running,
    /// It doesn't run yet.
    Waiting {
        /// Such as `CrashLoopBackOff`.
        reason: String,
        /// The kubelet's words.
        message: String,
    },
    /// It ended.
    Terminated {
        /// Such as `Error` or `OOMKilled`.
        reason: String,
        /// The kubelet's words.
        message: String,
        /// Its exit code.
        code: i64,
    },
    /// The kubelet hasn't said anything yet.
    Unknown,
}

/// How a container that was restarted last ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastExit {
    /// Such as `Error` or `OOMKilled`.
    pub reason: String,
    /// Its exit code.
    pub code: i64,
}

/// One container: its spec, and its status where the kubelet gave one.
#[derive(Clone, Copy, Debug)]
pub struct Container<'a> {
    /// Which list it is in.
    pub kind: Kind,
    /// Its spec.
    pub spec: &'a Value,
    /// Its status.
    pub status: Option<&'a Value>,
}

impl<'a> Container<'a> {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &'a str {
        self.spec.get("name").and_then(Value::as_str).unwrap_or_default()
    }

    /// `spec.image`.
    #[must_use]
    pub fn image(&self) -> &'a str {
        self.spec.get("image").and_then(Value::as_str).unwrap_or_default()
    }

    /// The runtime's id.
    #[must_use]
    pub fn id(&self) -> Option<ContainerId> {
        let id = self.status?.get("containerID")?.as_str()?;
        ContainerId::parse(id).ok()
    }

    /// How often it was restarted.
    #[must_use]
    pub fn restarts(&self) -> u64 {
        self.status.and_then(|s| s.get("restartCount")).and_then(Value::as_u64).unwrap_or(0)
    }

    /// Is it ready?
    #[must_use]
    pub fn ready(&self) -> bool {
        self.status.and_then(|s| s.get("ready")).and_then(Value::as_bool) == Some(true)
    }

    /// What the kubelet says.
    #[must_use]
    pub fn state(&self) -> State {
        let Some(state) = self.status.and_then(|s| s.get("state")) else { return State::Unknown };
        if state.get("running").is_some() {
            return State::Running;
        }
        if let Some(waiting) = state.get("waiting") {
            return State::Waiting { reason: text(waiting, "reason"), message: text(waiting, "message") };
        }
        if let Some(ended) = state.get("terminated") {
            let code = ended.get("exitCode").and_then(Value::as_i64).unwrap_or(-1);
            return State::Terminated {
                reason: text(ended, "reason"),
                message: text(ended, "message"),
                code,
            };
        }
        State::Unknown
    }

    /// Does it run?
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.state() == State::Running
    }

    /// How it ended before its last restart.
    #[must_use]
    pub fn last_exit(&self) -> Option<LastExit> {
        let ended = self.status?.pointer("/lastState/terminated")?;
        Some(LastExit { reason: text(ended, "reason"), code: ended.get("exitCode")?.as_i64()? })
    }

    /// A value of its own security context.
    #[must_use]
    pub fn security(&self, field: &str) -> Option<&'a Value> {
        self.spec.get("securityContext")?.get(field)
    }

    /// Its mounts.
    #[must_use]
    pub fn mounts(&self) -> &'a [Value] {
        self.spec.get("volumeMounts").and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// The value of a variable of its environment, where the spec says it: as a process reads it,
    /// but for references to other variables, which stay what they are.
    #[must_use]
    pub fn env(&self, name: &str) -> Option<String> {
        let list = self.spec.get("env")?.as_array()?;
        let value = list.iter().find(|e| e.get("name").is_some_and(|n| n == name))?.get("value")?;
        // What the kubelet does to it: each `$$` is a dollar.
        value.as_str().map(|raw| raw.replace("$$", "$"))
    }
}

/// A value for a container's environment that comes out as it is: the kubelet expands `$(NAME)`,
/// and `$$` is a dollar. [`Container::env`] reads it back.
#[must_use]
pub fn literal(value: &str) -> String {
    value.replace('$', "$$")
}

/// A text of the kubelet's, bounded and escaped: it quotes the image and the registry.
fn text(value: &Value, field: &str) -> String {
    escape(value.get(field).and_then(Value::as_str).unwrap_or_default(), 1000)
}
