//! `--wait-start`: a target that doesn't run yet, or that starts again and again.

use std::time::Instant;

use super::follow::{Follow, Seen};
use crate::kubectl::{Error, Kubectl};
use crate::pod::Pod;
use crate::pod::state::{NotNow, not_now};

/// How the wait ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Waited {
    /// The target runs.
    Started,
    /// It won't start: what the pod says now.
    Never(NotNow),
    /// The time is up; what the pod says now.
    Late(NotNow),
}

/// Could a target that doesn't run now run later, in this pod?
#[must_use]
pub const fn may_start(no: &NotNow) -> bool {
    match no {
        NotNow::Unscheduled(_) => true,
        NotNow::Target(stopped) => !stopped.ended,
        NotNow::Static | NotNow::Completed(_) | NotNow::Deleted | NotNow::Windows => false,
    }
}

/// Waits until the target runs; `pod` becomes the newest one that was seen. `progress` is told why it
/// doesn't run, whenever that changes.
///
/// # Errors
/// When a call failed: ctrl-C, or the pod can be neither watched nor read.
pub fn until_started(
    kubectl: &Kubectl,
    pod: &mut Pod,
    target: &str,
    deadline: Instant,
    mut progress: impl FnMut(&NotNow),
) -> Result<Waited, Error> {
    let mut follow = Follow::new(kubectl, kubectl.watch_pod(pod.name()).ok());
    let mut told = None;
    loop {
        let Some(no) = not_now(pod, target) else { return Ok(Waited::Started) };
        if !may_start(&no) {
            return Ok(Waited::Never(no));
        }
        if told.as_ref() != Some(&no) {
            progress(&no);
            told = Some(no.clone());
        }
        match follow.next(pod, deadline)? {
            Seen::Pod => {}
            Seen::Gone => return Ok(Waited::Never(NotNow::Deleted)),
            Seen::Late => return Ok(Waited::Late(no)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::{Value, json};

    use super::*;
    use crate::kubectl::fake::{self, fails, ok, stays};

    fn pod(state: Value, policy: &str) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "api", "namespace": "demo", "uid": "u-1"},
            "spec": {"nodeName": "node1", "restartPolicy": policy, "containers": [{"name": "app"}]},
            "status": {"containerStatuses": [{"name": "app", "state": state}]},
        })
    }

    fn waiting() -> Value {
        pod(json!({"waiting": {"reason": "CrashLoopBackOff"}}), "Always")
    }

    fn wait(events: &[Value], limit: Duration) -> (Waited, usize) {
        let text: String =
            events.iter().map(|e| json!({"type": "MODIFIED", "object": e}).to_string()).collect();
        let (kubectl, _) = fake::kubectl(move |_, _| stays(text.clone(), ""));
        let mut told = 0;
        let deadline = Instant::now() + limit;
        let mut now = Pod::new(waiting()).unwrap();
        (until_started(&kubectl, &mut now, "app", deadline, |_| told += 1).unwrap(), told)
    }

    #[test]
    fn the_next_start_is_waited_for_and_each_reason_is_told_once() {
        let running = pod(json!({"running": {}}), "Always");
        let (waited, told) = wait(&[waiting(), waiting(), running], Duration::from_secs(30));
        assert_eq!((waited, told), (Waited::Started, 1));
    }

    #[test]
    fn what_never_starts_again_is_not_waited_for() {
        let over = pod(json!({"terminated": {"exitCode": 0, "reason": "Completed"}}), "Never");
        let (waited, _) = wait(&[over], Duration::from_secs(30));
        assert!(matches!(waited, Waited::Never(NotNow::Target(s)) if s.ended));
        let mut deleted = waiting();
        deleted["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert_eq!(wait(&[deleted], Duration::from_secs(30)).0, Waited::Never(NotNow::Deleted));
    }

    #[test]
    fn a_deadline_tells_what_was_seen_last() {
        let (waited, _) = wait(&[waiting()], Duration::from_millis(50));
        assert!(matches!(waited, Waited::Late(NotNow::Target(s)) if s.reason == "CrashLoopBackOff"));
    }

    #[test]
    fn without_a_watch_the_pod_is_polled() {
        let denied = include_str!("../kubectl/samples/rbac-watch.txt");
        let running = pod(json!({"running": {}}), "Always");
        let (kubectl, _) =
            fake::kubectl(
                move |line, _| {
                    if line.contains("--watch") { fails(denied) } else { ok(running.clone()) }
                },
            );
        let mut now = Pod::new(waiting()).unwrap();
        let deadline = Instant::now() + Duration::from_secs(30);
        assert_eq!(until_started(&kubectl, &mut now, "app", deadline, |_| {}).unwrap(), Waited::Started);
    }
}
