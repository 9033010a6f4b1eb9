//! Tests of several rings on one interface: each connection arrives in one ring, the one that was computed
//! beforehand.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rxo_device::{FrameSink, FrameSource};
use rxo_driver::{DeviceSink, PacketOptions, PacketSource};
use rxo_wire::{FlowKey, parse, shard_of};

use crate::Test;
use crate::network::{FAR, NEAR, Pair, receive, receive_until, stay_on_one_core};
use crate::packets::{numbered, plain, tcp_header};

pub(crate) const TESTS: &[Test] = &[
    ("each_connection_comes_to_its_shard", each_to_its_shard),
    ("what_is_no_connection_comes_by_its_addresses", others_by_addresses),
    ("what_arrived_before_all_shards_were_open_is_forgotten", forgotten),
    ("every_arrival_of_a_group_is_counted_once", counted_once),
    ("wrong_numbers_of_shards_are_refused", refused_numbers),
];

const SHARDS: u32 = 3;
const PORTS: Range<u16> = 40_000..40_100;

fn open(pair: &Pair) -> Vec<PacketSource> {
    let open = || PacketSource::open_shards(FAR, PacketOptions::default(), SHARDS).unwrap();
    pair.far.run(open).unwrap()
}

fn send(pair: &Pair, frames: &[Vec<u8>]) {
    let send = || {
        stay_on_one_core();
        DeviceSink::packet(NEAR).unwrap().transmit(plain(frames)).unwrap();
    };
    pair.near.run(send).unwrap();
}

/// Creates a segment from or to `port` over IPv4 with options of `option_words` words.
pub(crate) fn v4(port: u16, option_words: usize) -> Vec<u8> {
    let mut frame = tcp_header(0);
    frame[34..36].copy_from_slice(&port.to_be_bytes());
    let options = vec![1; 4 * option_words];
    frame[14] += option_words as u8;
    let bytes = 40 + options.len() as u16;
    frame[16..18].copy_from_slice(&bytes.to_be_bytes());
    frame.splice(34..34, options);
    frame
}

pub(crate) fn v6(port: u16) -> Vec<u8> {
    let mut frame = [&[0xff; 6][..], &[2, 0, 0, 0, 0, 1, 0x86, 0xdd], &[0x60, 0, 0, 0]].concat();
    frame.extend([0, 20, 6, 64]);
    frame.extend((0..32).map(|at| at * 3));
    frame.extend(&tcp_header(0)[34..]);
    frame[54..56].copy_from_slice(&port.to_be_bytes());
    frame
}

/// Returns the segment with source and destination exchanged.
pub(crate) fn reversed(mut frame: Vec<u8>) -> Vec<u8> {
    let (addresses, half) = if frame[14] >> 4 == 4 { (26, 4) } else { (22, 16) };
    let ports = if half == 4 { 14 + 4 * usize::from(frame[14] & 0xf) } else { 54 };
    frame[addresses..addresses + 2 * half].rotate_left(half);
    frame[ports..ports + 4].rotate_left(2);
    frame
}

pub(crate) fn key(frame: &[u8]) -> FlowKey {
    parse(frame).unwrap().key
}

fn each_to_its_shard() {
    let pair = Pair::silent();
    let mut sources = open(&pair);
    let kinds: [fn(u16) -> Vec<u8>; 3] = [|port| v4(port, 0), |port| v4(port, 3), v6];
    let frames: Vec<_> = PORTS.flat_map(|port| kinds.map(|kind| kind(port))).collect();
    let frames: Vec<_> = frames.into_iter().flat_map(|it| [reversed(it.clone()), it]).collect();
    send(&pair, &frames);
    for (shard, source) in sources.iter_mut().enumerate() {
        let is_its = |frame: &&Vec<u8>| shard_of(&key(frame), SHARDS) as usize == shard;
        let expected: Vec<_> = frames.iter().filter(is_its).collect();
        assert!(expected.len() > frames.len() / 5, "{} of {}", expected.len(), frames.len());
        let got = receive(source, expected.len());
        let got: Vec<_> = got.iter().map(|frame| frame.bytes().to_vec()).collect();
        assert!(got.iter().eq(expected), "shard {shard}");
    }
}

/// Datagrams and fragments of the same hosts arrive in one ring, and everything that is not IP in the first.
fn others_by_addresses() {
    let pair = Pair::silent();
    let mut sources = open(&pair);
    let others: Vec<_> = (0..20).map(|number| numbered(number, 60)).collect();
    let mut frames = Vec::new();
    for port in PORTS {
        let mut fragment = v4(port, 0);
        fragment[20] = 0x20;
        let mut datagram = v4(port, 0);
        datagram[23] = 17;
        frames.extend([fragment, datagram]);
    }
    let mut addresses = v4(0, 0);
    addresses[34..38].fill(0);
    let shard = shard_of(&key(&addresses), SHARDS) as usize;
    send(&pair, &others);
    assert_eq!(receive(&mut sources[0], others.len()).len(), others.len());
    send(&pair, &frames);
    assert_eq!(receive(&mut sources[shard], frames.len()).len(), frames.len());
    for source in &mut sources {
        assert_eq!(source.receive(&mut Vec::new(), 1).unwrap(), 0);
    }
}

/// Frames that arrive before the sockets form a group may arrive at several of the sockets; these are
/// dropped.
fn forgotten() {
    let pair = Pair::silent();
    let stop = AtomicBool::new(false);
    let frames: Vec<_> = PORTS.map(|port| v4(port, 0)).collect();
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                send(&pair, &frames);
            }
        });
        let _stopping = Stopping(&stop);
        for _ in 0..20 {
            let mut sources = open(&pair);
            for (shard, source) in sources.iter_mut().enumerate() {
                for frame in receive_until(source, |frames| frames.len() >= 50) {
                    assert_eq!(shard_of(&key(frame.bytes()), SHARDS) as usize, shard);
                }
            }
        }
    });
}

/// Ends the sender when dropped, also if the test fails.
struct Stopping<'a>(&'a AtomicBool);

impl Drop for Stopping<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The first source counts the frames that no socket received; each other source counts its own losses.
fn counted_once() {
    let pair = Pair::silent();
    let mut sources = open(&pair);
    let frames: Vec<_> = PORTS.map(|port| v4(port, 0)).collect();
    send(&pair, &frames);
    let mut received = 0;
    for (shard, source) in sources.iter_mut().enumerate() {
        let is_its = |frame: &&Vec<u8>| shard_of(&key(frame), SHARDS) as usize == shard;
        let expected = frames.iter().filter(is_its).count();
        received += receive(source, expected).len();
        assert_eq!(source.arrived(), Some(expected as u64), "shard {shard}");
        assert_eq!(source.counters().frames, expected as u64);
    }
    assert_eq!(received, frames.len());
}

fn refused_numbers() {
    for shards in [0, 257] {
        let error = PacketSource::open_shards(FAR, PacketOptions::default(), shards).unwrap_err();
        let line = error.to_string();
        assert!(line.contains(&format!("{shards} shards; choose from 1 to 256")), "{line}");
    }
}
