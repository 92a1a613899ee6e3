//! The security context of a seat, one per rung.
//!
//! `SYS_PTRACE` on a container whose uid isn't 0 lands in the bounding set alone and is worth
//! nothing, so there is no way to write that down here: only [`Security::Full`] adds it, and it is
//! always root.

use podbench_contract::ids::{Gid, Uid};
use podbench_contract::rung::Rung;
use serde_json::{Value, json};

/// A uid that isn't root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NonRoot(Uid);

impl NonRoot {
    /// `None` for root.
    #[must_use]
    pub const fn new(uid: Uid) -> Option<Self> {
        if uid.is_root() { None } else { Some(Self(uid)) }
    }

    /// The uid.
    #[must_use]
    pub const fn uid(self) -> Uid {
        self.0
    }
}

/// What a seat runs as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Security {
    /// Root with `SYS_PTRACE`.
    Full,
    /// The target's own ids, no capabilities.
    Degraded {
        /// The target's uid.
        uid: NonRoot,
        /// The target's gid. Without one the image's counts, and it is measured after landing.
        gid: Option<Gid>,
        /// The target container's own seccomp profile, where it has one: another one breaks ptrace,
        /// and the pod's is inherited anyway.
        seccomp: Option<Value>,
    },
    /// Whatever the namespace admits.
    Seat {
        /// A uid: a root image under `runAsNonRoot` without one never starts.
        uid: NonRoot,
        /// A gid.
        gid: Gid,
        /// As on the degraded rung.
        seccomp: Option<Value>,
    },
}

impl Security {
    /// The rung that it is authored for.
    #[must_use]
    pub const fn rung(&self) -> Rung {
        match self {
            Self::Full => Rung::Full,
            Self::Degraded { .. } => Rung::Degraded,
            Self::Seat { .. } => Rung::Seat,
        }
    }

    /// The `securityContext`. `privileged` and `allowPrivilegeEscalation` are written out on every
    /// rung: policy engines that match patterns refuse an absent field.
    #[must_use]
    pub fn to_json(&self) -> Value {
        match self {
            // `runAsNonRoot: false` written out overrides the pod's own `true`; another container's
            // doesn't concern this one.
            Self::Full => json!({
                "runAsUser": 0,
                "runAsGroup": 0,
                "runAsNonRoot": false,
                "privileged": false,
                "allowPrivilegeEscalation": false,
                "capabilities": {"add": ["SYS_PTRACE"]},
            }),
            Self::Degraded { uid, gid, seccomp } => peer(*uid, *gid, seccomp.as_ref()),
            Self::Seat { uid, gid, seccomp } => peer(*uid, Some(*gid), seccomp.as_ref()),
        }
    }
}

fn peer(uid: NonRoot, gid: Option<Gid>, seccomp: Option<&Value>) -> Value {
    let mut context = json!({"runAsUser": uid.uid()});
    if let Some(object) = context.as_object_mut() {
        if let Some(gid) = gid {
            object.insert("runAsGroup".to_owned(), json!(gid));
        }
        object.insert("runAsNonRoot".to_owned(), json!(true));
        object.insert("privileged".to_owned(), json!(false));
        object.insert("allowPrivilegeEscalation".to_owned(), json!(false));
        object.insert("capabilities".to_owned(), json!({"drop": ["ALL"]}));
        if let Some(profile) = seccomp {
            object.insert("seccompProfile".to_owned(), profile.clone());
        }
    }
    context
}

/// The rung that a stored security context amounts to, beside a target of this uid. A root seat is
/// on the full rung whatever became of its capability: what the kernel gave is measured.
#[must_use]
pub fn rung_of(context: Option<&Value>, target: Option<Uid>) -> Rung {
    let uid = context.and_then(|c| c.get("runAsUser")).and_then(Value::as_u64);
    match uid {
        Some(0) => Rung::Full,
        Some(uid) if target.is_some_and(|t| u64::from(t.0) == uid) => Rung::Degraded,
        Some(_) | None => Rung::Seat,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> [Security; 3] {
        let uid = NonRoot::new(Uid(1234)).unwrap();
        let seccomp = Some(json!({"type": "RuntimeDefault"}));
        [
            Security::Full,
            Security::Degraded { uid, gid: None, seccomp: seccomp.clone() },
            Security::Seat { uid, gid: Gid(1), seccomp },
        ]
    }

    #[test]
    fn only_root_is_given_ptrace() {
        for security in all() {
            let json = security.to_json();
            let added = json.pointer("/capabilities/add").is_some();
            assert_eq!(added, json["runAsUser"] == 0, "{json}");
            assert_eq!(added, security == Security::Full);
        }
        assert_eq!(NonRoot::new(Uid::ROOT), None);
    }

    #[test]
    fn every_rung_writes_out_that_it_is_not_privileged() {
        for security in all() {
            let json = security.to_json();
            assert_eq!(
                (&json["privileged"], &json["allowPrivilegeEscalation"]),
                (&json!(false), &json!(false))
            );
        }
    }

    #[test]
    fn an_unknown_gid_is_left_to_the_image_and_a_root_one_is_not() {
        let uid = NonRoot::new(Uid(7)).unwrap();
        let gid = |gid| Security::Degraded { uid, gid, seccomp: None }.to_json().get("runAsGroup").cloned();
        assert_eq!(gid(None), None);
        assert_eq!(gid(Some(Gid(0))), Some(json!(0)));
    }

    #[test]
    fn a_stored_context_says_its_rung() {
        let of = |uid: u32, target| rung_of(Some(&json!({"runAsUser": uid})), target);
        assert_eq!(of(0, None), Rung::Full);
        assert_eq!(of(7, Some(Uid(7))), Rung::Degraded);
        assert_eq!(of(7, Some(Uid(8))), Rung::Seat);
        assert_eq!(rung_of(None, Some(Uid(7))), Rung::Seat);
    }
}
