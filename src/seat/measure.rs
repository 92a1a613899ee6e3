//! One exec answers everything that is asked of a seat. `kubectl exec` can lose the tail of a reply
//! and still exit 0, so the reply is framed, and asked for again where it isn't whole.

use std::thread;
use std::time::Duration;

use podbench_contract::frame::{self, Broken};
use podbench_contract::ids::{ContainerId, SeatName};
use podbench_contract::keys::PublicKey;
use podbench_contract::measurement::Measurement;
use podbench_contract::session::measure_argv;

use crate::kubectl::call::Limits;
use crate::kubectl::refusal::Refusal;
use crate::kubectl::{Error, Kubectl, Started};

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The pod.
    pub pod: &'a str,
    /// The seat.
    pub seat: SeatName,
    /// The target's id now.
    pub target: Option<&'a ContainerId>,
    /// One more key to let in.
    pub authorize: Option<&'a PublicKey>,
    /// Is ptrace tried?
    pub probe: bool,
}

/// Why there is no measurement.
#[derive(Debug, thiserror::Error)]
pub enum Unmeasured {
    /// The exec failed.
    #[error(transparent)]
    Exec(#[from] Error),
    /// The reply isn't whole, however often it is asked for.
    #[error("{0}")]
    Reply(#[from] Broken),
    /// The reply is whole and isn't a measurement.
    #[error("the reply isn't a measurement: {0}")]
    Content(String),
}

/// `measure` itself waits up to 5 s for the agent; a tunnel that is broken never says anything.
const FIRST_BYTE: Duration = Duration::from_secs(15);
const TOTAL: Duration = Duration::from_secs(30);
/// How often a reply is asked for.
const TRIES: u32 = 3;
/// How often an exec right after the start is refused because the runtime doesn't know the
/// container yet.
const EARLY: u32 = 10;

/// Asks.
///
/// # Errors
/// When there is no answer that can be believed.
pub fn measure(kubectl: &Kubectl, question: Question<'_>) -> Result<Measurement, Unmeasured> {
    let Question { pod, seat, target, authorize, probe } = question;
    let argv = measure_argv(target, authorize, probe);
    let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
    let limits = Limits { total: TOTAL, first_byte: Some(FIRST_BYTE), most: frame::LONGEST_FRAMED };
    let (mut tries, mut early) = (0, 0);
    loop {
        let reply =
            kubectl.exec(pod, &seat.to_string(), &argv, limits, "measure the seat").and_then(Started::finish);
        let broken = match reply {
            Ok(bytes) => match frame::decode(&bytes) {
                Ok(payload) => {
                    return Measurement::parse(payload).map_err(|e| Unmeasured::Content(e.to_string()));
                }
                Err(broken) => Unmeasured::Reply(broken),
            },
            Err(error) => Unmeasured::Exec(error),
        };
        match again(&broken, kubectl.needs_spdy()) {
            Again::No => return Err(broken),
            Again::Early if early < EARLY => {
                early += 1;
                thread::sleep(Duration::from_millis(200));
            }
            Again::Passing if tries + 1 < TRIES => tries += 1,
            // What resets every websocket may let SPDY pass; kubectl itself tries that only after
            // an answer in HTTP.
            Again::Passing if broken.was_reset() && !kubectl.needs_spdy() => kubectl.use_spdy(),
            Again::Spdy => kubectl.use_spdy(),
            Again::Early | Again::Passing => return Err(broken),
        }
    }
}

/// What may help where an exec came to nothing.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Again {
    /// Nothing.
    No,
    /// Some patience: the runtime doesn't know the container yet.
    Early,
    /// Another try.
    Passing,
    /// Another protocol.
    Spdy,
}

impl Unmeasured {
    const fn was_reset(&self) -> bool {
        matches!(self, Self::Exec(error) if was_reset(error))
    }
}

/// Did the connection end before there was an exec?
pub(super) const fn was_reset(error: &Error) -> bool {
    matches!(error, Error::Refused(Refusal::Unreachable(_)))
}

/// May asking again help?
fn again(broken: &Unmeasured, spdy: bool) -> Again {
    match broken {
        Unmeasured::Reply(broken) if broken.is_passing() => Again::Passing,
        Unmeasured::Reply(_) | Unmeasured::Content(_) => Again::No,
        Unmeasured::Exec(error) => exec_again(error, spdy),
    }
}

/// May the same exec again help?
pub(super) const fn exec_again(error: &Error, spdy: bool) -> Again {
    match error {
        Error::Refused(Refusal::NoContainer(_)) => Again::Early,
        // Something between here and the server takes no websockets; SPDY may pass.
        Error::Refused(Refusal::Upgrade(_)) if !spdy => Again::Spdy,
        // A connection that was cut before its first byte.
        Error::Failed { .. } | Error::Refused(Refusal::Unreachable(_) | Refusal::Cut(_)) => Again::Passing,
        Error::Refused(_)
        | Error::Start { .. }
        | Error::Deadline { .. }
        | Error::TooMuch { .. }
        | Error::Interrupted
        | Error::Answer { .. } => Again::No,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_reply_is_asked_for_again_and_a_foreign_one_is_not() {
        assert_eq!(again(&Unmeasured::Reply(Broken::Digest), false), Again::Passing);
        assert_eq!(again(&Unmeasured::Reply(Broken::Short { want: 9, got: 1 }), false), Again::Passing);
        assert_eq!(again(&Unmeasured::Reply(Broken::NoHeader), false), Again::No);
        assert_eq!(again(&Unmeasured::Content("x".into()), false), Again::No);
    }

    #[test]
    fn a_refused_websocket_is_tried_over_spdy_once() {
        let refused = || Unmeasured::Exec(Error::Refused(Refusal::Upgrade("Forbidden".into())));
        assert_eq!(again(&refused(), false), Again::Spdy);
        assert_eq!(again(&refused(), true), Again::No);
    }

    #[test]
    fn a_container_that_the_runtime_does_not_know_yet_is_asked_again() {
        let early = Unmeasured::Exec(Error::Refused(Refusal::NoContainer("container not found".into())));
        assert_eq!(again(&early, false), Again::Early);
    }
}
