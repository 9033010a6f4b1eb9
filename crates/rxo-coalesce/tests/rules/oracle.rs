//! The oracle that is derived from rules: asks the same questions as the engine, and keeps nothing but lists.
//!
//! Each flow is a list of frame numbers. Its runs are formed anew before every question. Frames are
//! classified by the test kit's reader, which shares no code with the engine.

use core::time::Duration;

use rxo_coalesce::rules::{Flow, Moment, Placement, Release, Rules, Run, runs_of};
use rxo_coalesce::{Candidate, FlushReason, Hold};
use rxo_frame::{Frame, Instant};
use rxo_testkit::naive::{Ends, Fault, Reading, Segment};
use rxo_testkit::oracle::{Due, Why};
use rxo_testkit::script::{Script, Step};
use rxo_wire::{Parsed, SeqNumber, TcpFlags, Transport, parse, parse_ip};

/// The distance within which sequence numbers are compared, in bytes.
const NEAR: u32 = 1 << 24;

/// Returns the deliveries that `rules` expect of each step of `script`, and of a last step that flushes the
/// rest.
pub(crate) fn expected<R: Rules>(rules: &R, script: &Script) -> Vec<Vec<Due>> {
    let policy = rules.policy();
    let mut model = Model {
        rules,
        script,
        frames: script.frames(),
        most_hold: policy.time_limit().unwrap_or(policy.max_hold),
        batch: Vec::new(),
        flows: Vec::new(),
        now: Instant::ZERO,
        polls: 0,
        packets: 0,
        out: Vec::new(),
    };
    script.steps.iter().chain(&[Step::Flush]).map(|step| model.step(step)).collect()
}

struct Modelled<M> {
    ends: Ends,
    ports: (u16, u16),
    /// The numbers of the held frames, in the order in which they will be delivered.
    held: Vec<usize>,
    next_seq: Option<SeqNumber>,
    delivered_at: Instant,
    memory: M,
    due: Option<Instant>,
    outlives_poll: bool,
}

struct Model<'a, R: Rules> {
    rules: &'a R,
    script: &'a Script,
    frames: Vec<&'a Frame<Vec<u8>>>,
    most_hold: Duration,
    batch: Vec<usize>,
    /// The known flows, the least recently used first.
    flows: Vec<Modelled<R::Memory>>,
    now: Instant,
    polls: u64,
    packets: u64,
    out: Vec<Due>,
}

impl<'a, R: Rules> Model<'a, R> {
    fn step(&mut self, step: &Step) -> Vec<Due> {
        match step {
            Step::Frame(index) => self.batch.push(*index),
            Step::Push => self.push(),
            Step::EndOfPoll => self.end_of_poll(),
            Step::Poll => {
                self.push();
                self.end_of_poll();
            }
            Step::Load(_) => {}
            Step::Flush => {
                self.push();
                for at in 0..self.flows.len() {
                    self.release(at, usize::MAX, FlushReason::Shutdown);
                }
            }
            Step::Advance(time) => self.advance(self.now + *time),
        }
        self.forget_discardable();
        std::mem::take(&mut self.out)
    }

    fn push(&mut self) {
        for index in std::mem::take(&mut self.batch) {
            self.take(index);
            self.packets += 1;
            if let Hold::EveryNPackets(most) = self.rules.policy().hold
                && self.packets.is_multiple_of(most.into())
            {
                self.release_due_flows(Moment::PacketWindow, |_, _| true);
            }
            self.forget_discardable();
        }
    }

    fn end_of_poll(&mut self) {
        self.polls += 1;
        self.release_due_flows(Moment::EndOfPoll(self.polls), |_, _| true);
    }

    fn advance(&mut self, until: Instant) {
        loop {
            let is_due = |model: &Self, at| model.deadline(at).is_some_and(|due| due <= model.now);
            self.release_due_flows(Moment::Due, is_due);
            self.forget_discardable();
            let next = (0..self.flows.len()).filter_map(|at| self.deadline(at)).min();
            match next.filter(|next| *next <= until) {
                Some(next) => self.now = self.now.max(next),
                None => break self.now = until,
            }
        }
    }

    fn deadline(&self, at: usize) -> Option<Instant> {
        let flow = &self.flows[at];
        let oldest = flow.held.iter().map(|index| self.frames[*index].arrived_at).min()?;
        let longest = flow.outlives_poll.then_some(oldest + self.most_hold);
        flow.due.into_iter().chain(longest).min()
    }

    fn take(&mut self, index: usize) {
        match self.script.reading(index) {
            Reading::Nothing(fault) => self.pass(index, name_of(fault)),
            Reading::OtherProtocol | Reading::Datagram(_) => self.pass(index, "not_tcp"),
            Reading::Addresses(ends, fault) => self.pass_between(&ends, index, name_of(fault)),
            Reading::Fragment(ends) => self.pass_between(&ends, index, "fragment"),
            Reading::Unknown(ends) => self.pass_between(&ends, index, "unknown_header"),
            Reading::Segment(segment) => self.take_segment(index, &segment),
            Reading::Tunnel(..) => panic!("tunnels are not read"),
        }
    }

    fn take_segment(&mut self, index: usize, segment: &Segment) {
        let frame = self.frames[index];
        let parsed = self.parsed(index);
        let trusts = self.script.setup.trusts_checksums || frame.checksum.is_trusted();
        let elsewhere = frame.checksum.is_elsewhere(segment.transport_at, 16);
        let refusal = match self.rules.candidate(&parsed) {
            Err(reason) => Some(reason.name()),
            Ok(()) if frame.gso.is_some() => Some("already_aggregated"),
            Ok(()) if elsewhere => Some("checksum_elsewhere"),
            Ok(()) if !trusts && !segment.checksum_ok => Some("bad_tcp_checksum"),
            Ok(()) => None,
        };
        match refusal {
            None => self.place(index, segment),
            Some(reason @ ("bad_ip_checksum" | "bad_tcp_checksum" | "extension_header")) => {
                self.pass_between(&segment.ends, index, reason);
            }
            Some(reason) => {
                if let Some(at) = self.find(segment) {
                    self.release(at, usize::MAX, FlushReason::Order);
                    self.note_passed(at, index);
                }
                self.pass(index, reason);
            }
        }
    }

    fn place(&mut self, index: usize, segment: &Segment) {
        let at = self.find(segment).unwrap_or_else(|| self.begin(segment));
        let (seq, end) = (SeqNumber(segment.seq), segment.payload.len() as u32);
        let parsed = self.parsed(index);
        let next = candidate(&parsed, self.frames[index]);
        let placement = self.with_flow(at, |rules, flow| rules.verdict(flow, &next));
        let in_sequence = match placement {
            Placement::Bypass(flush, reason) => {
                self.release(at, usize::MAX, flush);
                self.note_passed(at, index);
                self.pass(index, reason.name());
                return self.evict_others(segment);
            }
            Placement::Last => false,
            Placement::InSequence | Placement::Ahead(_) => true,
        };
        let is_far = |other: SeqNumber| (seq - other).unsigned_abs() >= NEAR;
        let runs = self.runs(at);
        let marks = runs.iter().map(Run::first_seq).chain(self.flows[at].next_seq);
        let begins_anew = in_sequence && marks.into_iter().any(is_far);
        if begins_anew {
            self.release(at, usize::MAX, FlushReason::OutOfSequence);
            let (flow, now) = (&mut self.flows[at], self.now);
            (flow.next_seq, flow.delivered_at, flow.memory) = (None, now, R::Memory::default());
        }
        match placement {
            Placement::Ahead(reason) if !begins_anew => {
                if runs.iter().any(|run| !seq.is_before(run.first_seq())) {
                    self.release(at, usize::MAX, FlushReason::Order);
                }
                self.out.push(Due { frames: vec![index], why: Why::Flush(reason.name()) });
                self.delivered(at, seq + end);
            }
            _ => {
                let held = &self.flows[at].held;
                let place = held.iter().rposition(|other| !seq.is_before(self.seq(*other)));
                let place = place.map_or(0, |place| place + 1);
                let place = if in_sequence { place } else { held.len() };
                self.flows[at].held.insert(place, index);
            }
        }
        let flow = self.flows.remove(at);
        self.flows.push(flow);
        self.release_due(self.flows.len() - 1, Moment::Placed);
        self.evict_others(segment);
    }

    /// Evicts flows until there are no more than permitted, but not the flow of `segment`.
    fn evict_others(&mut self, segment: &Segment) {
        self.forget_discardable();
        while self.flows.len() > self.rules.policy().flows.into() {
            let (now, but) = (self.now, self.find(segment));
            let others = (0..self.flows.len()).filter(|at| Some(*at) != but);
            let lowest =
                others.min_by_key(|at| self.with_flow(*at, |rules, flow| rules.rank(flow, now)));
            let at = lowest.expect("another flow");
            self.release(at, usize::MAX, FlushReason::Evicted);
            self.flows.remove(at);
        }
    }

    fn release_due_flows(&mut self, moment: Moment, is_meant: impl Fn(&Self, usize) -> bool) {
        for at in 0..self.flows.len() {
            if is_meant(self, at) {
                self.release_due(at, moment);
            }
        }
    }

    fn release_due(&mut self, at: usize, moment: Moment) {
        let now = self.now;
        let due = loop {
            match self.with_flow(at, |rules, flow| rules.hold(flow, moment, now)) {
                Release::Runs(count, reason) if count > 0 && !self.flows[at].held.is_empty() => {
                    self.release(at, count, reason);
                }
                Release::Runs(..) => break None,
                Release::Nothing(due) => break due,
            }
        };
        let earliest = if moment == Moment::Placed { 0 } else { now.as_nanos() + 1_000 };
        let flow = &mut self.flows[at];
        flow.due = due.map(|due| due.max(Instant::from_nanos(earliest)));
        flow.outlives_poll |= matches!(moment, Moment::EndOfPoll(_));
        let outlives_poll = flow.outlives_poll;
        let runs = self.runs(at);
        let is_over = |run: &Run| outlives_poll && now >= run.oldest + self.most_hold;
        if let Some(last) = runs.iter().rposition(is_over) {
            self.release(at, last + 1, FlushReason::Timeout);
        }
        let flow = &mut self.flows[at];
        flow.outlives_poll &= !flow.held.is_empty();
    }

    /// Delivers the first `count` runs of a flow.
    fn release(&mut self, at: usize, count: usize, reason: FlushReason) {
        for run in self.runs(at).into_iter().take(count) {
            let frames: Vec<usize> =
                self.flows[at].held.drain(..run.held.segments as usize).collect();
            self.out.push(Due { frames, why: Why::Flush(reason.name()) });
            self.delivered(at, run.held.next_seq);
        }
    }

    fn delivered(&mut self, at: usize, end: SeqNumber) {
        let (flow, now) = (&mut self.flows[at], self.now);
        if flow.next_seq.is_none_or(|next| next.is_before(end)) {
            (flow.next_seq, flow.delivered_at) = (Some(end), now);
        }
    }

    fn note_passed(&mut self, at: usize, index: usize) {
        let parsed = self.parsed(index);
        let Transport::Tcp(tcp) = parsed.transport else { return };
        if tcp.flags.intersects(TcpFlags::SYN.union(TcpFlags::RST)) {
            self.flows.remove(at);
        } else if parsed.payload_bytes() > 0 {
            self.delivered(at, tcp.seq + parsed.payload_bytes());
        }
    }

    fn pass(&mut self, index: usize, reason: &'static str) {
        self.out.push(Due { frames: vec![index], why: Why::Bypass(reason) });
    }

    fn pass_between(&mut self, ends: &Ends, index: usize, reason: &'static str) {
        for at in 0..self.flows.len() {
            if self.flows[at].ends == *ends {
                self.release(at, usize::MAX, FlushReason::Order);
            }
        }
        self.pass(index, reason);
    }

    fn forget_discardable(&mut self) {
        let now = self.now;
        for at in (0..self.flows.len()).rev() {
            let rank = self.with_flow(at, |rules, flow| rules.rank(flow, now));
            if self.flows[at].held.is_empty() && rank == 0 {
                self.flows.remove(at);
            }
        }
    }

    fn find(&self, segment: &Segment) -> Option<usize> {
        let is_its = |flow: &Modelled<_>| flow.ends == segment.ends && flow.ports == segment.ports;
        self.flows.iter().position(is_its)
    }

    fn begin(&mut self, segment: &Segment) -> usize {
        self.flows.push(Modelled {
            ends: segment.ends.clone(),
            ports: segment.ports,
            held: Vec::new(),
            next_seq: None,
            delivered_at: self.now,
            memory: R::Memory::default(),
            due: None,
            outlives_poll: false,
        });
        self.flows.len() - 1
    }

    fn seq(&self, index: usize) -> SeqNumber {
        match self.script.reading(index) {
            Reading::Segment(segment) => SeqNumber(segment.seq),
            other => panic!("{other:?} is held"),
        }
    }

    fn parsed(&self, index: usize) -> Parsed {
        let read = self.script.setup.link.read(self.frames[index].bytes(), parse, parse_ip);
        read.expect("the naive reader reads it")
    }

    fn runs(&self, at: usize) -> Vec<Run> {
        let held = &self.flows[at].held;
        let parsed: Vec<Parsed> = held.iter().map(|index| self.parsed(*index)).collect();
        let segments: Vec<_> = parsed
            .iter()
            .zip(held)
            .map(|(parsed, index)| {
                (candidate(parsed, self.frames[*index]), self.frames[*index].arrived_at)
            })
            .collect();
        parsed.first().map_or(Vec::new(), |first| runs_of(self.rules, first.key, &segments))
    }

    fn with_flow<T>(
        &mut self,
        at: usize,
        release_due: impl FnOnce(&R, &mut Flow<'_, R::Memory>) -> T,
    ) -> T {
        let runs = self.runs(at);
        let last = self.flows[at].held.last().map(|index| (self.parsed(*index), *index));
        let last = last.as_ref().map(|(parsed, index)| candidate(parsed, self.frames[*index]));
        let Modelled { next_seq, delivered_at, memory, .. } = &mut self.flows[at];
        let (next_seq, delivered_at) = (*next_seq, *delivered_at);
        release_due(self.rules, &mut Flow { runs: &runs, last, next_seq, delivered_at, memory })
    }
}

fn candidate<'a>(parsed: &Parsed, frame: &'a Frame<Vec<u8>>) -> Candidate<'a> {
    let Transport::Tcp(tcp) = &parsed.transport else { panic!("no candidate") };
    Candidate::new(parsed, tcp, frame)
}

const fn name_of(fault: Fault) -> &'static str {
    match fault {
        Fault::NotIp => "not_ip",
        Fault::Truncated => "truncated",
        Fault::Malformed => "malformed",
    }
}
