//! rxo's engine as an embedder runs it: whole polls, with counters and histograms, written merged headers,
//! and a sink that reads every delivery.

use std::collections::HashSet;
use std::hint::black_box;

use rxo_coalesce::{Config, Deliveries, Delivery, Engine, Policy, PureAckRule};
use rxo_frame::{Frame, FrameBuffer, Instant, Pool, PoolBuf};
use rxo_testkit::Traffic;
use rxo_wire::checksum::Summer;
use rxo_wire::tcp::FLAGS_AT;
use rxo_wire::{Transport, parse};

use super::{BATCH_FRAMES, Contender, Outcome};
use crate::arch;

/// Time from one poll to the next.
const POLL_NS: u64 = 10_000;
/// Size of a buffer, enough for the largest packet of any workload.
const BUFFER_BYTES: usize = 2_048;
/// Bytes of a packet that are read if its checksum is trusted.
const READ_BYTES: usize = 128;
/// The seed of every engine, so that counts are the same on every run.
pub(crate) const SEED: u64 = 0x72_78_6f;

/// The aggregation of pure ACKs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Acks {
    /// The rule for pure ACKs.
    pub(crate) rule: PureAckRule,
    /// Number of frames in a poll.
    pub(crate) batch_frames: usize,
}

impl Acks {
    /// No aggregation of pure ACKs.
    pub(crate) const NONE: Self = Self { rule: PureAckRule::Bypass, batch_frames: BATCH_FRAMES };
}

/// Returns the policy for `traffic`. UDP is coalesced in UDP workloads only, so that its support costs
/// nothing in other workloads.
pub(crate) fn policy(traffic: &Traffic) -> Policy {
    let is_udp = |packet: &[u8]| {
        parse(packet).is_ok_and(|parsed| matches!(parsed.transport, Transport::Udp(_)))
    };
    Policy::linux_gro().with_udp_if(traffic.iter().all(is_udp))
}

/// The engine, and a workload in frames. `lend` turns the bytes of a packet into a buffer.
pub(crate) struct Rxo<'a, B> {
    engine: Engine<B>,
    polls: Vec<Vec<Frame<B>>>,
    traffic: &'a Traffic,
    lend: Box<dyn FnMut(&'a [u8]) -> B + 'a>,
    /// A reset for every flow, which makes the engine forget the flow. Otherwise the ACK numbers of the
    /// repeated packets would go back in each pass.
    resets: Vec<&'a [u8]>,
    polled: u64,
    /// Function that moves each delivery out of the engine; `None` to leave them inside.
    take_out: Option<TakeOut<B>>,
    last: Outcome,
}

/// Takes ownership of each delivery; returns the number of segments and a checksum of the headers.
type TakeOut<B> = fn(Deliveries<'_, B>) -> (u64, usize);

impl<'a> Rxo<'a, &'a [u8]> {
    /// Makes frames that borrow their bytes, like frames in a ring. With a `summer` the engine verifies
    /// checksums; without one it trusts them and reads headers only.
    pub(crate) fn borrowed(traffic: &'a Traffic, summer: Option<Summer>) -> Self {
        Self::new(traffic, summer, |bytes| bytes)
    }

    /// Makes borrowed frames with trusted checksums, and aggregates pure ACKs.
    pub(crate) fn with_acks(traffic: &'a Traffic, acks: Acks) -> Self {
        let mut rxo = Self::borrowed(traffic, None);
        let mut config = rxo.engine.config().clone();
        config.policy.pure_acks = acks.rule;
        config.batch_frames = acks.batch_frames;
        rxo.poll_by(acks.batch_frames);
        rxo.engine = Engine::new(config).expect("the rule for pure ACKs is valid");
        rxo.resets = resets(traffic);
        rxo
    }

    /// Makes borrowed frames with trusted checksums, and moves every delivery out of the engine.
    pub(crate) fn owned(traffic: &'a Traffic) -> Self {
        let mut rxo = Self::borrowed(traffic, None);
        rxo.take_out = Some(|deliveries| {
            deliveries.into_owned().fold((0, 0), |seen, owned| add(seen, look_at(owned.view())))
        });
        rxo
    }
}

impl<'a> Rxo<'a, PoolBuf> {
    /// Makes frames with pool buffers that are returned after delivery. Checksums are trusted. Only the bytes
    /// that the engine reads are written: writing payloads would evict the headers from the cache, unlike
    /// with borrowed frames.
    pub(crate) fn pooled(traffic: &'a Traffic) -> Self {
        let pool = Pool::new(traffic.len(), BUFFER_BYTES);
        Self::new(traffic, None, move |bytes| {
            let mut buffer = pool.take().expect("a buffer for every packet");
            buffer.set_len(bytes.len());
            let read = bytes.len().min(READ_BYTES);
            buffer[..read].copy_from_slice(&bytes[..read]);
            buffer
        })
    }
}

impl<'a, B: FrameBuffer> Rxo<'a, B> {
    fn new(
        traffic: &'a Traffic,
        summer: Option<Summer>,
        lend: impl FnMut(&'a [u8]) -> B + 'a,
    ) -> Self {
        let mut config = Config::new(policy(traffic), SEED);
        config.trust_checksums = summer.is_none();
        config.summer = summer.unwrap_or(config.summer);
        config.batch_frames = BATCH_FRAMES;
        let engine = Engine::new(config).expect("the default policy is valid");
        let lend = Box::new(lend);
        let polls = Vec::new();
        let last = Outcome::default();
        let (resets, take_out) = (Vec::new(), None);
        let mut rxo = Self { engine, polls, traffic, lend, resets, polled: 0, take_out, last };
        rxo.poll_by(BATCH_FRAMES);
        rxo
    }

    /// Sets the number of frames in a poll.
    fn poll_by(&mut self, batch_frames: usize) {
        let polls = self.traffic.len().div_ceil(batch_frames);
        self.polls = (0..polls).map(|_| Vec::with_capacity(batch_frames)).collect();
    }
}

impl<B: FrameBuffer> Contender for Rxo<'_, B> {
    fn prepare(&mut self) {
        let now = Instant::from_nanos(self.polled * POLL_NS);
        let resets = self.resets.iter().map(|bytes| Frame::new((self.lend)(bytes), now));
        self.engine.poll(&mut resets.collect(), now, |_| ());
        for (index, poll) in self.polls.iter_mut().enumerate() {
            let arrived_at = Instant::from_nanos((self.polled + index as u64) * POLL_NS);
            let first = index * poll.capacity();
            let end = (first + poll.capacity()).min(self.traffic.len());
            poll.clear();
            let packets = (first..end).map(|at| self.traffic.packet(at));
            poll.extend(packets.map(|bytes| Frame::new((self.lend)(bytes), arrived_at)));
        }
    }

    fn make_cold(&self) {
        self.polls.iter().flatten().for_each(|frame| arch::flush(frame.bytes()));
        arch::fence();
    }

    #[inline(never)]
    fn pass(&mut self) {
        let mut outcome = Outcome::default();
        for poll in &mut self.polls {
            self.polled += 1;
            let now = Instant::from_nanos(self.polled * POLL_NS);
            self.engine.poll(poll, now, |deliveries| {
                outcome.deliveries += deliveries.len() as u64;
                let seen = match self.take_out {
                    Some(take_out) => take_out(deliveries),
                    None => deliveries.iter().fold((0, 0), |seen, one| add(seen, look_at(one))),
                };
                outcome.frames += seen.0;
                black_box(seen.1);
            });
        }
        self.last = outcome;
    }

    fn outcome(&self) -> Outcome {
        self.last
    }
}

/// Returns a reset for each flow in `traffic`, allocated for the program's lifetime.
fn resets(traffic: &Traffic) -> Vec<&'static [u8]> {
    const RST: u8 = 0x04;
    let mut seen = HashSet::new();
    let first = traffic.iter().filter_map(|packet| Some((packet, parse(packet).ok()?)));
    let first = first.filter(|(_, parsed)| seen.insert(parsed.key));
    first
        .map(|(packet, parsed)| {
            let mut reset = packet.to_vec();
            reset[parsed.at.transport as usize + FLAGS_AT] = RST;
            &*reset.leak()
        })
        .collect()
}

const fn add(seen: (u64, usize), (segments, header): (u64, usize)) -> (u64, usize) {
    (seen.0 + segments, seen.1 ^ header)
}

/// Does a sink's minimal work: reads the segment count, and the address and length of the header.
#[inline(always)]
fn look_at<B: AsRef<[u8]>>(delivery: Delivery<'_, B>) -> (u64, usize) {
    let (segments, header) = match delivery {
        Delivery::Frame(single) => (1, single.frame().bytes()),
        Delivery::Aggregate(aggregate) => (aggregate.segment_count() as u64, aggregate.header()),
        Delivery::Acks(acks) => (acks.count() as u64, acks.packet()),
    };
    (segments, header.as_ptr().addr() ^ header.len())
}
