//! Peers that never finish: they answer for ever and accept nothing, one byte, or half of the data; close
//! half; send a FIN at a wrong position; or send nothing.
//!
//! Invariants after the application has dropped its socket, whatever it has written or read: the connection
//! ends within the configured times. Until then it keeps at most as many buffers as it has slots, and no more
//! text than its window. It sends no faster than its timers and the peer's answers allow.

use std::cell::Cell;
use std::rc::Rc;

use rxo_frame::{Duration, Instant};
use rxo_tcp::{Config, Connection, Ecn, Payload, Secret, Segment, SegmentOptions, State};
use rxo_wire::tcp::Timestamp;
use rxo_wire::{FlowKey, SeqNumber, TcpFlags};

use super::Script;

/// Plays the script `data`.
///
/// # Panics
/// Panics if the connection does not end, or a bound is exceeded.
pub(crate) fn run(data: &[u8]) {
    let mut script = Script::new(data);
    let config = Config { orphan_timeout: ORPHAN, fin_wait_2: ORPHAN, ..script.config() };
    let mut scene = Scene::open(config, script.byte());
    for _ in 0..1 + script.byte() % 32 {
        scene.use_it(&mut script);
    }
    scene.tcp.abandon(scene.now);
    let since = scene.now;
    // The connection waits for its peer again after every 64 KiB that the peer has taken.
    let longest = ORPHAN * (1 + (scene.tcp.unacknowledged_bytes() >> 16) as u32);
    let answers = [script.byte(), script.byte(), script.byte()];
    for turn in 0..MOST_TURNS {
        scene.answer(answers[turn % 3], turn as u32);
        scene.check();
        if scene.is_over() {
            return;
        }
        let lasts = scene.now - since;
        assert!(lasts <= longest + LITTLE, "{lasts:?} in {:?}", scene.tcp.state());
    }
    panic!("it does not end: {:?}", scene.tcp.state());
}

/// A buffer that is counted while it is held.
struct Counted {
    bytes: Vec<u8>,
    held: Rc<Cell<usize>>,
}

impl Counted {
    fn new(bytes: Vec<u8>, held: &Rc<Cell<usize>>) -> Self {
        held.set(held.get() + 1);
        Self { bytes, held: Rc::clone(held) }
    }
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.held.set(self.held.get() - 1);
    }
}

struct Scene {
    tcp: Connection<Counted>,
    config: Config,
    now: Instant,
    held: Rc<Cell<usize>>,
    /// The peer's next sequence number.
    seq: SeqNumber,
    /// The ACK number that the peer sends.
    ack: SeqNumber,
    /// The first sequence number that was not sent yet.
    left: SeqNumber,
}

impl Scene {
    fn open(config: Config, opens: u8) -> Self {
        let now = Instant::from_micros(5_000_000);
        let tcp = Connection::open_active(config.clone(), PAIR, Secret([1, 2]), now)
            .expect("settings that can be");
        let (held, none) = (Rc::new(Cell::new(0)), SeqNumber(0));
        let mut scene = Self { tcp, config, now, held, seq: PEER_ISS, ack: none, left: none };
        scene.flush();
        scene.ack = scene.left;
        let syn = if opens & 1 == 0 { TcpFlags::SYN | TcpFlags::ACK } else { TcpFlags::SYN };
        scene.give(PEER_ISS, syn, 60_000, 0);
        scene.seq = PEER_ISS + 1;
        scene.flush();
        scene.give(scene.seq, TcpFlags::ACK, 3_000, 0);
        scene
    }

    /// Performs a step of the application or of the peer, before the application drops the socket.
    fn use_it(&mut self, script: &mut Script<'_>) {
        match script.byte() % 5 {
            0 => drop(self.tcp.send(&vec![7; usize::from(script.word())])),
            1 => drop(self.tcp.receive(&mut vec![0; usize::from(script.word())])),
            2 => {
                let bytes = 1 + u32::from(script.byte());
                self.give(self.seq, TcpFlags::ACK, script.word(), bytes);
                self.seq = self.seq + bytes;
            }
            3 => self.give(self.seq + u32::from(script.word()), TcpFlags::ACK, 900, 1),
            _ if script.byte() < 60 => drop(self.tcp.shutdown()),
            _ => self.give(self.seq, TcpFlags::ACK, 0, 0),
        }
        self.flush();
        self.check();
    }

    /// Advances time to the next timer, and lets the peer answer in the way `how`.
    fn answer(&mut self, how: u8, turn: u32) {
        let least = self.now + Duration::from_millis(50 + u64::from(how));
        self.now = self.tcp.poll_at().map_or(least, |at| at.max(self.now).min(least));
        self.tcp.on_timeout(self.now);
        self.flush();
        match how % 8 {
            // The window stays closed.
            0 => self.give(self.seq, TcpFlags::ACK, 0, 0),
            // One byte at a time.
            1 => {
                let outstanding = self.left - self.ack;
                self.ack = self.ack + u32::from(outstanding > 0);
                self.give(self.seq, TcpFlags::ACK, 1, 0);
            }
            // Everything is acknowledged, and then nothing more: half closed.
            2 => {
                self.ack = self.left;
                self.give(self.seq, TcpFlags::ACK, 60_000, 0);
            }
            // A FIN after a gap, each time at another position.
            3 => self.give(self.seq + 1 + turn % 500, TcpFlags::ACK | TcpFlags::FIN, 60_000, 0),
            // Duplicates.
            4 => self.give(self.seq, TcpFlags::ACK, 60_000, 0),
            // Old text again.
            5 => self.give(SeqNumber(self.seq.0.wrapping_sub(1)), TcpFlags::ACK, 0, 1),
            // Sequence numbers outside any window.
            6 => self.give(SeqNumber(turn.wrapping_mul(0x9e37_79b9)), TcpFlags::ACK, 9, 0),
            // No answer.
            _ => {}
        }
        self.flush();
    }

    fn give(&mut self, seq: SeqNumber, flags: TcpFlags, window: u16, bytes: u32) {
        let is_syn = flags.contains(TcpFlags::SYN);
        let value = (self.now.as_nanos() / 1_000_000) as u32;
        let timestamp = self.config.timestamps.then_some(Timestamp { value, echo: 0 });
        let buffer = Counted::new(vec![7; bytes as usize], &self.held);
        let segment = Segment {
            seq,
            ack: if flags.contains(TcpFlags::ACK) { self.ack } else { SeqNumber(0) },
            flags,
            window,
            options: SegmentOptions {
                maximum_segment_size: is_syn.then_some(500),
                window_scale: is_syn.then_some(0),
                is_sack_permitted: is_syn,
                timestamp,
                ..SegmentOptions::default()
            },
            payload: Payload::new(buffer, 0..bytes as usize),
            ecn: Ecn::NotCapable,
            arrived_at: self.now,
        };
        self.tcp.on_arrival(self.now, segment.into());
    }

    fn flush(&mut self) {
        for _ in 0..MOST_AT_ONCE {
            let Some(transmit) = self.tcp.poll_transmit(self.now) else { return };
            let controls = TcpFlags::SYN | TcpFlags::FIN;
            let end = transmit.seq + transmit.payload_bytes() as u32;
            let end = end + u32::from(transmit.flags.intersects(controls));
            self.left =
                if self.left == SeqNumber(0) || self.left.is_before(end) { end } else { self.left };
        }
        panic!("what leaves does not end in {:?}", self.tcp.state());
    }

    fn check(&mut self) {
        self.tcp.on_timeout(self.now);
        self.flush();
        let held = self.held.get();
        assert!(held <= self.config.receive_pieces, "{held} buffers");
        let most = self.config.largest_buffers().receive_bytes as usize + (1 << 14);
        assert!(self.tcp.readable_bytes() <= most, "{} bytes", self.tcp.readable_bytes());
        assert!(self.tcp.poll_at().is_none_or(|at| at > self.now), "a timer that does not stop");
    }

    /// Returns `true` if the connection is closed or in TIME-WAIT, which ends by itself.
    fn is_over(&self) -> bool {
        matches!(self.tcp.state(), State::Closed(_) | State::TimeWait)
    }
}

const PAIR: FlowKey = FlowKey::v4(0x0a00_0001, 0x0a00_0002, 0x1388_0050, 0);
const PEER_ISS: SeqNumber = SeqNumber(0xffff_fe00);
const ORPHAN: Duration = Duration::from_secs(20);
const LITTLE: Duration = Duration::from_millis(400);
/// The largest number of steps, enough for steps of 50 ms.
const MOST_TURNS: usize = 5_000;
const MOST_AT_ONCE: usize = 80_000;
