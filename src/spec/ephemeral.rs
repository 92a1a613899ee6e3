//! The seat's container: what is written, and whether a running one is what would be written.

use podbench_contract::env;
use podbench_contract::ids::{ContainerId, SeatName};
use podbench_contract::keys::PublicKey;
use podbench_contract::resized::Change;
use podbench_contract::session::agent_argv;
use serde_json::{Value, json};

use super::mounts::{HOME_PATH, VolumeMount};
use super::patch::Patch;
use super::security::Security;
use crate::pod::Container;
use crate::pod::container::literal;

/// Everything about a seat but its name and its rung.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The image.
    pub image: String,
    /// `imagePullPolicy`.
    pub pull: &'static str,
    /// The target container.
    pub target: String,
    /// Its runtime id; absent while it restarts.
    pub target_id: Option<ContainerId>,
    /// The names of the pod's containers.
    pub containers: Vec<String>,
    /// Whose seat it is, as the API server calls them.
    pub owner: Option<String>,
    /// The node.
    pub node: String,
    /// Does the pod share the node's network?
    pub host_network: bool,
    /// The key that may log in.
    pub key: PublicKey,
    /// The mounts.
    pub mounts: Vec<VolumeMount>,
    /// What `--resize` changed in this run.
    pub resized: Vec<Change>,
    /// `--reason`.
    pub reason: Option<String>,
    /// `--spec-patch`.
    pub patch: Option<Patch>,
}

#[cfg(test)]
impl Plan {
    /// A seat of `me` beside `app`, with a key of nobody's.
    pub(crate) fn sample() -> Self {
        let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKHEChAgLwFqB3pJzkGm2E7VJ0sL9hVYx4kq0J3j5m1p me";
        Self {
            image: "seat:1".into(),
            pull: "IfNotPresent",
            target: "app".into(),
            target_id: ContainerId::parse("0123456789abcdef").ok(),
            containers: vec!["app".into()],
            owner: Some("me".into()),
            node: "node1".into(),
            host_network: false,
            key: PublicKey::parse(key).unwrap(),
            mounts: Vec::new(),
            resized: Vec::new(),
            reason: None,
            patch: None,
        }
    }
}

impl Plan {
    /// The environment, sorted by name, so that two runs write the same.
    fn env(&self) -> Vec<(&'static str, String)> {
        let mut env = vec![
            env::TARGET.entry(&self.target),
            env::POD_CONTAINERS.entry(&self.containers),
            env::NODE_NAME.entry(&self.node),
            env::HOST_NETWORK.entry(&self.host_network),
            env::PUBKEY.entry(&self.key),
        ];
        env.extend(self.target_id.as_ref().map(|id| env::TARGET_CID.entry(id)));
        if !self.resized.is_empty() {
            env.push(env::RESIZED_FROM.entry(&self.resized));
        }
        env.extend(self.reason.as_ref().map(|reason| env::REASON.entry(reason)));
        env.extend(self.owner.as_ref().map(|owner| env::OWNER.entry(owner)));
        if self.mounts.iter().any(|m| m.path == HOME_PATH) {
            env.push(("HOME", HOME_PATH.to_owned()));
        }
        env.sort_by_key(|(name, _)| *name);
        env
    }

    /// The container. No `resources`: an ephemeral container can't have any.
    #[must_use]
    pub fn container(&self, name: SeatName, security: &Security) -> Value {
        let env: Vec<Value> = self
            .env()
            .into_iter()
            .map(|(name, value)| json!({"name": name, "value": literal(&value)}))
            .collect();
        let mut container = json!({
            "name": name.to_string(),
            "image": self.image,
            "imagePullPolicy": self.pull,
            "command": agent_argv(),
            "targetContainerName": self.target,
            "env": env,
            "securityContext": security.to_json(),
        });
        if let Some(object) = container.as_object_mut() {
            if !self.mounts.is_empty() {
                let mounts: Vec<Value> = self.mounts.iter().map(VolumeMount::to_json).collect();
                object.insert("volumeMounts".to_owned(), json!(mounts));
            }
            object.insert("terminationMessagePolicy".to_owned(), json!("File"));
        }
        if let Some(patch) = &self.patch {
            patch.apply(&mut container);
        }
        container
    }

    /// Why a container that calls itself a seat isn't what this plan would have made; `None` where
    /// it is. Anyone who may add ephemeral containers may have written its name and its owner, so
    /// everything that decides what runs in it is compared.
    #[must_use]
    pub fn differs(&self, other: &Container<'_>) -> Option<String> {
        let text = |field: &str| other.spec.get(field).and_then(Value::as_str).unwrap_or_default();
        if text("image") != self.image {
            return Some(format!("its image is {}", shown(text("image"))));
        }
        if other.spec.get("command") != Some(&json!(agent_argv())) || has(other.spec, "args") {
            return Some("its command isn't the agent's".to_owned());
        }
        if text("targetContainerName") != self.target {
            return Some(format!("it looks at `{}`", shown(text("targetContainerName"))));
        }
        if let Some(why) = unauthored(other) {
            return Some(why);
        }
        let keys = |list: Option<&Value>| -> Vec<String> {
            let list = list.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            list.iter().filter_map(|e| e.get("name").and_then(Value::as_str)).map(str::to_owned).collect()
        };
        let (mut theirs, ours) = (keys(other.spec.get("env")), self.env());
        theirs.sort();
        // The target's id is absent from a seat that was landed while the target restarted; what was
        // resized, and why somebody came, are that run's own.
        let comes_and_goes = [env::TARGET_CID.name, env::RESIZED_FROM.name, env::REASON.name];
        theirs.retain(|name| !comes_and_goes.contains(&name.as_str()));
        let mine: Vec<&str> = ours.iter().map(|(n, _)| *n).filter(|n| !comes_and_goes.contains(n)).collect();
        let resized = other.env(env::RESIZED_FROM.name);
        if resized.is_some() && env::RESIZED_FROM.parse(resized.as_deref()).is_none() {
            return Some(format!("its {} isn't one that podbench writes", env::RESIZED_FROM.name));
        }
        let reason = other.env(env::REASON.name);
        if reason.is_some() && env::REASON.parse(reason.as_deref()).is_none() {
            return Some(format!("its {} isn't one that podbench writes", env::REASON.name));
        }
        let owner = env::OWNER.parse(other.env(env::OWNER.name).as_deref());
        if owner != self.owner {
            return Some(match owner {
                Some(owner) => format!("it is {}'s", shown(&owner)),
                None => "it names no owner".to_owned(),
            });
        }
        if let Some(extra) = theirs.iter().find(|n| !mine.contains(&n.as_str())) {
            return Some(format!("its environment has {}", shown(extra)));
        }
        if let Some(missing) = mine.iter().find(|n| !theirs.iter().any(|t| t == **n)) {
            return Some(format!("its environment lacks {missing}"));
        }
        if other.env("HOME").is_some_and(|home| home != HOME_PATH) {
            return Some("its HOME is another".to_owned());
        }
        self.mounts_differ(other)
    }

    fn mounts_differ(&self, other: &Container<'_>) -> Option<String> {
        let text =
            |m: &Value, field: &str| m.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        let theirs: Vec<(String, String)> =
            other.mounts().iter().map(|m| (text(m, "name"), text(m, "mountPath"))).collect();
        let ours: Vec<(String, String)> =
            self.mounts.iter().map(|m| (m.volume.clone(), m.path.clone())).collect();
        let odd = |m: &&Value| {
            ["subPath", "subPathExpr", "mountPropagation"].iter().any(|f| has(m, f)) || has(m, "readOnly")
        };
        if let Some(mount) = other.mounts().iter().find(odd) {
            return Some(format!("its mount of {} isn't a plain one", shown(&text(mount, "name"))));
        }
        if let Some((name, path)) = theirs.iter().find(|m| !ours.contains(m)) {
            return Some(format!("it mounts {} at {}", shown(name), shown(path)));
        }
        ours.iter()
            .find(|m| !theirs.contains(m))
            .map(|(name, path)| format!("it doesn't mount {name} at {path}"))
    }
}

/// Why no plan would have made this container, whosever it is; `None` where one might have.
#[must_use]
pub fn unauthored(other: &Container<'_>) -> Option<String> {
    if let Some(field) = UNEXPECTED.iter().find(|f| has(other.spec, f)) {
        return Some(format!("it has a {field} that podbench doesn't write"));
    }
    let context = other.spec.get("securityContext").and_then(Value::as_object);
    let mut fields = context.into_iter().flatten();
    if let Some((field, _)) =
        fields.find(|(field, value)| !SECURITY.contains(&field.as_str()) && !value.is_null())
    {
        return Some(format!("its securityContext has a {} that podbench doesn't write", shown(field)));
    }
    let escalates = other.security("privileged") == Some(&json!(true))
        || other.security("allowPrivilegeEscalation") != Some(&json!(false));
    escalates.then(|| "it may gain privileges".to_owned())
}

/// What a rung's security context may say.
const SECURITY: [&str; 7] = [
    "allowPrivilegeEscalation",
    "capabilities",
    "privileged",
    "runAsGroup",
    "runAsNonRoot",
    "runAsUser",
    "seccompProfile",
];

/// What of a container spec podbench never writes and that changes what runs.
const UNEXPECTED: [&str; 8] = [
    "envFrom",
    "lifecycle",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "stdin",
    "volumeDevices",
    "workingDir",
];

fn has(spec: &Value, field: &str) -> bool {
    match spec.get(field) {
        None | Some(Value::Null | Value::Bool(false)) => false,
        Some(Value::Array(list)) => !list.is_empty(),
        Some(Value::Object(map)) => !map.is_empty(),
        Some(Value::Bool(true) | Value::String(_) | Value::Number(_)) => true,
    }
}

fn shown(text: &str) -> String {
    podbench_contract::text::escape(text, 120)
}

#[cfg(test)]
#[path = "ephemeral_tests.rs"]
mod tests;
