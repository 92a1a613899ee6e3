//! One direction of a connection: bytes that have come and may not go on yet.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::proxy::Throttle;

/// What is taken in ahead of what may go on: about what routers hold.
const MOST: usize = 128 << 10;

/// The queue.
pub(crate) struct Lane {
    queue: VecDeque<(Instant, Vec<u8>)>,
    held: usize,
    free: Instant,
    /// Bytes that went on.
    pub(crate) moved: u64,
    /// Nothing more comes in.
    pub(crate) ended: bool,
}

impl Lane {
    pub(crate) fn new() -> Self {
        Self { queue: VecDeque::new(), held: 0, free: Instant::now(), moved: 0, ended: false }
    }

    /// May more come in?
    pub(crate) const fn has_room(&self) -> bool {
        self.held < MOST && !self.ended
    }

    /// Everything went on and nothing more comes.
    pub(crate) fn is_done(&self) -> bool {
        self.ended && self.queue.is_empty()
    }

    /// Takes bytes in at a time, in pieces of at most a 20th of a second.
    pub(crate) fn push(&mut self, now: Instant, bytes: &[u8], throttle: Throttle) {
        self.held += bytes.len();
        let Some(rate) = throttle.rate.filter(|rate| *rate > 0) else {
            self.queue.push_back((now + throttle.latency, bytes.to_vec()));
            return;
        };
        let piece = usize::try_from(rate / 20).unwrap_or(MOST).max(256);
        for part in bytes.chunks(piece) {
            let takes = Duration::from_secs_f64(part.len() as f64 / rate as f64);
            self.free = self.free.max(now) + takes;
            self.queue.push_back((self.free + throttle.latency, part.to_vec()));
        }
    }

    /// When the next bytes may go on.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.queue.front().map(|(due, _)| *due)
    }

    /// Bytes that may go on now.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<Vec<u8>> {
        self.due().filter(|due| *due <= now)?;
        let (_, bytes) = self.queue.pop_front()?;
        self.held -= bytes.len();
        self.moved += bytes.len() as u64;
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When the last byte of `sent` arrives, in milliseconds.
    fn arrives(sent: usize, throttle: Throttle) -> (u64, usize) {
        let mut lane = Lane::new();
        let start = Instant::now();
        lane.push(start, &vec![0; sent], throttle);
        let (mut at, mut got) = (start, 0);
        while let Some(due) = lane.due() {
            at = due;
            got += lane.pop(due).map_or(0, |b| b.len());
        }
        (u64::try_from((at - start).as_millis()).unwrap(), got)
    }

    #[test]
    fn a_slow_lane_takes_its_time_and_loses_nothing() {
        let (late, got) = arrives(125_000, Throttle::SLOW_LINK);
        assert_eq!(got, 125_000);
        assert!((1095..=1105).contains(&late), "{late}");
        assert_eq!(arrives(1000, Throttle::default()), (0, 1000));
    }

    #[test]
    fn a_full_lane_takes_no_more_until_something_went_on() {
        let mut lane = Lane::new();
        let now = Instant::now();
        lane.push(now, &vec![0; MOST], Throttle::default());
        assert!(!lane.has_room());
        assert_eq!(lane.pop(now).map(|b| b.len()), Some(MOST));
        assert!(lane.has_room());
        assert_eq!(lane.moved, MOST as u64);
    }
}
