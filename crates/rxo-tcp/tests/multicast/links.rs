//! The links between a sender and its receivers: each segment is delayed, or lost.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

use rxo_frame::{Duration, Instant};

use super::wire::Wire;

/// The addressee of a segment or parity packet.
#[derive(Clone, Copy)]
pub(crate) enum To {
    Sender(usize),
    Receiver(usize, ByGroup),
    /// A parity packet to the group, for a receiver.
    Collector(usize),
}

pub(crate) type ByGroup = bool;

/// The segments in flight, and the rules of the links.
pub(crate) struct Links {
    /// The number of lost segments per 1000, in each direction.
    pub(crate) loss: u64,
    /// The time before which nothing is lost.
    pub(crate) lossy_from: Instant,
    /// The time that the sender's link needs for a byte; zero if it has no limit.
    pub(crate) byte_time: Duration,
    /// The seed that decides which segments are lost.
    pub(crate) random: u64,
    /// The number of bytes that the sender's link has carried, headers included.
    pub(crate) sent_bytes: u64,
    /// The longest time that a segment waits for the sender's link; a segment that would wait longer is lost.
    pub(crate) most_queued: Duration,
    /// The time at which the link has sent everything. Several senders may share it.
    pub(crate) free_at: Rc<Cell<Instant>>,
    flights: BTreeMap<(Instant, u64), (To, Wire)>,
    carried: u64,
}

impl Links {
    pub(crate) fn new() -> Self {
        Self {
            loss: 0,
            lossy_from: Instant::ZERO,
            byte_time: Duration::ZERO,
            random: 1,
            sent_bytes: 0,
            most_queued: Duration::MAX,
            free_at: Rc::default(),
            flights: BTreeMap::new(),
            carried: 0,
        }
    }

    /// Returns the time at which the sender's link has sent everything that has left by `now`.
    pub(crate) fn leaves_after(&self, now: Instant) -> Instant {
        self.free_at.get().max(now)
    }

    /// Returns the time at which the sender's link has sent `wire`, which it carries after all earlier
    /// segments; [`NEVER`] if there is no room for it.
    pub(crate) fn has_left(&mut self, now: Instant, wire: &Wire) -> Instant {
        if self.leaves_after(now).since(now) > self.most_queued {
            return NEVER;
        }
        // A parity packet is a datagram, without flags.
        let headers = if wire.flags.bits() == 0 { DATAGRAM_BYTES } else { HEADER_BYTES };
        let bytes = wire.text.len() as u32 + headers;
        self.sent_bytes += u64::from(bytes);
        let time = self.byte_time * bytes;
        let free_at = self.leaves_after(now) + time;
        self.free_at.set(free_at);
        free_at
    }

    /// Carries `wire`, which leaves at `at`, unless it is lost.
    pub(crate) fn carry(&mut self, to: To, wire: Wire, at: Instant) {
        if at == NEVER || at >= self.lossy_from && self.happens(self.loss) {
            return;
        }
        // Receivers and sender poll ten thousand times per second.
        let at = (at + DELAY).as_nanos().div_ceil(TICK_NS) * TICK_NS;
        self.carried += 1;
        self.flights.insert((Instant::from_nanos(at), self.carried), (to, wire));
    }

    /// Keeps `wire`, which has arrived, in the receiver's device until `until`.
    pub(crate) fn keep(&mut self, to: To, wire: Wire, until: Instant) {
        self.carried += 1;
        self.flights.insert((until, self.carried), (to, wire));
    }

    /// Returns the time at which the next segment arrives.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.flights.keys().next().map(|(at, _)| *at)
    }

    /// Returns the next segment that has arrived by `now`.
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

/// The time at which a segment for which the link has no room has left.
const NEVER: Instant = Instant::from_nanos(u64::MAX);
const DELAY: Duration = Duration::from_micros(200);
pub(crate) const ROUND_TRIP: Duration = Duration::from_micros(400);
const HEADER_BYTES: u32 = 66;
const DATAGRAM_BYTES: u32 = 42;
const TICK_NS: u64 = 100_000;
