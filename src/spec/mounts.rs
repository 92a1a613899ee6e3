//! Which of the pod's volumes a seat sees. A pod's volumes are fixed when it is made, so a seat can
//! only mount what is declared.

use podbench_contract::session::{AGENT, SSHD};
use serde_json::{Value, json};

use crate::cli::Mount;
use crate::pod::{Container, Pod};

/// A volume of this name is the seats' home in that pod.
pub const HOME_VOLUME: &str = "podbench-home";
/// Where it is mounted.
pub const HOME_PATH: &str = "/home/podbench";

/// What a seat needs where its image has it.
const NEEDED: [&str; 4] = ["/proc", "/usr/bin", AGENT, SSHD];

/// Would a volume mounted there hide what makes the container a seat? The node would then refuse to
/// start it, or it would run somebody else's program.
#[must_use]
pub fn hides_the_seat(path: &str) -> bool {
    let path = path.trim_end_matches('/');
    NEEDED.iter().any(|needed| {
        let below = |a: &str, b: &str| a == b || a.strip_prefix(b).is_some_and(|rest| rest.starts_with('/'));
        below(needed, path) || below(path, needed)
    })
}

/// One entry of `volumeMounts`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeMount {
    /// The volume.
    pub volume: String,
    /// Where in the seat.
    pub path: String,
}

impl VolumeMount {
    /// The entry.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({"name": self.volume, "mountPath": self.path})
    }
}

/// Why a `--mount` can't be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoMount {
    /// The pod declares no such volume.
    #[error("the pod declares no volume or claim `{asked}`")]
    Undeclared {
        /// What was asked for.
        asked: String,
        /// What is declared.
        have: Vec<String>,
    },
    /// The target mounts a part of it.
    #[error("`{container}` mounts a sub-path of `{asked}`, and an ephemeral container can't have one")]
    SubPath {
        /// What was asked for.
        asked: String,
        /// The target.
        container: String,
    },
    /// Nobody says where.
    #[error("`{container}` doesn't mount `{asked}`, so its path must be named")]
    NoPath {
        /// What was asked for.
        asked: String,
        /// The target.
        container: String,
    },
}

/// The mounts of a seat: the ones asked for, and the home volume where it is declared.
///
/// # Errors
/// When one that was asked for can't be.
pub fn mounts(
    pod: &Pod,
    target: &Container<'_>,
    asked: &[Mount],
    home: bool,
) -> Result<Vec<VolumeMount>, NoMount> {
    let mut mounts = Vec::new();
    for wanted in asked {
        mounts.push(resolve(pod, target, wanted)?);
    }
    let taken = mounts.iter().any(|m: &VolumeMount| m.path == HOME_PATH || m.volume == HOME_VOLUME);
    if home && !taken && pod.volumes().iter().any(|v| name(v) == HOME_VOLUME) {
        mounts.push(VolumeMount { volume: HOME_VOLUME.to_owned(), path: HOME_PATH.to_owned() });
    }
    Ok(mounts)
}

fn resolve(pod: &Pod, target: &Container<'_>, wanted: &Mount) -> Result<VolumeMount, NoMount> {
    let asked = wanted.claim.clone();
    let claim =
        |v: &Value| v.pointer("/persistentVolumeClaim/claimName").and_then(Value::as_str) == Some(&asked);
    let volume =
        pod.volumes().iter().find(|v| claim(v)).or_else(|| pod.volumes().iter().find(|v| name(v) == asked));
    let Some(volume) = volume.map(name) else {
        // Tokens and other projections that nobody chose are no help in a list.
        let listed = pod.volumes().iter().filter(|v| v.get("projected").is_none()).map(name);
        return Err(NoMount::Undeclared { asked, have: listed.map(str::to_owned).collect() });
    };
    let theirs = target.mounts().iter().filter(|m| name(m) == volume);
    let whole = |m: &&Value| m.get("subPath").is_none() && m.get("subPathExpr").is_none();
    let container = target.name().to_owned();
    let path = match (&wanted.path, theirs.clone().find(whole)) {
        (_, None) if theirs.count() > 0 => return Err(NoMount::SubPath { asked, container }),
        (Some(path), _) => path.clone(),
        (None, Some(mount)) => mount.get("mountPath").and_then(Value::as_str).unwrap_or_default().to_owned(),
        (None, None) => return Err(NoMount::NoPath { asked, container }),
    };
    Ok(VolumeMount { volume: volume.to_owned(), path })
}

fn name(value: &Value) -> &str {
    value.get("name").and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod() -> Pod {
        Pod::new(json!({
            "metadata": {"name": "p", "namespace": "n", "uid": "u"},
            "spec": {
                "volumes": [
                    {"name": "data", "persistentVolumeClaim": {"claimName": "data-0"}},
                    {"name": "parts", "emptyDir": {}}, {"name": "idle", "emptyDir": {}},
                    {"name": "podbench-home", "emptyDir": {}}, {"name": "podbench-identity", "configMap": {}},
                ],
                "containers": [{"name": "app", "volumeMounts": [
                    {"name": "data", "mountPath": "/data"}, {"name": "parts", "mountPath": "/p", "subPath": "x"}]}],
            },
        }))
        .unwrap()
    }

    fn ask(claim: &str, path: Option<&str>) -> Result<Vec<VolumeMount>, NoMount> {
        let pod = pod();
        let mount = Mount { claim: claim.into(), path: path.map(str::to_owned) };
        mounts(&pod, &pod.container("app").unwrap(), &[mount], false)
    }

    #[test]
    fn a_claim_is_mounted_where_the_target_has_it_or_where_it_is_asked_for() {
        assert_eq!(
            ask("data-0", None).unwrap(),
            [VolumeMount { volume: "data".into(), path: "/data".into() }]
        );
        assert_eq!(ask("data", Some("/x")).unwrap()[0].path, "/x");
    }

    #[test]
    fn a_mount_over_what_makes_it_a_seat_is_told_from_one_beside_it() {
        for over in ["", "/", "/usr", "/usr/local", "/usr/local/bin", "/proc", "/proc/1", "/usr/sbin/"] {
            assert!(hides_the_seat(over), "{over}");
        }
        for beside in
            ["/data", "/usr/share", "/procs", "/run", "/run/secrets", "/home/podbench", "/usr/local/share"]
        {
            assert!(!hides_the_seat(beside), "{beside}");
        }
    }

    #[test]
    fn what_cannot_be_mounted_is_refused_by_name() {
        assert!(
            matches!(ask("none", None), Err(NoMount::Undeclared { have, .. }) if have.contains(&"data".to_owned()))
        );
        assert!(matches!(ask("parts", Some("/x")), Err(NoMount::SubPath { .. })));
        assert!(matches!(ask("idle", None), Err(NoMount::NoPath { .. })));
    }

    #[test]
    fn the_home_volume_is_mounted_by_itself_and_the_identity_never() {
        let pod = pod();
        let target = pod.container("app").unwrap();
        let home = VolumeMount { volume: HOME_VOLUME.into(), path: HOME_PATH.into() };
        assert_eq!(mounts(&pod, &target, &[], true).unwrap(), [home]);
        assert_eq!(mounts(&pod, &target, &[], false).unwrap(), []);
    }
}
