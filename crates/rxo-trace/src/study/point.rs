//! One point of a study: an engine, and the counts of its deliveries.
//!
//! The engine is the same code that runs live. This module adds the counts that the engine does not have: the
//! distribution of aggregate sizes, and the deliveries of each flow.

use rxo_coalesce::{
    BypassReason, Config, Counters, Deliveries, Delivery, Engine, FlushReason, Histogram, Hold,
    Policy, PureAckRule,
};
use rxo_frame::{ConfigError, Duration, Frame, Instant, LinkKind, Load};
use serde::{Deserialize, Serialize};

use super::chosen::Chosen;
use super::part::saved_histogram;
use super::poll::PollRule;
use crate::advice::MOST_POLLS;
use crate::numbered::Numbered;

/// A point of a study: one combination of policy and poll rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// The policy of the engine.
    pub policy: Policy,
    /// The rule that determines when a host polls for packets.
    pub poll: PollRule,
}

/// The batch size of a live worker, in frames. Batches are larger only if the poll rule makes larger polls.
const LIVE_BATCH_FRAMES: usize = 256;

/// The assumed load of the receiver, which a capture does not show. With adaptive hold, a receiver that is
/// always busy is assumed, so the result is the maximum that such a hold can gain.
pub(crate) const ASSUMED_LOAD: Option<Load> = Some(Load { unread: 1 });

impl Point {
    /// Returns the point, adapted to the assumed sink: a device of Linux 6.17 or later, which accepts UDP GSO
    /// frames, and GSO frames of TCP inside tunnels.
    #[must_use]
    pub(super) fn on_host(self) -> Self {
        Self { policy: self.policy.with_udp_if(true).with_tunnels_if(true), ..self }
    }

    /// Returns the engine configuration of this point.
    #[must_use]
    pub fn config(&self, link: LinkKind, trust_checksums: bool, seed: u64) -> Config {
        let batch_frames = LIVE_BATCH_FRAMES.max(self.poll.most_packets() as usize);
        Config { link, trust_checksums, batch_frames, ..Config::new(self.policy_as_seen(), seed) }
    }

    /// Returns the length of a pause after which results do not depend on earlier packets, because no packet
    /// waits or is held any more. `None` if this time has no limit, or if the engine keeps state beyond the
    /// packets that it holds.
    #[must_use]
    pub fn reach(&self) -> Option<Duration> {
        let polled = self.poll.reach()?;
        if self.policy.coalesce && self.policy.pure_acks != PureAckRule::Bypass {
            return None;
        }
        match self.policy_as_seen().hold {
            Hold::EndOfPoll => Some(polled),
            Hold::Within(time) => Some(polled.saturating_add(time)),
            Hold::EveryNthPoll(_) | Hold::EveryNPackets(_) | Hold::Auto { .. } => None,
        }
    }

    /// Returns the policy, adjusted for the time that a network card waits. On a live interface, a card that
    /// gathers packets delivers them when it raises an interrupt. This time is their arrival time, at which
    /// holds begin. In a capture, packets have their times on the wire, which are earlier by the wait of the
    /// card.
    fn policy_as_seen(&self) -> Policy {
        let PollRule::Time(wait) = self.poll else { return self.policy };
        let hold = match self.policy.hold {
            Hold::Within(time) => Hold::Within(time.saturating_add(wait)),
            Hold::Auto { budget, most_polls } => {
                Hold::Auto { budget: budget.saturating_add(wait), most_polls }
            }
            other => other,
        };
        Policy { hold, max_hold: self.policy.max_hold.saturating_add(wait), ..self.policy }
    }
}

/// Counts of the aggregates with two or more segments.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Aggregates {
    #[serde(with = "saved_histogram")]
    pub(super) segments: Histogram,
    #[serde(with = "saved_histogram")]
    pub(super) payload_bytes: Histogram,
}

impl Aggregates {
    #[inline]
    fn note(
        &mut self,
        deliveries: &Deliveries<'_, Numbered>,
        at: Instant,
        slot: Option<usize>,
        chosen: &mut Chosen,
    ) {
        for delivery in deliveries.iter() {
            if slot == Some(CHOSEN_SLOT)
                && let Some(rates) = &mut chosen.rates
                && let Some(first) = delivery.frames().next()
            {
                rates.deliver(first.bytes.number, at);
            }
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
            if let Some(slot) = slot
                && let Some(first) = delivery.frames().next()
                && let Some(flow) = chosen.flows.get_mut(first.bytes.number)
            {
                flow.coalesced(slot, segments);
            }
        }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.segments.add(&other.segments);
        self.payload_bytes.add(&other.payload_bytes);
    }
}

/// The counts of one point on one interface.
#[derive(Clone, Debug)]
pub(super) struct Tally {
    /// The index of the point in the study.
    pub(super) point: usize,
    pub(super) counters: Counters,
    pub(super) aggregates: Aggregates,
    /// The number by which the count of eliminated packets may be wrong, because the packets before this part
    /// are unknown.
    pub(super) error_bound: u64,
}

/// An engine for one point, on one interface.
#[derive(Debug)]
pub(super) struct Runner {
    /// The index of the engine's point in the study.
    point: usize,
    /// The place of the point's counts in each flow; `None` if flows do not count it.
    slot: Option<usize>,
    config: Config,
    /// The engine. Its packets carry the numbers of their flows.
    engine: Engine<Numbered>,
    /// The sum of the counters of earlier engines, which this engine has replaced.
    past: Counters,
    aggregates: Aggregates,
    /// The length of a pause after which results do not depend on earlier packets; `None` if there is no such length.
    reach: Option<Duration>,
    /// The number of packets by which the counts may be wrong, because the packets before this part are
    /// unknown; `None` until this number is known.
    error_bound: Option<u64>,
    is_by_boundaries: bool,
    /// The maximum number of packets in one poll.
    most_packets: u64,
}

/// The index of the chosen point, whose flows are counted individually.
pub(super) const CHOSEN: usize = 0;
/// The number of poll rules for which each flow counts its eliminated packets: the chosen one, and those that the
/// advice compares with it.
pub(super) const SLOTS: usize = MOST_POLLS;
/// The slot of the chosen point.
pub(super) const CHOSEN_SLOT: usize = 0;

/// Returns the place of a point's counts in each flow; `None` if flows do not count it. Flows count the points that
/// differ from the chosen one in the poll rule only.
pub(super) fn slot(points: &[Point], number: usize) -> Option<usize> {
    let (chosen, point) = (points.get(CHOSEN)?, points.get(number)?);
    let earlier = points.iter().take(number).filter(|point| point.policy == chosen.policy);
    let slot = earlier.count();
    (point.policy == chosen.policy && slot < SLOTS).then_some(slot)
}

impl Runner {
    /// Creates the engine of the point with this number. Its flows count it at `slot`.
    pub(super) fn new(
        number: usize,
        slot: Option<usize>,
        point: &Point,
        config: Config,
    ) -> Result<Self, ConfigError> {
        let is_by_boundaries =
            point.policy.hold == Hold::EndOfPoll && !matches!(point.poll, PollRule::Host(_));
        Ok(Self {
            point: number,
            slot,
            engine: Engine::new(config.clone())?,
            config,
            past: Counters::default(),
            aggregates: Aggregates::default(),
            reach: point.reach(),
            error_bound: None,
            is_by_boundaries,
            most_packets: point.poll.most_packets().into(),
        })
    }

    /// Continues from the counts of `first`, whose results so far are equal.
    pub(super) fn continue_from(&mut self, first: &Self) {
        self.past = first.counters();
        self.aggregates = first.aggregates.clone();
        // With fewer flows the bound would be smaller, and with more flows larger by at most these.
        self.error_bound =
            first.error_bound.map(|bound| bound + u64::from(self.config.policy.flows));
    }

    /// Returns the counts so far.
    pub(super) fn tally(&self) -> Tally {
        Tally {
            point: self.point,
            counters: self.counters(),
            aggregates: self.aggregates.clone(),
            error_bound: self.error_bound.unwrap_or_else(|| self.bound()),
        }
    }

    /// Returns the sum of the counters of this engine and of the engines that it has replaced.
    fn counters(&self) -> Counters {
        self.past.zip_with(self.engine.counters(), u64::saturating_add)
    }

    /// Replaces the engine by a new one without any state. The old engine must hold no packets.
    pub(super) fn restart(&mut self) {
        // The configuration was valid before, so this cannot fail.
        if let Ok(engine) = Engine::new(self.config.clone()) {
            self.past = self.counters();
            self.engine = engine;
        }
    }

    /// Handles the arrival of a packet `pause` after the previous packet. All polls and deadlines before that
    /// arrival must have been processed. Returns `true` if later results do not depend on packets before the
    /// first packet of this part.
    pub(super) fn on_pause(&mut self, pause: Duration) -> bool {
        if self.error_bound.is_none() && self.reach.is_some_and(|reach| pause > reach) {
            self.error_bound = Some(self.bound());
        }
        self.error_bound.is_some()
    }

    /// Returns the maximum error of everything that was counted so far, in packets.
    fn bound(&self) -> u64 {
        let counters = self.counters();
        // An engine that remembers ACKs delivers the first ACK of an unknown flow alone, so each such ACK may
        // be one more packet.
        let unknown = counters.bypassed(BypassReason::FirstAck);
        let early = [FlushReason::Evicted, FlushReason::Collision];
        if self.is_by_boundaries && early.iter().all(|reason| counters.flushed(*reason) == 0) {
            return self.bound_by_boundaries(&counters) + unknown;
        }
        // At worst everything could be coalesced, or nothing; and for each flow the held aggregate could have
        // continued.
        let most = counters.flushed_total().max(counters.frames - counters.deliveries);
        most + u64::from(self.config.policy.flows) + unknown
    }

    /// Returns the maximum error in packets if only the ends of polls can differ. All polls after the first
    /// packet may end at other positions, but two ends are never less than a poll apart. In the list, "counted
    /// polls" are the polls as counted here, and "true polls" are the polls that would result with the unknown
    /// earlier packets.
    ///
    /// * A counted poll contains at most one end of a true poll, which splits each of the counted poll's
    ///   aggregates once.
    /// * A true poll contains at most one end of a counted poll. The aggregates that were flushed at this end
    ///   may be joined with the next ones. No other aggregates are joined, because the engine always coalesces
    ///   as much as the rules allow, which gives the fewest aggregates between two ends.
    /// * The first packets may belong to the poll before, and continue as many flows as that poll has packets.
    ///   The smaller part of a split poll is at most half of the poll.
    /// * If a poll can have more flows than are held, true polls may cause evictions that counted polls do
    ///   not: once for each flow that the counted polls no longer held because its aggregate was full or
    ///   ended by a short segment.
    fn bound_by_boundaries(&self, counters: &Counters) -> u64 {
        let split = counters.aggregates + counters.ack_aggregates;
        let joined = counters.flushed(FlushReason::EndOfPoll);
        let flows = u64::from(self.config.policy.flows);
        let is_crowded = self.most_packets > flows;
        let ended = [FlushReason::SegmentLimit, FlushReason::AckLimit, FlushReason::ShortSegment];
        let evicted = ended.map(|reason| counters.flushed(reason)).iter().sum::<u64>();
        let evicted = if is_crowded { evicted } else { 0 };
        (split + evicted).max(joined) + flows.min(self.most_packets / 2)
    }

    /// Passes the frames of a poll at `at` to the engine, after handling all earlier deadlines.
    #[inline]
    pub(super) fn poll(
        &mut self,
        batch: &mut Vec<Frame<Numbered>>,
        at: Instant,
        chosen: &mut Chosen,
    ) {
        self.catch_up(at, chosen);
        self.deliver(at, chosen, |engine, note| {
            engine.poll_under(ASSUMED_LOAD, batch, at, note);
        });
        if self.point == CHOSEN
            && let Some(runs) = &mut chosen.runs
        {
            runs.end_of_poll();
        }
    }

    /// Handles every deadline of the engine up to `until`.
    #[inline]
    pub(super) fn catch_up(&mut self, until: Instant, chosen: &mut Chosen) {
        while let Some(deadline) = self.engine.poll_at().filter(|deadline| *deadline <= until) {
            self.deliver(deadline, chosen, |engine, note| {
                engine.on_timeout(deadline, note);
            });
            if self.engine.poll_at().is_some_and(|next| next <= deadline) {
                // At the end of time deadlines no longer advance. `finish` delivers the rest.
                return;
            }
        }
    }

    /// Delivers all packets that are held after the last packet: each flow at its deadline, and flows without a
    /// deadline at `now`.
    pub(super) fn finish(&mut self, now: Instant, chosen: &mut Chosen) {
        self.catch_up(Instant::from_nanos(u64::MAX), chosen);
        self.deliver(now, chosen, |engine, note| {
            engine.flush(now, note);
        });
    }

    /// Makes the engine deliver packets at time `at`, and counts the deliveries.
    #[inline]
    fn deliver(
        &mut self,
        at: Instant,
        chosen: &mut Chosen,
        run: impl FnOnce(&mut Engine<Numbered>, &mut dyn FnMut(Deliveries<'_, Numbered>)),
    ) {
        let is_chosen = self.point == CHOSEN;
        let slot = self.slot;
        let before = self.engine.counters().deliveries;
        let aggregates = &mut self.aggregates;
        let most_bytes = self.config.policy.max_bytes;
        run(&mut self.engine, &mut |deliveries| {
            if is_chosen && let Some(runs) = &mut chosen.runs {
                runs.note(&deliveries, most_bytes);
            }
            aggregates.note(&deliveries, at, slot, chosen);
        });
        if is_chosen {
            chosen.deliver(at, self.engine.counters().deliveries - before);
        }
    }
}
