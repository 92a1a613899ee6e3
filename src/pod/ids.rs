//! Who the target runs as, as far as the pod says. What the kernel says is measured later.

use podbench_contract::ids::{Gid, Uid};
use serde_json::Value;

use super::{Container, Kind, Pod};

/// Uid and gid are found independently of each other: many pods pin one and leave the other to the image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ids {
    /// The uid.
    pub uid: Option<Uid>,
    /// The gid.
    pub gid: Option<Gid>,
}

impl Ids {
    /// From the container, else the pod, else what the node reported when it started the container
    /// (`status…user.linux`, which knows the image's own user).
    #[must_use]
    pub fn of(pod: &Pod, container: &Container<'_>) -> Self {
        let spec = |field: &str| {
            container.security(field).or_else(|| pod.value().pointer("/spec/securityContext")?.get(field))
        };
        let node = |field: &str| container.status?.get("user")?.get("linux")?.get(field);
        Self {
            uid: number(spec("runAsUser")).or_else(|| number(node("uid"))).map(Uid),
            gid: number(spec("runAsGroup")).or_else(|| number(node("gid"))).map(Gid),
        }
    }
}

fn number(value: Option<&Value>) -> Option<u32> {
    value.and_then(Value::as_u64).and_then(|n| u32::try_from(n).ok())
}

/// Is there another workload container, of another uid or of one that nobody knows, in the target's
/// PID namespace? A seat at the target's ids can't look into it; root with `SYS_PTRACE` can.
#[must_use]
pub fn shares_pids_with_others(pod: &Pod, target: &str, uid: Option<Uid>) -> bool {
    pod.shared_pids()
        && pod.containers().iter().any(|c| match c.kind {
            Kind::Regular | Kind::Sidecar => c.name() != target && Ids::of(pod, c).uid != uid,
            Kind::Init | Kind::Ephemeral => false,
        })
}
