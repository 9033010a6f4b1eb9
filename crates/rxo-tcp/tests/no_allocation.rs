//! A connection allocates on use, and rarely. An idle one frees its memory, and so does each direction that
//! is done.
//!
//! In a test binary of its own, because an allocator counts for the whole binary.

#[allow(unsafe_code, reason = "counting allocations needs an allocator, and that trait is unsafe")]
#[path = "../../rxo-coalesce/tests/no_allocation/counting.rs"]
mod counting;

use counting::{allocations, held_bytes};
use rxo_frame::{Duration, Instant};
use rxo_tcp::{Config, Connection, Ecn, Payload, Secret, Segment, SegmentOptions, State};
use rxo_wire::tcp::SackBlock;
use rxo_wire::{FlowKey, SeqNumber, TcpFlags};

static TEXT: [u8; 1000] = [7; 1000];
const PAIR: FlowKey = FlowKey::v4(1, 2, 3 << 16 | 4, 0);

struct Peer {
    tcp: Connection<&'static [u8]>,
    now: Instant,
    random: u64,
    sent: usize,
}

impl Peer {
    fn any(&mut self, below: u64) -> u32 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random % below) as u32
    }

    fn give(&mut self, seq: SeqNumber, ack: SeqNumber, flags: TcpFlags, bytes: usize) {
        let sack = self.any(4) == 0;
        let mut options = SegmentOptions { is_sack_permitted: true, ..SegmentOptions::default() };
        if sack {
            let start = ack + self.any(20_000);
            options.sack.push(SackBlock { start, end: start + self.any(5_000) });
        }
        let segment = Segment {
            seq,
            ack,
            flags,
            window: 60_000,
            options,
            payload: Payload::new(&TEXT[..], 0..bytes),
            ecn: Ecn::NotCapable,
            arrived_at: self.now,
        };
        self.tcp.on_arrival(self.now, segment.into());
        self.flush();
    }

    fn flush(&mut self) {
        while let Some(transmit) = self.tcp.poll_transmit(self.now) {
            self.sent += transmit.payload_bytes() + transmit.later_acks.len();
        }
    }

    /// Performs one random event of a connection.
    fn turn(&mut self) {
        let seen = self.tcp.statistics();
        let outstanding = (seen.snd_nxt - seen.snd_una) as u64;
        match self.any(8) {
            0 => drop(self.tcp.send(&TEXT)),
            1 => drop(self.tcp.consume(5_000)),
            2 => {
                self.now = self.now + Duration::from_millis(self.any(300).into());
                self.tcp.on_timeout(self.now);
            }
            3 => {
                let ack = seen.snd_una + self.any(outstanding + 1);
                self.give(seen.rcv_nxt, ack, TcpFlags::ACK, 0);
            }
            4..6 => {
                let (gap, bytes) = (self.any(8_000), self.any(1_001) as usize);
                self.give(seen.rcv_nxt + gap, seen.snd_una, TcpFlags::ACK, bytes);
            }
            _ => {
                let bytes = self.any(1_001) as usize;
                self.give(seen.rcv_nxt, seen.snd_una, TcpFlags::ACK, bytes);
            }
        }
        self.flush();
    }
}

/// The largest number of allocations, whatever happens: seven buffers that double from the first use to their
/// limits.
const MOST_ALLOCATIONS: u64 = 48;
/// The largest number of late allocations: a buffer that is rarely full may double late.
const MOST_LATE: u64 = 2;

#[test]
fn an_open_connection_seldom_allocates() {
    for seed in 1..6 {
        // Little memory, to show that nothing is allocated at the limits.
        let config = Config { receive_pieces: 16, sent_ranges: 32, ..Config::default() };
        let now = Instant::from_micros(1_000_000);
        let tcp = Connection::open_active(config, PAIR, Secret([1, 2]), now)
            .expect("settings that can be");
        let mut peer = Peer { tcp, now, random: seed, sent: 0 };
        let before = allocations();
        peer.flush();
        let ack = peer.tcp.statistics().snd_nxt;
        peer.give(SeqNumber(77), ack, TcpFlags::SYN | TcpFlags::ACK, 0);
        for _ in 0..20_000 {
            peer.turn();
        }
        let few = allocations() - before;
        assert!(few <= MOST_ALLOCATIONS, "{few} allocations, seed {seed}");
        // Nearly all buffers are at their limits now.
        let before = allocations();
        for _ in 0..20_000 {
            peer.turn();
        }
        let late = allocations() - before;
        assert!(late <= MOST_LATE, "{late} late allocations, seed {seed}");
        assert!(peer.sent > 100_000, "{} bytes and acknowledgements", peer.sent);
        assert_ne!(peer.tcp.state(), State::Listen);
    }
}

/// Returns an open connection, and the number of bytes held before it was opened.
fn open() -> (Peer, i64) {
    let held = held_bytes();
    let now = Instant::from_micros(1_000_000);
    let tcp = Connection::open_active(Config::default(), PAIR, Secret([1, 2]), now)
        .expect("settings that can be");
    let mut peer = Peer { tcp, now, random: 1, sent: 0 };
    peer.flush();
    let ack = peer.tcp.statistics().snd_nxt;
    peer.give(SeqNumber(77), ack, TcpFlags::SYN | TcpFlags::ACK, 0);
    (peer, held)
}

impl Peer {
    fn says(&mut self, flags: TcpFlags, bytes: usize) {
        let seen = self.tcp.statistics();
        self.give(seen.rcv_nxt, seen.snd_nxt, flags | TcpFlags::ACK, bytes);
    }
}

/// The memory that a connection keeps without text: slots for pending acknowledgements.
const LITTLE: i64 = 512;
const MUCH: usize = 100_000;

/// Gives the connection more to send than may be in flight at once.
fn write_much(peer: &mut Peer) {
    for _ in 0..MUCH / TEXT.len() {
        assert_eq!(peer.tcp.send(&TEXT), Ok(TEXT.len()));
    }
    peer.flush();
}

/// Lets the peer acknowledge until nothing is left to send.
fn acknowledge_all(peer: &mut Peer) {
    while peer.tcp.unacknowledged_bytes() > 0 {
        peer.now = peer.now + Duration::from_millis(1);
        peer.says(TcpFlags::default(), 0);
    }
}

#[test]
fn an_idle_connection_keeps_nothing() {
    let (mut peer, before) = open();
    assert!(held_bytes() - before <= LITTLE, "{} bytes after opening", held_bytes() - before);
    write_much(&mut peer);
    for gap in [0, 0, 2_000] {
        let seen = peer.tcp.statistics();
        peer.give(seen.rcv_nxt + gap, seen.snd_una, TcpFlags::ACK, 1_000);
    }
    assert!(!peer.tcp.free_unused());
    assert!(held_bytes() - before > MUCH as i64, "data and gaps stay");
    acknowledge_all(&mut peer);
    peer.says(TcpFlags::PSH, 1_000);
    peer.says(TcpFlags::PSH, 1_000);
    assert!(!peer.tcp.free_unused(), "text was not read");
    assert_eq!(peer.tcp.consume(usize::MAX), 5_000);
    peer.flush();
    assert!(peer.tcp.free_unused());
    // The settings stay, because connections can share them.
    let settings = size_of::<Config>() as i64;
    assert!(held_bytes() - before <= settings + 16, "{} bytes", held_bytes() - before);
    // The connection continues as before.
    write_much(&mut peer);
    peer.says(TcpFlags::PSH, 1_000);
    acknowledge_all(&mut peer);
    assert_eq!(peer.tcp.consume(usize::MAX), 1_000);
}

#[test]
fn time_wait_keeps_next_to_nothing() {
    let (mut peer, before) = open();
    write_much(&mut peer);
    assert!(held_bytes() - before > MUCH as i64, "{} bytes", held_bytes() - before);
    acknowledge_all(&mut peer);
    peer.tcp.shutdown().expect("it is open");
    peer.flush();
    peer.says(TcpFlags::default(), 0);
    assert_eq!(peer.tcp.state(), State::FinWait2);
    peer.says(TcpFlags::FIN, 1_000);
    assert_eq!(peer.tcp.state(), State::TimeWait);
    assert_eq!(peer.tcp.consume(usize::MAX), 1_000);
    // A repeated FIN is acknowledged with SACK blocks.
    let sent = peer.sent;
    for _ in 0..100 {
        let seen = peer.tcp.statistics();
        peer.give(seen.rcv_nxt + (u32::MAX - 1_000), seen.snd_nxt, TcpFlags::FIN, 1_000);
        peer.says(TcpFlags::PSH, 500);
        let held = held_bytes() - before;
        assert!(held <= LITTLE, "{held} bytes");
    }
    assert_eq!(peer.sent, sent);
}

#[test]
fn a_half_that_is_done_keeps_nothing() {
    // The peer is done: receiving needs no memory, and sending continues.
    let (mut peer, before) = open();
    for _ in 0..100 {
        peer.says(TcpFlags::PSH, 1_000);
    }
    assert!(held_bytes() - before > LITTLE);
    assert_eq!(peer.tcp.consume(usize::MAX), 100_000);
    peer.says(TcpFlags::FIN, 0);
    assert_eq!(peer.tcp.state(), State::CloseWait);
    assert!(held_bytes() - before <= LITTLE);
    peer.tcp.send(&TEXT).expect("half of it is open");
    peer.tcp.shutdown().expect("half of it is open");
    peer.flush();
    peer.says(TcpFlags::default(), 0);
    assert!(peer.tcp.is_closed());
    assert!(held_bytes() - before <= LITTLE);

    // This side is done: sending needs no memory, and receiving continues.
    let (mut peer, before) = open();
    write_much(&mut peer);
    acknowledge_all(&mut peer);
    assert!(held_bytes() - before > MUCH as i64);
    peer.tcp.shutdown().expect("it is open");
    peer.flush();
    peer.says(TcpFlags::default(), 0);
    assert_eq!(peer.tcp.state(), State::FinWait2);
    peer.says(TcpFlags::PSH, 1_000);
    assert_eq!(peer.tcp.consume(usize::MAX), 1_000);
    assert!(held_bytes() - before <= LITTLE);
}

#[test]
fn who_fails_keeps_nothing() {
    let (mut peer, before) = open();
    peer.tcp.send(&TEXT).expect("there is room");
    peer.says(TcpFlags::PSH, 1_000);
    peer.says(TcpFlags::RST, 0);
    assert!(peer.tcp.is_closed());
    assert!(held_bytes() - before <= LITTLE);
}
