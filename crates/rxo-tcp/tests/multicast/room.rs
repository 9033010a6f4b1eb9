//! A room: a sender, its receivers, the links between them, and virtual time.

use std::collections::BTreeSet;

use rxo_frame::{Duration, Instant, SharedBytes};
use rxo_tcp::{
    Config, Connection, Ecn, Group, GroupConfig, GroupEvent, Late, MemberId, Outcome, Parity,
    ParityCollector, Refusal, Repair, Secret, SegmentOptions, State,
};
use rxo_wire::{FlowKey, SeqNumber, TcpFlags};

use super::links::{Links, To};
pub(crate) use super::settings::*;
use super::wire::{Wire, cut};

/// The sender's connection to one receiver.
pub(crate) struct Side {
    pub(crate) tcp: Connection<Vec<u8>>,
    pub(crate) id: Option<MemberId>,
    pub(crate) refused: Option<Refusal>,
    pub(crate) outcome: Option<Outcome>,
}

/// A receiver of the cast.
pub(crate) struct Receiver {
    pub(crate) tcp: Connection<Vec<u8>>,
    /// The parity packets of the receiver; `None` if it cannot use them.
    pub(crate) collector: Option<ParityCollector>,
    /// The stream position at which the receiver begins: 0 unless it joined late ([`Late::FromNow`]).
    pub(crate) start: usize,
    /// The stream position up to which the receiver has read. Everything from `start` to here equals the
    /// stream.
    pub(crate) read: usize,
    /// The limit up to which the receiver reads.
    pub(crate) reads_at_most: usize,
    /// `true` if the receiver has got the FIN and closed.
    pub(crate) is_done: bool,
    /// The time before which no segment reaches the receiver or leaves it.
    pub(crate) absent_until: Instant,
    /// `true` if the receiver's device keeps segments while the receiver is absent.
    pub(crate) keeps_segments: bool,
    /// `true` if the receiver leaves the group as soon as it has the FIN.
    pub(crate) leaves_early: bool,
    /// The number of the receiver's segments that are lost once it has the FIN.
    pub(crate) last_acks_lost: u32,
}

pub(crate) struct Room {
    pub(crate) now: Instant,
    pub(crate) group: Group,
    pub(crate) sides: Vec<Side>,
    pub(crate) receivers: Vec<Receiver>,
    pub(crate) stream: SharedBytes,
    written: usize,
    pub(crate) links: Links,
    /// The extra delay of each receiver's segments, compared with the receiver before it.
    pub(crate) stagger: Duration,
    /// The number, from 0, of a segment to the group that reaches no receiver.
    pub(crate) lost_by_all: Option<u64>,
    pub(super) dirty: BTreeSet<usize>,
    /// The number of segments to the group: new text, and repairs.
    pub(crate) to_group: [u64; 2],
    /// The number of parity packets that were sent.
    pub(crate) parity_packets: u64,
    /// The number of segments with text that were sent to one receiver.
    pub(crate) to_one: u64,
    /// `true` if all ACKs take the slow path.
    pub(crate) is_sleepless: bool,
    /// The number of pure ACKs of members: those after which nothing was served, and the others.
    pub(crate) acks: [u64; 2],
    is_begun: bool,
}

impl Room {
    pub(crate) fn new(config: GroupConfig, receivers: usize, bytes: usize) -> Self {
        let mut room = Self {
            now: Instant::from_micros(1_000_000),
            group: Group::new(config),
            sides: Vec::new(),
            receivers: Vec::new(),
            stream: stream(bytes),
            written: 0,
            links: Links::new(),
            stagger: Duration::ZERO,
            lost_by_all: None,
            dirty: BTreeSet::new(),
            to_group: [0, 0],
            parity_packets: 0,
            to_one: 0,
            is_sleepless: false,
            acks: [0; 2],
            is_begun: false,
        };
        (0..receivers).for_each(|_| {
            room.come(receiver_config());
        });
        room
    }

    /// Adds a receiver, which connects. Returns its number.
    pub(crate) fn come(&mut self, config: Config) -> usize {
        let number = self.receivers.len();
        let ports = |from: u32, to: u32| from << 16 | to;
        let address = 0x0a01_0000 + number as u32;
        let there = FlowKey::v4(address, 0x0a00_0001, ports(40_000, 7_000), 0);
        let back = FlowKey::v4(0x0a00_0001, address, ports(7_000, 40_000), 0);
        let sender = Config { nagle: false, ..receiver_config() };
        let secret = Secret([number as u64, 5]);
        let mut tcp =
            Connection::open_active(config, there, secret, self.now).expect("settings that can be");
        tcp.keep_read_text(64 * 1_448);
        let mut side =
            Connection::open_passive(sender, back, secret).expect("settings that can be");
        if !self.group.is_too_late() {
            side.join_group(self.group.seed(), self.group.config().buffer_bytes);
        }
        self.sides.push(Side { tcp: side, id: None, refused: None, outcome: None });
        let is_from_now = self.group.config().late == Late::FromNow;
        let start = if is_from_now { self.group.progress().sent as usize } else { 0 };
        self.receivers.push(Receiver {
            tcp,
            collector: Some(ParityCollector::default()),
            start,
            read: start,
            reads_at_most: usize::MAX,
            is_done: false,
            absent_until: Instant::ZERO,
            keeps_segments: false,
            leaves_early: false,
            last_acks_lost: 0,
        });
        self.flush_receiver(number);
        number
    }

    /// Begins the stream once all receivers are members.
    pub(crate) fn begin(&mut self) {
        self.run_until(|room| {
            room.sides.iter().all(|side| side.id.is_some() || side.refused.is_some())
        });
        self.start();
    }

    /// Begins the stream for the receivers that are members.
    pub(crate) fn start(&mut self) {
        self.is_begun = true;
        self.group.start();
        self.flush_group();
    }

    /// Runs until `is_over` returns `true` or no event is left. Panics after an hour of virtual time.
    pub(crate) fn run_until(&mut self, mut is_over: impl FnMut(&Self) -> bool) {
        let end = self.now + Duration::from_secs(3_600);
        while !is_over(self) {
            assert!(self.now < end, "it does not end");
            if !self.step() {
                return;
            }
        }
    }

    /// Begins the stream, and runs until each receiver has ended.
    pub(crate) fn run(&mut self) {
        self.begin();
        self.finish();
    }

    pub(crate) fn finish(&mut self) {
        self.run_until(|room| {
            room.sides.iter().all(|side| side.outcome.is_some() || side.refused.is_some())
        });
    }

    pub(crate) fn outcomes(&self) -> Vec<Option<Outcome>> {
        self.sides.iter().map(|side| side.outcome).collect()
    }

    /// Returns the number of receivers that have the whole stream and ended well.
    pub(crate) fn done(&self) -> usize {
        (0..self.sides.len()).filter(|number| self.is_done(*number)).count()
    }

    /// Returns `true` if receiver `number` has the whole stream and ended well.
    pub(crate) fn is_done(&self, number: usize) -> bool {
        let (side, receiver) = (&self.sides[number], &self.receivers[number]);
        side.outcome == Some(Outcome::Done)
            && receiver.is_done
            && receiver.read == self.stream.len()
    }

    /// Returns `true` if each receiver has acknowledged the FIN.
    pub(crate) fn is_all_acknowledged(&self) -> bool {
        let has_it = |side: &Side| side.tcp.state() == State::FinWait2 || side.outcome.is_some();
        self.sides.iter().all(has_it)
    }

    /// Returns the time of the next event; `None` if there is none.
    pub(crate) fn next_event(&self) -> Option<Instant> {
        let arrival = self.links.next_at();
        let sides = self.sides.iter().filter_map(|side| side.tcp.poll_at());
        let present = self.receivers.iter().filter(|it| it.absent_until <= self.now);
        let receivers = present.filter_map(|it| it.tcp.poll_at());
        let back = self.receivers.iter().map(|it| it.absent_until).filter(|at| *at > self.now);
        let back = back.filter(|at| *at < FOR_EVER);
        let all = arrival
            .into_iter()
            .chain(sides)
            .chain(receivers)
            .chain(back)
            .chain(self.group.poll_at());
        all.min()
    }

    /// Runs the next event. Returns `false` if there is none.
    pub(crate) fn step(&mut self) -> bool {
        let Some(next) = self.next_event() else { return false };
        self.now = self.now.max(next);
        self.deliver();
        self.fire();
        self.serve();
        true
    }

    fn fire(&mut self) {
        for number in 0..self.sides.len() {
            let side = &mut self.sides[number];
            if side.tcp.poll_at().is_some_and(|at| at <= self.now) {
                if let Some(id) = side.id {
                    self.group.before(id, &mut side.tcp, self.now);
                }
                side.tcp.on_timeout(self.now);
                self.dirty.insert(number);
            }
            let receiver = &mut self.receivers[number];
            let is_here = receiver.absent_until <= self.now;
            if is_here && receiver.tcp.poll_at().is_some_and(|at| at <= self.now) {
                receiver.tcp.on_timeout(self.now);
                self.flush_receiver(number);
            }
        }
        if self.group.poll_at().is_some_and(|at| at <= self.now) {
            self.group.on_timeout(self.now);
        }
    }

    /// Serves all connections until nothing more leaves.
    fn serve(&mut self) {
        for _ in 0..MOST_ROUNDS {
            while let Some(id) = self.group.poll_touched() {
                self.dirty.extend(self.sides.iter().position(|side| side.id == Some(id)));
            }
            while let Some(number) = self.dirty.pop_first() {
                self.serve_side(number);
            }
            self.flush_group();
            self.note_events();
            if self.dirty.is_empty() {
                return;
            }
        }
        panic!("serving does not end");
    }

    fn serve_side(&mut self, number: usize) {
        let now = self.now;
        let Self { sides, group, .. } = self;
        let side = &mut sides[number];
        if let Some(id) = side.id {
            group.wake(id, &mut side.tcp, now);
        } else if side.tcp.state() == State::Established && side.refused.is_none() {
            match group.join(&mut side.tcp, now) {
                Ok(id) => side.id = Some(id),
                Err(refusal) => {
                    side.refused = Some(refusal);
                    side.tcp.abort();
                }
            }
        }
        let mut leaving = Vec::new();
        while let Some(transmit) = side.tcp.poll_transmit(now) {
            if side.id.is_some_and(|id| group.defer(id, &transmit)) {
                continue;
            }
            self.to_one += u64::from(transmit.payload_bytes() > 0);
            cut(&transmit, &mut leaving);
        }
        if let Some(id) = side.id {
            group.after(id, &mut side.tcp, now);
        }
        for wire in leaving {
            let at = self.links.has_left(self.now, &wire);
            self.links.carry(To::Receiver(number, false), wire, at);
        }
    }

    pub(crate) fn flush_group(&mut self) {
        if self.is_begun && self.group.room() > 0 {
            let mut rest = self.stream.clone();
            rest.advance(self.written);
            while !rest.is_empty() {
                let mut piece = rest.split_to(50_000);
                self.written += self.group.write(&mut piece);
                if !piece.is_empty() {
                    break;
                }
            }
            if self.written == self.stream.len() {
                self.group.finish();
            }
        }
        let mut leaving = Vec::new();
        self.group.decide_repairs(self.now);
        while let Some(repair) = self.group.poll_repair() {
            if let Some(wire) = self.parity(&repair) {
                let at = self.links.has_left(self.now, &wire);
                self.parity_packets += 1;
                for number in 0..self.receivers.len() {
                    self.links.carry(To::Collector(number), wire.clone(), at);
                }
                continue;
            }
            let number =
                repair.member().and_then(|id| self.sides.iter().position(|it| it.id == Some(id)));
            let mut wires = Vec::new();
            cut(&self.group.repair_segment(&repair, self.now), &mut wires);
            self.to_group[1] += u64::from(number.is_none());
            self.to_one += u64::from(number.is_some());
            leaving.extend(wires.into_iter().map(|wire| (number, wire)));
        }
        while let Some(transmit) = self.group.poll_transmit(self.now) {
            let mut wires = Vec::new();
            cut(&transmit, &mut wires);
            for wire in wires {
                if self.lost_by_all != Some(self.to_group[0]) {
                    leaving.push((None, wire));
                }
                self.to_group[0] += 1;
            }
        }
        for (number, wire) in leaving {
            let at = self.links.has_left(self.now, &wire);
            match number {
                Some(number) => self.links.carry(To::Receiver(number, false), wire, at),
                None => (0..self.receivers.len()).for_each(|number| {
                    self.links.carry(To::Receiver(number, true), wire.clone(), at)
                }),
            }
        }
    }

    /// Returns the datagram of a parity packet; `None` if `repair` is a segment.
    fn parity(&self, repair: &Repair) -> Option<Wire> {
        let parity = self.group.parity(repair, self.now)?;
        // The owner computes the symbol from all segments of the block.
        let (block, text) =
            (parity.block, self.group.sent_text(parity.block.seq, parity.block.bytes));
        let start = (block.seq - (ISS + 1)) as usize;
        assert!(text.to_vec() == self.stream[start..start + block.bytes as usize], "{block:?}");
        let symbol = vec![0; block.symbol_bytes()];
        let mut text = Vec::new();
        Parity { symbol: &symbol, ..parity }.write(&mut text);
        let (seq, ack) = (block.seq, SeqNumber(0));
        let options = SegmentOptions::default();
        let flags = TcpFlags::default();
        Some(Wire { seq, ack, flags, window: 0, options, text, ecn: Ecn::NotCapable })
    }

    fn note_events(&mut self) {
        while let Some(event) = self.group.poll_event() {
            let number =
                |id| self.sides.iter().position(|side| side.id == Some(id)).expect("a member");
            match event {
                GroupEvent::Abort(id) => {
                    let number = number(id);
                    self.group.before(id, &mut self.sides[number].tcp, self.now);
                    self.sides[number].tcp.abort();
                    self.dirty.insert(number);
                }
                GroupEvent::WantsText { id, from, bytes } => {
                    let number = number(id);
                    let mut text = self.stream.clone();
                    text.advance(from as usize);
                    let text = text.first(bytes as usize);
                    let tcp = &mut self.sides[number].tcp;
                    self.group.provide(id, tcp, text, self.now);
                    self.group.provide(id, tcp, SharedBytes::default(), self.now);
                    self.dirty.insert(number);
                }
                GroupEvent::Ended { id, outcome, .. } => {
                    let number = number(id);
                    self.sides[number].outcome = Some(outcome);
                    self.sides[number].id = None;
                    self.sides[number].refused = Some(Refusal::Full);
                }
            }
        }
    }

    /// Returns the time at which the sender's link has sent everything that has left.
    pub(crate) fn leaves_after(&self) -> Instant {
        self.links.leaves_after(self.now)
    }
}

pub(crate) const FOR_EVER: Instant = Instant::from_nanos(u64::MAX);
/// The largest number of serving rounds at one time.
const MOST_ROUNDS: u32 = 10_000;
