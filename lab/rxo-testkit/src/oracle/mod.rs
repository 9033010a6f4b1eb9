//! Computes the expected deliveries: a second engine, written from the design, simple and slow.
//!
//! It keeps a plain list of held frames, searches it from front to back, compares every field of every held
//! segment each time, and shares no code with the tested engine. Its result is lists of frame numbers with
//! reasons. [`crate::naive::merge`] computes the bytes of a delivery.

mod acks;
mod auto;
mod differ;
mod due;
mod inside;
mod memory;
mod options;
mod refuse;

use acks::Verdict;
use auto::Patience;
use memory::{Memory, Opinion};
use rxo_frame::{Frame, Instant, Load};

use crate::rules::Psh;
pub use crate::rules::{HoldRule, PureAcks, Rules};
pub(crate) use differ::{MOST_DATAGRAMS, are_fixed};
pub use due::{Due, Why};

use crate::naive::{Content, Ends, Fault, Reading, Segment};
use crate::script::{Script, Step};

/// Numbers of the frames that a flow holds.
type Group = Vec<usize>;

/// Returns the deliveries that each step of `script` must make, and those of a last step that flushes the rest.
#[must_use]
pub fn expected(script: &Script) -> Vec<Vec<Due>> {
    let mut oracle = Oracle::new(script);
    let mut steps: Vec<Vec<Due>> = script.steps.iter().map(|step| oracle.step(step)).collect();
    let rest = oracle.step(&Step::Flush);
    steps.push(rest);
    steps
}

struct Oracle<'a> {
    script: &'a Script,
    rules: Rules,
    now: Instant,
    /// Frames that were added but not pushed yet.
    batch: Vec<usize>,
    frames: Vec<&'a Frame<Vec<u8>>>,
    readings: Vec<Reading>,
    /// Frames of each flow, with the least recently used flow first.
    held: Vec<Group>,
    /// The last acknowledgement of each flow, if the rules need it.
    memory: Memory,
    out: Vec<Due>,
    polls: u32,
    packets: u32,
    load: Option<Load>,
    patience: Patience,
}

impl<'a> Oracle<'a> {
    fn new(script: &'a Script) -> Self {
        let frames = script.frames();
        let readings = (0..frames.len()).map(|index| script.reading(index)).collect();
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
            load: None,
            patience: Patience::default(),
        }
    }

    fn step(&mut self, step: &Step) -> Vec<Due> {
        match step {
            Step::Frame(index) => self.batch.push(*index),
            Step::Push => self.push(),
            Step::EndOfPoll => self.end_of_poll(),
            Step::Poll => {
                self.push();
                self.end_of_poll();
            }
            Step::Advance(time) => {
                let is_auto = matches!(self.rules.hold, HoldRule::Auto { .. });
                if is_auto && self.load.is_some_and(|load| load.unread == 0) {
                    self.flush_all("receiver_idle");
                } else {
                    self.flush_overdue();
                }
                let until = self.now + *time;
                while let Some(deadline) = self.deadline().filter(|deadline| *deadline <= until) {
                    self.now = self.now.max(deadline);
                    self.flush_overdue();
                }
                self.now = until;
            }
            Step::Flush => {
                self.push();
                self.flush_all("shutdown");
            }
            Step::Load(load) => self.load = *load,
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
                self.flush_all("packet_limit");
            }
        }
    }

    fn end_of_poll(&mut self) {
        self.polls += 1;
        match self.rules.hold {
            HoldRule::EndOfPoll => self.flush_all("end_of_poll"),
            HoldRule::Polls(most) if self.polls == most => {
                self.polls = 0;
                self.flush_all("poll_limit");
            }
            HoldRule::Polls(_) => {
                self.flush_where("lone_segment", |_, group| group.len() == 1);
                self.flush_overdue();
            }
            HoldRule::Packets(_) | HoldRule::Time(_) => self.flush_overdue(),
            HoldRule::Auto { budget, polls } => self.end_of_poll_by_load(budget, polls),
        }
    }

    /// Returns the earliest deadline of a held aggregate; `None` if nothing is held or holds have no time
    /// limit.
    fn deadline(&self) -> Option<Instant> {
        let limit = self.rules.time_limit()?;
        self.held.iter().map(|group| self.frames[group[0]].arrived_at + limit).min()
    }

    fn flush_overdue(&mut self) {
        if let Some(limit) = self.rules.time_limit() {
            let now = self.now;
            let is_due =
                |oracle: &Self, group: &Group| now >= oracle.frames[group[0]].arrived_at + limit;
            self.flush_where("timeout", is_due);
        }
    }

    fn flush_all(&mut self, reason: &'static str) {
        self.flush_where(reason, |_, _| true);
    }

    /// Flushes the groups for which `matches` is true, least recently used first.
    fn flush_where(&mut self, reason: &'static str, matches: impl Fn(&Self, &Group) -> bool) {
        for group in std::mem::take(&mut self.held) {
            if matches(self, &group) {
                self.flush(group, reason);
            } else {
                self.held.push(group);
            }
        }
    }

    fn take(&mut self, index: usize) {
        match self.readings[index].clone() {
            Reading::Nothing(fault) => self.pass(index, name_of(fault)),
            Reading::OtherProtocol => self.pass(index, "not_tcp"),
            Reading::Addresses(ends, fault) => {
                self.flush_tunnels();
                self.flush_ends(&ends);
                self.pass(index, name_of(fault));
            }
            Reading::Fragment(ends) => self.take_hidden(index, &ends, "fragment"),
            Reading::Unknown(ends) => self.take_hidden(index, &ends, "unknown_header"),
            Reading::Tunnel(outer, content) => self.take_tunnel(index, &outer, content),
            Reading::Segment(segment) => match &segment.outer {
                Some(outer) => self.take_inside(index, &segment, outer),
                None => self.take_segment(index, &segment),
            },
            Reading::Datagram(segment) if self.rules.udp && self.rules.coalesce => {
                self.take_segment(index, &segment);
            }
            Reading::Datagram(_) => self.pass(index, "not_tcp"),
        }
    }

    /// Passes a frame that may hide a segment of any flow between its hosts.
    fn take_hidden(&mut self, index: usize, ends: &Ends, reason: &'static str) {
        self.flush_tunnels();
        self.flush_ends(ends);
        self.memory.mark_uncertain(ends);
        self.pass(index, reason);
    }

    fn flush_ends(&mut self, ends: &Ends) {
        self.flush_where("order", |oracle, group| oracle.segment(group[0]).ends == *ends);
    }

    fn take_segment(&mut self, index: usize, segment: &Segment) {
        let frame = self.frames[index];
        let trusts = self.script.setup.trusts_checksums;
        match refuse::refusal(frame, segment, &self.rules, trusts) {
            None if segment.udp_length.is_some() => self.take_datagram(index, segment),
            None if refuse::is_ack(segment, &self.rules) => self.take_ack(index, segment),
            None => self.take_data(index, segment),
            // Damage may have changed the ports, so the flow is unknown.
            Some(reason @ ("bad_ip_checksum" | "bad_tcp_checksum" | "bad_udp_checksum")) => {
                self.flush_tunnels();
                self.flush_ends(&segment.ends);
                self.pass(index, reason);
            }
            Some(reason @ "extension_header") => {
                self.take_hidden(index, &segment.ends, reason);
                self.remember_passed(frame, segment);
            }
            Some(reason) => {
                if let Some(held) = self.take_held(segment) {
                    self.flush(held, "order");
                }
                self.pass(index, reason);
                self.remember_passed(frame, segment);
            }
        }
    }

    /// Records the acknowledgement of a frame that passed, even if extension headers may change its
    /// addresses: its checksum was verified with the addresses in the IP header.
    fn remember_passed(&mut self, frame: &Frame<Vec<u8>>, segment: &Segment) {
        let is_tcp = segment.udp_length.is_none();
        if is_tcp && refuse::is_intact(frame, segment, self.script.setup.trusts_checksums) {
            self.memory.other(segment);
        }
    }

    fn take_data(&mut self, index: usize, segment: &Segment) {
        let mut group = Vec::new();
        if let Some(held) = self.take_held(segment) {
            match self.difference(&held, index, segment) {
                None => group = held,
                Some(reason) => self.flush(held, reason),
            }
        }
        let goes_as_it_is = self.rules.psh == Psh::ClosesAloneAsIs && group.is_empty();
        if goes_as_it_is && segment.flags & refuse::PSH != 0 {
            self.pass(index, "psh_alone");
            if segment.outer.is_none() {
                self.memory.other(segment);
            }
            return;
        }
        group.push(index);
        let segments: Vec<&Segment> = group.iter().map(|index| self.segment(*index)).collect();
        match differ::closing(&segments, &self.rules) {
            None => self.hold(group),
            Some(reason) => self.flush(group, reason),
        }
    }

    fn take_datagram(&mut self, index: usize, segment: &Segment) {
        let mut group = Vec::new();
        if let Some(held) = self.take_held(segment) {
            match self.difference(&held, index, segment) {
                None => group = held,
                Some(reason) => self.flush(held, reason),
            }
        }
        group.push(index);
        let datagrams: Vec<&Segment> = group.iter().map(|index| self.segment(*index)).collect();
        match differ::closing_datagrams(&datagrams, &self.rules) {
            None => self.hold(group),
            Some(reason) => self.flush(group, reason),
        }
    }

    fn take_ack(&mut self, index: usize, next: &Segment) {
        let Some(mut group) = self.take_held(next) else {
            return self.begin_with(index, next);
        };
        let last = self.segment(group[group.len() - 1]).clone();
        if !last.payload.is_empty() {
            self.flush(group, "order");
            return self.begin_with(index, next);
        }
        match acks::verdict(&last, next) {
            Verdict::Append if self.leaves_only_what_was_said(&last, next) => {
                self.flush(group, "window_changed");
                self.hold(vec![index]);
            }
            Verdict::Append => {
                group.push(index);
                let closed = group.len() >= self.rules.ack_limit();
                if closed { self.flush(group, "ack_limit") } else { self.hold(group) }
            }
            Verdict::StartAnew(reason) => {
                self.flush(group, reason);
                self.hold(vec![index]);
            }
            Verdict::Pass(flush, bypass) => {
                self.flush(group, flush);
                self.pass(index, bypass);
            }
        }
    }

    /// Returns `true` if window updates there and back would leave the last one equal to the ACK before them:
    /// delivered alone, it would look like a duplicate that nobody sent.
    fn leaves_only_what_was_said(&self, last: &Segment, next: &Segment) -> bool {
        let is_update = next.ack == last.ack && acks::sack(next).is_none();
        self.rules.pure_acks == PureAcks::Single && is_update && !self.memory.differs(next)
    }

    /// Processes an ACK whose flow holds nothing.
    fn begin_with(&mut self, index: usize, next: &Segment) {
        let opinion = match self.rules.pure_acks {
            PureAcks::Single => self.memory.opinion(next),
            PureAcks::Record | PureAcks::Bypass => Opinion::Goes,
        };
        match opinion {
            Opinion::Goes => self.hold(vec![index]),
            Opinion::Stays(reason) => self.pass(index, reason),
        }
    }

    /// Removes and returns the frames that the segment's flow holds; `None` if it holds none.
    fn take_held(&mut self, segment: &Segment) -> Option<Group> {
        let place = self.held.iter().position(|group| self.is_flow(group, segment))?;
        Some(self.held.remove(place))
    }

    fn hold(&mut self, group: Group) {
        if self.held.len() == self.rules.flows {
            let evicted = self.held.remove(0);
            self.flush(evicted, "evicted");
        }
        self.held.push(group);
    }

    fn flush(&mut self, group: Group, reason: &'static str) {
        let last = self.segment(group[group.len() - 1]).clone();
        if last.udp_length.is_none() && last.outer.is_none() {
            self.memory.delivered(&last);
        }
        self.out.push(Due { frames: group, why: Why::Flush(reason) });
    }

    fn pass(&mut self, index: usize, reason: &'static str) {
        self.out.push(Due { frames: vec![index], why: Why::Bypass(reason) });
    }

    fn is_flow(&self, group: &Group, segment: &Segment) -> bool {
        let first = self.segment(group[0]);
        first.ends == segment.ends && first.ports == segment.ports
    }

    fn difference(&self, group: &Group, index: usize, next: &Segment) -> Option<&'static str> {
        let held: Vec<_> =
            group.iter().map(|index| (self.frames[*index], self.segment(*index))).collect();
        let is_datagram = next.udp_length.is_some();
        if held[0].1.payload.is_empty() || held[0].1.udp_length.is_some() != is_datagram {
            return Some("order");
        }
        if is_datagram {
            return differ::datagram_difference(&held, self.frames[index], next, &self.rules);
        }
        differ::difference(&held, self.frames[index], next, &self.rules)
            .or_else(|| self.difference_around(group, next))
    }

    fn segment(&self, index: usize) -> &Segment {
        match &self.readings[index] {
            Reading::Segment(segment) | Reading::Datagram(segment) => segment,
            other => panic!("frame {index} is held but is {other:?}"),
        }
    }
}

const fn name_of(fault: Fault) -> &'static str {
    match fault {
        Fault::NotIp => "not_ip",
        Fault::Truncated => "truncated",
        Fault::Malformed => "malformed",
    }
}

/// Decides whether the order of two frames must be kept because one of them is, or may be, inside a tunnel.
/// `None` if both are segments of a tunnel, or neither is in one.
fn are_related_in_tunnels(earlier: &Reading, later: &Reading) -> Option<bool> {
    let is_segment =
        |reading: &Reading| matches!(reading, Reading::Segment(it) if it.outer.is_some());
    let may_hide = |reading: &Reading| match reading {
        Reading::Tunnel(_, content) => *content != Content::Other,
        Reading::Fragment(_) | Reading::Unknown(_) | Reading::Addresses(..) => true,
        _ => false,
    };
    match (is_segment(earlier), is_segment(later)) {
        (true, true) => None,
        (true, false) => Some(may_hide(later)),
        (false, true) => Some(may_hide(earlier)),
        (false, false) => None,
    }
}

/// Returns `true` if the order of two frames, as read, must be kept.
#[must_use]
pub fn are_related<'a>(earlier: &'a Reading, later: &'a Reading) -> bool {
    let ends = |reading: &'a Reading| -> Option<&'a Ends> {
        match reading {
            Reading::Addresses(ends, _) | Reading::Fragment(ends) | Reading::Unknown(ends) => {
                Some(ends)
            }
            Reading::Segment(segment) | Reading::Datagram(segment) => Some(&segment.ends),
            Reading::Nothing(_) | Reading::OtherProtocol | Reading::Tunnel(..) => None,
        }
    };
    if let Some(are_related) = are_related_in_tunnels(earlier, later) {
        return are_related;
    }
    // A receiver never relates the order of a UDP datagram to that of a TCP segment, whatever their ports.
    let (is_udp, is_tcp) = (
        |reading: &Reading| matches!(reading, Reading::Datagram(_)),
        |reading: &Reading| matches!(reading, Reading::Segment(_)),
    );
    if is_udp(earlier) && is_tcp(later) || is_tcp(earlier) && is_udp(later) {
        return false;
    }
    // If extension headers may change the addresses, the ports do not identify the flow.
    let ports = |reading: &'a Reading| match reading {
        Reading::Segment(segment) | Reading::Datagram(segment) if !segment.odd_extensions => {
            Some(segment.ports)
        }
        _ => None,
    };
    let same_ports = match (ports(earlier), ports(later)) {
        (Some(earlier), Some(later)) => earlier == later,
        _ => true,
    };
    same_ports && ends(earlier).is_some() && ends(earlier) == ends(later)
}
