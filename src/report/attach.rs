//! What `podbench attach -o json` prints, field by field (schema `podbench/attach/v1`).
//! Names here are relied on by users: they are only ever added to.

use podbench_contract::ids::{Gid, Uid};
use podbench_contract::measurement::{Caps, Measurement};
use podbench_contract::oracle::{self, Blocker};
use podbench_contract::rung::Rung;
use serde::{Deserialize, Serialize};

/// The value of [`Attach::schema`].
pub const SCHEMA: &str = "podbench/attach/v1";

/// The whole report.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Attach {
    /// [`SCHEMA`].
    pub schema: String,
    /// The kubeconfig context.
    pub context: String,
    /// The namespace.
    pub namespace: String,
    /// The pod.
    pub pod: Pod,
    /// The container that the seat looks at.
    pub target: Target,
    /// The seat.
    pub seat: Seat,
    /// Every rung that was walked, in its order.
    pub ladder: Vec<Step>,
    /// What the seat may do.
    pub rung: RungFacts,
    /// What works from it.
    pub supports: Supports,
    /// What stands between the seat and a live attach: the first of `blockers`.
    pub blocker: Option<Blocker>,
    /// That one and each that would bite once those before it are lifted.
    pub blockers: Vec<Blocker>,
    /// The raw readings, where there was a measurement.
    pub measurement: Option<Measurement>,
    /// How to get in by ssh.
    pub ssh: Ssh,
    /// What `--resize` did to the target; null where nothing was resized.
    pub resized: Option<Resized>,
    /// What it cost.
    pub calls: Calls,
    /// One line each.
    pub warnings: Vec<String>,
}

/// The pod.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pod {
    /// Its name.
    pub name: String,
    /// `metadata.uid`.
    pub uid: String,
    /// `spec.nodeName`.
    pub node: String,
    /// How the name was arrived at where it wasn't typed whole (`"the only match for `api`"`).
    pub why: Option<String>,
}

/// The target container.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Target {
    /// Its name.
    pub container: String,
    /// Its uid as measured, else as the pod says.
    pub uid: Option<Uid>,
    /// Its gid, likewise.
    pub gid: Option<Gid>,
    /// The pid that a debugger would attach to, in the seat's PID namespace.
    pub pid: Option<u32>,
    /// That process's name.
    pub process: Option<String>,
    /// Why this container, where nobody typed it.
    pub why: Option<String>,
    /// The pod's other containers that `-c` would reach.
    pub others: Vec<String>,
}

/// The seat.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Seat {
    /// `podbench-N`.
    pub name: String,
    /// A seat that was running already.
    pub reused: bool,
    /// Its image.
    pub image: String,
    /// Its agent's version.
    pub version: Option<String>,
    /// Its home folder.
    pub home: Option<String>,
    /// Whose it is, as its environment says.
    pub owner: Option<String>,
    /// Why it was landed, as its environment says (`--reason`).
    #[serde(default)]
    pub reason: Option<String>,
}

/// One rung that was walked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// Which.
    pub rung: Rung,
    /// How it ended.
    pub outcome: Outcome,
    /// Who decided.
    pub channel: Channel,
    /// Why, in the words of whoever decided.
    pub reason: String,
    /// The container name that this spent for the pod's life, where it spent one without landing.
    pub burnt: Option<String>,
}

/// How a rung ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// A seat runs on it.
    Landed,
    /// A seat that was running already is on it.
    Reused,
    /// Not tried: no call, no name.
    Skipped,
    /// Somebody said no.
    Refused,
    /// Given up because the rehearsal shows that it would be worthless.
    Withdrawn,
    /// `--dry-run`: the rehearsal passed.
    WouldLand,
}

/// Who decided about a rung.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Channel {
    /// podbench, from flags or the pod's spec.
    Launcher,
    /// The API server's answer to the dry run.
    Rehearsal,
    /// The API server's answer to the write.
    Admission,
    /// The node, after the write.
    Kubelet,
}

/// What the seat may do.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RungFacts {
    /// The rung that was landed, or that the reused seat's spec is.
    pub name: Rung,
    /// The rung that the kernel's answer amounts to.
    pub measured: Option<Rung>,
    /// The seat's uid as measured.
    pub uid: Option<Uid>,
    /// The seat's gid as measured.
    pub gid: Option<Gid>,
    /// The seat's effective capabilities as measured.
    pub cap_eff: Option<Caps>,
}

/// One thing that works or doesn't; `ok` is null where nobody measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Support {
    /// Does it work?
    pub ok: Option<bool>,
    /// How, or why not.
    pub why: String,
}

/// What works from the seat.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Supports {
    /// A debugger on the running target.
    pub live_attach: Support,
    /// The target's root, maps and environment.
    pub read_only: Support,
    /// A debugger on what it starts itself.
    pub launch: Support,
    /// Restarting the app with other code.
    pub iterate: Support,
    /// ssh, scp, an editor.
    pub ssh: Support,
    /// `kubectl exec`.
    pub exec: Support,
}

/// How to get in by ssh: an alias, or why there is none.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ssh {
    /// The `Host` of the stanza.
    pub alias: Option<String>,
    /// The file that the stanza is in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<String>,
    /// The login.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub login: Option<String>,
    /// The line that `~/.ssh/config` lacks, or doesn't have first: without it, ssh needs `-F` with
    /// [`Ssh::config`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include: Option<String>,
    /// Why there is no alias.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The command that enters the seat where there is no alias.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instead: Option<String>,
    /// `--check`: what a real `ssh ALIAS true` came to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checked: Option<Checked>,
}

/// What the user's own ssh said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checked {
    /// Did it log in?
    pub ok: bool,
    /// How long that took, in milliseconds.
    pub ms: u64,
    /// Why not, in ssh's words.
    pub why: Option<String>,
}

impl Ssh {
    /// No alias: why, and what enters the seat instead, where there is one.
    #[must_use]
    pub fn none(why: impl Into<String>, instead: Option<String>) -> Self {
        Self {
            alias: None,
            config: None,
            login: None,
            include: None,
            why: Some(why.into()),
            instead,
            checked: None,
        }
    }
}

/// What `--resize` made of the target.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Resized {
    /// The container.
    pub container: String,
    /// What it had before podbench first changed it.
    pub from: Shares,
    /// What it has now.
    pub to: Shares,
    /// How far it is.
    pub state: ResizeState,
    /// The kubelet's words, where it isn't done yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The command that gives the old values back.
    pub undo: String,
}

impl Resized {
    /// `memory 64Mi:128Mi -> 128Mi:256Mi`, each resource.
    #[must_use]
    pub fn values(&self) -> String {
        let pairs = [("memory", &self.from.memory, &self.to.memory), ("cpu", &self.from.cpu, &self.to.cpu)];
        let line = |(name, from, to): (&str, &Option<Share>, &Option<Share>)| {
            let (from, to) = (from.as_ref()?, to.as_ref()?);
            Some(format!("{name} {}:{} -> {}:{}", from.request, from.limit, to.request, to.limit))
        };
        pairs.into_iter().filter_map(line).collect::<Vec<_>>().join(", ")
    }
}

/// How far a resize is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ResizeState {
    /// In force.
    Actual,
    /// Stored, and not in force yet.
    Pending,
    /// `--dry-run`: the server would store it.
    Rehearsed,
}

/// Of each resource that was changed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Shares {
    /// Memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Share>,
    /// Processor time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Share>,
}

/// A request and its limit, as Kubernetes spells them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Share {
    /// The request.
    pub request: String,
    /// The limit.
    pub limit: String,
}

/// Every blocker of these readings, with the pod's name and namespace in its commands.
#[must_use]
pub fn blockers(m: &Measurement, pod: &str, namespace: &str) -> Vec<Blocker> {
    oracle::blockers(m).into_iter().map(|b| of_pod(b, pod, namespace)).collect()
}

/// Who judges readings doesn't know the pod, and writes `POD`.
pub(super) fn of_pod(blocker: Blocker, pod: &str, namespace: &str) -> Blocker {
    let named = if namespace.is_empty() { pod.to_owned() } else { format!("{pod} -n {namespace}") };
    let words: Vec<&str> =
        blocker.remedy.split(' ').map(|word| if word == "POD" { &named } else { word }).collect();
    Blocker { remedy: words.join(" "), ..blocker }
}

/// What it cost.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Calls {
    /// kubectl processes.
    pub kubectl: usize,
    /// Wall time in milliseconds.
    pub wall_ms: u64,
}
