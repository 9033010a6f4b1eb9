//! The language of the stories: hand-made segments, and answers as lines of text.

use rxo_frame::{Duration, Instant};
use rxo_tcp::{
    Arrival, Config, Connection, Ecn, Payload, Secret, Segment, SegmentOptions, State, Transmit,
};
use rxo_wire::tcp::{AckRecord, SackBlock, Timestamp};
use rxo_wire::{FlowKey, SeqNumber, TcpFlags};

use crate::harness::run::run;

/// The peer's ISS: close to the wrap, so that every story crosses it.
pub(crate) const PEER_ISS: SeqNumber = SeqNumber(u32::MAX - 700);
/// The text of a full segment in most stories, in bytes.
pub(crate) const MSS: u32 = 1000;
pub(crate) const PAIR: FlowKey = FlowKey::v4(0x0a00_0001, 0x0a00_0002, 0x1388_0050, 0);
pub(crate) const SECRET: Secret = Secret([7, 11]);
/// The first timestamp of the peer.
pub(crate) const PEER_TS: u32 = 5000;

/// Returns settings without any option except the maximum segment size. Stories enable the features under
/// test.
pub(crate) fn plain() -> Config {
    Config {
        maximum_segment_size: MSS as u16,
        timestamps: false,
        window_scaling: false,
        sack: false,
        ecn: false,
        receive_buffer_bytes: 60_000,
        large_send_bytes: 0,
        ..Config::default()
    }
}

/// Returns the settings of [`plain`] with SACK.
pub(crate) fn with_sack() -> Config {
    Config { sack: true, ..plain() }
}

/// Returns a segment of the peer, to be changed by the methods below.
pub(crate) fn seg() -> Peer {
    Peer { seq: 1, ack: 1, flags: TcpFlags::ACK, window: 50_000, ..Peer::default() }
}

/// Returns the peer's SYN.
pub(crate) fn syn() -> Peer {
    Peer { seq: 0, flags: TcpFlags::SYN, mss: Some(MSS as u16), ..seg() }
}

#[derive(Clone, Default)]
pub(crate) struct Peer {
    seq: u32,
    ack: u32,
    flags: TcpFlags,
    window: u16,
    len: u32,
    mss: Option<u16>,
    scale: Option<u8>,
    sack_permitted: bool,
    ts: Option<(u32, u32)>,
    sack: Vec<(u32, u32)>,
    ecn: Ecn,
    earlier: Duration,
}

impl Peer {
    pub(crate) fn seq(self, seq: u32) -> Self {
        Self { seq, ..self }
    }
    pub(crate) fn ack(self, ack: u32) -> Self {
        Self { ack, flags: self.flags | TcpFlags::ACK, ..self }
    }
    pub(crate) fn len(self, len: u32) -> Self {
        Self { len, ..self }
    }
    pub(crate) fn win(self, window: u16) -> Self {
        Self { window, ..self }
    }
    pub(crate) fn flags(self, flags: TcpFlags) -> Self {
        Self { flags, ..self }
    }
    pub(crate) fn fin(self) -> Self {
        Self { flags: self.flags | TcpFlags::FIN, ..self }
    }
    pub(crate) fn mss(self, mss: Option<u16>) -> Self {
        Self { mss, ..self }
    }
    pub(crate) fn scale(self, shift: u8) -> Self {
        Self { scale: Some(shift), ..self }
    }
    pub(crate) fn sack_permitted(self) -> Self {
        Self { sack_permitted: true, ..self }
    }
    /// Sets TSval and TSecr, relative to [`PEER_TS`] and to our first timestamp.
    pub(crate) fn ts(self, value: u32, echo: u32) -> Self {
        Self { ts: Some((value, echo)), ..self }
    }
    pub(crate) fn sack(self, blocks: &[(u32, u32)]) -> Self {
        Self { sack: blocks.to_vec(), ..self }
    }
    pub(crate) fn ecn(self, ecn: Ecn) -> Self {
        Self { ecn, ..self }
    }
    /// Lets the frame arrive `earlier` than it is processed.
    pub(crate) fn arrived_earlier(self, earlier: Duration) -> Self {
        Self { earlier, ..self }
    }
}

/// Returns the byte of a stream at position `at`.
pub(crate) fn stream_byte(at: u32) -> u8 {
    (at ^ at >> 8) as u8
}

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A connection, its clock, and our initial numbers.
pub(crate) struct Scene {
    pub(crate) tcp: Connection<Vec<u8>>,
    pub(crate) now: Instant,
    iss: SeqNumber,
    pub(crate) first_ts: u32,
}

impl Scene {
    /// Returns a connection in SYN-SENT, before the SYN has left.
    pub(crate) fn active(config: Config) -> Self {
        let now = Instant::from_micros(1_000_000);
        let tcp = Connection::open_active(config, PAIR, SECRET, now).expect("settings that can be");
        let iss = tcp.statistics().snd_una;
        Self { tcp, now, iss, first_ts: 0 }
    }

    /// Returns a connection in LISTEN.
    pub(crate) fn passive(config: Config) -> Self {
        let now = Instant::from_micros(1_000_000);
        let tcp = Connection::open_passive(config, PAIR, SECRET).expect("settings that can be");
        Self { tcp, now, iss: SeqNumber(0), first_ts: 0 }
    }

    /// Returns an established connection whose peer offers the features in `config`. Nothing is to be sent,
    /// and the round trip of 10 ms has passed.
    pub(crate) fn established(config: Config) -> Self {
        let mut answer = syn().mss(Some(config.maximum_segment_size)).ack(1);
        answer.sack_permitted = config.sack;
        answer.ts = config.timestamps.then_some((0, 0));
        answer.scale = config.window_scaling.then_some(3);
        if config.ecn {
            answer.flags = answer.flags | TcpFlags::ECE;
        }
        let mut scene = Self::active(config);
        scene.out();
        scene.after(ms(10));
        scene.gets(answer);
        assert_eq!(scene.out().len(), 1);
        scene.tcp.take_events();
        scene
    }

    /// Gives a segment to the connection.
    pub(crate) fn gets(&mut self, peer: Peer) {
        let segment = self.segment(peer);
        self.tcp.on_arrival(self.now, segment.into());
        self.learn_iss();
    }

    /// Gives an aggregate to the connection.
    pub(crate) fn gets_aggregate(&mut self, peers: impl IntoIterator<Item = Peer>) {
        let segments: Vec<_> = peers.into_iter().map(|peer| self.segment(peer)).collect();
        self.tcp.on_arrival(self.now, Arrival::segments(segments));
    }

    /// Gives an aggregate to the connection, as a run if all segments have text and one header layout.
    pub(crate) fn gets_run(&mut self, peers: impl IntoIterator<Item = Peer>) {
        let segments: Vec<_> = peers.into_iter().map(|peer| self.segment(peer)).collect();
        match run(&segments, 1) {
            Some(run) => self.tcp.on_arrival(self.now, Arrival::run(run)),
            None => self.tcp.on_arrival(self.now, Arrival::segments(segments)),
        }
    }

    /// Gives a segment to the connection and returns the lines that leave.
    pub(crate) fn answers(&mut self, peer: Peer) -> Vec<String> {
        self.gets(peer);
        self.out()
    }

    fn learn_iss(&mut self) {
        if matches!(self.tcp.state(), State::SynReceived(_)) {
            self.iss = self.tcp.statistics().snd_una;
        }
    }

    /// Updates the ISS after the connection was exchanged for one in SYN-SENT.
    pub(crate) fn learn_iss_of_ours(&mut self) {
        self.iss = self.tcp.statistics().snd_una;
    }

    /// Returns the record of a pure ACK.
    pub(crate) fn record(&self, peer: Peer) -> AckRecord {
        let segment = self.segment(peer);
        let timestamp = segment.options.timestamp;
        AckRecord {
            arrived_at_ns: segment.arrived_at.as_nanos(),
            seq: segment.seq,
            ack: segment.ack,
            window: segment.window,
            flags: segment.flags,
            has_timestamp: timestamp.is_some(),
            ts_value: timestamp.map_or(0, |it| it.value),
            ts_echo: timestamp.map_or(0, |it| it.echo),
            ..AckRecord::default()
        }
    }

    pub(crate) fn segment(&self, peer: Peer) -> Segment<Vec<u8>> {
        let text: Vec<u8> = (peer.seq..peer.seq + peer.len).map(stream_byte).collect();
        let mut options = SegmentOptions {
            maximum_segment_size: peer.mss,
            window_scale: peer.scale,
            is_sack_permitted: peer.sack_permitted,
            timestamp: peer.ts.map(|(value, echo)| Timestamp {
                value: PEER_TS.wrapping_add(value),
                echo: self.first_ts.wrapping_add(echo),
            }),
            ..SegmentOptions::default()
        };
        for (start, end) in peer.sack {
            options.sack.push(SackBlock { start: self.iss + start, end: self.iss + end });
        }
        let range = 0..text.len();
        Segment {
            seq: PEER_ISS + peer.seq,
            ack: if peer.flags.contains(TcpFlags::ACK) {
                self.iss + peer.ack
            } else {
                SeqNumber(0)
            },
            flags: peer.flags,
            window: peer.window,
            options,
            payload: Payload::new(text, range),
            ecn: peer.ecn,
            arrived_at: Instant::from_nanos(
                self.now.as_nanos()
                    - u64::try_from(peer.earlier.as_nanos()).expect("not centuries"),
            ),
        }
    }

    /// Returns everything that leaves now, one line each.
    pub(crate) fn out(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        let iss = self.iss;
        while let Some(transmit) = self.tcp.poll_transmit(self.now) {
            if transmit.flags.contains(TcpFlags::SYN) {
                let options = SegmentOptions::read(transmit.options.as_slice());
                self.first_ts = options.timestamp.map_or(0, |timestamp| timestamp.value);
            }
            lines.push(line(&transmit, iss));
            for later in transmit.later_acks {
                lines.push(format!(". {0}:{0} ack {1}", transmit.seq - iss, later.ack - PEER_ISS));
            }
        }
        lines
    }

    /// Lets time pass, and fires timers when due. Returns the lines that leave meanwhile.
    pub(crate) fn after(&mut self, time: Duration) -> Vec<String> {
        let end = self.now + time;
        let mut lines = self.out();
        while let Some(at) = self.tcp.poll_at().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.tcp.on_timeout(self.now);
            lines.extend(self.out());
        }
        self.now = end;
        lines
    }

    /// Sends `bytes` bytes of the stream and returns the lines of the segments that are sent.
    pub(crate) fn sends(&mut self, bytes: u32) -> Vec<String> {
        let data: Vec<u8> = (0..bytes).map(stream_byte).collect();
        assert_eq!(self.tcp.send(&data), Ok(bytes as usize));
        self.out()
    }

    /// Reads all available text.
    pub(crate) fn reads(&mut self) -> Vec<u8> {
        let mut text = vec![0; 1 << 20];
        let bytes = self.tcp.receive(&mut text).unwrap_or(0);
        text.truncate(bytes);
        text
    }

    pub(crate) fn iss(&self) -> SeqNumber {
        self.iss
    }

    pub(crate) fn cwnd_segments(&self) -> u32 {
        self.tcp.statistics().cwnd / self.tcp.statistics().mss
    }
}

/// Formats a segment as `flags start:end ack number`, then any unusual fields.
fn line(transmit: &Transmit<'_>, iss: SeqNumber) -> String {
    let flags = transmit.flags;
    let letters: String = [
        (TcpFlags::SYN, 'S'),
        (TcpFlags::FIN, 'F'),
        (TcpFlags::RST, 'R'),
        (TcpFlags::PSH, 'P'),
        (TcpFlags::ECE, 'E'),
        (TcpFlags::CWR, 'W'),
        (TcpFlags::ACK, '.'),
    ]
    .iter()
    .filter(|(flag, _)| flags.contains(*flag))
    .map(|(_, letter)| letter)
    .collect();
    let start = transmit.seq - iss;
    let mut line = format!("{letters} {start}:{}", start + transmit.payload_bytes() as i32);
    if flags.contains(TcpFlags::ACK) {
        line += &format!(" ack {}", transmit.ack - PEER_ISS);
    }
    let options = SegmentOptions::read(transmit.options.as_slice());
    for (number, block) in options.sack.as_slice().iter().enumerate() {
        let name = if number == 0 { " sack " } else { "," };
        line += &format!("{name}{}-{}", block.start - PEER_ISS, block.end - PEER_ISS);
    }
    if let Some(size) = transmit.gso_size {
        line += &format!(" gso {size}");
    }
    if transmit.ecn == Ecn::Capable0 {
        line += " ect0";
    }
    line
}
