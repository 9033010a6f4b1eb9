//! Two connections over a link that loses, reorders, duplicates and delays segments, on virtual time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rxo_frame::{Duration, Instant};
use rxo_tcp::{Arrival, Config, Connection, Secret, Segment};
use rxo_wire::{FlowKey, TcpFlags};

use crate::harness::wire::{Wire, cut};

/// The faults and the rate of the link; shares are per 1000 segments.
#[derive(Clone, Copy)]
pub(crate) struct Link {
    pub(crate) seed: u64,
    pub(crate) loss: u64,
    pub(crate) reordering: u64,
    pub(crate) repetition: u64,
    /// The delay in one direction.
    pub(crate) delay: Duration,
    pub(crate) bytes_per_ms: u64,
    /// The longest time that a segment may wait for the link before it is dropped.
    pub(crate) queue: Duration,
    /// The poll interval of the receiver, which aggregates contiguous text of one poll; zero means at once.
    pub(crate) poll: Duration,
}

impl Default for Link {
    /// Returns a link with 100 Mbit/s and a round trip of 20 ms.
    fn default() -> Self {
        Self {
            seed: 1,
            loss: 0,
            reordering: 0,
            repetition: 0,
            delay: Duration::from_millis(10),
            bytes_per_ms: 12_500,
            queue: Duration::from_millis(20),
            poll: Duration::ZERO,
        }
    }
}

/// A segment in flight: time and order of arrival, and the receiving end.
type Flight = (Reverse<(Instant, u64)>, usize);

pub(crate) struct Network {
    pub(crate) ends: [Connection<Vec<u8>>; 2],
    pub(crate) now: Instant,
    /// The number of segments that left either end.
    pub(crate) sent: u64,
    /// The number of segments that the link lost.
    pub(crate) lost: u64,
    link: Link,
    random: u64,
    flights: BinaryHeap<Flight>,
    wires: Vec<(usize, Instant, Option<Wire>)>,
    free_at: [Instant; 2],
}

const THERE: FlowKey = FlowKey::v4(0x0a00_0001, 0x0a00_0002, 0x1388_0050, 0);
const BACK: FlowKey = FlowKey::v4(0x0a00_0002, 0x0a00_0001, 0x0050_1388, 0);

impl Network {
    pub(crate) fn new(link: Link, there: Config, back: Config) -> Self {
        let now = Instant::from_micros(1_000_000);
        let client = Connection::open_active(there, THERE, Secret([1, 2]), now)
            .expect("settings that can be");
        let server =
            Connection::open_passive(back, BACK, Secret([3, 4])).expect("settings that can be");
        Self {
            ends: [client, server],
            now,
            sent: 0,
            lost: 0,
            link,
            random: link.seed,
            flights: BinaryHeap::new(),
            wires: Vec::new(),
            free_at: [now; 2],
        }
    }

    /// Changes the delay in one direction.
    pub(crate) fn set_delay(&mut self, delay: Duration) {
        self.link.delay = delay;
    }

    /// Changes the number of lost segments per 1000.
    pub(crate) fn set_loss(&mut self, loss: u64) {
        self.link.loss = loss;
    }

    /// Sends all segments that may be sent.
    pub(crate) fn flush(&mut self) {
        for end in 0..2 {
            let mut leaving = Vec::new();
            while let Some(transmit) = self.ends[end].poll_transmit(self.now) {
                cut(&transmit, &mut leaving);
            }
            leaving.into_iter().for_each(|wire| self.carry(1 - end, wire));
        }
    }

    /// Advances to the next event. Returns `false` if there is none.
    pub(crate) fn step(&mut self) -> bool {
        self.flush();
        let arrival = self.flights.peek().map(|(Reverse((at, _)), _)| self.polled(*at));
        let timers = self.ends.iter().filter_map(Connection::poll_at);
        let Some(next) = arrival.into_iter().chain(timers).min() else { return false };
        self.now = self.now.max(next);
        self.deliver();
        for end in &mut self.ends {
            if end.poll_at().is_some_and(|at| at <= self.now) {
                end.on_timeout(self.now);
            }
            if let Some(wanted) = end.wants_buffers(self.now) {
                end.set_buffers(wanted);
            }
        }
        true
    }

    fn polled(&self, at: Instant) -> Instant {
        let poll = self.link.poll.as_nanos() as u64;
        if poll == 0 { at } else { Instant::from_nanos(at.as_nanos().div_ceil(poll) * poll) }
    }

    fn deliver(&mut self) {
        let mut come: [Vec<Segment<Vec<u8>>>; 2] = [Vec::new(), Vec::new()];
        while let Some((Reverse((at, _)), place)) = self.flights.peek().copied() {
            if self.polled(at) > self.now {
                break;
            }
            self.flights.pop();
            let (to, at, wire) = &mut self.wires[place];
            if let Some(wire) = wire.take() {
                come[*to].push(wire.into_segment(*at));
            }
            if self.link.poll == Duration::ZERO {
                break;
            }
        }
        for (end, segments) in self.ends.iter_mut().zip(come) {
            for aggregate in aggregates(segments) {
                end.on_arrival(self.now, Arrival::segments(aggregate));
            }
        }
    }

    fn carry(&mut self, to: usize, wire: Wire) {
        self.sent += 1;
        let bytes = wire.text.len() as u64 + 66;
        let start = self.free_at[to].max(self.now);
        if start.since(self.now) > self.link.queue {
            self.lost += 1;
            return;
        }
        self.free_at[to] = start + Duration::from_nanos(bytes * 1_000_000 / self.link.bytes_per_ms);
        if self.happens(self.link.loss) {
            self.lost += 1;
            return;
        }
        let mut at = self.free_at[to] + self.link.delay;
        if self.happens(self.link.reordering) {
            at = at + self.link.delay / 4;
        }
        if self.happens(self.link.repetition) {
            self.fly(to, at, wire.clone());
        }
        self.fly(to, at, wire);
    }

    fn fly(&mut self, to: usize, at: Instant, wire: Wire) {
        let number = self.wires.len();
        self.wires.push((to, at, Some(wire)));
        self.flights.push((Reverse((at, number as u64)), number));
    }

    fn happens(&mut self, share: u64) -> bool {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % 1000 < share
    }
}

/// Aggregates the segments of one poll like a receive engine: contiguous text is joined, all else stays
/// alone.
fn aggregates(segments: Vec<Segment<Vec<u8>>>) -> Vec<Vec<Segment<Vec<u8>>>> {
    let mut made: Vec<Vec<Segment<Vec<u8>>>> = Vec::new();
    for segment in segments {
        let continues = made.last().and_then(|held| held.last()).is_some_and(|last| {
            let is_plain = |one: &Segment<Vec<u8>>| {
                one.text_bytes() > 0
                    && one.flags.without(TcpFlags::PSH) == TcpFlags::ACK
                    && one.options.sack.is_empty()
            };
            is_plain(last)
                && is_plain(&segment)
                && segment.seq == last.seq + last.text_bytes()
                && segment.ack.is_at_or_after(last.ack)
        });
        match made.last_mut() {
            Some(held) if continues => held.push(segment),
            _ => made.push(vec![segment]),
        }
    }
    made
}
