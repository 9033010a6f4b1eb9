//! Tests of a host in shards, each with its own packet ring, against Linux at the other end of the wire.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use rxo::Instant;
use rxo::device::middleware::{Direction, PacketLog, TracedSource};
use rxo::driver::{
    Device, DeviceBuf, DeviceName, DeviceOptions, DeviceSink, PacketOptions, PacketSource, clock,
    wait,
};
use rxo::frame::Gather;
use rxo::host::{Handle, HostCounters, ShardOpener};
use rxo::live::host::{self, HostThreads};
use rxo_testbed::{Lab, LabOptions};

use crate::Test;

pub(crate) const TESTS: &[Test] = &[
    ("two_shards_share_an_interface", two_shards_share_an_interface),
    ("a_shard_that_panics_ends_the_host_in_order", a_shard_that_panics),
];

const CONNECTIONS: usize = 16;
const SHARDS: u32 = 2;

/// Connections are opened from both sides, over both versions of IP; each one belongs to one shard, and none
/// is lost.
fn two_shards_share_an_interface() {
    let lab = Lab::through_with(LabOptions::default()).unwrap();
    let (stop, (started, starting)) = (AtomicBool::new(false), channel());
    let counters = thread::scope(|scope| {
        let stopping = Stopping(&stop);
        let running = scope.spawn(|| lab.host().run(|| run(&started, &stop)).unwrap());
        let handle = starting.recv().unwrap();
        let v4 = (lab.peer_address(), lab.host_address());
        let v6 = (Lab::PEER_ADDRESSES.1.into(), Lab::HOST_ADDRESSES.1.into());
        let versions = if lab.peer().has_ipv6() { vec![v4, v6] } else { vec![v4] };
        for (peer, host) in versions {
            let (peer, host) = (SocketAddr::new(peer, 7000), SocketAddr::new(host, 7001));
            connect_both_ways(&lab, &handle, peer, host);
        }
        drop(stopping);
        running.join().unwrap()
    });
    for shard in &counters {
        assert_eq!((shard.tcp.misplaced, shard.tcp.resets), (0, 0), "{counters:?}");
        assert!(shard.deliveries > 20, "{counters:?}");
    }
}

/// A source that panics at the first frame after the flag is set. While the host starts, a frame may arrive
/// that the test did not send.
#[derive(Debug)]
struct Panics(Arc<AtomicBool>);

impl PacketLog for Panics {
    fn log<'a, G: Gather<'a>>(&self, _: G, _: Direction, _: Instant) {
        assert!(!self.0.load(Ordering::Relaxed), "as the test wants");
    }

    fn take_notice(&self) -> Option<String> {
        None
    }
}

/// The other shard ends too, its connections are reset, and its counters are in the outcome.
fn a_shard_that_panics() {
    let lab = Lab::through_with(LabOptions::default()).unwrap();
    let panics = Arc::new(AtomicBool::new(false));
    let open = |panics: &Arc<AtomicBool>| {
        let panics = Panics(Arc::clone(panics));
        move || {
            let name: DeviceName = format!("packet:{}", Lab::WIRE_INTERFACE).parse().unwrap();
            let mut queues = name.attach_queues(SHARDS)?.open_queues(DeviceOptions::default())?;
            let Device { source, sink } = queues.pop().unwrap();
            queues.push(Device { source: Box::new(TracedSource::new(source, panics)), sink });
            Ok(queues)
        }
    };
    let config = host::config(vec![format!("{}/24", Lab::HOST_ADDRESSES.0).parse().unwrap()]);
    let threads = |workers| HostThreads { workers, ..HostThreads::default() };
    let start = || host::start_queues("few".to_owned(), open(&panics), threads(3), config.clone());
    let said = lab.host().run(start).unwrap().unwrap_err().to_string();
    assert_eq!(said, "2 queues for 3 workers; open one for each");
    let threads = threads(SHARDS);
    let start = || host::start_queues("test".to_owned(), open(&panics), threads, config).unwrap();
    let running = lab.host().run(start).unwrap();
    let at = SocketAddr::new(lab.host_address(), 7001);
    let _listener = running.handle().listen(at, CONNECTIONS).unwrap();
    panics.store(true, Ordering::Relaxed);
    let connect = || TcpStream::connect_timeout(&at, Duration::from_millis(200));
    let mut connected = Vec::new();
    while running.is_running() {
        connected.extend(lab.peer().run(connect).unwrap());
    }
    let outcome = running.stop();
    let said = outcome.result.unwrap_err().to_string();
    assert_eq!(said, "a worker's thread has ended: it has panicked, and printed why");
    assert_eq!(outcome.workers.len(), SHARDS as usize);
    assert_eq!(outcome.workers[0].counters.source.frames, outcome.counters.source.frames);
    for mut stream in connected {
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let read = stream.read(&mut [0]);
        assert!(
            read.as_ref().is_err_and(|error| error.kind() == ErrorKind::ConnectionReset),
            "{read:?}"
        );
    }
}

/// Stops the host when dropped, also if the test fails.
struct Stopping<'a>(&'a AtomicBool);

impl Drop for Stopping<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs each shard on a thread of its own, because an operating-system device stays on the thread that opened
/// it.
fn run(started: &Sender<Handle>, stop: &AtomicBool) -> Vec<HostCounters> {
    let options = PacketOptions::default();
    let sources = PacketSource::open_shards(Lab::WIRE_INTERFACE, options, SHARDS).unwrap();
    let (v4, v6) = Lab::HOST_ADDRESSES;
    let addresses = [format!("{v4}/24"), format!("{v6}/64")].map(|cidr| cidr.parse().unwrap());
    let mut config = host::config(addresses.into());
    config.mac = Some(sources[0].interface().hardware_address().unwrap());
    let openers = ShardOpener::all(sources.len(), &config).unwrap();
    thread::scope(|scope| {
        let start =
            |(opener, source)| scope.spawn(move || run_shard(opener, source, started, stop));
        let running: Vec<_> = openers.into_iter().zip(sources).map(start).collect();
        running.into_iter().map(|shard| shard.join().unwrap()).collect()
    })
}

fn run_shard(
    opener: ShardOpener<DeviceBuf>,
    source: PacketSource,
    started: &Sender<Handle>,
    stop: &AtomicBool,
) -> HostCounters {
    let sink = DeviceSink::packet(Lab::WIRE_INTERFACE).unwrap();
    let (mut shard, handle) = opener.open(source, sink).unwrap();
    // One handle is enough: the handle of each shard is that of the host.
    let _taken = started.send(handle);
    while !stop.load(Ordering::Relaxed) {
        if shard.turn(clock::now()).unwrap().is_idle() {
            wait::pause(Duration::from_micros(100));
        }
    }
    shard.counters()
}

fn connect_both_ways(lab: &Lab, handle: &Handle, peer: SocketAddr, host: SocketAddr) {
    let server = lab.peer().run(|| TcpListener::bind(peer).unwrap()).unwrap();
    let listener = handle.listen(host, CONNECTIONS).unwrap();
    let mut ends = Vec::new();
    for _ in 0..CONNECTIONS {
        let stream = handle.connect(peer).unwrap();
        ends.push((stream, server.accept().unwrap().0));
        let linux = lab.peer().run(|| TcpStream::connect(host).unwrap()).unwrap();
        ends.push((listener.accept().unwrap().0, linux));
    }
    for (ours, theirs) in &ends {
        carry(ours, theirs);
        carry(theirs, ours);
    }
}

/// Carries more bytes than a segment holds, and fewer than fill the buffers.
fn carry(mut from: impl Write, mut to: impl Read) {
    let data: Vec<u8> = (0..30_000_u32).map(|at| ((at * 7) >> 3) as u8).collect();
    from.write_all(&data).unwrap();
    let mut got = vec![0; data.len()];
    to.read_exact(&mut got).unwrap();
    assert!(got == data);
}
