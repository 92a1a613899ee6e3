//! From stored to running. Nothing waits for what is known already: a kubelet that says it can't
//! is believed at once, an image pull at its first back-off.

use std::time::{Duration, Instant};

use podbench_contract::ids::{ContainerId, SeatName};

use super::follow::{Follow, Seen};
use crate::kubectl::{Error, Kubectl, Watch};
use crate::ladder::{Trouble, Words};
use crate::pod::state::node_trouble;
use crate::pod::{Container, Pod, State};

/// How long a first failed pull may turn out to have been a hiccup.
const HICCUP: Duration = Duration::from_secs(3);
/// A kubelet that hasn't said a word about a container for so long may not be there.
const SILENCE: Duration = Duration::from_secs(15);

/// What a container's state means for the wait.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Judged {
    Running,
    Trouble(Trouble),
    /// Go on; the kubelet's words so far.
    Wait(Option<Words>),
}

fn judge(container: Option<&Container<'_>>) -> Judged {
    let Some(container) = container else { return Judged::Wait(None) };
    match container.state() {
        State::Running => Judged::Running,
        State::Terminated { reason, message, code } => {
            let started = !matches!(reason.as_str(), "StartError" | "ContainerCannotRun");
            let message = if message.is_empty() { format!("exit code {code}") } else { message };
            let words = Words { reason, message };
            Judged::Trouble(if started { Trouble::Ended(words) } else { Trouble::Start(words) })
        }
        State::Waiting { reason, message } => {
            let kind = match reason.as_str() {
                "InvalidImageName"
                | "ErrImageNeverPull"
                | "ImagePullBackOff"
                | "ImageInspectError"
                | "RegistryUnavailable"
                | "SignatureValidationFailed" => Trouble::Image,
                "CreateContainerConfigError" | "CreateContainerError" => Trouble::Config,
                "RunContainerError" => Trouble::Start,
                "ErrImagePull" if is_final(&message) => Trouble::Image,
                _ => return Judged::Wait(Some(Words { reason, message })),
            };
            Judged::Trouble(kind(Words { reason, message }))
        }
        State::Unknown => Judged::Wait(None),
    }
}

/// Does a registry's answer stay the same however often it is asked? Anything else may be a hiccup,
/// which the kubelet tries again before it backs off.
fn is_final(message: &str) -> bool {
    const WORDS: [&str; 5] =
        ["not found", "manifest unknown", "no match for platform", "no such host", "x509: "];
    wants_login(message) || WORDS.iter().any(|w| message.contains(w))
}

/// Did a registry refuse an image to somebody who isn't logged in, or not as the right one?
#[must_use]
pub fn wants_login(message: &str) -> bool {
    const WORDS: [&str; 7] = [
        "unauthorized",
        "Unauthorized",
        "authentication required",
        "authorization failed",
        "no basic auth credentials",
        "403 Forbidden",
        "denied",
    ];
    WORDS.iter().any(|w| message.contains(w))
}

/// Waits until the seat runs; `pod` becomes the newest one that was seen. `None`: it runs. `target`:
/// the container that it looks at, and its id when the seat was written.
///
/// # Errors
/// When a call failed: ctrl-C, or the pod can be neither watched nor read.
pub fn until_running(
    kubectl: &Kubectl,
    watch: Option<Watch<'_>>,
    pod: &mut Pod,
    seat: SeatName,
    target: (&str, Option<&ContainerId>),
    deadline: Instant,
) -> Result<Option<Trouble>, Error> {
    let name = seat.to_string();
    let began = Instant::now();
    let mut said: Option<Words> = None;
    let mut node_asked = false;
    let mut pull_failed: Option<Instant> = None;
    let mut follow = Follow::new(kubectl, watch);
    loop {
        let pause = pull_failed.map_or(deadline, |at| deadline.min(at + HICCUP));
        let pause = if node_asked || said.is_some() { pause } else { pause.min(began + SILENCE) };
        match follow.next(pod, pause)? {
            Seen::Pod | Seen::Late => {}
            Seen::Gone => return Ok(Some(gone(pod))),
        }
        // The kubelet starts nothing in it any more, and its grace may be long.
        if pod.is_being_deleted() {
            return Ok(Some(gone(pod)));
        }
        match judge(pod.container(&name).as_ref()) {
            Judged::Running => return Ok(None),
            Judged::Trouble(Trouble::Config(words)) if has_ended(pod, target, &words) => {
                return Ok(Some(Trouble::Target(words)));
            }
            Judged::Trouble(trouble) => return Ok(Some(with_earlier(trouble, said))),
            Judged::Wait(words) => said = words.filter(|w| !w.reason.is_empty()).or(said),
        }
        if let Some(words) = said.as_ref().filter(|w| w.reason == "ErrImagePull") {
            let at = *pull_failed.get_or_insert_with(Instant::now);
            if at.elapsed() >= HICCUP {
                return Ok(Some(Trouble::Image(words.clone())));
            }
        }
        if said.is_none() && !node_asked && began.elapsed() >= SILENCE {
            node_asked = true;
            if let Some(why) = ask_node(kubectl, pod)? {
                return Ok(Some(Trouble::Late(why)));
            }
        }
        if Instant::now() >= deadline {
            let words = said.unwrap_or_else(|| silent(pod));
            return Ok(Some(Trouble::Late(words)));
        }
    }
}

/// Is it the target that is missing? No rung changes that, and each that is tried burns a name. The
/// runtime knows it before the pod's status says so.
fn has_ended(pod: &Pod, (name, id): (&str, Option<&ContainerId>), words: &Words) -> bool {
    // containerd's words, whatever follows; seen with 2.x.
    const NO_TARGET: &str = "invalid target container";
    let now = pod.container(name);
    let is_same = now.as_ref().is_some_and(|c| c.is_running() && (id.is_none() || c.id().as_ref() == id));
    words.message.contains(NO_TARGET) || !is_same
}

fn gone(pod: &Pod) -> Trouble {
    Trouble::Gone(Words {
        reason: String::new(),
        message: format!("pod {} was deleted meanwhile", pod.name()),
    })
}

fn silent(pod: &Pod) -> Words {
    Words {
        reason: String::new(),
        message: format!("the kubelet of node {} hasn't said a word about it", pod.node()),
    }
}

/// A back-off's own message may be shorter than the failure it backs off from.
fn with_earlier(trouble: Trouble, said: Option<Words>) -> Trouble {
    match (trouble, said) {
        (Trouble::Image(now), Some(before))
            if before.reason == "ErrImagePull" && before.message.len() > now.message.len() =>
        {
            Trouble::Image(Words { reason: now.reason, message: before.message })
        }
        (trouble, _) => trouble,
    }
}

/// Is the node the trouble? Reading nodes needs a right that few have, so no answer is an answer.
fn ask_node(kubectl: &Kubectl, pod: &Pod) -> Result<Option<Words>, Error> {
    match kubectl.get("node", pod.node(), "does the node answer")?.finish() {
        Ok(node) => {
            Ok(node_trouble(&node).map(|why| Words { reason: format!("node {}", pod.node()), message: why }))
        }
        Err(Error::Interrupted) => Err(Error::Interrupted),
        Err(_) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pod::Kind;
    use serde_json::{Value, json};

    fn judged(state: Value) -> Judged {
        let (spec, status) = (json!({"name": "podbench-1"}), json!({"state": state}));
        judge(Some(&Container { kind: Kind::Ephemeral, spec: &spec, status: Some(&status) }))
    }

    fn waiting(reason: &str) -> Judged {
        judged(json!({"waiting": {"reason": reason, "message": "m"}}))
    }

    #[test]
    fn what_is_known_after_two_seconds_is_not_waited_for() {
        for reason in ["InvalidImageName", "ErrImageNeverPull", "ImagePullBackOff"] {
            assert!(matches!(waiting(reason), Judged::Trouble(Trouble::Image(_))), "{reason}");
        }
        for reason in ["CreateContainerConfigError", "CreateContainerError"] {
            assert!(matches!(waiting(reason), Judged::Trouble(Trouble::Config(_))), "{reason}");
        }
        assert!(matches!(waiting("RunContainerError"), Judged::Trouble(Trouble::Start(_))));
        let ended = judged(json!({"terminated": {"exitCode": 137, "reason": "Error"}}));
        assert!(matches!(ended, Judged::Trouble(Trouble::Ended(w)) if w.message == "exit code 137"));
        let never = judged(
            json!({"terminated": {"exitCode": 128, "reason": "StartError", "message": "exec format error"}}),
        );
        assert!(matches!(never, Judged::Trouble(Trouble::Start(_))));
    }

    #[test]
    fn a_target_that_is_gone_is_no_refusal_of_the_rung() {
        let pod = |state: Value, id: &str| {
            Pod::new(json!({
                "metadata": {"name": "p", "namespace": "n", "uid": "u"},
                "spec": {"containers": [{"name": "app"}]},
                "status": {"containerStatuses": [
                    {"name": "app", "state": state, "containerID": format!("containerd://{id}")}]},
            }))
            .unwrap()
        };
        let (first, second) = ("a".repeat(64), "b".repeat(64));
        let id = ContainerId::parse(&first).unwrap();
        let words = |message: &str| Words { reason: "CreateContainerError".into(), message: message.into() };
        let refused = words("failed to apply the seccomp profile");
        let target = ("app", Some(&id));
        assert!(!has_ended(&pod(json!({"running": {}}), &first), target, &refused));
        assert!(has_ended(&pod(json!({"running": {}}), &second), target, &refused), "it was restarted");
        assert!(has_ended(&pod(json!({"terminated": {"exitCode": 3}}), &first), target, &refused));
        // The status is older than what the runtime says.
        let gone =
            words("invalid target container: container \"a\" is not running - in state CONTAINER_EXITED");
        assert!(has_ended(&pod(json!({"running": {}}), &first), target, &gone));
    }

    #[test]
    fn a_registrys_final_word_is_believed_at_once_and_a_network_error_is_not() {
        let pull = |message: &str| judged(json!({"waiting": {"reason": "ErrImagePull", "message": message}}));
        assert!(matches!(pull("registry/x:1: not found"), Judged::Trouble(Trouble::Image(_))));
        assert!(matches!(pull("dial tcp 10.0.0.1:443: i/o timeout"), Judged::Wait(Some(_))));
    }

    #[test]
    fn a_first_failed_pull_and_a_creating_container_are_waited_for() {
        for reason in ["ErrImagePull", "ContainerCreating", "PodInitializing", "SomethingNew"] {
            assert!(matches!(waiting(reason), Judged::Wait(Some(_))), "{reason}");
        }
        assert_eq!(judged(json!({"running": {}})), Judged::Running);
        assert_eq!(judge(None), Judged::Wait(None));
    }

    #[test]
    fn the_registrys_words_survive_the_back_off() {
        let words = |reason: &str, message: &str| Words { reason: reason.into(), message: message.into() };
        let now = Trouble::Image(words("ImagePullBackOff", "Back-off"));
        let said = Some(words("ErrImagePull", "registry: not found"));
        assert_eq!(with_earlier(now, said), Trouble::Image(words("ImagePullBackOff", "registry: not found")));
    }
}
