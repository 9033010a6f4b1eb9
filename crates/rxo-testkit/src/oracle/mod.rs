//! Which deliveries must come out: a second engine, written from the design, simple and slow.
//!
//! It keeps a plain list of what is held, searches it from front to back, compares every field of
//! every segment held anew each time, and shares no code with the engine it judges. Its answer is
//! lists of frame numbers; what each delivery must look like is [`crate::naive::merge`]'s to say.

mod acks;
mod decide;
mod memory;
mod options;
mod rules;

use acks::Verdict;
use memory::{Memory, Opinion};
use rxo_frame::{Frame, Instant};

pub use rules::{HoldRule, PureAcks, Rules};

use crate::naive::{Ends, Reading, Segment, read};
use crate::script::{Script, Step};

/// The frame numbers of one delivery.
pub type Group = Vec<usize>;

/// What must be delivered in each step of `script`, and in one more that flushes the rest.
#[must_use]
pub fn expected(script: &Script) -> Vec<Vec<Group>> {
    let mut oracle = Oracle::new(script);
    let mut steps: Vec<Vec<Group>> = script.steps.iter().map(|step| oracle.step(step)).collect();
    let rest = oracle.step(&Step::Flush);
    steps.push(rest);
    steps
}

struct Oracle<'a> {
    script: &'a Script,
    rules: Rules,
    now: Instant,
    /// Frames added but not pushed yet.
    batch: Vec<usize>,
    frames: Vec<&'a Frame<Vec<u8>>>,
    readings: Vec<Reading>,
    /// What each flow holds, the least recently used first.
    held: Vec<Group>,
    /// What each flow acknowledged last, where that must be known.
    memory: Memory,
    out: Vec<Group>,
    polls: u32,
    packets: u32,
}

impl<'a> Oracle<'a> {
    fn new(script: &'a Script) -> Self {
        let frames = script.frames();
        let readings = frames.iter().map(|frame| read(frame, script.setup.link)).collect();
        Self {
            script,
            rules: script.setup.rules(),
            now: Instant::ZERO,
            batch: Vec::new(),
            frames,
            readings,
            held: Vec::new(),
            memory: Memory::default(),
            out: Vec::new(),
            polls: 0,
            packets: 0,
        }
    }

    fn step(&mut self, step: &Step) -> Vec<Group> {
        match step {
            Step::Frame(index) => self.batch.push(*index),
            Step::Push => self.push(),
            Step::EndOfPoll => self.end_of_poll(),
            Step::Poll => {
                self.push();
                self.end_of_poll();
            }
            Step::Advance(time) => {
                let until = self.now + *time;
                while let Some(deadline) = self.deadline().filter(|deadline| *deadline <= until) {
                    self.now = self.now.max(deadline);
                    self.flush_overdue();
                }
                self.now = until;
            }
            Step::Flush => {
                self.push();
                self.flush_where(|_, _| true);
            }
        }
        std::mem::take(&mut self.out)
    }

    fn push(&mut self) {
        for index in std::mem::take(&mut self.batch) {
            self.take(index);
            self.packets += 1;
            if let HoldRule::Packets(most) = self.rules.hold
                && self.packets == most
            {
                self.packets = 0;
                self.flush_where(|_, _| true);
            }
        }
    }

    fn end_of_poll(&mut self) {
        self.polls += 1;
        match self.rules.hold {
            HoldRule::EndOfPoll => self.flush_where(|_, _| true),
            HoldRule::Polls(most) if self.polls == most => {
                self.polls = 0;
                self.flush_where(|_, _| true);
            }
            _ => self.flush_overdue(),
        }
    }

    /// When the oldest aggregate has been held as long as it may be.
    fn deadline(&self) -> Option<Instant> {
        let limit = self.rules.time_limit()?;
        self.held.iter().map(|group| self.frames[group[0]].arrived_at + limit).min()
    }

    fn flush_overdue(&mut self) {
        if let Some(limit) = self.rules.time_limit() {
            let now = self.now;
            self.flush_where(|oracle, group| now >= oracle.frames[group[0]].arrived_at + limit);
        }
    }

    /// Delivers what is held and matches, the least recently used first.
    fn flush_where(&mut self, matches: impl Fn(&Self, &Group) -> bool) {
        for group in std::mem::take(&mut self.held) {
            if matches(self, &group) {
                self.deliver(group);
            } else {
                self.held.push(group);
            }
        }
    }

    fn take(&mut self, index: usize) {
        match self.readings[index].clone() {
            Reading::Nothing | Reading::OtherProtocol => self.out.push(vec![index]),
            Reading::Addresses(ends) => {
                self.flush_ends(&ends);
                self.out.push(vec![index]);
            }
            Reading::Fragment(ends) => {
                self.flush_ends(&ends);
                self.memory.doubt_all();
                self.out.push(vec![index]);
            }
            Reading::Segment(segment) => self.take_segment(index, &segment),
        }
    }

    fn flush_ends(&mut self, ends: &Ends) {
        self.flush_where(|oracle, group| oracle.segment(group[0]).ends == *ends);
    }

    fn take_segment(&mut self, index: usize, segment: &Segment) {
        let frame = self.frames[index];
        let trusts = self.script.setup.trusts_checksums;
        let rules = &self.rules;
        if decide::is_corrupted(frame, segment, rules, trusts)
            || acks::is_corrupted(frame, segment, rules, trusts)
        {
            self.flush_ends(&segment.ends);
            self.out.push(vec![index]);
        } else if acks::is_candidate(frame, segment, rules, trusts) {
            self.take_ack(index, segment);
        } else {
            let is_candidate = decide::is_candidate(frame, segment, rules, trusts);
            self.take_data(index, segment, is_candidate);
            if !is_candidate && decide::is_intact(frame, segment, trusts) {
                self.memory.other(segment);
            }
        }
    }

    /// Takes whatever is no pure ACK, or is none that may be aggregated.
    fn take_data(&mut self, index: usize, segment: &Segment, is_candidate: bool) {
        let mut group = match self.take_held(segment) {
            Some(held) if is_candidate && self.joins(&held, index, segment) => held,
            Some(held) => {
                self.deliver(held);
                Vec::new()
            }
            None => Vec::new(),
        };
        group.push(index);
        let segments: Vec<&Segment> = group.iter().map(|index| self.segment(*index)).collect();
        let closed = decide::is_closed(&segments, &self.rules);
        match (is_candidate, closed) {
            (true, false) => self.hold(group),
            (true, true) => self.deliver(group),
            (false, _) => self.out.push(group),
        }
    }

    fn take_ack(&mut self, index: usize, next: &Segment) {
        let Some(mut group) = self.take_held(next) else {
            return self.begin_with(index, next);
        };
        let last = self.segment(group[group.len() - 1]).clone();
        if !last.payload.is_empty() {
            self.deliver(group);
            return self.begin_with(index, next);
        }
        match acks::verdict(&last, next) {
            Verdict::Append if self.leaves_only_what_was_said(&last, next) => {
                self.deliver(group);
                self.hold(vec![index]);
            }
            Verdict::Append => {
                group.push(index);
                let closed = group.len() >= self.rules.ack_limit();
                if closed { self.deliver(group) } else { self.hold(group) }
            }
            Verdict::StartAnew => {
                self.deliver(group);
                self.hold(vec![index]);
            }
            Verdict::Pass => {
                self.deliver(group);
                self.out.push(vec![index]);
            }
        }
    }

    /// Whether of window updates there and back the last would say what was said before them all:
    /// seen alone it would be a duplicate that nobody sent.
    fn leaves_only_what_was_said(&self, last: &Segment, next: &Segment) -> bool {
        let is_update = next.ack == last.ack && acks::sack(next).is_none();
        self.rules.pure_acks == PureAcks::Single && is_update && !self.memory.differs(next)
    }

    /// An ACK of a flow that holds nothing.
    fn begin_with(&mut self, index: usize, next: &Segment) {
        let opinion = match self.rules.pure_acks {
            PureAcks::Single => self.memory.opinion(next),
            PureAcks::Record | PureAcks::Bypass => Opinion::Goes,
        };
        match opinion {
            Opinion::Goes => self.hold(vec![index]),
            Opinion::Stays => self.out.push(vec![index]),
        }
    }

    /// What the segment's flow holds, taken out.
    fn take_held(&mut self, segment: &Segment) -> Option<Group> {
        let place = self.held.iter().position(|group| self.is_flow(group, segment))?;
        Some(self.held.remove(place))
    }

    fn hold(&mut self, group: Group) {
        if self.held.len() == self.rules.flows {
            let evicted = self.held.remove(0);
            self.deliver(evicted);
        }
        self.held.push(group);
    }

    fn deliver(&mut self, group: Group) {
        let last = self.segment(group[group.len() - 1]).clone();
        self.memory.delivered(&last);
        self.out.push(group);
    }

    fn is_flow(&self, group: &Group, segment: &Segment) -> bool {
        let first = self.segment(group[0]);
        first.ends == segment.ends && first.ports == segment.ports
    }

    fn joins(&self, group: &Group, index: usize, next: &Segment) -> bool {
        let held: Vec<_> =
            group.iter().map(|index| (self.frames[*index], self.segment(*index))).collect();
        !held[0].1.payload.is_empty()
            && decide::may_join(&held, self.frames[index], next, &self.rules)
    }

    fn segment(&self, index: usize) -> &Segment {
        match &self.readings[index] {
            Reading::Segment(segment) => segment,
            other => panic!("frame {index} is held but is {other:?}"),
        }
    }
}

/// Whether the order of two frames, as read, must be kept.
#[must_use]
pub fn are_related<'a>(earlier: &'a Reading, later: &'a Reading) -> bool {
    let ends = |reading: &'a Reading| -> Option<&'a Ends> {
        match reading {
            Reading::Addresses(ends) | Reading::Fragment(ends) => Some(ends),
            Reading::Segment(segment) => Some(&segment.ends),
            Reading::Nothing | Reading::OtherProtocol => None,
        }
    };
    let same_ports = match (earlier, later) {
        (Reading::Segment(earlier), Reading::Segment(later)) => earlier.ports == later.ports,
        _ => true,
    };
    same_ports && ends(earlier).is_some() && ends(earlier) == ends(later)
}
