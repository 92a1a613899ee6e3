//! The seat's end: SIGTERM to all that is the seat's, SIGKILL to what stays, and the agent last.
//!
//! It goes on in the agent's loop, a look at a time, so that children are still reaped meanwhile.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::members;
use crate::proc::Own;

/// How long a process of the seat has between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(3);
/// How long the agent waits for those that SIGKILL doesn't end.
const PATIENCE: Duration = Duration::from_secs(8);
/// Between two looks of one who ends a seat from outside its agent.
const LOOK: Duration = Duration::from_millis(50);
/// How long who asked has to take the answer.
const FAREWELL: Duration = Duration::from_millis(500);

/// An end that has begun.
pub(crate) struct Stop {
    /// Who asked, and is left until it was answered.
    except: BTreeSet<u32>,
    kill: Instant,
    give_up: Instant,
    told: Option<Instant>,
}

/// Ends a seat whose agent is there and doesn't answer (a peer may have stopped it): what the agent
/// would have ended, and the agent. How many processes are left; our own goes with the container.
pub(crate) fn without_agent() -> usize {
    let own = Own::read();
    let mut stop = Stop::begin(&own, Some(std::process::id()), Instant::now());
    loop {
        if let Progress::Over { left } = stop.look(&own, Instant::now()) {
            return left;
        }
        std::thread::sleep(LOOK);
    }
}

/// How far it is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Something of the seat still runs.
    Going,
    /// Nothing does, or nothing more can be done. Said once.
    Over {
        /// How many processes are still there.
        left: usize,
    },
    /// That was said.
    Told {
        /// And there was time enough to hear it.
        late: bool,
    },
}

impl Stop {
    /// Begins it: SIGTERM to everything but who asked.
    pub(crate) fn begin(own: &Own, asked_by: Option<u32>, now: Instant) -> Self {
        let except: BTreeSet<u32> = asked_by.into_iter().collect();
        members::signal(&members::find(own, &except), Signal::TERM, own, &except);
        Self { except, kill: now + GRACE, give_up: now + PATIENCE, told: None }
    }

    /// One more that asked.
    pub(crate) fn leave(&mut self, asked_by: Option<u32>) {
        self.except.extend(asked_by);
    }

    /// Looks at what is left, and does what is due.
    pub(crate) fn look(&mut self, own: &Own, now: Instant) -> Progress {
        if let Some(until) = self.told {
            return Progress::Told { late: now >= until };
        }
        let left = members::find(own, &self.except);
        if left.is_empty() || now >= self.give_up {
            self.told = Some(now + FAREWELL);
            return Progress::Over { left: left.len() };
        }
        if now >= self.kill {
            members::signal(&left, Signal::KILL, own, &self.except);
        }
        Progress::Going
    }
}
