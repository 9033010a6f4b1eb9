//! The generic tier: receives frames, calls the rules, and applies their decisions within the engine's
//! guarantees.

use alloc::vec::Vec;

use rxo_frame::{ConfigError, Duration, Frame, FrameBuffer, Instant};
use rxo_wire::{
    FlowKey, Malformed, Parsed, SeqNumber, TcpFlags, TcpSegment, Transport, Unparsed, checksum, tcp,
};

use super::floor::Floor;
use super::flows::{Flows, Known};
use super::queue::{self, Grouping};
use super::ready::Outgoing;
use super::shelf::{NO_PLACE, Shelf};
use super::{Flow, Moment, Placement, Release, Rules};
use crate::reason::Reach;
use crate::single::Starts;
use crate::{
    BypassReason, Candidate, Config, Counters, Deliveries, FlushReason, Hold, Policy, candidate,
};

/// The engine that runs [`Rules`]. It has the same methods and deliveries as [`Engine`](crate::Engine). Its
/// guarantees and its cost are described in the [module](super).
#[derive(Debug)]
pub struct RuleEngine<R: Rules, B> {
    rules: R,
    floor: Floor,
    config: Config,
    most_hold: Duration,
    flows: Flows<R::Memory>,
    shelf: Shelf<B>,
    outgoing: Outgoing<B>,
    counters: Counters,
    polls: u64,
    packets: u64,
    now: Instant,
}

/// The minimum number of frames that rules can hold beyond a poll.
const HELD_FRAMES: usize = 4_096;
/// The maximum number of runs that all flows together can hold: as many as 4,096 flows of [`Juggler`](super::Juggler).
const MOST_RUNS: u64 = 4_096 * 256;
/// The number of bytes within which sequence numbers are compared. If a segment is further away from the bytes
/// that its flow delivered or holds, the engine forgets the flow's position in the stream.
const NEAR_BYTES: u32 = 1 << 24;
/// The minimum time after which rules are called again, so that a caller that waits for deadlines makes progress.
const LEAST_WAIT: Duration = Duration::from_micros(1);

impl<R: Rules, B: FrameBuffer> RuleEngine<R, B> {
    /// Creates an engine that runs `rules`. The policy of `config` is replaced by that of the rules. All memory
    /// is allocated here.
    ///
    /// # Errors
    /// [`ConfigError`] if a number of the configuration is out of range.
    pub fn new(rules: R, config: Config) -> Result<Self, ConfigError> {
        let config = Config { policy: *rules.policy(), ..config };
        config.check()?;
        let (policy, runs) = (&config.policy, rules.most_runs());
        let most_runs = MOST_RUNS / u64::from(policy.flows);
        ConfigError::check([("most_runs", runs as u64, 0, most_runs)])?;
        let held = HELD_FRAMES.max(config.frame_slots());
        Ok(Self {
            floor: Floor::of(policy),
            most_hold: most_hold(policy),
            flows: Flows::new(policy.flows.into(), runs),
            shelf: Shelf::new(held),
            outgoing: Outgoing::new(held + config.batch_frames),
            counters: Counters::default(),
            polls: 0,
            packets: 0,
            now: Instant::ZERO,
            rules,
            config,
        })
    }

    /// Returns the rules that the engine runs.
    #[must_use]
    pub const fn rules(&self) -> &R {
        &self.rules
    }

    /// Returns the counters of the engine since its creation.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Returns the maximum time that a segment is held, whatever the rules decide: the time limit of their
    /// policy, or `max_hold` if the policy's hold has no time limit.
    #[must_use]
    pub const fn most_hold(&self) -> Duration {
        self.most_hold
    }

    /// Returns `true` if no segment is held.
    #[must_use]
    pub const fn is_idle(&self) -> bool {
        self.shelf.len() == 0
    }

    /// Returns the number of frames received but not delivered; call it between two polls.
    #[must_use]
    pub const fn held_frames(&self) -> usize {
        self.shelf.len()
    }

    /// Receives the frames of one poll at `now`, leaving `batch` empty, and ends the poll. `sink` is called
    /// with the deliveries in order, once unless the batch is larger than configured.
    pub fn poll(
        &mut self,
        batch: &mut Vec<Frame<B>>,
        now: Instant,
        mut sink: impl FnMut(Deliveries<'_, B>),
    ) {
        self.take_all(batch, now, &mut sink);
        self.end_of_poll(now, sink);
    }

    /// Receives the frames, leaving `batch` empty, without ending the poll.
    pub fn push(
        &mut self,
        batch: &mut Vec<Frame<B>>,
        now: Instant,
        mut sink: impl FnMut(Deliveries<'_, B>),
    ) {
        self.take_all(batch, now, &mut sink);
        self.outgoing.deliver(self.config.form, &mut sink);
    }

    /// Ends a poll: calls the rules for every flow, the least recently used first.
    pub fn end_of_poll(&mut self, now: Instant, mut sink: impl FnMut(Deliveries<'_, B>)) {
        self.now = now;
        self.polls += 1;
        self.release_due_flows(Moment::EndOfPoll(self.polls), |_| true);
        self.outgoing.deliver(self.config.form, &mut sink);
    }

    /// Returns the time by which [`RuleEngine::on_timeout`] must be called; `None` while nothing is held.
    #[must_use]
    pub fn poll_at(&self) -> Option<Instant> {
        self.flows.iter().filter_map(|flow| flow.deadline(self.most_hold)).min()
    }

    /// Calls the rules for every flow whose deadline has passed, and delivers the segments that were held for the
    /// maximum time.
    pub fn on_timeout(&mut self, now: Instant, mut sink: impl FnMut(Deliveries<'_, B>)) {
        self.now = now;
        let most_hold = self.most_hold;
        self.release_due_flows(Moment::Due, |flow| {
            flow.deadline(most_hold).is_some_and(|deadline| deadline <= now)
        });
        self.outgoing.deliver(self.config.form, &mut sink);
    }

    /// Delivers all held segments.
    pub fn flush(&mut self, now: Instant, mut sink: impl FnMut(Deliveries<'_, B>)) {
        self.now = now;
        for at in 0..self.flows.len() {
            self.release_all(at, FlushReason::Shutdown);
        }
        self.forget_discardable();
        self.outgoing.deliver(self.config.form, &mut sink);
    }

    /// Receives the frames in parts of at most the configured number.
    fn take_all(
        &mut self,
        batch: &mut Vec<Frame<B>>,
        now: Instant,
        sink: &mut impl FnMut(Deliveries<'_, B>),
    ) {
        self.now = now;
        let window = match self.config.policy.hold {
            Hold::EveryNPackets(packets) => u64::from(packets.max(1)),
            _ => u64::MAX,
        };
        for (number, frame) in batch.drain(..).enumerate() {
            if number > 0 && number.is_multiple_of(self.config.batch_frames) {
                self.outgoing.deliver(self.config.form, sink);
            }
            self.counters.frames += 1;
            self.packets += 1;
            self.take(frame);
            if self.packets.is_multiple_of(window) {
                self.release_due_flows(Moment::PacketWindow, |_| true);
            }
        }
    }

    fn take(&mut self, frame: Frame<B>) {
        let parsed = match self.config.read(frame.bytes()) {
            Ok(parsed) => parsed,
            Err(unparsed) => return self.bypass_unparsed(frame, &unparsed),
        };
        let key = flow_key(parsed.key, &frame);
        match self.judge(&frame, &parsed) {
            Ok(tcp) => self.place(frame, &parsed, &tcp, key),
            Err(reason) => self.bypass(frame, &parsed, key, reason),
        }
    }

    /// Applies the static rules to a frame. Its checksum is verified last, because that requires reading the
    /// payload.
    fn judge(&self, frame: &Frame<B>, parsed: &Parsed) -> Result<TcpSegment, BypassReason> {
        let by_floor = candidate(parsed, self.floor.of_candidates());
        // A packet of an uncertain flow may overtake none between its addresses, whatever the rules say.
        if let Err(reason) = by_floor
            && reason.reach() == Reach::Addresses
        {
            return Err(reason);
        }
        self.rules.candidate(parsed)?;
        let tcp = *by_floor?;
        if frame.gso.is_some() {
            return Err(BypassReason::AlreadyAggregated);
        }
        if frame.checksum.is_elsewhere(parsed.at.transport as usize, tcp::CHECKSUM_AT as u16) {
            return Err(BypassReason::ChecksumElsewhere);
        }
        let Config { trust_checksums, summer, .. } = self.config;
        let is_intact = trust_checksums
            || frame.checksum.is_trusted()
            || checksum::verify_transport(parsed, frame.bytes(), summer);
        if is_intact { Ok(tcp) } else { Err(BypassReason::BadTcpChecksum) }
    }

    fn bypass_unparsed(&mut self, frame: Frame<B>, unparsed: &Unparsed) {
        if let Some(addresses) = unparsed.addresses {
            self.release_between(&flow_key(addresses, &frame));
        }
        let reason = match unparsed.why {
            Malformed::NotIp => BypassReason::NotIp,
            Malformed::Truncated => BypassReason::Truncated,
            Malformed::Version | Malformed::Length => BypassReason::Malformed,
        };
        self.deliver_untouched(frame, Starts::UNKNOWN, reason);
    }

    /// Delivers a frame untouched, after all held segments that the frame might overtake.
    fn bypass(&mut self, frame: Frame<B>, parsed: &Parsed, key: FlowKey, reason: BypassReason) {
        let is_segment = matches!(parsed.transport, Transport::Tcp(_));
        match reason.reach() {
            Reach::Nothing if !is_segment => {}
            Reach::Addresses => self.release_between(&key),
            Reach::Nothing | Reach::Flow => {
                if let Some(at) = self.flows.find(&key) {
                    self.release_all(at, FlushReason::Order);
                    self.note_passed(key, parsed);
                    self.forget_if_discardable(key);
                }
            }
        }
        self.deliver_untouched(frame, Starts::of(parsed), reason);
    }

    /// Updates the state of a flow after one of its segments was delivered without being held. A segment with
    /// SYN or RST removes all state of the flow.
    fn note_passed(&mut self, key: FlowKey, parsed: &Parsed) {
        let (Some(at), Transport::Tcp(tcp)) = (self.flows.find(&key), &parsed.transport) else {
            return;
        };
        if tcp.flags.intersects(TcpFlags::SYN.union(TcpFlags::RST)) {
            self.flows.remove(at);
        } else if parsed.payload_bytes() > 0 {
            self.flows.get_mut(at).delivered(tcp.seq + parsed.payload_bytes(), self.now);
        }
    }

    fn deliver_untouched(&mut self, frame: Frame<B>, at: Starts, reason: BypassReason) {
        self.counters.bypass(reason);
        self.outgoing.push_frame(frame, at, false);
    }

    /// Places a candidate as the rules decide. Then calls the rules to decide how many runs of the candidate's
    /// flow are delivered.
    fn place(&mut self, frame: Frame<B>, parsed: &Parsed, tcp: &TcpSegment, key: FlowKey) {
        let at = self.flows.find_or_begin(key, self.now);
        let next = Candidate::new(parsed, tcp, &frame);
        let placement = self.with_flow(at, |rules, flow| rules.verdict(flow, &next));
        match self.permitted(at, placement, tcp.seq) {
            Placement::Bypass(flush, reason) => {
                self.release_all(at, flush);
                self.note_passed(key, parsed);
                self.deliver_untouched(frame, Starts::of(parsed), reason);
            }
            Placement::Ahead(reason) => self.deliver_ahead(at, (frame, parsed), tcp, reason),
            Placement::Last => self.hold(key, (frame, tcp.seq), false),
            Placement::InSequence => self.hold(key, (frame, tcp.seq), true),
        }
        self.evict_others(&key);
    }

    /// Returns `placement` if the engine's guarantees permit it. Otherwise delivers all held segments of the
    /// flow, and returns a placement that the guarantees permit.
    fn permitted(&mut self, at: usize, placement: Placement, seq: SeqNumber) -> Placement {
        if !matches!(placement, Placement::Ahead(_) | Placement::InSequence) {
            return placement;
        }
        let flow = self.flows.get(at);
        let is_near = |other: SeqNumber| (seq - other).unsigned_abs() < NEAR_BYTES;
        let mut marks = flow.runs.iter().map(super::Run::first_seq).chain(flow.next_seq);
        if !marks.all(is_near) {
            self.release_all(at, FlushReason::OutOfSequence);
            self.flows.get_mut(at).begin_anew(self.now);
            return Placement::InSequence;
        }
        let precedes = flow.runs.iter().all(|run| seq.is_before(run.first_seq()));
        if matches!(placement, Placement::Ahead(_)) && !precedes {
            self.release_all(at, FlushReason::Order);
        }
        placement
    }

    fn deliver_ahead(
        &mut self,
        at: usize,
        (frame, parsed): (Frame<B>, &Parsed),
        tcp: &TcpSegment,
        reason: FlushReason,
    ) {
        self.counters.flush(reason, 1, self.now.nanos_since(frame.arrived_at));
        self.outgoing.push_frame(frame, Starts::at(parsed.at), true);
        self.flows.get_mut(at).delivered(tcp.seq + parsed.payload_bytes(), self.now);
        let at = self.flows.touch(at);
        self.release_due(at, Moment::Placed);
    }

    /// Holds a candidate, in the order of sequence numbers or behind everything that its flow holds.
    fn hold(&mut self, key: FlowKey, (frame, seq): (Frame<B>, SeqNumber), in_sequence: bool) {
        self.make_room(&key);
        let at = self.flows.find_or_begin(key, self.now);
        let at = self.flows.touch(at);
        let Self { rules, floor, config, flows, shelf, .. } = self;
        let Known { runs, .. } = flows.get_mut(at);
        let (index, before) = match in_sequence {
            true => queue::place_of(runs, shelf, seq),
            false => match runs.last() {
                Some(run) => (runs.len() - 1, run.last),
                None => (0, NO_PLACE),
            },
        };
        // There is room, so the frame is never returned.
        let Ok(new) = shelf.put(frame, seq) else { return };
        if before == NO_PLACE {
            shelf.link(new, runs.first().map_or(NO_PLACE, |run| run.first));
        } else {
            shelf.link(new, shelf.after(before));
            shelf.link(before, new);
        }
        Grouping { rules, floor, config, shelf, key }.insert(runs, new, (index, before));
        self.release_due(at, Moment::Placed);
    }

    /// Frees memory for one more frame of the flow `key`, on the shelf (the memory for held frames) and in the
    /// flow.
    fn make_room(&mut self, key: &FlowKey) {
        while self.shelf.is_full() {
            let Some(at) = self.flows.oldest_holding() else { return };
            self.release_all(at, FlushReason::Memory);
            self.forget_discardable();
        }
        // One more segment adds at most two runs.
        if let Some(at) = self.flows.find(key)
            && self.flows.get(at).runs.len() + 2 > self.rules.most_runs().max(2) + 1
        {
            self.release_all(at, FlushReason::Memory);
        }
    }

    /// Evicts flows of the lowest rank, but not the flow `key`, until the policy permits the number of flows.
    fn evict_others(&mut self, key: &FlowKey) {
        self.forget_if_discardable(*key);
        while self.flows.len() > self.config.policy.flows.into() {
            let Self { rules, flows, now, .. } = self;
            let Some(at) = flows.lowest(key, |flow| rules.rank(flow, *now)) else { return };
            self.release_all(at, FlushReason::Evicted);
            self.flows.remove(at);
        }
    }

    fn forget_if_discardable(&mut self, key: FlowKey) {
        if let Some(at) = self.flows.find(&key)
            && self.is_discardable(at)
        {
            self.flows.remove(at);
        }
    }

    /// Returns `true` if the flow holds nothing and has rank 0, so that its state can be discarded.
    fn is_discardable(&mut self, at: usize) -> bool {
        let now = self.now;
        self.flows.get(at).runs.is_empty()
            && self.with_flow(at, |rules, flow| rules.rank(flow, now)) == 0
    }

    fn forget_discardable(&mut self) {
        for at in (0..self.flows.len()).rev() {
            if self.is_discardable(at) {
                self.flows.remove(at);
            }
        }
    }

    /// Calls the rules for every flow that `is_meant` selects, the least recently used first.
    fn release_due_flows(&mut self, moment: Moment, is_meant: impl Fn(&Known<R::Memory>) -> bool) {
        for at in 0..self.flows.len() {
            if is_meant(self.flows.get(at)) {
                self.release_due(at, moment);
            }
        }
        self.forget_discardable();
    }

    /// Calls the rules to decide how many runs of the flow are delivered, and delivers these runs.
    fn release_due(&mut self, at: usize, moment: Moment) {
        let now = self.now;
        let due = loop {
            let held = self.flows.get(at).runs.len();
            match self.with_flow(at, |rules, flow| rules.hold(flow, moment, now)) {
                Release::Runs(runs, reason) if runs.min(held) > 0 => {
                    self.release(at, runs.min(held), reason);
                }
                Release::Runs(..) => break None,
                Release::Nothing(due) => break due,
            }
        };
        let flow = self.flows.get_mut(at);
        // Rules that were asked at their deadline and name it again would keep the caller busy.
        let earliest = if moment == Moment::Placed { Instant::ZERO } else { now + LEAST_WAIT };
        flow.due = due.map(|due| due.max(earliest));
        flow.outlives_poll |= matches!(moment, Moment::EndOfPoll(_));
        self.release_overdue(at);
    }

    /// Delivers the segments that the flow has held for the maximum time, and all segments before them.
    fn release_overdue(&mut self, at: usize) {
        let (now, most_hold, flow) = (self.now, self.most_hold, self.flows.get(at));
        let is_over = |run: &super::Run| flow.outlives_poll && now >= run.oldest + most_hold;
        if let Some(last) = flow.runs.iter().rposition(is_over) {
            self.release(at, last + 1, FlushReason::Timeout);
        }
        let flow = self.flows.get_mut(at);
        flow.outlives_poll &= !flow.runs.is_empty();
    }

    /// Delivers all held segments of the flows between the addresses of `key`.
    fn release_between(&mut self, key: &FlowKey) {
        for at in 0..self.flows.len() {
            if key.has_addresses_of(&self.flows.get(at).key) {
                self.release_all(at, FlushReason::Order);
            }
        }
        self.forget_discardable();
    }

    fn release_all(&mut self, at: usize, reason: FlushReason) {
        self.release(at, self.flows.get(at).runs.len(), reason);
    }

    /// Delivers the first `count` runs of the flow.
    fn release(&mut self, at: usize, count: usize, reason: FlushReason) {
        let Self { flows, shelf, outgoing, counters, now, .. } = self;
        let flow = flows.get_mut(at);
        for index in 0..count.min(flow.runs.len()) {
            let run = flow.runs[index];
            counters.flush(reason, run.held.segments, now.nanos_since(run.oldest));
            outgoing.push_run(&run, shelf, reason);
            flow.delivered(run.held.next_seq, *now);
        }
        flow.runs.drain(..count);
    }

    /// Calls `call` with the rules and the [`Flow`] of a flow, the state that rules receive.
    fn with_flow<T>(
        &mut self,
        at: usize,
        call: impl FnOnce(&R, &mut Flow<'_, R::Memory>) -> T,
    ) -> T {
        let Self { rules, floor, config, flows, shelf, .. } = self;
        let Known { key, runs, next_seq, delivered_at, memory, .. } = flows.get_mut(at);
        let grouping = Grouping { rules: &*rules, floor, config, shelf, key: *key };
        let last = runs.last().and_then(|run| grouping.read(run.last));
        let last = last.map(|(last, _)| last);
        let (next_seq, delivered_at) = (*next_seq, *delivered_at);
        call(rules, &mut Flow { runs, last, next_seq, delivered_at, memory })
    }
}

/// Returns the longest time that a policy holds a segment.
fn most_hold(policy: &Policy) -> Duration {
    policy.time_limit().unwrap_or(policy.max_hold)
}

/// Returns the key of the flow of `frame`, with the VLAN tag that the device removed.
fn flow_key<B>(key: FlowKey, frame: &Frame<B>) -> FlowKey {
    frame.vlan.map_or(key, |tag| key.on_device_vlan(tag.tci & 0x0fff))
}
