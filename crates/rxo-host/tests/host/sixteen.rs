//! The order of streams across 16 shards, in virtual time.
//!
//! Shards, peer and applications proceed in an order that a seed chooses, so that any shard may overtake any
//! other. All shards send into one link, where an oracle reads sequence numbers; it shares no code with the
//! host.

use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

use rxo_device::MemoryLink;
use rxo_frame::{Frame, Instant};
use rxo_host::{Handle, Host, HostCounters, ShardedHost, TcpListener, TcpStream};

use crate::shards::{Peer, Sharded, peer_of};
use crate::world::{config, options, server};

const SHARDS: usize = 16;
/// The number of connections that each side opens.
const CONNECTIONS: usize = 80;
const BYTES: usize = 20_000;

/// The next sequence number of each flow.
#[derive(Default)]
struct Order {
    next: HashMap<[u8; 12], u32>,
}

impl Order {
    /// Records the packet `packet`, which is raw IPv4.
    ///
    /// # Errors
    /// If an earlier part of the packet's flow has not left yet.
    fn take(&mut self, packet: &[u8]) -> Result<(), String> {
        let tcp = &packet[usize::from(packet[0] & 0xf) * 4..];
        let mut flow = [0; 12];
        flow[..8].copy_from_slice(&packet[12..20]);
        flow[8..].copy_from_slice(&tcp[..4]);
        let seq = u32::from_be_bytes(tcp[4..8].try_into().unwrap());
        let marks = (tcp[13] & 1) + (tcp[13] >> 1 & 1);
        let payload = tcp.len() - usize::from(tcp[12] >> 4) * 4;
        let end = seq.wrapping_add(payload as u32 + u32::from(marks));
        let next = self.next.entry(flow).or_insert(seq);
        if seq.wrapping_sub(*next) as i32 > 0 {
            return Err(format!("{flow:?} goes on at {seq} and not at {next}"));
        }
        if end.wrapping_sub(*next) as i32 > 0 {
            *next = end;
        }
        Ok(())
    }
}

/// One end of a connection: the text that it sends, and what it has received.
struct End {
    stream: TcpStream,
    text: Vec<u8>,
    sent: usize,
    received: Vec<u8>,
}

impl End {
    fn new(stream: TcpStream, number: usize) -> Self {
        stream.set_nonblocking(true).unwrap();
        Self { stream, text: text(number), sent: 0, received: Vec::new() }
    }

    /// Writes and reads as much as possible, at most `most` bytes in each direction.
    fn go_on(&mut self, most: usize) {
        let end = (self.sent + most).min(BYTES);
        match self.stream.write(&self.text[self.sent..end]) {
            Ok(written) => self.sent += written,
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
        let mut buffer = vec![0; most];
        match self.stream.read(&mut buffer) {
            Ok(read) => self.received.extend_from_slice(&buffer[..read]),
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
    }

    fn is_done(&self) -> bool {
        self.sent == BYTES && self.received.len() == BYTES
    }
}

/// Returns the text that both ends of a connection send, which differs from the text of every other
/// connection.
fn text(number: usize) -> Vec<u8> {
    (0..BYTES).map(|at| ((at * (2 * number + 7)) >> 3) as u8).collect()
}

struct Scene {
    peer: Peer,
    host: Sharded,
    /// The frames that the shards have sent, for the peer.
    out: MemoryLink,
    back: MemoryLink,
    order: Order,
    random: u64,
    now: Instant,
}

impl Scene {
    fn new(seed: u64) -> Self {
        let (peer, lanes, back) = peer_of(options(), config("10.0.0.1/24"), SHARDS);
        let out = MemoryLink::new(options());
        let queues = lanes.iter().map(|lane| (lane.source(), out.sink())).collect();
        let host = ShardedHost::new(queues, &config("10.0.0.2/24")).unwrap();
        let now = Instant::from_micros(1_000_000);
        Self { peer, host, out, back, order: Order::default(), random: seed, now }
    }

    /// Returns a random number below `end`, by a linear congruential generator.
    fn below(&mut self, end: usize) -> usize {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.random >> 33) as usize % end
    }

    /// Lets one shard or the peer run a round, or delivers the packets that were sent.
    fn step(&mut self) {
        self.now = self.now + Duration::from_nanos(self.below(3_000) as u64);
        match self.below(SHARDS + 6) {
            shard @ ..SHARDS => _ = self.host.shards()[shard].turn(self.now).unwrap(),
            SHARDS => self.pass_on(),
            _ => _ = self.peer.turn(self.now).unwrap(),
        }
    }

    fn pass_on(&mut self) {
        while let Some(packet) = self.out.take() {
            self.order.take(&packet.bytes).unwrap();
            let checksum = packet.offload.checksum;
            self.back.push(&Frame { checksum, ..Frame::new(&packet.bytes[..], self.now) });
        }
    }

    fn counters(&mut self) -> Vec<HostCounters> {
        self.host.shards().iter_mut().map(Host::counters).collect()
    }
}

/// Opens connections to `to`. One listener of that address accepts each connection.
fn open(by: &[Handle], to: SocketAddr) -> Vec<TcpStream> {
    let open = |n: usize| by[n % by.len()].connect_nonblocking(to).unwrap();
    (0..CONNECTIONS).map(open).collect()
}

fn accepted(listener: &TcpListener, to: &mut HashMap<SocketAddr, TcpStream>) {
    while let Ok((stream, peer)) = listener.accept() {
        to.insert(peer, stream);
    }
}

/// Each shard has a listener and connections of its own, like an application with a loop for each worker.
fn carried(seed: u64) {
    let mut scene = Scene::new(seed);
    let shards: Vec<_> = scene.host.shards().iter().map(|shard| shard.handle()).collect();
    let (peer, at_peer) = (scene.peer.handle(), SocketAddr::from(([10, 0, 0, 1], 80)));
    let listening = shards.iter().map(|shard| (shard, server())).chain([(&peer, at_peer)]);
    let listeners: Vec<_> = listening
        .map(|(handle, address)| {
            let listener = handle.listen(address, CONNECTIONS).unwrap();
            listener.set_nonblocking(true).unwrap();
            listener
        })
        .collect();
    let opened = [open(&shards, at_peer), open(&[peer], server())].into_iter().flatten();
    let opened: Vec<_> = opened.collect();
    let mut came = HashMap::new();
    while came.len() < opened.len() {
        scene.step();
        listeners.iter().for_each(|listener| accepted(listener, &mut came));
    }
    let mut ends = Vec::new();
    for (number, stream) in opened.into_iter().enumerate() {
        let other = came.remove(&stream.local_addr().unwrap()).unwrap();
        ends.extend([End::new(stream, number), End::new(other, number)]);
    }
    while !ends.iter().all(End::is_done) {
        scene.step();
        for _ in 0..4 {
            let (chosen, most) = (scene.below(ends.len()), 1 + scene.below(9_000));
            ends[chosen].go_on(most);
        }
    }
    for end in &ends {
        assert!(end.received == end.text, "seed {seed}: {:?}", end.stream);
    }
    for (n, shard) in scene.counters().iter().enumerate() {
        assert_eq!((shard.tcp.misplaced, shard.tcp.strangers, shard.tcp.resets), (0, 0, 0));
        assert!(shard.connections > 0 && shard.source.frames > 50, "seed {seed}: shard {n}");
    }
}

#[test]
fn each_stream_keeps_its_order_across_sixteen_shards() {
    (1..=4).for_each(carried);
}

#[test]
fn the_oracle_sees_a_packet_that_overtakes_another() {
    let packet = |seq: u32| {
        let mut packet = vec![0; 40 + 100];
        (packet[0], packet[32]) = (0x45, 0x50);
        packet[24..28].copy_from_slice(&seq.to_be_bytes());
        packet
    };
    let take = |seqs: &[u32]| {
        let mut order = Order::default();
        seqs.iter().try_for_each(|seq| order.take(&packet(*seq)))
    };
    assert!(take(&[u32::MAX - 99, 0, 100, 100, 200]).is_ok());
    assert!(take(&[0, 200, 100]).is_err());
}
