//! The links between a sender and its receivers: each segment takes a while, or is lost.

use std::collections::BTreeMap;

use rxo_frame::{Duration, Instant};

use super::wire::Wire;

/// Whom a segment is for.
#[derive(Clone, Copy)]
pub(crate) enum To {
    Sender(usize),
    Receiver(usize, ByGroup),
}

pub(crate) type ByGroup = bool;

/// What is on its way, and what becomes of it.
pub(crate) struct Links {
    /// Of 1000 segments to a receiver, and from it.
    pub(crate) loss: u64,
    /// How long the sender's link needs for a byte; zero if it does not limit.
    pub(crate) byte_time: Duration,
    /// The seed of what is lost.
    pub(crate) random: u64,
    free_at: Instant,
    flights: BTreeMap<(Instant, u64), (To, Wire)>,
    carried: u64,
}

impl Links {
    pub(crate) fn new() -> Self {
        Self {
            loss: 0,
            byte_time: Duration::ZERO,
            random: 1,
            free_at: Instant::ZERO,
            flights: BTreeMap::new(),
            carried: 0,
        }
    }

    /// When the sender's link is through with all that has left by `now`.
    pub(crate) fn leaves_after(&self, now: Instant) -> Instant {
        self.free_at.max(now)
    }

    /// When the sender's link is through with `wire`, which it carries after all before.
    pub(crate) fn has_left(&mut self, now: Instant, wire: &Wire) -> Instant {
        let time = self.byte_time * (wire.text.len() as u32 + HEADER_BYTES);
        self.free_at = self.leaves_after(now) + time;
        self.free_at
    }

    /// Brings `wire`, which leaves at `at`.
    pub(crate) fn carry(&mut self, to: To, wire: Wire, at: Instant) {
        if self.happens(self.loss) {
            return;
        }
        // Receivers and sender look ten thousand times a second.
        let at = (at + DELAY).as_nanos().div_ceil(TICK_NS) * TICK_NS;
        self.carried += 1;
        self.flights.insert((Instant::from_nanos(at), self.carried), (to, wire));
    }

    /// When the next segment arrives.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.flights.keys().next().map(|(at, _)| *at)
    }

    /// Takes the next segment that has arrived by `now`.
    pub(crate) fn arrived(&mut self, now: Instant) -> Option<(To, Wire)> {
        let entry = self.flights.first_entry().filter(|entry| entry.key().0 <= now)?;
        Some(entry.remove())
    }

    fn happens(&mut self, share: u64) -> bool {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % 1000 < share
    }
}

const DELAY: Duration = Duration::from_micros(200);
pub(crate) const ROUND_TRIP: Duration = Duration::from_micros(400);
const HEADER_BYTES: u32 = 66;
const TICK_NS: u64 = 100_000;
