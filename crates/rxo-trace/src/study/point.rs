//! One setting under study: an engine and what is counted of its deliveries.
//!
//! The engine is the one that runs live. What it does not count itself, sizes of aggregates by
//! their distribution and what became of each flow, is counted here.

use rxo_coalesce::{
    Config, ConfigError, Counters, Deliveries, Delivery, Engine, Histogram, Policy,
};
use rxo_device::capture::SharedBytes;
use rxo_frame::{Frame, Instant, LinkKind};

use super::flows::Flows;
use super::poll::PollRule;

/// One combination of settings whose outcome is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// The rules.
    pub policy: Policy,
    /// When a poll ends.
    pub poll: PollRule,
}

/// Polls of a live worker; larger ones only where the rule for polls makes them.
const LIVE_BATCH_FRAMES: usize = 256;

impl Point {
    /// What its engine is made from.
    #[must_use]
    pub fn config(&self, link: LinkKind, trust_checksums: bool, seed: u64) -> Config {
        let batch_frames = LIVE_BATCH_FRAMES.max(self.poll.most_packets() as usize);
        Config { link, trust_checksums, batch_frames, seed, ..Config::new(self.policy) }
    }
}

/// A packet's bytes, and the number of its flow.
#[derive(Clone, Debug, Default)]
pub(super) struct FlowBytes {
    pub(super) bytes: SharedBytes,
    pub(super) flow: u32,
}

impl AsRef<[u8]> for FlowBytes {
    #[inline(always)]
    fn as_ref(&self) -> &[u8] {
        self.bytes.as_ref()
    }
}

/// The aggregates of two segments or more.
#[derive(Clone, Debug, Default)]
pub(super) struct Aggregates {
    pub(super) segments: Histogram,
    pub(super) payload_bytes: Histogram,
}

impl Aggregates {
    #[inline]
    fn note(&mut self, deliveries: &Deliveries<'_, FlowBytes>, mut flows: Option<&mut Flows>) {
        for delivery in deliveries.iter() {
            let segments = match delivery {
                Delivery::Frame(_) => continue,
                Delivery::Aggregate(aggregate) => {
                    let segments = aggregate.segment_count() as u64;
                    self.segments.record(segments);
                    self.payload_bytes.record(aggregate.payload_bytes().into());
                    segments
                }
                Delivery::Acks(acks) => acks.count() as u64,
            };
            if let Some(flows) = &mut flows
                && let Some(first) = delivery.frames().next()
                && let Some(flow) = flows.get_mut(first.bytes.flow)
            {
                flow.coalesced(segments);
            }
        }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.segments.add(&other.segments);
        self.payload_bytes.add(&other.payload_bytes);
    }
}

/// An engine at work on one interface.
#[derive(Debug)]
pub(super) struct Runner {
    /// Which of the study's points it belongs to.
    pub(super) point: usize,
    engine: Engine<FlowBytes>,
    pub(super) aggregates: Aggregates,
}

/// The point whose flows are counted one by one.
pub(super) const CHOSEN: usize = 0;

impl Runner {
    pub(super) fn new(point: usize, config: Config) -> Result<Self, ConfigError> {
        Ok(Self { point, engine: Engine::new(config)?, aggregates: Aggregates::default() })
    }

    /// What the engine counted.
    pub(super) const fn counters(&self) -> &Counters {
        self.engine.counters()
    }

    /// Hands over the frames of one poll, which takes place at `at`, after all that was due before.
    #[inline]
    pub(super) fn poll(
        &mut self,
        batch: &mut Vec<Frame<FlowBytes>>,
        at: Instant,
        flows: &mut Flows,
    ) {
        self.catch_up(at, flows);
        let mut flows = (self.point == CHOSEN).then_some(flows);
        let aggregates = &mut self.aggregates;
        self.engine.poll(batch, at, |deliveries| {
            aggregates.note(&deliveries, flows.as_deref_mut());
        });
    }

    /// Delivers what has been held as long as the policy allows, at every deadline up to `until`.
    #[inline]
    pub(super) fn catch_up(&mut self, until: Instant, flows: &mut Flows) {
        let mut flows = (self.point == CHOSEN).then_some(flows);
        let aggregates = &mut self.aggregates;
        while let Some(deadline) = self.engine.poll_at().filter(|deadline| *deadline <= until) {
            self.engine.on_timeout(deadline, |deliveries| {
                aggregates.note(&deliveries, flows.as_deref_mut());
            });
            if self.engine.poll_at().is_some_and(|next| next <= deadline) {
                // At the end of time deadlines no longer move; what is left goes with the rest.
                return;
            }
        }
    }

    /// Delivers everything held: nothing more comes.
    pub(super) fn finish(&mut self, now: Instant, flows: &mut Flows) {
        let mut flows = (self.point == CHOSEN).then_some(flows);
        let aggregates = &mut self.aggregates;
        self.engine.flush(now, |deliveries| aggregates.note(&deliveries, flows.as_deref_mut()));
    }
}
