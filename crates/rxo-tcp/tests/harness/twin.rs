//! Fast ways against the numbered steps: two connections get the same, one as segments that take the
//! steps one by one, the other in the forms that have a fast way.
//!
//! What must hold: after everything that goes in both are in the same state, all of it, and the same
//! leaves. In every other script nobody sends text, and the one that takes the steps transmits after each
//! segment, as a stack without aggregates does: each acknowledgement that the other owed says what it would
//! have said had it left at once, and `transmits.rs` compares all of them.

use std::num::NonZeroU16;

use rxo_frame::{Duration, Frame, Instant};
use rxo_tcp::{
    AckPolicy, Config, Connection, Ecn, KeepAlive, Layout, Payload, PlainSegment, SackBlock,
    Secret, Segment, SegmentOptions, Transmit,
};
use rxo_wire::build::{Ipv4Header, TcpHeader, timestamp_option};
use rxo_wire::tcp::{AckRecord, Timestamp};
use rxo_wire::{FlowKey, SeqNumber, TcpFlags};

use super::{Script, stream_byte};

mod transmits;

/// Plays the script `data`; says how many segments each twin got.
///
/// # Panics
/// When the two differ.
pub(crate) fn run(data: &[u8]) -> u64 {
    let mut script = Script::new(data);
    let config = script.config();
    let idle = Duration::from_millis(700);
    let asks = KeepAlive { idle, interval: idle, probes: 2 };
    let keep_alive = config.nagle.then_some(asks);
    // A large segment is one piece, and those that it stands for are many.
    let how = script.byte();
    let (has_large, transmits_between) = (how & 1 == 1, how & 2 == 2);
    let receive_pieces = if has_large { 1 << 16 } else { config.receive_pieces };
    let acks = if transmits_between { AckPolicy::EverySecondSegment } else { config.acks };
    let mut twins = Twins::open(&Config { keep_alive, receive_pieces, acks, ..config });
    (twins.has_large, twins.transmits_between) = (has_large, transmits_between);
    while script.has_more() {
        twins.play(&mut script);
        twins.flush();
        if transmits_between && twins.fast.is_closed() {
            // With what was owed, and what was not told.
            assert_eq!(twins.fast.state(), twins.slow.state());
            break;
        }
        let states = [&twins.fast, &twins.slow].map(|twin| state(twin, transmits_between));
        assert_eq!(states[0], states[1]);
    }
    twins.segments
}

/// All of it, but in how many pieces text is; and which acknowledgements have left, where they did not
/// leave together.
fn state(connection: &Connection<Vec<u8>>, without_acks: bool) -> String {
    let whole = without(&format!("{connection:?}"), " bytes in ", " pieces");
    if without_acks { without(&whole, " owed: [", " unacknowledged_bytes") } else { whole }
}

/// `whole` without what stands from `start` to `end`.
fn without(whole: &str, start: &str, end: &str) -> String {
    let (before, rest) = whole.split_once(start).expect("a connection");
    let (_, after) = rest.split_once(end).expect("a connection");
    [before, after].concat()
}

const PAIR: FlowKey = FlowKey::v4(0x0a00_0001, 0x0a00_0002, 0x1388_0050, 0);
const PEER_ISS: SeqNumber = SeqNumber(0xffff_f000);

struct Twins {
    fast: Connection<Vec<u8>>,
    slow: Connection<Vec<u8>>,
    now: Instant,
    /// What our timestamps began with.
    clock: u32,
    has_timestamps: bool,
    has_large: bool,
    /// The slow one transmits after each segment; then nobody sends text.
    transmits_between: bool,
    /// What has left that one since all was compared.
    left: Vec<String>,
    /// How many each got.
    segments: u64,
}

impl Twins {
    fn open(config: &Config) -> Self {
        let now = Instant::from_micros(5_000_000);
        let open = || {
            let opened = Connection::open_active(config.clone(), PAIR, Secret([1, 2]), now);
            opened.expect("settings that can be")
        };
        let (fast, slow) = (open(), open());
        let has_timestamps = config.timestamps;
        let mut twins = Self {
            fast,
            slow,
            now,
            clock: 0,
            has_timestamps,
            has_large: false,
            transmits_between: false,
            left: Vec::new(),
            segments: 1,
        };
        twins.flush();
        let ecn = if config.ecn { TcpFlags::ECE } else { TcpFlags::default() };
        let syn = Segment {
            seq: PEER_ISS,
            ack: twins.fast.statistics().snd_nxt,
            flags: TcpFlags::SYN | TcpFlags::ACK | ecn,
            window: 60_000,
            options: SegmentOptions {
                maximum_segment_size: Some(500),
                window_scale: Some(2),
                is_sack_permitted: true,
                timestamp: twins.timestamp(9, 0),
                ..SegmentOptions::default()
            },
            payload: None,
            ecn: Ecn::NotCapable,
            arrived_at: now,
        };
        twins.slow.on_segment(now, syn.clone());
        twins.fast.on_segment(now, syn);
        twins.flush();
        twins
    }

    fn play(&mut self, script: &mut Script<'_>) {
        match script.byte() % 16 {
            0..=2 => self.texts(script),
            3 if self.has_large => self.large(script),
            3..=4 => self.alike(script),
            5..=7 => self.acks(script),
            8 => self.sack(script),
            9..=10 if self.transmits_between => self.read(script.word().into()),
            9..=10 => self.write(script.word().into()),
            11 => self.read(script.word().into()),
            12 => self.pass(Duration::from_micros(script.word().into())),
            13 => self.pass(Duration::from_millis(u64::from(script.byte()))),
            14 => self.fire(),
            _ if script.byte() < 10 => {
                assert_eq!(self.fast.shutdown(), self.slow.shutdown());
            }
            _ => self.fire(),
        }
    }

    /// An aggregate of text, mostly what comes next.
    fn texts(&mut self, script: &mut Script<'_>) {
        let mut next = self.fast.statistics().rcv_nxt;
        let mut plain: Vec<_> =
            (0..1 + script.byte() % 12).map(|_| self.text(script, &mut next)).collect();
        plain.retain(|segment| self.may_come(segment));
        self.step(plain.iter().cloned().map(whole).collect());
        self.fast.on_run(self.now, plain);
    }

    /// An aggregate of text, the first segments of which are alike; mostly what comes next.
    fn alike(&mut self, script: &mut Script<'_>) {
        // So that their timestamp is new.
        self.pass(Duration::from_millis(u64::from(script.byte() % 4)));
        let mut next = self.fast.statistics().rcv_nxt;
        let mut first = self.text(script, &mut next);
        let length = next - first.seq;
        if script.byte() < 60 {
            // The first of them was here before.
            first.seq = SeqNumber(first.seq.0.wrapping_sub(length as u32));
        }
        let count = 1 + usize::from(script.byte() % 12 / (1 + script.byte() % 6));
        let mut frames: Vec<_> = (0..count as u32)
            .map(|at| frame(&first, first.seq + at * length as u32, length))
            .collect();
        let mut after = first.seq + (count as u32) * length as u32;
        let odd = self.text(script, &mut after);
        let is_one_shape = odd.timestamp.is_some() == first.timestamp.is_some();
        if is_one_shape && script.byte() & 1 == 0 {
            frames.push(frame(&odd, odd.seq, after - odd.seq));
        }
        let headers = frames[0].bytes.len() - length as usize;
        let layout = Layout::of_header(&frames[0].bytes[..headers], 0, IP_BYTES).expect("plain");
        let one_by_one: Vec<_> = layout.segments(frames.clone().into_iter()).collect();
        if !one_by_one.iter().all(|segment| self.may_come(segment)) {
            return;
        }
        self.step(one_by_one.into_iter().map(whole).collect());
        self.fast.on_alike_run(self.now, layout.run(frames.into_iter(), count));
    }

    /// One that stands for several.
    fn large(&mut self, script: &mut Script<'_>) {
        self.pass(Duration::from_millis(u64::from(script.byte() % 4)));
        let mut next = self.fast.statistics().rcv_nxt;
        let first = self.text(script, &mut next);
        let (size, length) = (1 + script.word() % 900, u32::from(script.word() % 6_000) + 1);
        let part = |at: u32| {
            let (from, to) = (first.seq + at, length.min(at + u32::from(size)) - at);
            let text: Vec<u8> = (0..to).map(|at| stream_byte((from + at).0)).collect();
            let range = 0..text.len();
            let payload = Payload::new(text, range).expect("there is text");
            PlainSegment { seq: from, payload, ..first.clone() }
        };
        let parts: Vec<_> = (0..length).step_by(size.into()).map(part).collect();
        let has_places = !self.transmits_between || parts.len() < ACKS_THAT_CAN_WAIT;
        if !has_places || !parts.iter().all(|part| self.may_come(part)) {
            return;
        }
        self.step(parts.iter().cloned().map(whole).collect());
        let text: Vec<u8> = (0..length).map(|at| stream_byte((first.seq + at).0)).collect();
        let payload = Payload::new(text, 0..length as usize).expect("there is text");
        let size = NonZeroU16::new(size).expect("one byte at least");
        let taken = self.fast.on_large(self.now, whole(PlainSegment { payload, ..first }), size);
        if taken.is_err() {
            self.fast.on_aggregate(self.now, parts.into_iter().map(whole));
        }
    }

    fn text(&self, script: &mut Script<'_>, next: &mut SeqNumber) -> PlainSegment<Vec<u8>> {
        let (odd, how) = (script.byte() < 40, script.byte());
        let statistics = self.fast.statistics();
        let is = |bit: u8| odd && how >> bit & 1 == 1;
        let seq = if is(0) {
            SeqNumber(next.0.wrapping_add(script.word().into()).wrapping_sub(500))
        } else {
            *next
        };
        let length = if how & 0x80 == 0 { 500 } else { 1 + u32::from(script.word() % 900) };
        let text: Vec<u8> = (0..length).map(|at| stream_byte((seq + at).0)).collect();
        *next = seq + length;
        let range = 0..text.len();
        let ack = statistics.snd_una + if is(1) { script.word().into() } else { 0 };
        PlainSegment {
            seq,
            ack,
            flags: if is(2) { TcpFlags::from_bits(script.word()) } else { TcpFlags::ACK },
            window: if is(3) { script.word() } else { 60_000 },
            timestamp: self.stamp(script, is(4)),
            payload: Payload::new(text, range).expect("there is text"),
            ecn: if is(5) { Ecn::Congestion } else { Ecn::NotCapable },
            arrived_at: self.now,
        }
    }

    /// Pure ACKs, mostly of something new.
    fn acks(&mut self, script: &mut Script<'_>) {
        let mut ack = self.fast.statistics().snd_una;
        let records: Vec<_> =
            (0..1 + script.byte() % 12).map(|_| self.ack(script, &mut ack)).collect();
        self.step(records.iter().map(of_record).collect());
        self.fast.on_pure_acks(self.now, &records);
    }

    /// A duplicate with SACK, or anything else that makes recovery begin; no fast way for it.
    fn sack(&mut self, script: &mut Script<'_>) {
        let mut ack = self.fast.statistics().snd_una;
        let mut segment = of_record(&self.ack(script, &mut ack));
        let start = SeqNumber((ack + u32::from(script.word() % 5_000)).0.wrapping_sub(1_000));
        let end = start + u32::from(script.word() % 4_000);
        segment.ack = self.fast.statistics().snd_una;
        segment.options.sack.push(SackBlock { start, end });
        self.step(vec![segment.clone()]);
        self.fast.on_segment(self.now, segment);
    }

    fn ack(&self, script: &mut Script<'_>, last: &mut SeqNumber) -> AckRecord {
        let (odd, how) = (script.byte() < 40, script.byte());
        let statistics = self.fast.statistics();
        let is = |bit: u8| odd && how >> bit & 1 == 1;
        let outstanding = (statistics.snd_nxt - *last).max(0) as u32;
        let step = if is(0) { script.word().into() } else { outstanding.min(u32::from(how) * 8) };
        *last = *last + step;
        let stamp = self.stamp(script, is(1));
        AckRecord {
            arrived_at_ns: self.now.as_nanos() - u64::from(how) * 100,
            seq: if is(2) { SeqNumber(script.long()) } else { statistics.rcv_nxt },
            ack: *last,
            ts_value: stamp.map_or(0, |stamp| stamp.value),
            ts_echo: stamp.map_or(0, |stamp| stamp.echo),
            window: if is(3) { script.word() } else { 60_000 },
            flags: if is(4) { TcpFlags::from_bits(script.word()) } else { TcpFlags::ACK },
            ecn: if is(5) { 3 } else { 0 },
            has_timestamp: stamp.is_some(),
        }
    }

    /// The timestamp of a segment that arrives now; an odd one is old, or not there.
    fn stamp(&self, script: &mut Script<'_>, is_odd: bool) -> Option<Timestamp> {
        let ms = (self.now.as_nanos() / 1_000_000) as u32;
        let echo = self.clock.wrapping_add(ms - u32::from(script.byte() & 7));
        match (is_odd, script.byte()) {
            (false, _) => self.timestamp(ms, echo),
            (true, at @ 0..128) => self.timestamp(ms.wrapping_sub(at.into()), script.long()),
            (true, _) => None,
        }
    }

    fn timestamp(&self, value: u32, echo: u32) -> Option<Timestamp> {
        self.has_timestamps.then_some(Timestamp { value, echo })
    }

    fn write(&mut self, bytes: usize) {
        let data = vec![7; bytes];
        assert_eq!(self.fast.send(&data), self.slow.send(&data));
    }

    /// One copies, the other reads in place.
    fn read(&mut self, bytes: usize) {
        let mut text = vec![0; bytes];
        let read = self.fast.receive(&mut text).unwrap_or(0);
        let seen: Vec<u8> = self.slow.readable().flatten().copied().take(read).collect();
        assert_eq!(text[..read], seen);
        if read > 0 {
            self.slow.consume(read);
        }
    }

    fn pass(&mut self, time: Duration) {
        self.now = self.now + time;
        self.fast.on_timeout(self.now);
        self.slow.on_timeout(self.now);
    }

    fn fire(&mut self) {
        assert_eq!(self.fast.poll_at(), self.slow.poll_at());
        if let Some(at) = self.fast.poll_at() {
            self.now = self.now.max(at);
            self.pass(Duration::ZERO);
        }
    }

    fn flush(&mut self) {
        if self.transmits_between {
            return self.compare_transmits();
        }
        loop {
            let fast = self.fast.poll_transmit(self.now);
            let slow = self.slow.poll_transmit(self.now);
            assert_eq!(fast.is_some(), slow.is_some());
            let (Some(fast), Some(slow)) = (fast, slow) else { return };
            assert_eq!(format!("{fast:?}"), format!("{slow:?}"));
            self.clock = clock(&fast, self.now).unwrap_or(self.clock);
        }
    }
}

/// A frame with the header of `segment` and as much text as there is at `seq`.
fn frame(segment: &PlainSegment<Vec<u8>>, seq: SeqNumber, length: i32) -> Frame<Vec<u8>> {
    let options = segment.timestamp.map(timestamp_option);
    let tcp = TcpHeader {
        seq,
        ack: segment.ack,
        flags: segment.flags,
        window: segment.window,
        options: options.as_ref().map_or(&[], |option| option),
        ..TcpHeader::default()
    };
    let payload_bytes = tcp.bytes() + length as usize;
    let traffic_class = segment.ecn.bits();
    let ip = Ipv4Header { protocol: 6, traffic_class, payload_bytes, ..Ipv4Header::default() };
    let mut bytes = vec![0; IP_BYTES + payload_bytes];
    let rest = ip.write(&mut bytes).and_then(|rest| tcp.write(rest)).expect("room");
    (0..).zip(rest).for_each(|(at, byte)| *byte = stream_byte((seq + at).0));
    Frame::new(bytes, segment.arrived_at)
}

const IP_BYTES: usize = 20;
/// More are covered by the last, where nothing is transmitted in between.
const ACKS_THAT_CAN_WAIT: usize = 64;

/// The same segment in the form that takes the steps.
fn whole(plain: PlainSegment<Vec<u8>>) -> Segment<Vec<u8>> {
    Segment {
        seq: plain.seq,
        ack: plain.ack,
        flags: plain.flags,
        window: plain.window,
        options: SegmentOptions { timestamp: plain.timestamp, ..SegmentOptions::default() },
        payload: Some(plain.payload),
        ecn: plain.ecn,
        arrived_at: plain.arrived_at,
    }
}

/// The same.
fn of_record(record: &AckRecord) -> Segment<Vec<u8>> {
    let timestamp = Timestamp { value: record.ts_value, echo: record.ts_echo };
    Segment {
        seq: record.seq,
        ack: record.ack,
        flags: record.flags,
        window: record.window,
        options: SegmentOptions {
            timestamp: record.has_timestamp.then_some(timestamp),
            ..SegmentOptions::default()
        },
        payload: None,
        ecn: Ecn::from_traffic_class(record.ecn),
        arrived_at: Instant::from_nanos(record.arrived_at_ns),
    }
}

/// What our clock began with, as a segment says that leaves at `now`.
fn clock(transmit: &Transmit<'_>, now: Instant) -> Option<u32> {
    let stamp = SegmentOptions::read(transmit.options.as_slice()).timestamp?;
    Some(stamp.value.wrapping_sub((now.as_nanos() / 1_000_000) as u32))
}
