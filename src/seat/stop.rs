//! A seat's end: its agent is asked, and the kubelet's word is waited for. The container's entry stays
//! in the pod; what is asked for is that nothing of it runs any more.

use std::time::{Duration, Instant};

use podbench_contract::ids::SeatName;
use podbench_contract::session::stop_argv;

use super::follow::{Follow, POLL, Seen};
use super::measure::{Again, exec_again, was_reset};
use crate::kubectl::call::Limits;
use crate::kubectl::{Error, Kubectl, Started, Watch};
use crate::pod::{Pod, State};

/// The agent gives each process 3 s, and up to 8 s in all.
const ASKED: Limits = Limits { total: Duration::from_secs(30), first_byte: None, most: 64 << 10 };
/// How often a cut connection is tried, and for how long.
const TRIES: u32 = 3;
const PATIENCE: Duration = Duration::from_secs(10);
/// How long the kubelet may take to say that an asked seat has ended.
pub const KUBELET: Duration = Duration::from_secs(20);

/// Asks the seat's agent to end everything that is the seat's, itself last. An error says only that
/// there was no good answer: the container may take the answer along.
///
/// # Errors
/// When the exec failed.
pub fn ask(kubectl: &Kubectl, pod: &str, seat: SeatName) -> Result<(), Error> {
    let argv = stop_argv();
    let began = Instant::now();
    let mut tries = 0;
    loop {
        tries += 1;
        let answer =
            kubectl.exec(pod, &seat.to_string(), &argv, ASKED, "end the seat").and_then(Started::finish);
        let Err(error) = answer else { return Ok(()) };
        let spdy = kubectl.needs_spdy();
        let patience = tries < TRIES && began.elapsed() < PATIENCE;
        match exec_again(&error, spdy) {
            Again::Spdy => kubectl.use_spdy(),
            // Asking a seat that has ended meanwhile does no harm.
            Again::Passing if patience => std::thread::sleep(POLL),
            // What resets every websocket may let SPDY pass.
            Again::Passing if was_reset(&error) && !spdy => {
                kubectl.use_spdy();
                tries -= 1;
            }
            // A container that isn't there has ended.
            Again::No | Again::Early | Again::Passing => return Err(error),
        }
    }
}

/// How a wait for an end ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// Every seat has ended.
    Ended,
    /// The pod is gone, and everything in it.
    Gone,
    /// The kubelet hasn't said so in time.
    Late,
}

/// Waits until the kubelet says that these have ended; `pod` becomes the newest one that was seen.
///
/// # Errors
/// When a call failed: ctrl-C, or the pod can be neither watched nor read.
pub fn until_ended(
    kubectl: &Kubectl,
    watch: Option<Watch<'_>>,
    pod: &mut Pod,
    seats: &[SeatName],
    deadline: Instant,
) -> Result<Waited, Error> {
    let mut follow = Follow::new(kubectl, watch);
    loop {
        if seats.iter().all(|seat| has_ended(pod, *seat)) {
            return Ok(Waited::Ended);
        }
        match follow.next(pod, deadline)? {
            Seen::Pod => {}
            // Deleted, or made anew under its old name: the seats went with it.
            Seen::Gone => return Ok(Waited::Gone),
            Seen::Late => return Ok(Waited::Late),
        }
    }
}

/// Has this one ended, as the kubelet says?
#[must_use]
pub fn has_ended(pod: &Pod, seat: SeatName) -> bool {
    pod.container(&seat.to_string()).is_some_and(|c| matches!(c.state(), State::Terminated { .. }))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::kubectl::fake::{self, fails, ok};

    fn pod(uid: &str, state: &Value) -> Value {
        json!({
            "metadata": {"name": "api", "namespace": "demo", "uid": uid},
            "spec": {"containers": [{"name": "app"}], "ephemeralContainers": [{"name": "podbench-1"}]},
            "status": {"ephemeralContainerStatuses": [{"name": "podbench-1", "state": state}]},
        })
    }

    /// What a wait comes to where the pod, asked for, is this. Watching is denied.
    fn waited(answer: fn() -> fake::Says) -> Result<Waited, Error> {
        let denied = "Error from server (Forbidden): pods \"api\" is forbidden: User \"me\" cannot watch \
                      resource \"pods\" in API group \"\" in the namespace \"demo\"";
        let (kubectl, _) =
            fake::kubectl(move |line, _| if line.contains("--watch") { fails(denied) } else { answer() });
        let mut pod = Pod::new(pod("u-1", &json!({"running": {}}))).unwrap();
        let seat = SeatName::parse("podbench-1").unwrap();
        let watch = kubectl.watch_pod("api").ok();
        until_ended(&kubectl, watch, &mut pod, &[seat], Instant::now() + Duration::from_millis(700))
    }

    #[test]
    fn a_cut_connection_is_tried_again_and_a_right_that_lacks_is_not() {
        let asked = |answers: &'static [&'static str]| {
            let (kubectl, calls) = fake::kubectl({
                let next = std::sync::atomic::AtomicUsize::new(0);
                move |_, _| match answers.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) {
                    Some(words) => fails(words),
                    None => ok(""),
                }
            });
            let answer = ask(&kubectl, "api", SeatName::parse("podbench-1").unwrap());
            (answer.is_ok(), calls.lock().unwrap().len())
        };
        const CUT: &str = "error: unexpected EOF";
        const DENIED: &str = "Error from server (Forbidden): pods \"api\" is forbidden: User \"me\" cannot create \
                              resource \"pods/exec\" in API group \"\" in the namespace \"demo\"";
        assert_eq!(asked(&[CUT]), (true, 2));
        assert_eq!(asked(&[CUT, CUT, CUT, CUT]), (false, 3));
        assert_eq!(asked(&[DENIED]), (false, 1));
    }

    #[test]
    fn only_the_kubelets_word_or_a_pod_that_is_gone_ends_the_wait() {
        let ended = waited(|| ok(pod("u-1", &json!({"terminated": {"exitCode": 0}}))));
        assert_eq!(ended, Ok(Waited::Ended));
        let replaced = waited(|| ok(pod("u-2", &json!({"running": {}}))));
        assert_eq!(replaced, Ok(Waited::Gone));
        let deleted = waited(|| fails("Error from server (NotFound): pods \"api\" not found"));
        assert_eq!(deleted, Ok(Waited::Gone));
        assert_eq!(waited(|| ok(pod("u-1", &json!({"running": {}})))), Ok(Waited::Late));
        assert!(waited(|| fails("The connection to the server 127.0.0.1:6443 was refused")).is_err());
    }
}
