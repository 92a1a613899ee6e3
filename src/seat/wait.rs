//! From stored to running. Nothing waits for what is known already: a kubelet that says it can't
//! is believed at once, an image pull at its first back-off.

use std::time::{Duration, Instant};

use podbench_contract::ids::SeatName;

use crate::kubectl::refusal::Refusal;
use crate::kubectl::{Error, Kubectl, Watch, Watched};
use crate::ladder::{Trouble, Words};
use crate::pod::state::node_trouble;
use crate::pod::{Container, Pod, State};

/// How often the pod is asked where it can't be watched.
const POLL: Duration = Duration::from_millis(300);
/// How long a first failed pull may turn out to have been a hiccup.
const HICCUP: Duration = Duration::from_secs(3);
/// A watch that is silent for so long is asked beside, then for twice as long, and so on: something in
/// between may have cut it, and once in some hundred landings the event that mattered never came.
const QUIET: Duration = Duration::from_secs(2);
const LONGEST_QUIET: Duration = Duration::from_secs(16);
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

/// Waits until the seat runs; `pod` becomes the newest one that was seen. `None`: it runs.
///
/// # Errors
/// When a call failed: ctrl-C, or the pod can be neither watched nor read.
pub fn until_running(
    kubectl: &Kubectl,
    mut watch: Option<Watch<'_>>,
    pod: &mut Pod,
    seat: SeatName,
    deadline: Instant,
) -> Result<Option<Trouble>, Error> {
    let name = seat.to_string();
    let began = Instant::now();
    let mut said: Option<Words> = None;
    let mut node_asked = false;
    let mut pull_failed: Option<Instant> = None;
    let mut quiet = QUIET;
    loop {
        let mut pause = deadline.min(Instant::now() + quiet);
        if let Some(at) = pull_failed {
            pause = pause.min(at + HICCUP);
        }
        let new = match &mut watch {
            Some(events) => match events.next(pause) {
                Ok(Watched::Pod(value)) => Pod::new(value).ok(),
                Ok(Watched::Deleted) => return Ok(Some(gone(pod))),
                Ok(Watched::Nothing) if pull_failed.is_some() => None,
                Ok(Watched::Nothing) => {
                    quiet = LONGEST_QUIET.min(quiet * 2);
                    match read(kubectl, pod)? {
                        Some(new) => Some(new),
                        None => return Ok(Some(gone(pod))),
                    }
                }
                Err(Error::Interrupted) => return Err(Error::Interrupted),
                // Denied, or cut: ask instead.
                Err(_) => {
                    watch = None;
                    continue;
                }
            },
            None => {
                std::thread::sleep(POLL.min(deadline.saturating_duration_since(Instant::now())));
                match read(kubectl, pod)? {
                    Some(new) => Some(new),
                    None => return Ok(Some(gone(pod))),
                }
            }
        };
        if let Some(new) = new.filter(|new| new.uid() == pod.uid()) {
            *pod = new;
        }
        // The kubelet starts nothing in it any more, and its grace may be long.
        if pod.is_being_deleted() {
            return Ok(Some(gone(pod)));
        }
        match judge(pod.container(&name).as_ref()) {
            Judged::Running => return Ok(None),
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

/// The pod now; `None`: it is gone.
fn read(kubectl: &Kubectl, pod: &Pod) -> Result<Option<Pod>, Error> {
    match kubectl.get_pod(pod.name())?.finish() {
        Ok(value) => Ok(Some(Pod::new(value).unwrap_or_else(|_| pod.clone()))),
        Err(Error::Refused(Refusal::NotFound(_))) => Ok(None),
        Err(error) => Err(error),
    }
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
