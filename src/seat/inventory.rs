//! The seats that a pod has: found by name, command and environment, never by a label (a label sent
//! through the subresource is dropped by the server). What only looks like a seat is told apart: its
//! command isn't the agent's, so nothing of ours would answer in it.

use podbench_contract::env;
use podbench_contract::ids::{SeatName, Uid};
use podbench_contract::keys::PublicKey;
use podbench_contract::rung::Rung;
use podbench_contract::session::agent_argv;
use podbench_contract::text::escape;
use serde_json::{Value, json};

use crate::pod::ids::Ids;
use crate::pod::{Container, Kind, Pod, State};
use crate::spec::ephemeral::unauthored;
use crate::spec::mounts::hides_the_seat;
use crate::spec::security::rung_of;

/// Who is asking.
#[derive(Clone, Debug, Default)]
pub struct Caller {
    /// As the API server calls them, where it says.
    pub owner: Option<String>,
    /// Their key, for a server that doesn't say.
    pub key: Option<PublicKey>,
}

/// A container that podbench may have landed.
#[derive(Clone, Debug)]
pub struct Seat<'a> {
    /// `podbench-N`.
    pub name: SeatName,
    /// The container.
    pub container: Container<'a>,
    /// The container that it looks at.
    pub target: &'a str,
    /// Whose it is, as its environment says: a string that anyone may have written.
    pub owner: Option<String>,
    /// The rung that its spec is authored for; what it may do is measured, not read.
    pub rung: Rung,
    /// Why it isn't what podbench authors.
    pub untrusted: Option<String>,
}

/// An ephemeral container that has a seat's name or command and isn't one.
#[derive(Clone, Debug)]
pub struct Lookalike<'a> {
    /// The container.
    pub container: Container<'a>,
    /// What it lacks.
    pub why: String,
}

/// Everything of a pod that has to do with podbench, by number and name.
#[derive(Clone, Debug, Default)]
pub struct Inventory<'a> {
    /// The seats, the oldest first.
    pub seats: Vec<Seat<'a>>,
    /// What isn't one.
    pub lookalikes: Vec<Lookalike<'a>>,
}

impl<'a> Inventory<'a> {
    /// Looks at a pod.
    #[must_use]
    pub fn of(pod: &'a Pod) -> Self {
        let mut all = Self::default();
        for container in pod.containers().into_iter().filter(|c| c.kind == Kind::Ephemeral) {
            match seat(pod, container) {
                Some(Ok(seat)) => all.seats.push(seat),
                Some(Err(why)) => all.lookalikes.push(Lookalike { container, why }),
                None => {}
            }
        }
        all.seats.sort_by_key(|s| s.name);
        all
    }

    /// The seat of this name.
    #[must_use]
    pub fn seat(&self, name: &str) -> Option<&Seat<'a>> {
        self.seats.iter().find(|s| s.name.to_string() == name)
    }

    /// The caller's seats that run beside this target, trusted or not.
    pub fn of_caller_beside<'s>(
        &'s self,
        target: &'s str,
        caller: &'s Caller,
    ) -> impl Iterator<Item = &'s Seat<'a>> {
        self.seats.iter().filter(move |s| s.container.is_running() && s.target == target && s.is_of(caller))
    }

    /// The seat that has taken a running one's place: newer, of the same owner, beside the same target,
    /// on no lower rung. `attach` enters that one.
    #[must_use]
    pub fn superseded(&self, seat: &Seat<'_>) -> Option<SeatName> {
        let newer = |other: &&Seat<'_>| {
            other.container.is_running()
                && seat.container.is_running()
                && other.untrusted.is_none()
                && other.name > seat.name
                && other.target == seat.target
                && other.rung >= seat.rung
                && other.owner == seat.owner
                && (seat.owner.is_some() || other.key() == seat.key())
        };
        self.seats.iter().filter(newer).map(|s| s.name).max()
    }
}

impl Seat<'_> {
    /// Is it the caller's? Where the server doesn't say who asks, a seat names no owner, and the key
    /// that it was landed with says whose it is.
    #[must_use]
    pub fn is_of(&self, caller: &Caller) -> bool {
        match &caller.owner {
            Some(owner) => self.owner.as_ref() == Some(owner),
            None => {
                self.owner.is_none() && caller.key.is_some() && self.key() == caller.key.as_ref().map(bare)
            }
        }
    }

    /// The key that it was landed with, without its comment.
    fn key(&self) -> Option<String> {
        env::PUBKEY.parse(self.container.env(env::PUBKEY.name).as_deref()).as_ref().map(bare)
    }

    /// It ended, and a container of a pod never starts twice under its name.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        matches!(self.container.state(), State::Terminated { .. })
    }
}

fn bare(key: &PublicKey) -> String {
    key.bare()
}

/// `None`: it has nothing of a seat. `Err`: it has something, and what it lacks.
fn seat<'a>(pod: &Pod, container: Container<'a>) -> Option<Result<Seat<'a>, String>> {
    let has_command = container.spec.get("command") == Some(&json!(agent_argv()))
        && container.spec.get("args").and_then(Value::as_array).is_none_or(Vec::is_empty);
    let name = SeatName::parse(container.name());
    let name = match (name, has_command) {
        (None, false) => return None,
        (Some(_), false) => return Some(Err("its command isn't the agent's".to_owned())),
        (None, true) => return Some(Err("it runs the agent, and its name isn't a seat's".to_owned())),
        (Some(name), true) => name,
    };
    let target = container.spec.get("targetContainerName").and_then(Value::as_str).unwrap_or_default();
    let said = env::TARGET.parse(container.env(env::TARGET.name).as_deref()).unwrap_or_default();
    if target.is_empty() || said != target {
        let shown = |text: &str| escape(text, 80);
        return Some(Err(format!(
            "it looks at `{}`, and its environment says `{}`",
            shown(target),
            shown(&said)
        )));
    }
    let uid = pod.container(target).and_then(|c| Ids::of(pod, &c).uid);
    Some(Ok(Seat {
        name,
        container,
        target,
        owner: env::OWNER.parse(container.env(env::OWNER.name).as_deref()),
        rung: authored(&container, uid),
        untrusted: unauthored(&container).or_else(|| foreign_env(&container)).or_else(|| hidden(&container)),
    }))
}

/// The rung that a spec is authored for. Where the pod doesn't say the target's uid, a seat with another
/// than the default one has it from a measurement or a flag.
fn authored(container: &Container<'_>, target: Option<Uid>) -> Rung {
    let uid = container.security("runAsUser").and_then(Value::as_u64);
    match rung_of(container.spec.get("securityContext"), target) {
        Rung::Seat if target.is_none() && uid.is_some_and(|uid| uid != u64::from(Uid::SEAT.0)) => {
            Rung::Degraded
        }
        rung => rung,
    }
}

/// A variable that podbench doesn't write: `LD_PRELOAD` is one.
fn foreign_env(container: &Container<'_>) -> Option<String> {
    let list = container.spec.get("env").and_then(Value::as_array)?;
    let names = list.iter().filter_map(|e| e.get("name").and_then(Value::as_str));
    let foreign = names.into_iter().find(|n| *n != "HOME" && !env::NAMES.contains(n))?;
    Some(format!("its environment has {}", escape(foreign, 120)))
}

/// A volume over the agent is somebody else's agent.
fn hidden(container: &Container<'_>) -> Option<String> {
    let paths = container.mounts().iter().filter_map(|m| m.get("mountPath").and_then(Value::as_str));
    let over = paths.into_iter().find(|path| hides_the_seat(path))?;
    Some(format!("a volume over {} hides what makes it a seat", escape(over, 120)))
}

#[cfg(test)]
#[path = "inventory_tests.rs"]
mod tests;
