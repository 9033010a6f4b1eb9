//! rxo's own engine, as an embedder runs it: whole polls, counters and histograms on, merged
//! headers written, and a sink that looks at every delivery.

use std::hint::black_box;

use rxo_coalesce::{Config, Delivery, Engine, Policy};
use rxo_frame::{Frame, Instant};
use rxo_testkit::Traffic;
use rxo_wire::checksum::Summer;

use super::{BATCH_FRAMES, Contender, Outcome};
use crate::arch;

/// Time from one poll to the next.
const POLL_NS: u64 = 10_000;
const SEED: u64 = 0x72_78_6f;

/// The engine and a workload in frames.
pub(crate) struct Rxo<'a> {
    engine: Engine<&'a [u8]>,
    polls: Vec<Vec<Frame<&'a [u8]>>>,
    traffic: &'a Traffic,
    polled: u64,
    last: Outcome,
}

impl<'a> Rxo<'a> {
    /// An engine with the `linux-gro` policy. With a `summer` it verifies checksums by it,
    /// without it trusts them and looks at headers only.
    pub(crate) fn new(traffic: &'a Traffic, summer: Option<Summer>) -> Self {
        let mut config = Config::new(Policy::linux_gro());
        config.trust_checksums = summer.is_none();
        config.summer = summer.unwrap_or(config.summer);
        config.batch_frames = BATCH_FRAMES;
        config.seed = SEED;
        let engine = Engine::new(config).expect("the default policy is valid");
        let polls = traffic.len().div_ceil(BATCH_FRAMES);
        let polls = (0..polls).map(|_| Vec::with_capacity(BATCH_FRAMES)).collect();
        Self { engine, polls, traffic, polled: 0, last: Outcome::default() }
    }
}

impl Contender for Rxo<'_> {
    fn prepare(&mut self) {
        for (index, poll) in self.polls.iter_mut().enumerate() {
            let arrived_at = Instant::from_nanos((self.polled + index as u64) * POLL_NS);
            let first = index * BATCH_FRAMES;
            let end = (first + BATCH_FRAMES).min(self.traffic.len());
            poll.clear();
            poll.extend((first..end).map(|at| Frame::new(self.traffic.packet(at), arrived_at)));
        }
    }

    fn make_cold(&self) {
        self.traffic.iter().for_each(arch::flush);
        arch::fence();
    }

    #[inline(never)]
    fn pass(&mut self) {
        let mut outcome = Outcome::default();
        for poll in &mut self.polls {
            self.polled += 1;
            let now = Instant::from_nanos(self.polled * POLL_NS);
            self.engine.poll(poll, now, |deliveries| {
                for delivery in deliveries.iter() {
                    outcome.frames += look_at(delivery);
                    outcome.deliveries += 1;
                }
            });
        }
        self.last = outcome;
    }

    fn outcome(&self) -> Outcome {
        self.last
    }
}

/// What a sink does at least: take the address and length of the header, and the segment count.
#[inline(always)]
fn look_at(delivery: Delivery<'_, &[u8]>) -> u64 {
    match delivery {
        Delivery::Frame(frame) => {
            black_box((frame.bytes().as_ptr(), frame.bytes().len()));
            1
        }
        Delivery::Aggregate(aggregate) => {
            black_box((aggregate.header().as_ptr(), aggregate.header().len()));
            aggregate.segment_count() as u64
        }
    }
}
