//! A connection in any state receives any segments, calls and times.
//!
//! Invariants: nothing panics. The text read has the right bytes for its sequence numbers, without a gap. The
//! text sent is the text written, within both windows. Transmission comes to an end, and a timer that fired
//! does not fire again at once.

use rxo_frame::{Duration, Instant};
use rxo_tcp::{
    Arrival, Config, Connection, Ecn, Payload, Secret, Segment, SegmentOptions, Transmit,
};
use rxo_wire::tcp::{SackBlock, Timestamp};
use rxo_wire::{FlowKey, SeqNumber, TcpFlags};

use super::{Script, stream_byte};

/// Plays the script `data`.
///
/// # Panics
/// Panics if an invariant does not hold.
pub(crate) fn run(data: &[u8]) {
    let mut script = Script::new(data);
    let config = script.config();
    let mut stage = Stage::enter(&config, script.byte());
    while script.has_more() {
        stage.play(&mut script);
        stage.check();
    }
}

const PAIR: FlowKey = FlowKey::v4(0x0a00_0001, 0x0a00_0002, 0x1388_0050, 0);
const PEER_ISS: SeqNumber = SeqNumber(0xffff_fe00);

/// The states in which a script can begin, by number.
const STATES: [&str; 10] = [
    "Listen",
    "SynSent",
    "SynReceived",
    "Established",
    "FinWait1",
    "FinWait2",
    "CloseWait",
    "Closing",
    "LastAck",
    "TimeWait",
];

struct Stage {
    tcp: Connection<Vec<u8>>,
    config: Config,
    now: Instant,
    /// Our ISS, taken from our SYN.
    iss: SeqNumber,
    written: u32,
    /// The sequence number of the next byte to be read; `None` before the first.
    reads_at: Option<SeqNumber>,
}

impl Stage {
    /// Brings a connection into the state with the number `state`.
    fn enter(config: &Config, state: u8) -> Self {
        let now = Instant::from_micros(5_000_000);
        let opened = match state % 10 {
            0 | 2 => Connection::open_passive(config.clone(), PAIR, Secret([1, 2])),
            _ => Connection::open_active(config.clone(), PAIR, Secret([1, 2]), now),
        };
        let tcp = opened.expect("settings that can be");
        let iss = SeqNumber(0);
        let mut stage = Self { tcp, config: config.clone(), now, iss, written: 0, reads_at: None };
        stage.flush();
        let steps: &[u8] = match state % 10 {
            0 | 1 => b"",
            2 => b"s",
            3 => b"S",
            4 => b"Sc",
            5 => b"Sca",
            6 => b"Sf",
            7 => b"Scf",
            8 => b"Sfc",
            _ => b"Scaf",
        };
        steps.iter().for_each(|step| stage.step(*step));
        let reached = format!("{:?}", stage.tcp.state());
        assert!(reached.starts_with(STATES[usize::from(state % 10)]), "{reached}");
        stage
    }

    fn step(&mut self, step: u8) {
        let acks = TcpFlags::ACK;
        match step {
            b's' => self.give(self.segment(PEER_ISS, TcpFlags::SYN, 0)),
            b'S' => self.give(self.segment(PEER_ISS, TcpFlags::SYN | acks, 0)),
            b'a' => self.give(self.segment(PEER_ISS + 1, acks, 0)),
            b'f' => self.give(self.segment(self.peer_next(), TcpFlags::FIN, 1)),
            _ => drop(self.tcp.shutdown()),
        }
        self.flush();
    }

    fn peer_next(&self) -> SeqNumber {
        self.tcp.statistics().rcv_nxt
    }

    /// Returns an acceptable segment that leaves `old` of our sent bytes unacknowledged.
    fn segment(&self, seq: SeqNumber, flags: TcpFlags, old: u32) -> Segment<Vec<u8>> {
        let is_syn = flags.contains(TcpFlags::SYN);
        let timestamp = self.config.timestamps.then_some(Timestamp { value: 9, echo: 0 });
        let flags = if is_syn { flags } else { flags | TcpFlags::ACK };
        let ack = self.tcp.statistics().snd_nxt;
        Segment {
            seq,
            ack: if flags.contains(TcpFlags::ACK) {
                SeqNumber(ack.0.wrapping_sub(old))
            } else {
                SeqNumber(0)
            },
            flags,
            window: 60_000,
            options: SegmentOptions {
                maximum_segment_size: is_syn.then_some(500),
                window_scale: is_syn.then_some(2),
                is_sack_permitted: is_syn,
                timestamp,
                ..SegmentOptions::default()
            },
            payload: None,
            ecn: Ecn::NotCapable,
            arrived_at: self.now,
        }
    }

    fn give(&mut self, segment: Segment<Vec<u8>>) {
        self.tcp.on_arrival(self.now, segment.into());
    }

    fn play(&mut self, script: &mut Script<'_>) {
        match script.byte() % 16 {
            0..=6 => {
                let segment = self.any_segment(script);
                self.give(segment);
            }
            7..=8 => {
                let count = script.byte() % 8;
                let many: Vec<_> = (0..count).map(|_| self.any_segment(script)).collect();
                self.tcp.on_arrival(self.now, Arrival::segments(many));
            }
            9 => self.write(u32::from(script.word() % 3_000)),
            10 => self.read(usize::from(script.word())),
            11 => self.pass(Duration::from_micros(script.word().into())),
            12 => self.pass(Duration::from_millis(script.word().into())),
            13 => self.hear_router(script),
            14 if script.byte() < 40 => drop(self.tcp.shutdown()),
            14 => self.grant(script),
            15 if script.byte() < 10 => self.tcp.abort(),
            _ => self.fire(),
        }
    }

    /// Grants any buffers, and checks that the offered window edge does not move back.
    fn grant(&mut self, script: &mut Script<'_>) {
        let _ = self.tcp.wants_buffers(self.now);
        let (before, granted) = (self.tcp.statistics(), script.buffers());
        self.tcp.set_buffers(granted);
        assert_eq!(self.tcp.statistics().rcv_wnd, before.rcv_wnd);
    }

    fn hear_router(&mut self, script: &mut Script<'_>) {
        let seq = self.tcp.statistics().snd_una + u32::from(script.word() % 4_000);
        match script.byte() {
            0..=127 => self.tcp.on_packet_too_big(self.now, seq, u32::from(script.word() % 2_000)),
            128..=250 => self.tcp.on_unreachable(seq, false),
            251..=253 => self.tcp.on_unreachable(seq, true),
            _ => self.tcp.abandon(self.now),
        }
    }

    fn any_segment(&self, script: &mut Script<'_>) -> Segment<Vec<u8>> {
        let statistics = self.tcp.statistics();
        let shape = script.byte();
        let seq = match shape & 3 {
            0 => statistics.rcv_nxt,
            1 => statistics.rcv_nxt + u32::from(script.word() % 4_000),
            2 => SeqNumber(statistics.rcv_nxt.0.wrapping_sub(script.byte().into())),
            _ => SeqNumber(script.long()),
        };
        let ack = match shape >> 2 & 3 {
            0 => statistics.snd_nxt,
            1 => statistics.snd_una + u32::from(script.word() % 4_000),
            2 => statistics.snd_una,
            _ => SeqNumber(script.long()),
        };
        let flags = match shape >> 4 & 3 {
            0..=2 => TcpFlags::ACK,
            _ => TcpFlags::from_bits(script.word()),
        };
        let length = if shape & 0x40 == 0 { 0 } else { u32::from(script.word() % 1_200) };
        let first = seq + u32::from(flags.contains(TcpFlags::SYN));
        let text: Vec<u8> = (0..length).map(|at| stream_byte((first + at).0)).collect();
        let range = 0..text.len();
        Segment {
            seq,
            ack,
            flags,
            window: if shape & 0x80 == 0 { 50_000 } else { script.word() },
            options: any_options(script, &statistics.snd_una),
            payload: Payload::new(text, range),
            ecn: Ecn::from_traffic_class(script.byte()),
            arrived_at: self.now,
        }
    }

    fn write(&mut self, bytes: u32) {
        let data: Vec<u8> = (0..bytes).map(|at| stream_byte(self.written + at)).collect();
        let room = self.tcp.send_room();
        let taken = self.tcp.send(&data).unwrap_or(0);
        assert_eq!(taken, room.min(data.len()), "send_room lied");
        self.written += taken as u32;
    }

    fn read(&mut self, bytes: usize) {
        let readable = self.tcp.readable_bytes() as u32;
        let done = u32::from(self.tcp.is_peer_done());
        let end = self.tcp.statistics().rcv_nxt;
        let start = SeqNumber(end.0.wrapping_sub(readable + done));
        let mut text = vec![0; bytes];
        let Ok(read) = self.tcp.receive(&mut text) else { return };
        if read > 0 {
            assert_eq!(*self.reads_at.get_or_insert(start), start, "a gap in what is read");
            for (at, byte) in text[..read].iter().enumerate() {
                assert_eq!(*byte, stream_byte((start + at as u32).0), "another byte");
            }
            self.reads_at = Some(start + read as u32);
        }
    }

    fn pass(&mut self, time: Duration) {
        self.now = self.now + time;
        self.tcp.on_timeout(self.now);
    }

    fn fire(&mut self) {
        if let Some(at) = self.tcp.poll_at() {
            self.now = self.now.max(at);
            self.tcp.on_timeout(self.now);
        }
    }

    fn check(&mut self) {
        self.flush();
        self.tcp.on_timeout(self.now);
        self.flush();
        if let Some(at) = self.tcp.poll_at() {
            assert!(at > self.now, "a timer that does not stop: {:?}", self.tcp.state());
        }
        let statistics = self.tcp.statistics();
        assert!(statistics.rcv_wnd <= self.config.largest_buffers().receive_bytes + (1 << 14));
        assert!(statistics.cwnd >= statistics.mss, "no window left");
        assert!(self.tcp.readable().count() <= self.config.receive_pieces);
    }

    fn flush(&mut self) {
        for _ in 0..MOST_AT_ONCE {
            let state = self.tcp.state();
            let Some(transmit) = self.tcp.poll_transmit(self.now) else { return };
            if transmit.flags.contains(TcpFlags::SYN) {
                self.iss = transmit.seq;
            }
            check_text(&transmit, self.iss, &self.config);
            if transmit.flags.contains(TcpFlags::RST) || !state.is_synchronized() {
                continue;
            }
            let (seq, bytes) = (transmit.seq, transmit.payload_bytes() as u32);
            let statistics = self.tcp.statistics();
            assert!(statistics.snd_nxt.is_at_or_after(seq + bytes), "not counted as sent");
            assert!((seq + 1).is_at_or_after(statistics.snd_una), "long acknowledged");
        }
        panic!("what leaves does not end in {:?}", self.tcp.state());
    }
}

fn check_text(transmit: &Transmit<'_>, iss: SeqNumber, config: &Config) {
    let text = transmit.payload.to_vec();
    let first = (transmit.seq - (iss + 1)) as u32;
    for (at, byte) in text.iter().enumerate() {
        assert_eq!(*byte, stream_byte(first.wrapping_add(at as u32)), "not what was written");
    }
    let largest = config.large_send_bytes.max(config.maximum_segment_size.into());
    assert!(text.len() <= largest as usize, "{} bytes at once", text.len());
    let is_large = transmit.gso_size.is_some_and(|size| text.len() > usize::from(size.get()));
    assert!(is_large || transmit.gso_size.is_none());
    assert!(transmit.later_acks.is_empty() || text.is_empty());
    assert!(transmit.options.as_slice().len().is_multiple_of(4));
}

fn any_options(script: &mut Script<'_>, una: &SeqNumber) -> SegmentOptions {
    let which = script.byte();
    let mut options = SegmentOptions::default();
    if which & 1 != 0 {
        options.timestamp =
            Some(Timestamp { value: 9 + u32::from(script.byte()), echo: script.long() });
    }
    if which & 2 != 0 {
        options.maximum_segment_size = Some(script.word());
        options.window_scale = Some(script.byte());
        options.is_sack_permitted = which & 4 != 0;
    }
    for _ in 0..which >> 5 {
        let start = *una + u32::from(script.word() % 8_000);
        let end = start + u32::from(script.word() % 2_000);
        options.sack.push(SackBlock { start, end });
    }
    options
}

/// More segments than any buffer here needs if each has one byte.
const MOST_AT_ONCE: usize = 80_000;
