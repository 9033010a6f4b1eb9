//! Interprets any bytes as a script for the splitter, and checks its promises after each step. Shared by the
//! tests and the fuzz target.

use rxo_ack::{AckSlot, Delivered, MAX_ACKS_PER_STRETCH, SplitConfig, SplitCounters, Splitter};
use rxo_frame::{Frame, LinkKind};
use rxo_testkit::naive::{NaiveAck, Reading, Segment, another_ack, read};
use rxo_testkit::{Packet, seg};
use rxo_wire::{SeqNumber, parse};

const FLOWS: usize = 3;
const STEP_BYTES: usize = 6;
const RST: u16 = 0x004;
const ACK: u16 = 0x010;
/// The window shift of each flow's host; `None` for the last flow, whose SYN is not seen.
const SHIFTS: [Option<u8>; FLOWS] = [Some(7), Some(0), None];

/// The true state of a flow.
#[derive(Default)]
struct Truth {
    /// The sequence number at which the next new segment begins.
    next: u32,
    /// The ends of all delivered segments.
    ends: Vec<u32>,
    tsvals: Vec<u32>,
    /// The newest ACK number of the host, with its window.
    said: Option<(u32, u16)>,
    /// `true` if the host's newest ACK was in a SYN.
    was_syn: bool,
    /// The host's window shift, if the splitter can know it.
    shift: Option<u8>,
}

struct Run {
    splitter: Splitter,
    flows: [Truth; FLOWS],
    clock: u32,
}

/// Runs the script that `bytes` encode.
///
/// # Panics
/// If a promise is broken.
pub(crate) fn run(bytes: &[u8]) -> SplitCounters {
    let (every, steps) = bytes.split_first().map_or((2, bytes), |(every, rest)| (*every, rest));
    let every = u16::from(every % 5).max(1);
    let config = SplitConfig { every, flows: 2 + FLOWS as u16, ..SplitConfig::new(1) };
    let splitter = Splitter::new(config).expect("a valid configuration");
    let mut run = Run { splitter, flows: Default::default(), clock: 1 };
    (0..FLOWS).for_each(|flow| run.connect(flow));
    for step in steps.chunks_exact(STEP_BYTES) {
        run.step(step);
    }
    let counters = run.splitter.counters();
    assert_eq!(counters.frames, counters.templates + counters.passed_total());
    assert!(counters.inserted <= counters.templates * (MAX_ACKS_PER_STRETCH as u64 - 1));
    assert!(counters.templates <= counters.acks && counters.acks <= counters.frames);
    counters
}

impl Run {
    fn connect(&mut self, flow: usize) {
        let base = [1, u32::MAX - 50_000, 0x7fff_0000][flow];
        self.flows[flow] = Truth { next: base, shift: SHIFTS[flow], ..Truth::default() };
        if let Some(shift) = SHIFTS[flow] {
            let syn = peer(flow).seq(base.wrapping_sub(1)).syn().no_ack().window_scale(2);
            self.splitter.delivered_frame(syn.frame().borrowed());
            self.host(flow, host(flow).ack(base).syn().window_scale(shift), true);
        }
        self.host(flow, host(flow).ack(base), false);
    }

    fn step(&mut self, step: &[u8]) {
        let &[kind, flow, a, b, c, d] = step else { return };
        let flow = usize::from(flow) % FLOWS;
        self.clock += u32::from(d & 3);
        let window = 400 + u16::from(c) % 200;
        let truth = &self.flows[flow];
        match kind % 16 {
            0..=3 => self.deliver(flow, truth.next, a, b),
            // A retransmission, or a segment after a gap.
            4 => self.deliver(flow, truth.next.wrapping_sub(u32::from(c) * 100), a % 4, b),
            5 => self.deliver(flow, truth.next.wrapping_add(u32::from(c) * 100), a % 4, b),
            6 => self.one(flow, a, b),
            7..=10 => self.host(flow, ack(flow, truth.next, d, self.clock).window(window), false),
            11 => {
                let index = usize::from(a) << 8 | usize::from(b);
                let end = truth.ends.get(index % truth.ends.len().max(1)).copied();
                // Not half the sequence space away, where the order is undefined.
                let end = end.unwrap_or(truth.next.wrapping_sub(7));
                self.host(flow, ack(flow, end, d, self.clock).window(window), false);
            }
            12 => {
                let inside = truth.next.wrapping_sub(u32::from(a) * 37);
                self.host(flow, ack(flow, inside, d, self.clock).window(window), false);
            }
            13 => self.host(flow, odd(flow, truth.next, a), false),
            14 => self.host(flow, ack(flow, truth.next, d, self.clock).len(a.into()), false),
            _ if a < 16 && SHIFTS[flow].is_some() => self.connect(flow),
            _ => self.host(flow, ack(flow, truth.next, d, self.clock).window(window), false),
        }
    }

    /// Delivers an aggregate of equal segments, possibly with a shorter last one.
    fn deliver(&mut self, flow: usize, seq: u32, count: u8, how: u8) {
        let segment_bytes = [1_448, 1_448, 1_448, 1_436, 500, 1][usize::from(how) % 6];
        let short = if how & 0x40 == 0 { 0 } else { segment_bytes / 2 };
        let payload_bytes = u32::from(count % 90) * segment_bytes + short;
        let key = parse(&peer(flow).bytes()).expect("a frame").key;
        let delivered = Delivered {
            seq: SeqNumber(seq),
            payload_bytes,
            segment_bytes: segment_bytes as u16,
            tsval: Some(self.clock),
            fin: how == 0xff,
        };
        self.splitter.delivered(&key, &delivered);
        self.remember(flow, seq, payload_bytes, segment_bytes);
    }

    /// Delivers one frame to the host, possibly a GSO frame.
    fn one(&mut self, flow: usize, length: u8, how: u8) {
        let (seq, bytes) = (self.flows[flow].next, u32::from(length) * 20);
        let packet = peer(flow).seq(seq).len(bytes as usize).ts(self.clock, 1);
        let several = how & 1 == 1 && bytes > 0;
        let packet = if several { packet.already_aggregated(700) } else { packet };
        self.splitter.delivered_frame(packet.frame().borrowed());
        self.remember(flow, seq, bytes, if several { 700 } else { bytes });
    }

    fn remember(&mut self, flow: usize, seq: u32, bytes: u32, segment_bytes: u32) {
        let truth = &mut self.flows[flow];
        let ends = (1..=bytes / segment_bytes.max(1)).map(|end| end * segment_bytes).chain([bytes]);
        truth.ends.extend(ends.map(|end| seq.wrapping_add(end)));
        truth.tsvals.push(self.clock);
        let end = seq.wrapping_add(bytes);
        if end.wrapping_sub(truth.next) as i32 > 0 {
            truth.next = end;
        }
    }

    /// Sends `packet` from the host: calls the splitter and checks its result.
    fn host(&mut self, flow: usize, packet: Packet, is_syn: bool) {
        let frame = packet.frame();
        let Reading::Segment(seen) = read(&frame, LinkKind::Ethernet) else {
            assert!(self.splitter.split(frame.borrowed()).is_none());
            return;
        };
        let mut memory = [AckSlot::EMPTY; MAX_ACKS_PER_STRETCH];
        let template = self.splitter.split(frame.borrowed());
        if let Some(template) = template {
            let expanded = template.expand(&mut memory).expect("room for all");
            assert!((1..MAX_ACKS_PER_STRETCH).contains(&expanded.len()));
            self.flows[flow].check(&frame, &seen, expanded.iter());
        }
        let truth = &mut self.flows[flow];
        if seen.flags & RST != 0 {
            // The next connection with these ports may use another window scale.
            (truth.shift, truth.said) = (None, None);
        } else if seen.flags & ACK != 0 {
            truth.note(&seen, is_syn);
        }
    }
}

impl Truth {
    fn note(&mut self, seen: &Segment, is_syn: bool) {
        let is_old = self.said.is_some_and(|(ack, _)| (seen.ack.wrapping_sub(ack) as i32) < 0);
        if !is_old {
            self.said = Some((seen.ack, seen.window));
            self.was_syn = is_syn;
        }
    }

    fn check<'m>(
        &self,
        frame: &Frame<Vec<u8>>,
        seen: &Segment,
        inserted: impl Iterator<Item = Frame<&'m [u8]>>,
    ) {
        assert!(seen.payload.is_empty() && seen.flags == ACK, "only pure ACKs are split");
        let (mut last, window) = self.said.expect("an ACK before it");
        let edge_before = (last, window);
        for ack in inserted {
            assert_eq!((ack.checksum, ack.vlan), (frame.checksum, frame.vlan));
            let Reading::Segment(new) = read(&ack, LinkKind::Ethernet) else {
                panic!("unreadable")
            };
            assert!(new.ack.wrapping_sub(last) as i32 > 0, "ACKs advance");
            assert!(seen.ack.wrapping_sub(new.ack) as i32 > 0, "the host's own is the last");
            assert!(self.ends.contains(&new.ack), "{} is inside a segment", new.ack);
            let (value, echo) = (long(&new, 4), long(&new, 8));
            assert_eq!(value, long(seen, 4), "TSval is the host's");
            assert!(echo == long(seen, 8) || self.tsvals.contains(&echo), "{echo} never came");
            let numbers = NaiveAck {
                ack: new.ack,
                window: new.window,
                timestamp: (value, echo),
                id: seen.id,
            };
            let is_seed = frame.checksum.is_partial();
            assert_eq!(ack.bytes, another_ack(&frame.bytes, seen, is_seed, numbers));
            if let Some(shift) = self.shift.filter(|_| !self.was_syn) {
                check_edge((new.ack, new.window), edge_before, (seen.ack, seen.window), shift);
            }
            last = new.ack;
        }
    }
}

/// Asserts that the right edge of an inserted ACK is between those of the host's ACKs, or less than one step
/// below.
fn check_edge(new: (u32, u16), before: (u32, u16), after: (u32, u16), shift: u8) {
    let room = |(ack, window): (u32, u16)| {
        i64::from(ack.wrapping_sub(before.0)) + (i64::from(window) << shift)
    };
    assert!(room(new) <= room(after), "more is promised than the host promised");
    let least = room(before).min(room(after));
    assert!(room(new) + (1 << shift) > least, "a promise is taken back");
}

fn long(seen: &Segment, at: usize) -> u32 {
    let bytes = seen.options.get(at..at + 4).and_then(|bytes| bytes.first_chunk().copied());
    bytes.map_or(0, u32::from_be_bytes)
}

fn peer(flow: usize) -> Packet {
    seg().flow(flow as u32)
}

fn host(flow: usize) -> Packet {
    peer(flow).reply().pure_ack().window(500)
}

fn ack(flow: usize, ack: u32, how: u8, clock: u32) -> Packet {
    let packet = host(flow).ack(ack).id(u16::from(how));
    let packet = if how & 4 == 0 { packet.ts(clock, clock) } else { packet };
    let packet = if how & 8 == 0 { packet } else { packet.padded_with(how) };
    if how & 16 == 0 { packet } else { packet.partial() }
}

/// Returns a frame that must pass with nothing inserted.
fn odd(flow: usize, ack: u32, which: u8) -> Packet {
    let packet = host(flow).ack(ack);
    match which % 9 {
        0 => packet.sack(&[(1, 2)]),
        1 => packet.ece(),
        2 => packet.cwr(),
        3 => packet.fin(),
        4 => packet.psh(),
        5 => packet.df(false),
        6 => packet.fragment(0, true),
        7 => packet.no_ack(),
        _ => packet.rst(),
    }
}
