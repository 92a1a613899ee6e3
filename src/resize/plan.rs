//! From what was asked to what is written. Pure, and total: what can't be done has a name.

use podbench_contract::quantity::Quantity;
use podbench_contract::resized::{Resource, Share};
use serde_json::{Value, json};

use super::qos::Class;
use super::ranges::{Range, Scope};
use super::{amount, share};
use crate::cli::Size;
use crate::pod::{Container, Kind, Pod};

/// What the user wants of one resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wish {
    /// Which.
    pub resource: Resource,
    /// How much.
    pub size: Size,
}

/// One resource of the container: what it has, and what it gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Which.
    pub resource: Resource,
    /// What it has.
    pub now: Share,
    /// What it gets.
    pub to: Share,
}

impl Step {
    /// Does it change nothing?
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.now == self.to
    }

    /// The way back.
    #[must_use]
    pub const fn back(&self) -> Self {
        Self { resource: self.resource, now: self.to, to: self.now }
    }
}

/// Why nothing is written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum No {
    /// It isn't a container that runs beside others for the pod's life.
    #[error("{0} is an init container, and Kubernetes resizes none")]
    Init(String),
    /// Devices were handed out to it.
    #[error(
        "{container} has resource claims ({claims}), and Kubernetes resizes no container with dynamic resources"
    )]
    Claims {
        /// The container.
        container: String,
        /// Their names.
        claims: String,
    },
    /// Its `resizePolicy` says so.
    #[error("a change of its {0} would restart the container: its resizePolicy says RestartContainer")]
    WouldRestart(Resource),
    /// Nothing of the pod has requests or limits.
    #[error(
        "its QoS class is BestEffort: it may use what the node has, and a resize may not change the class"
    )]
    BestEffort,
    /// It has no limit.
    #[error(
        "{container} has no {resource} limit: none holds it back, and one that is added can't be taken away again"
    )]
    Unlimited {
        /// The container.
        container: String,
        /// Of this.
        resource: Resource,
    },
    /// The class would be another.
    #[error("the pod's QoS class would change from {} to {}, and Kubernetes allows no such resize{hint}", from.as_str(), to.as_str())]
    Qos {
        /// The class it has.
        from: Class,
        /// The class it would have.
        to: Class,
        /// How to ask instead.
        hint: String,
    },
    /// A `LimitRange` forbids it: in its own terms.
    #[error("{0}")]
    Range(String),
}

/// Plans every wish of one container.
///
/// # Errors
/// Why nothing is written: one resource that can't be changed ends all of it.
pub fn plan(pod: &Pod, name: &str, wishes: &[Wish], ranges: &[Range]) -> Result<Vec<Step>, No> {
    let Some(container) = pod.container(name) else { return Err(No::Init(name.to_owned())) };
    if !matches!(container.kind, Kind::Regular | Kind::Sidecar) {
        return Err(No::Init(name.to_owned()));
    }
    if let Some(claims) = claims(&container) {
        return Err(No::Claims { container: name.to_owned(), claims });
    }
    let class = Class::of(pod.value());
    let mut steps = Vec::new();
    for wish in wishes {
        steps.push(step(pod, &container, *wish, class, ranges)?);
    }
    let after = Class::of(&with(pod, name, &steps));
    if after != class {
        let hint = match class {
            Class::Guaranteed => "; with one value the request moves with the limit",
            Class::Burstable | Class::BestEffort => "; REQUEST:LIMIT spells both",
        };
        return Err(No::Qos { from: class, to: after, hint: hint.to_owned() });
    }
    Ok(steps)
}

fn claims(container: &Container<'_>) -> Option<String> {
    let claims = container.spec.pointer("/resources/claims")?.as_array()?;
    let name = |c: &Value| {
        podbench_contract::text::escape(c.get("name").and_then(Value::as_str).unwrap_or("unnamed"), 63)
    };
    (!claims.is_empty()).then(|| claims.iter().map(name).collect::<Vec<_>>().join(", "))
}

fn restarts(container: &Container<'_>, resource: Resource) -> bool {
    let policies =
        container.spec.get("resizePolicy").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    policies.iter().any(|p| {
        p.get("resourceName").is_some_and(|n| n == resource.as_str())
            && p.get("restartPolicy").is_some_and(|r| r == "RestartContainer")
    })
}

fn step(
    pod: &Pod,
    container: &Container<'_>,
    wish: Wish,
    class: Class,
    ranges: &[Range],
) -> Result<Step, No> {
    let Wish { resource, size } = wish;
    if class == Class::BestEffort {
        return Err(No::BestEffort);
    }
    let Some(now) = share(container, resource) else {
        return Err(No::Unlimited { container: container.name().to_owned(), resource });
    };
    let limit = size.limit;
    let others = Others::of(pod, container.name(), resource);
    within_max(&others, resource, limit, ranges)?;
    let request = match (size.request, class) {
        (Some(request), _) => request,
        (None, Class::Guaranteed) => limit,
        (None, Class::Burstable | Class::BestEffort) => {
            asked_by_ratio(&others, resource, limit, now.request, ranges).min(limit)
        }
    };
    let to = Share { request, limit };
    within_rest(&others, resource, to, ranges)?;
    if now != to && restarts(container, resource) {
        return Err(No::WouldRestart(resource));
    }
    Ok(Step { resource, now, to })
}

/// What the pod's other containers ask for and may use together.
struct Others {
    request: Quantity,
    limit: Quantity,
}

impl Others {
    fn of(pod: &Pod, name: &str, resource: Resource) -> Self {
        let sum = |list: &str| {
            pod.containers()
                .iter()
                .filter(|c| matches!(c.kind, Kind::Regular | Kind::Sidecar) && c.name() != name)
                .filter_map(|c| amount(c.spec, list, resource))
                .fold(Quantity::ZERO, Quantity::plus)
        };
        Self { request: sum("requests"), limit: sum("limits") }
    }

    /// What the rest of the pod has, as far as an item of a `LimitRange` counts it.
    const fn counted(&self, scope: Scope) -> Share {
        match scope {
            Scope::Container => Share { request: Quantity::ZERO, limit: Quantity::ZERO },
            Scope::Pod => Share { request: self.request, limit: self.limit },
        }
    }
}

fn within_max(others: &Others, resource: Resource, limit: Quantity, ranges: &[Range]) -> Result<(), No> {
    let caps = ranges.iter().filter_map(|r| {
        let max = r.max(resource)?;
        Some((max.minus(others.counted(r.scope).limit), max, r))
    });
    match caps.min_by_key(|(room, ..)| *room) {
        Some((room, max, range)) if limit > room => Err(No::Range(format!(
            "LimitRange {}: maximum {resource} usage per {} is {max}; the greatest limit that fits is {room}",
            range.name,
            range.scope.as_str()
        ))),
        _ => Ok(()),
    }
}

/// The request that a ratio asks for beside this limit; never less than there is.
fn asked_by_ratio(
    others: &Others,
    resource: Resource,
    limit: Quantity,
    now: Quantity,
    ranges: &[Range],
) -> Quantity {
    // As people write them: no request of 41943041 bytes.
    let unit = match resource {
        Resource::Memory => Quantity::bytes(1 << 20),
        Resource::Cpu => Quantity::milli(1),
    };
    let least = |range: &Range| {
        let rest = others.counted(range.scope);
        Some(limit.plus(rest.limit).divided_up(range.ratio(resource)?)?.minus(rest.request))
    };
    let most = ranges.iter().filter_map(least).max();
    match most {
        Some(least) if least > now => least.round_up(unit),
        _ => now,
    }
}

fn within_rest(others: &Others, resource: Resource, to: Share, ranges: &[Range]) -> Result<(), No> {
    for range in ranges {
        let rest = others.counted(range.scope);
        let (request, limit) = (to.request.plus(rest.request), to.limit.plus(rest.limit));
        let scope = range.scope.as_str();
        if let Some(min) = range.min(resource)
            && request < min
        {
            return Err(No::Range(format!(
                "LimitRange {}: minimum {resource} usage per {scope} is {min}, and the request would be {request}",
                range.name
            )));
        }
        if let Some(ratio) = range.ratio(resource)
            && request.times(ratio) < limit
        {
            return Err(No::Range(format!(
                "LimitRange {}: {resource} max limit to request ratio per {scope} is {ratio}; the greatest limit that \
                 fits beside the request is {}",
                range.name,
                request.times(ratio).minus(rest.limit)
            )));
        }
    }
    Ok(())
}

/// The pod's object with the steps done.
fn with(pod: &Pod, name: &str, steps: &[Step]) -> Value {
    let mut value = pod.value().clone();
    for list in ["/spec/containers", "/spec/initContainers"] {
        let found = value.pointer_mut(list).and_then(Value::as_array_mut);
        for container in found.into_iter().flatten().filter(|c| c.get("name").is_some_and(|n| n == name)) {
            for step in steps {
                let r = step.resource.as_str();
                let resources = container.pointer_mut("/resources").and_then(Value::as_object_mut);
                let Some(resources) = resources else { continue };
                for (list, amount) in [("requests", step.to.request), ("limits", step.to.limit)] {
                    let list = resources.entry(list).or_insert_with(|| json!({}));
                    if let Some(list) = list.as_object_mut() {
                        list.insert(r.to_owned(), json!(amount.to_string()));
                    }
                }
            }
        }
    }
    value
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
