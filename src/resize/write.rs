//! The patch of `pods/resize`: one call, tied to the very object that the plan was made from.

use std::time::Duration;

use podbench_contract::resized::Share;
use serde_json::{Map, Value, json};

use super::plan::Step;
use super::{resizable, share};
use crate::commands::Session;
use crate::kubectl::refusal::Refusal;
use crate::kubectl::{Error, Kubectl, Mode, Started};
use crate::pod::{Kind, Pod};
use crate::seat::conflict;

/// Somebody else always came first.
pub(super) const BUSY: &str = "somebody else writes to the pod all the time";

/// What is written to one container.
#[derive(Clone, Debug)]
pub struct Change {
    /// The container.
    pub container: String,
    /// What of it changes.
    pub steps: Vec<Step>,
}

impl Change {
    /// Those steps that change something.
    #[must_use]
    pub fn new(container: &str, steps: &[Step]) -> Self {
        let steps = steps.iter().copied().filter(|s| !s.is_nothing()).collect();
        Self { container: container.to_owned(), steps }
    }

    fn body(&self, pod: &Pod) -> Value {
        let list = |amount: fn(&Share) -> String| -> Map<String, Value> {
            self.steps.iter().map(|s| (s.resource.as_str().to_owned(), amount(&s.to).into())).collect()
        };
        let resources =
            json!({"requests": list(|s| s.request.to_string()), "limits": list(|s| s.limit.to_string())});
        let sidecar = pod.container(&self.container).is_some_and(|c| c.kind == Kind::Sidecar);
        let containers = if sidecar { "initContainers" } else { "containers" };
        json!({"spec": {containers: [{"name": self.container, "resources": resources}]}})
    }

    /// The patch. The pod's uid and version make it fail where it is another pod of the same name, or
    /// one that somebody changed since it was read.
    fn patch(&self, pod: &Pod) -> Value {
        let mut patch = self.body(pod);
        if let Some(object) = patch.as_object_mut() {
            let version = pod.value().pointer("/metadata/resourceVersion").cloned().unwrap_or_default();
            object.insert("metadata".into(), json!({"uid": pod.uid(), "resourceVersion": version}));
        }
        patch
    }

    /// The same by hand, to paste.
    pub(super) fn command(&self, session: &Session<'_>, pod: &Pod) -> String {
        let body = self.body(pod).to_string();
        session.command(&["patch", "pod", pod.name(), "--subresource=resize", "--patch", &body])
    }
}

/// How a write ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Put {
    /// Stored, or with a dry run: it would be.
    Stored,
    /// The pod isn't what it was.
    Conflict,
    /// Somebody said no: their words, and what is missing.
    Refused(String),
    /// No answer came: it may be stored all the same.
    Lost(String),
}

/// Writes. A pod that was stored becomes `pod`. Where the answer is lost, the pod is asked whether it
/// has what was written.
///
/// # Errors
/// Ctrl-C, or kubectl can't be run.
pub fn put(kubectl: &Kubectl, pod: &mut Pod, change: &Change, mode: Mode) -> Result<Put, Error> {
    match kubectl.resize(pod.name(), &change.patch(pod), mode).and_then(Started::finish) {
        Ok(value) => {
            if mode == Mode::Store
                && let Ok(new) = Pod::new(value)
            {
                *pod = new;
            }
            Ok(Put::Stored)
        }
        Err(Error::Refused(Refusal::Conflict)) => Ok(Put::Conflict),
        Err(error) if error.is_lost() => match mode {
            Mode::Store if has_arrived(kubectl, pod, change)? => Ok(Put::Stored),
            Mode::Store | Mode::DryRun => Ok(Put::Lost(error.to_string())),
        },
        Err(Error::Refused(refusal)) => Ok(Put::Refused(refused(&refusal))),
        Err(Error::Failed { words, .. }) => Ok(Put::Refused(failed(&words))),
        Err(error) => Err(error),
    }
}

/// How long a pod is asked whether a lost write has arrived.
const LOOK: Duration = Duration::from_secs(5);

/// Has the pod what was written? One that has becomes `pod`. No says little: it may arrive yet.
fn has_arrived(kubectl: &Kubectl, pod: &mut Pod, change: &Change) -> Result<bool, Error> {
    let new = match kubectl.get_pod(pod.name())?.finish_within(LOOK) {
        Err(Error::Interrupted) => return Err(Error::Interrupted),
        answer => answer.ok().and_then(|value| Pod::new(value).ok()),
    };
    let Some(new) = new.filter(|new| new.uid() == pod.uid()) else { return Ok(false) };
    let has = resizable(&new, &change.container)
        .is_some_and(|c| change.steps.iter().all(|s| share(&c, s.resource) == Some(s.to)));
    if has {
        *pod = new;
    }
    Ok(has)
}

/// Writes as long as the container still has what the steps begin with, through conflicts;
/// [`Put::Conflict`]: somebody else changed it.
///
/// # Errors
/// As [`put`].
pub fn put_unless_changed(
    kubectl: &Kubectl,
    pod: &mut Pod,
    steps: &[Step],
    change: &Change,
) -> Result<Put, Error> {
    let mut conflicts = 0;
    loop {
        let container = resizable(pod, &change.container);
        let untouched = container.is_some_and(|c| steps.iter().all(|s| share(&c, s.resource) == Some(s.now)));
        if !untouched {
            return Ok(Put::Conflict);
        }
        match put(kubectl, pod, change, Mode::Store)? {
            Put::Conflict if conflict::again(kubectl, pod, &mut conflicts)? => {}
            Put::Conflict => return Ok(Put::Refused(BUSY.to_owned())),
            end => return Ok(end),
        }
    }
}

/// One line: who said no, and what is missing.
fn refused(refusal: &Refusal) -> String {
    let words = refusal.words();
    match refusal {
        // kubectl reads before it writes.
        Refusal::Rbac(_) => format!("{words}; a resize needs get and patch on pods/resize"),
        Refusal::NoSubresource(_) => {
            format!("{words}: this server has no pods/resize, which is there from Kubernetes 1.33 on")
        }
        _ => words,
    }
}

fn failed(words: &str) -> String {
    let words = words.strip_prefix("error: ").unwrap_or(words);
    if words.contains("invalid subresource value") {
        return format!(
            "{words}: kubectl knows this subresource from 1.32 on, and --kubectl names another one"
        );
    }
    words.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_kubectl_and_an_old_server_are_named() {
        let old = "error: invalid subresource value: \"resize\". Must be one of [status scale]";
        assert!(failed(old).contains("from 1.32 on") && failed(old).starts_with("invalid subresource"));
        let server = "Error from server (NotFound): the server could not find the requested resource";
        let said = refused(&crate::kubectl::refusal::refusal(server).unwrap());
        assert!(said.contains("could not find the requested resource") && said.contains("1.33"), "{said}");
    }

    #[test]
    fn a_missing_right_is_named_in_the_servers_words() {
        let said = "Error from server (Forbidden): pods \"burst\" is forbidden: User \"joe\" cannot patch resource \
                    \"pods/resize\" in API group \"\" in the namespace \"spike\"";
        let said = refused(&crate::kubectl::refusal::refusal(said).unwrap());
        assert_eq!(
            said,
            "joe cannot patch pods/resize in namespace spike; a resize needs get and patch on pods/resize"
        );
    }
}
