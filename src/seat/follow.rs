//! A pod's changes, however they can be had: watched; asked for beside a watch that has gone quiet;
//! polled where a watch is denied.

use std::time::{Duration, Instant};

use crate::kubectl::refusal::Refusal;
use crate::kubectl::{Error, Kubectl, Watch, Watched};
use crate::pod::Pod;

/// How often the pod is asked where it can't be watched.
pub(super) const POLL: Duration = Duration::from_millis(300);
/// A watch that is silent for so long is asked beside, then for twice as long, and so on: something in
/// between may have cut it, and once in some hundred landings the event that mattered never came.
const QUIET: Duration = Duration::from_secs(2);
const LONGEST_QUIET: Duration = Duration::from_secs(16);

/// What became of the pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// It was seen; the newest one is at hand.
    Pod,
    /// It is gone, or another of its name has taken its place.
    Gone,
    /// The time is up.
    Late,
}

/// Follows one pod.
pub struct Follow<'k> {
    kubectl: &'k Kubectl,
    watch: Option<Watch<'k>>,
    quiet: Duration,
    asked: Instant,
}

impl<'k> Follow<'k> {
    /// With a watch that was started already; `None`: the pod is polled.
    #[must_use]
    pub fn new(kubectl: &'k Kubectl, watch: Option<Watch<'k>>) -> Self {
        Self { kubectl, watch, quiet: QUIET, asked: Instant::now() }
    }

    /// Waits for the next news, at most until then; `pod` becomes the newest one.
    ///
    /// # Errors
    /// When the pod can be neither watched nor read, or ctrl-C.
    pub fn next(&mut self, pod: &mut Pod, until: Instant) -> Result<Seen, Error> {
        loop {
            let Some(events) = &mut self.watch else {
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Ok(Seen::Late);
                }
                std::thread::sleep(POLL.min(left));
                return self.read(pod, until);
            };
            let ask = self.asked + self.quiet;
            match events.next(until.min(ask)) {
                Ok(Watched::Pod(value)) => {
                    self.asked = Instant::now();
                    return Ok(Pod::new(value).map_or(Seen::Pod, |new| take(pod, new)));
                }
                Ok(Watched::Deleted) => return Ok(Seen::Gone),
                Ok(Watched::Nothing) if Instant::now() < ask => return Ok(Seen::Late),
                Ok(Watched::Nothing) => {
                    self.quiet = LONGEST_QUIET.min(self.quiet * 2);
                    match self.read(pod, until) {
                        Err(Error::Interrupted) => return Err(Error::Interrupted),
                        // The watch still stands, and is what counts.
                        Err(_) => {}
                        seen => return seen,
                    }
                }
                Err(Error::Interrupted) => return Err(Error::Interrupted),
                // Denied, or cut: ask instead.
                Err(_) => self.watch = None,
            }
        }
    }

    fn read(&mut self, pod: &mut Pod, until: Instant) -> Result<Seen, Error> {
        self.asked = Instant::now();
        let left = until.saturating_duration_since(self.asked).max(POLL);
        match self.kubectl.get_pod(pod.name())?.finish_within(left) {
            Ok(value) => Ok(Pod::new(value).map_or(Seen::Pod, |new| take(pod, new))),
            Err(Error::Refused(Refusal::NotFound(_))) => Ok(Seen::Gone),
            Err(Error::Deadline { .. }) if Instant::now() >= until => Ok(Seen::Late),
            Err(error) => Err(error),
        }
    }
}

fn take(pod: &mut Pod, new: Pod) -> Seen {
    if new.uid() != pod.uid() {
        return Seen::Gone;
    }
    *pod = new;
    Seen::Pod
}
