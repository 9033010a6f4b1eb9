//! Compares fast paths with the numbered steps: two connections receive the same segments, one by single
//! steps, the other in the arrival forms that have a fast path.
//!
//! Invariants: after each input both have the same state in every field and send the same segments. In every
//! other script no side sends text, and the connection that takes the steps transmits after each segment,
//! like a stack without aggregates. Then each pending acknowledgement of the other must equal the one sent at
//! once; `transmits.rs` compares all of them.

use std::num::NonZeroU16;

use rxo_frame::{Duration, Instant};
use rxo_tcp::{
    AckPolicy, Arrival, Config, Connection, Ecn, GsoSegment, KeepAlive, Payload, Secret, Segment,
    SegmentOptions, Transmit,
};
use rxo_wire::tcp::{AckRecord, SackBlock, Timestamp};
use rxo_wire::{FlowKey, SeqNumber, TcpFlags};

use super::run::run as run_of;
use super::{Script, stream_byte};

mod transmits;

/// Plays the script `data`. Returns the number of segments that each twin received.
///
/// # Panics
/// Panics if the two differ.
pub(crate) fn run(data: &[u8]) -> u64 {
    let mut script = Script::new(data);
    let config = script.config();
    let idle = Duration::from_millis(700);
    let asks = KeepAlive { idle, interval: idle, probes: 2 };
    let keep_alive = config.nagle.then_some(asks);
    // The text of a GSO frame is one piece; the text of its segments is many.
    let how = script.byte();
    let (has_gso, transmits_between) = (how & 1 == 1, how & 2 == 2);
    let receive_pieces = if has_gso { 1 << 16 } else { config.receive_pieces };
    let acks = if transmits_between { AckPolicy::EverySecondSegment } else { config.acks };
    let mut twins = Twins::open(&Config { keep_alive, receive_pieces, acks, ..config });
    (twins.has_gso, twins.transmits_between) = (has_gso, transmits_between);
    while script.has_more() {
        twins.play(&mut script);
        if twins.fin_between {
            // That FIN carried an acknowledgement, which only one of the two has sent.
            assert_eq!(twins.fast.state(), twins.slow.state());
            break;
        }
        twins.flush();
        if transmits_between && twins.fast.is_closed() {
            // Closing has dropped pending acknowledgements and window updates.
            assert_eq!(twins.fast.state(), twins.slow.state());
            break;
        }
        let states = [&twins.fast, &twins.slow].map(|twin| state(twin, transmits_between));
        assert_eq!(states[0], states[1]);
    }
    twins.segments
}

/// Returns the debug output of the state, without the number of text pieces. `without_acks` also removes owed
/// acknowledgements, for twins that do not send them together.
fn state(connection: &Connection<Vec<u8>>, without_acks: bool) -> String {
    let whole = without(&format!("{connection:?}"), " bytes in ", " pieces");
    if without_acks { without(&whole, " pending: [", " unacknowledged_bytes") } else { whole }
}

/// Returns `whole` without the part from `start` to `end`.
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
    /// The initial value of our timestamp clock.
    clock: u32,
    has_timestamps: bool,
    has_gso: bool,
    /// `true` if the slow twin transmits after each segment. Then no side sends text.
    transmits_between: bool,
    /// `true` if the slow twin sent its FIN between two segments: again, or because the first of them opened
    /// the window.
    fin_between: bool,
    /// The segments that the slow twin has sent since the last comparison with the fast one.
    left: Vec<String>,
    /// The number of segments that each twin received.
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
            has_gso: false,
            transmits_between: false,
            fin_between: false,
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
        twins.slow.on_arrival(now, syn.clone().into());
        twins.fast.on_arrival(now, syn.into());
        twins.flush();
        twins
    }

    fn play(&mut self, script: &mut Script<'_>) {
        match script.byte() % 16 {
            0..=2 => self.texts(script),
            3 if self.has_gso => self.gso(script),
            3..=4 => self.alike(script),
            5..=7 => self.acks(script),
            8 => self.sack(script),
            9..=10 if self.transmits_between => self.read(script.word().into()),
            9..=10 => self.write(script.word()),
            11 => self.read(script.word().into()),
            12 => self.pass(Duration::from_micros(script.word().into())),
            13 => self.pass(Duration::from_millis(u64::from(script.byte()))),
            14 => self.fire(),
            _ => match script.byte() {
                0..10 => assert_eq!(self.fast.shutdown(), self.slow.shutdown()),
                10..120 => self.grant(script),
                _ => self.fire(),
            },
        }
    }

    /// Grants the requested buffers, or arbitrary ones.
    fn grant(&mut self, script: &mut Script<'_>) {
        let any = script.buffers();
        let [fast, slow] = [&mut self.fast, &mut self.slow];
        let wanted = fast.wants_buffers(self.now);
        assert_eq!(wanted, slow.wants_buffers(self.now));
        let granted = if script.byte() & 1 == 0 { wanted.unwrap_or(any) } else { any };
        assert_eq!(fast.set_buffers(granted), slow.set_buffers(granted));
    }

    /// Gives text to both connections, mostly the next expected text, as a run if the header layouts are
    /// equal.
    fn texts(&mut self, script: &mut Script<'_>) {
        let mut next = self.fast.statistics().rcv_nxt;
        let texts: Vec<_> =
            (0..1 + script.byte() % 12).map(|_| self.text(script, &mut next)).collect();
        self.take_run(texts, 1);
    }

    /// Gives a run to both connections whose first segments are alike, mostly the next expected text.
    fn alike(&mut self, script: &mut Script<'_>) {
        // Time passes so that the timestamp is new.
        self.pass(Duration::from_millis(u64::from(script.byte() % 4)));
        let mut next = self.fast.statistics().rcv_nxt;
        let mut first = self.text(script, &mut next);
        let length = first.text_bytes();
        if script.byte() < 60 {
            // The first segment was received before.
            first.seq = SeqNumber(first.seq.0.wrapping_sub(length));
        }
        let count = 1 + usize::from(script.byte() % 12 / (1 + script.byte() % 6));
        let mut texts: Vec<_> =
            (0..count as u32).map(|at| part(&first, at * length, length)).collect();
        let mut after = first.seq + count as u32 * length;
        let odd = self.text(script, &mut after);
        let is_one_shape = odd.options.timestamp.is_some() == first.options.timestamp.is_some();
        if is_one_shape && script.byte() & 1 == 0 {
            texts.push(odd);
        }
        if texts.iter().all(|text| self.may_come(text)) {
            self.take_run(texts, count);
        }
    }

    /// Gives `texts` to both connections. The first `alike` of them are alike.
    fn take_run(&mut self, mut texts: Vec<Segment<Vec<u8>>>, alike: usize) {
        texts.retain(|text| self.may_come(text));
        match run_of(&texts, alike) {
            Some(run) => {
                self.step(Arrival::run(run.clone()).collect());
                self.fast.on_arrival(self.now, Arrival::run(run));
            }
            None => {
                self.step(texts.clone());
                self.fast.on_arrival(self.now, Arrival::segments(texts));
            }
        }
    }

    /// Gives a GSO frame to both connections.
    fn gso(&mut self, script: &mut Script<'_>) {
        self.pass(Duration::from_millis(u64::from(script.byte() % 4)));
        let mut next = self.fast.statistics().rcv_nxt;
        let first = self.text(script, &mut next);
        let (size, mut length) = (1 + script.word() % 900, u32::from(script.word() % 6_000) + 1);
        if first.seq != self.fast.statistics().rcv_nxt {
            // Each waiting piece prints the whole buffer, so the frame stays short.
            length = length.min(20 * u32::from(size));
        }
        let whole = part(&first, 0, length);
        let parts: Vec<_> = (0..length)
            .step_by(size.into())
            .map(|at| {
                let to = length.min(at + u32::from(size));
                let (is_first, is_last) = (at == 0, to == length);
                let (buffer, _) = whole.payload.clone().expect("text").into_parts();
                let payload = Payload::new(buffer, at as usize..to as usize);
                let mut part = Segment { seq: first.seq + at, payload, ..first.clone() };
                part.flags = if is_first { part.flags } else { part.flags.without(TcpFlags::CWR) };
                let at_end = TcpFlags::FIN | TcpFlags::PSH;
                part.flags = if is_last { part.flags } else { part.flags.without(at_end) };
                part
            })
            .collect();
        let has_places = !self.transmits_between || parts.len() < ACKS_THAT_CAN_WAIT;
        if !has_places || !parts.iter().all(|part| self.may_come(part)) {
            return;
        }
        self.step(parts);
        let size = NonZeroU16::new(size).expect("one byte at least");
        let share = |bytes: Vec<u8>| (bytes.clone(), bytes);
        let whole = GsoSegment::new(whole, size, share);
        self.fast.on_arrival(self.now, Arrival::gso(whole));
    }

    fn text(&self, script: &mut Script<'_>, next: &mut SeqNumber) -> Segment<Vec<u8>> {
        let (odd, how) = (script.byte() < 40, script.byte());
        let statistics = self.fast.statistics();
        let is = |bit: u8| odd && how >> bit & 1 == 1;
        let seq = if is(0) {
            SeqNumber(next.0.wrapping_add(script.word().into()).wrapping_sub(500))
        } else {
            *next
        };
        let length = if how & 0x80 == 0 { 500 } else { 1 + u32::from(script.word() % 900) };
        *next = seq + length;
        let ack = statistics.snd_una + if is(1) { script.word().into() } else { 0 };
        Segment {
            seq,
            ack,
            flags: if is(2) { TcpFlags::from_bits(script.word()) } else { TcpFlags::ACK },
            window: if is(3) { script.word() } else { 60_000 },
            options: SegmentOptions {
                timestamp: self.stamp(script, is(4)),
                ..SegmentOptions::default()
            },
            payload: text_at(seq, length),
            ecn: if is(5) { Ecn::Congestion } else { Ecn::NotCapable },
            arrived_at: self.now,
        }
    }

    /// Gives pure ACKs to both connections, mostly of new data.
    fn acks(&mut self, script: &mut Script<'_>) {
        let mut ack = self.fast.statistics().snd_una;
        let records: Vec<_> =
            (0..1 + script.byte() % 12).map(|_| self.ack(script, &mut ack)).collect();
        let segments: Vec<_> = records.iter().map(of_record).collect();
        self.step(segments.clone());
        match script.byte() & 3 {
            0 => self.fast.on_arrival(self.now, Arrival::acks(records)),
            2 => self.fast.on_pure_acks(self.now, &records),
            _ => self.fast.on_arrival(self.now, Arrival::segments(segments)),
        }
    }

    /// Gives both connections a duplicate ACK with SACK, or another segment that starts recovery. No fast
    /// path processes it.
    fn sack(&mut self, script: &mut Script<'_>) {
        let mut ack = self.fast.statistics().snd_una;
        let mut segment = of_record(&self.ack(script, &mut ack));
        let start = SeqNumber((ack + u32::from(script.word() % 5_000)).0.wrapping_sub(1_000));
        let end = start + u32::from(script.word() % 4_000);
        segment.ack = self.fast.statistics().snd_una;
        segment.options.sack.push(SackBlock { start, end });
        self.step(vec![segment.clone()]);
        self.fast.on_arrival(self.now, segment.into());
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

    /// Returns the timestamp of a segment that arrives now. If `is_odd`, it may be old or missing.
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

    /// Writes text to both connections; every other text is lent to one of them.
    fn write(&mut self, bytes: u16) {
        let data: Vec<u8> =
            (0..bytes.into()).map(|at: u32| (at.wrapping_mul(40_503) >> 8) as u8).collect();
        let written = self.fast.send(&data);
        if bytes.is_multiple_of(2) {
            assert_eq!(self.slow.send(&data), written);
        } else {
            assert_eq!(self.slow.send_shared(&mut data.into()), written);
        }
    }

    /// Reads from both connections: from one by copying, from the other in place.
    fn read(&mut self, bytes: usize) {
        let mut text = vec![0; bytes];
        let outcome = self.fast.receive(&mut text);
        let read = outcome.unwrap_or(0);
        let seen: Vec<u8> = self.slow.readable().flatten().copied().take(read).collect();
        assert_eq!(text[..read], seen);
        if read > 0 {
            self.slow.consume(read);
        } else {
            assert_eq!(self.slow.receive(&mut text), outcome);
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

/// Returns a segment with the header of `first` and `length` bytes of text, at offset `at`.
fn part(first: &Segment<Vec<u8>>, at: u32, length: u32) -> Segment<Vec<u8>> {
    let seq = first.seq + at;
    Segment { seq, payload: text_at(seq, length), ..first.clone() }
}

/// Returns `length` bytes of the stream, starting at `seq`.
fn text_at(seq: SeqNumber, length: u32) -> Option<Payload<Vec<u8>>> {
    let text = (0..length).map(|at| stream_byte((seq + at).0)).collect();
    Payload::new(text, 0..length as usize)
}

/// The number of acknowledgements that can be owed separately if nothing is transmitted in between.
const ACKS_THAT_CAN_WAIT: usize = 64;

/// Returns the pure ACK of `record`.
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

/// Returns the initial value of our timestamp clock, from a segment that leaves at `now`.
fn clock(transmit: &Transmit<'_>, now: Instant) -> Option<u32> {
    let stamp = SegmentOptions::read(transmit.options.as_slice()).timestamp?;
    Some(stamp.value.wrapping_sub((now.as_nanos() / 1_000_000) as u32))
}
