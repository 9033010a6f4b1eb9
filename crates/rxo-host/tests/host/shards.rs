//! A host with two shards, and a device that steers connections to them.

use std::collections::HashSet;
use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use rxo_device::{
    DeviceError, FrameSink, MemoryLink, MemoryOptions, MemorySink, MemorySource, SinkCapabilities,
    SinkCounters,
};
use rxo_frame::{Frame, Gather, Instant, LinkKind};
use rxo_host::{
    Host, HostConfig, HostCounters, HostError, ShardOpener, ShardedHost, TcpListener, TcpStream,
};
use rxo_wire::{FlowKey, parse, parse_ip, shard_of};

use crate::threads::Polling;
use crate::world::{config, drain, fill, options, pattern, server};

const SHARDS: usize = 2;

/// The peer's end of the device: delivers each connection to its shard, and other frames to the last shard.
pub(crate) struct Steering {
    kind: LinkKind,
    lanes: Vec<MemorySink>,
}

impl Steering {
    fn lane_of<'a, G: Gather<'a>>(&mut self, packet: G) -> &mut MemorySink {
        let mut bytes = Vec::new();
        packet.for_each_slice(|slice| bytes.extend_from_slice(slice));
        let parsed = self.kind.read(&bytes, parse, parse_ip);
        let key = parsed.ok().map(|parsed| parsed.key).filter(|key| key.source_port() > 0);
        let last = self.lanes.len() - 1;
        let lane = key.map_or(last, |key| shard_of(&key, self.lanes.len() as u32) as usize);
        &mut self.lanes[lane]
    }
}

impl FrameSink for Steering {
    fn capabilities(&self) -> SinkCapabilities {
        self.lanes[0].capabilities()
    }

    fn transmit<'a, G: Gather<'a>>(
        &mut self,
        batch: impl ExactSizeIterator<Item = G>,
    ) -> Result<(), DeviceError> {
        for packet in batch {
            self.lane_of(packet).transmit(std::iter::once(packet))?;
        }
        Ok(())
    }

    fn counters(&self) -> SinkCounters {
        self.lanes[0].counters()
    }
}

pub(crate) type Peer = Host<MemorySource, Steering>;
pub(crate) type Sharded = ShardedHost<MemorySource, MemorySink>;

/// A peer and a sharded host, on virtual time.
struct Scene {
    peer: Peer,
    host: Sharded,
    lanes: Vec<MemoryLink>,
    now: Instant,
}

/// A peer, the links to the shards of a host, and the link back.
pub(crate) fn peer_of(
    options: MemoryOptions,
    config: HostConfig,
    shards: usize,
) -> (Peer, Vec<MemoryLink>, MemoryLink) {
    let lanes: Vec<_> = (0..shards).map(|_| MemoryLink::new(options)).collect();
    let back = MemoryLink::new(options);
    let steering =
        Steering { kind: options.link, lanes: lanes.iter().map(MemoryLink::sink).collect() };
    (Host::new(back.source(), steering, config).unwrap(), lanes, back)
}

fn ends(options: MemoryOptions, configs: [HostConfig; 2]) -> (Peer, Sharded, Vec<MemoryLink>) {
    let [at_peer, at_host] = configs;
    let (peer, lanes, back) = peer_of(options, at_peer, SHARDS);
    let queues = lanes.iter().map(|lane| (lane.source(), back.sink())).collect();
    (peer, ShardedHost::new(queues, &at_host).unwrap(), lanes)
}

impl Scene {
    fn new(options: MemoryOptions) -> Self {
        let mut configs = [config("10.0.0.1/24"), config("10.0.0.2/24")];
        configs[0].mac = Some([2, 0, 0, 0, 0, 1]);
        configs[1].mac = Some([2, 0, 0, 0, 0, 2]);
        for config in &mut configs {
            config.memory_bytes = 64 << 30;
            config.sockets = 40_000;
        }
        let (peer, host, lanes) = ends(options, configs);
        Self { peer, host, lanes, now: Instant::from_micros(1_000_000) }
    }

    fn settle(&mut self) {
        for _ in 0..10_000 {
            let is_idle = self.peer.turn(self.now).unwrap().is_idle();
            if !self.host.turn(self.now).unwrap() && is_idle {
                return;
            }
        }
        panic!("it never settles");
    }

    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            self.settle();
            let due = [self.peer.poll_at(), self.host.poll_at()].into_iter().flatten().min();
            match due.filter(|due| *due <= end) {
                Some(due) => self.now = due.max(self.now),
                None => break,
            }
        }
        self.now = end;
    }

    /// Opens `count` connections from `opener` to `listener`. Returns the ends of both sides.
    fn connect(
        &mut self,
        listener: &TcpListener,
        opener: &rxo_host::Handle,
        count: usize,
    ) -> Vec<[TcpStream; 2]> {
        listener.set_nonblocking(true).unwrap();
        let mut ends = Vec::new();
        for _ in 0..count {
            let stream = opener.connect_nonblocking(listener.local_addr().unwrap()).unwrap();
            self.pass(Duration::from_millis(1));
            assert!(stream.is_connected().unwrap());
            let (accepted, _) = listener.accept().unwrap();
            let both = [stream, accepted];
            both.iter().for_each(|end| end.set_nonblocking(true).unwrap());
            ends.push(both);
        }
        ends
    }

    /// Carries data in both directions over each connection.
    fn use_all(&mut self, ends: &[[TcpStream; 2]]) {
        let data = pattern(20_000);
        for [a, b] in ends {
            for (from, to) in [(a, b), (b, a)] {
                assert_eq!(fill(from, &data), data.len());
                self.pass(Duration::from_millis(100));
                assert_eq!(drain(to).unwrap().0, data);
            }
        }
    }

    fn counters(&mut self) -> Vec<HostCounters> {
        self.host.shards().iter_mut().map(Host::counters).collect()
    }
}

fn assert_all_in_place(counters: &[HostCounters]) {
    for shard in counters {
        assert_eq!((shard.tcp.misplaced, shard.tcp.strangers, shard.tcp.resets), (0, 0, 0));
    }
}

#[test]
fn connections_of_a_listener_are_on_all_shards() {
    let mut scene = Scene::new(options());
    let listener = scene.host.handle().listen(server(), 8).unwrap();
    let peer = scene.peer.handle();
    let ends = scene.connect(&listener, &peer, 100);
    scene.use_all(&ends);
    let counters = scene.counters();
    assert_all_in_place(&counters);
    let connections: Vec<_> = counters.iter().map(|shard| shard.connections).collect();
    assert_eq!(connections.iter().sum::<usize>(), 100);
    assert!(connections.iter().all(|count| *count > 20), "{connections:?}");
    drop((listener, ends));
    scene.pass(Duration::from_secs(130));
    assert!(scene.counters().iter().all(|shard| shard.connections == 0));
}

/// The host chooses local ports for which the answers arrive on the shard that opens the connection.
#[test]
fn answers_come_to_the_shard_that_asked() {
    let mut scene = Scene::new(options());
    let address = SocketAddr::from(([10, 0, 0, 1], 80));
    let listener = scene.peer.handle().listen(address, 8).unwrap();
    let host = scene.host.handle();
    let ends = scene.connect(&listener, &host, 100);
    scene.use_all(&ends);
    let counters = scene.counters();
    assert_all_in_place(&counters);
    assert!(counters.iter().all(|shard| shard.connections == 100 / SHARDS));
    let ports: HashSet<_> =
        ends.iter().map(|[stream, _]| stream.local_addr().unwrap().port()).collect();
    assert_eq!(ports.len(), 100);
}

/// The ports to one destination are divided among the shards, and none is lost.
#[test]
fn a_shard_without_a_port_leaves_the_connection_to_another() {
    let scene = Scene::new(options());
    let (handle, remote) = (scene.host.handle(), SocketAddr::from(([10, 0, 0, 1], 80)));
    let all: Vec<_> = (0..16_384).map(|_| handle.connect_nonblocking(remote).unwrap()).collect();
    let error = handle.connect_nonblocking(remote).err().map(|error| error.kind());
    assert_eq!(error, Some(ErrorKind::AddrNotAvailable));
    drop(all);
}

/// Messages of neighbours arrive on one shard only. It answers them, and the other shard processes a copy:
/// ARP requests of the peer over IPv4, and its advertisements over IPv6.
#[test]
fn all_shards_know_the_neighbours() {
    let mut scene = Scene::new(MemoryOptions { link: LinkKind::Ethernet, ..options() });
    let (host, peer) = (scene.host.handle(), scene.peer.handle());
    let v4 = |host: u8| SocketAddr::from(([10, 0, 0, host], 80));
    let v6 = |host: u8| SocketAddr::from(([0xfd00, 0, 0, 0, 0, 0, 0, host.into()], 80));
    let listeners = [v4(2), v6(2)].map(|address| host.listen(address, 8).unwrap());
    let at_peer = [v4(1), v6(1)].map(|address| peer.listen(address, 8).unwrap());
    let kept = [
        scene.connect(&listeners[0], &peer, 20),
        scene.connect(&at_peer[0], &host, 4),
        scene.connect(&at_peer[1], &host, 4),
        scene.connect(&listeners[1], &peer, 20),
    ];
    kept.iter().for_each(|ends| scene.use_all(ends));
    let counters = scene.counters();
    assert_all_in_place(&counters);
    assert!(counters.iter().all(|shard| shard.connections >= 4));
    let answers: Vec<_> = counters.iter().map(|shard| shard.link.answers).collect();
    assert!(answers[0] == 0 && answers[1] > 0, "{answers:?}");
}

/// A device that steers connections differently, or not yet, does not break them.
#[test]
fn what_belongs_to_another_shard_is_dropped_without_a_reset() {
    let mut scene = Scene::new(options());
    let listener = scene.host.handle().listen(server(), 8).unwrap();
    let peer = scene.peer.handle();
    let ends = scene.connect(&listener, &peer, 1);
    assert_eq!(fill(&ends[0][0], b"astray"), 6);
    scene.peer.turn(scene.now).unwrap();
    let from = scene.lanes.iter().position(|lane| !lane.is_silent()).unwrap();
    let astray = scene.lanes[from].take().unwrap();
    let checksum = astray.offload.checksum;
    let frame = Frame { checksum, ..Frame::new(&astray.bytes[..], scene.now) };
    scene.lanes[1 - from].push(&frame);
    scene.settle();
    let counters = scene.counters();
    assert_eq!((counters[1 - from].tcp.misplaced, counters[1 - from].tcp.resets), (1, 0));
    // The segment is retransmitted to the shard to which it belongs.
    scene.pass(Duration::from_secs(2));
    assert_eq!(drain(&ends[0][1]).unwrap().0, b"astray");
    scene.use_all(&ends);
}

/// An address has one listener, even if listeners are opened through several shards.
#[test]
fn an_address_has_one_listener() {
    let scene = Scene::new(options());
    let listener = scene.host.handle().listen(server(), 8).unwrap();
    let error = scene.host.handle().listen(server(), 8).err().map(|error| error.kind());
    assert_eq!(error, Some(ErrorKind::AddrInUse));
    drop(listener);
    assert!(scene.host.handle().listen(server(), 8).is_ok());
}

/// The handles of single shards listen on one address beside each other: each accepts what is its shard's.
#[test]
fn each_shard_has_a_listener_of_its_own() {
    let mut scene = Scene::new(options());
    let handles: Vec<_> = scene.host.shards().iter().map(|shard| shard.handle()).collect();
    let listeners: Vec<_> = handles.iter().map(|it| it.listen(server(), 64).unwrap()).collect();
    for taken in [scene.host.handle(), handles[1].clone()] {
        let error = taken.listen(server(), 8).err().map(|error| error.kind());
        assert_eq!(error, Some(ErrorKind::AddrInUse));
    }
    let peer = scene.peer.handle();
    let open = |_| peer.connect_nonblocking(server()).unwrap();
    let streams: Vec<_> = (0..100).map(open).collect();
    scene.pass(Duration::from_millis(10));
    let mut accepted = 0;
    for (shard, listener) in listeners.iter().enumerate() {
        listener.set_nonblocking(true).unwrap();
        while let Ok((_, peer)) = listener.accept() {
            let (host, port) = (0x0a00_0002, u32::from(peer.port()) << 16 | 80);
            let key = FlowKey::v4(0x0a00_0001, host, port, 0);
            assert_eq!(shard_of(&key, SHARDS as u32) as usize, shard);
            accepted += 1;
        }
    }
    assert_eq!((accepted, streams.len()), (100, 100));
    assert_all_in_place(&scene.counters());
    drop(listeners);
    assert!(scene.host.handle().listen(server(), 8).is_ok());
}

/// If the device of one shard has failed, the other shard continues.
#[test]
fn a_shard_that_has_ended_is_passed_over() {
    let (mut peer, host, _) = ends(options(), [config("10.0.0.1/24"), config("10.0.0.2/24")]);
    let now = Instant::from_micros(1_000_000);
    let handle = host.handle();
    let mut shards = host.into_shards();
    let listen = || handle.listen(server(), 8);
    shards[0].close(now).unwrap();
    assert!(listen().is_ok());
    for _ in 0..4 {
        handle.connect_nonblocking("10.0.0.1:80".parse().unwrap()).unwrap();
    }
    shards[1].close(now).unwrap();
    assert_eq!(listen().err().map(|error| error.kind()), Some(ErrorKind::NotConnected));
    peer.close(now).unwrap();
}

#[test]
fn a_host_has_at_least_one_shard() {
    let none = Vec::<(MemorySource, MemorySink)>::new();
    let error = ShardedHost::new(none, &config("10.0.0.2/24")).err().unwrap();
    assert_eq!(error.to_string(), "the number of queues is 0; choose 1 to 256");
    assert!(matches!(error, HostError::Number(_)));
}

/// Each shard runs on its own thread, which also opens its queue; the application does not notice.
#[test]
fn shards_run_on_threads_of_their_own() {
    let [at_peer, at_host] = [config("10.0.0.1/24"), config("10.0.0.2/24")];
    let (mut peer, lanes, back) = peer_of(options(), at_peer, SHARDS);
    let client = peer.handle();
    let stop = Arc::new(AtomicBool::new(false));
    let (opened, opening) = channel();
    let data = pattern(200_000);
    let counters = thread::scope(|scope| {
        let stop = &stop;
        scope.spawn(move || peer.run(&mut Polling::start(), stop, |_, _| {}).unwrap());
        let run = |opener: ShardOpener<Vec<u8>>| {
            let (lane, back, opened) = (&lanes[opener.index() as usize], &back, opened.clone());
            scope.spawn(move || {
                let (mut shard, handle) = opener.open(lane.source(), back.sink()).unwrap();
                opened.send(handle).unwrap();
                shard.run(&mut Polling::start(), stop, |_, _| {}).unwrap();
                shard.counters()
            })
        };
        let openers = ShardOpener::all(SHARDS, &at_host).unwrap();
        let shards: Vec<_> = openers.into_iter().map(run).collect();
        let listener = opening.recv().unwrap().listen(server(), 64).unwrap();
        scope.spawn(move || {
            for _ in 0..8 {
                let (mut stream, _) = listener.accept().unwrap();
                scope.spawn(move || {
                    let mut text = Vec::new();
                    stream.read_to_end(&mut text).unwrap();
                    stream.write_all(&text).unwrap();
                });
            }
        });
        let echo = |_| {
            let (client, data) = (client.clone(), &data);
            scope.spawn(move || {
                let mut stream = client.connect(server()).unwrap();
                stream.write_all(data).unwrap();
                stream.shutdown(std::net::Shutdown::Write).unwrap();
                let mut echoed = Vec::new();
                stream.read_to_end(&mut echoed).unwrap();
                assert!(echoed == *data);
            })
        };
        let clients: Vec<_> = (0..8).map(echo).collect();
        let outcomes: Vec<_> = clients.into_iter().map(|client| client.join()).collect();
        // Asserts only after the shards were stopped, so that a failure does not leave them running.
        stop.store(true, Ordering::Relaxed);
        assert!(outcomes.iter().all(Result::is_ok));
        shards.into_iter().map(|shard| shard.join().unwrap()).collect::<Vec<_>>()
    });
    assert!(counters.iter().all(|shard| shard.tcp.misplaced == 0));
    let deliveries: Vec<_> = counters.iter().map(|shard| shard.deliveries).collect();
    assert!(deliveries.iter().all(|deliveries| *deliveries > 20), "{deliveries:?}");
}

/// A thread that waits for all shards does not wait for a shard that was given up before its start.
#[test]
fn a_seat_that_is_given_up_ends_the_waiting_of_the_others() {
    let lane = MemoryLink::new(options());
    let mut openers = ShardOpener::<Vec<u8>>::all(SHARDS, &config("10.0.0.2/24")).unwrap();
    let other = openers.pop().unwrap();
    let first = openers.pop().unwrap();
    let waiting = thread::spawn({
        let lane = lane.clone();
        move || first.open(lane.source(), lane.sink()).map(|_| ())
    });
    drop(other);
    assert_eq!(waiting.join().unwrap(), Err(HostError::OtherShard));
}

/// The ports of one client are spread over both shards by `shard_of`.
#[test]
fn ports_decide_the_shard() {
    let key = |port: u32| FlowKey::v4(0x0a00_0001, 0x0a00_0002, port << 16 | 80, 0);
    let ports = 49_152..50_152;
    let first = ports.filter(|port| shard_of(&key(*port), 2) == 0).count();
    assert!((400..600).contains(&first), "{first} of 1,000");
}
