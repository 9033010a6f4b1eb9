//! Four hundred connections at the same time over a bad link, after which no connection and no timer is left.

use std::io::ErrorKind;
use std::net::Shutdown;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rxo_device::middleware::{Displacement, ImpairedSource, Impairment, ImpairmentSettings};
use rxo_device::{MemoryLink, MemoryOptions, MemorySink, MemorySource};
use rxo_frame::{Duration, Instant, LinkKind};
use rxo_host::{Host, TcpStream};

use crate::world::{config, drain, fill, options, pattern, server};

type BadHost = Host<ImpairedSource<MemorySource, Clock>, MemorySink>;

/// Virtual time, shared with the links.
#[derive(Clone)]
struct Time(Arc<AtomicU64>);

type Clock = Box<dyn FnMut() -> Instant + Send>;

impl Time {
    fn now(&self) -> Instant {
        Instant::from_nanos(self.0.load(Ordering::Relaxed))
    }

    fn clock(&self) -> Clock {
        let time = self.clone();
        Box::new(move || time.now())
    }
}

struct World {
    client: BadHost,
    server: BadHost,
    links: [MemoryLink; 2],
    time: Time,
}

impl World {
    fn new(settings: ImpairmentSettings) -> Self {
        let time = Time(Arc::new(AtomicU64::new(1_000_000_000)));
        let options = MemoryOptions { gso_bytes: 0, most_packets: 65_536, ..options() };
        let links = [MemoryLink::new(options), MemoryLink::new(options)];
        let source = |link: &MemoryLink, seed| {
            let settings = ImpairmentSettings { seed, ..settings };
            let impairment = Impairment::new(settings, LinkKind::RawIp).unwrap();
            ImpairedSource::new(link.source(), impairment, time.clock())
        };
        let sources = [source(&links[1], 1), source(&links[0], 2)];
        let [to_client, to_server] = sources;
        let client = Host::new(to_client, links[0].sink(), config("10.0.0.1/24")).unwrap();
        let server = Host::new(to_server, links[1].sink(), config("10.0.0.2/24")).unwrap();
        Self { client, server, links, time }
    }

    /// Advances the time by `time`, from deadline to deadline, in steps of at least 100 µs.
    fn pass(&mut self, time: Duration) {
        let end = self.time.now() + time;
        while self.time.now() < end {
            let now = self.time.now();
            self.links.iter().for_each(|link| link.set_now(now));
            let turns = [self.client.turn(now).unwrap(), self.server.turn(now).unwrap()];
            let due = [self.client.poll_at(), self.server.poll_at()].into_iter().flatten().min();
            let is_idle = turns.iter().all(|turn| turn.is_idle());
            let due = due.filter(|_| is_idle).unwrap_or(if is_idle { end } else { now });
            let next = due.max(now + Duration::from_micros(100)).min(end);
            self.time.0.store(next.as_nanos(), Ordering::Relaxed);
        }
    }

    fn is_empty(&mut self) -> bool {
        let empty = |host: &mut BadHost| {
            let counters = host.counters();
            counters.connections == 0 && counters.timers == 0
        };
        empty(&mut self.client) && empty(&mut self.server)
    }
}

const BAD: ImpairmentSettings = ImpairmentSettings {
    seed: 0,
    loss_ppm: 10_000,
    duplicate_ppm: 10_000,
    reorder_ppm: 50_000,
    displacement: Displacement { frames: Some(3), time: Duration::from_millis(10) },
    delay: Duration::from_millis(2),
    jitter: Duration::from_micros(500),
    gather: Duration::ZERO,
    rate_bytes_per_s: None,
    limit_frames: 65_536,
    limit_bytes: 64 << 20,
};

/// One end of a connection, with the amount sent and the data received.
struct End {
    stream: TcpStream,
    sent: usize,
    got: Vec<u8>,
    is_done: bool,
}

impl End {
    fn new(stream: TcpStream) -> Self {
        stream.set_nonblocking(true).unwrap();
        Self { stream, sent: 0, got: Vec::new(), is_done: false }
    }

    fn go_on(&mut self, data: &[u8]) {
        if self.sent < data.len() {
            self.sent += fill(&self.stream, &data[self.sent..]);
            if self.sent == data.len() {
                self.stream.shutdown(Shutdown::Write).unwrap();
            }
        }
        let (more, is_done) = drain(&self.stream).unwrap();
        self.got.extend(more);
        self.is_done |= is_done;
    }
}

#[test]
fn four_hundred_connections_over_a_bad_link() {
    const CONNECTIONS: usize = 400;
    let mut world = World::new(BAD);
    let listener = world.server.handle().listen(server(), CONNECTIONS).unwrap();
    listener.set_nonblocking(true).unwrap();
    let data = pattern(20_000);
    let connect = |_| world.client.handle().connect_nonblocking(server()).unwrap();
    let mut ends: Vec<_> = (0..CONNECTIONS).map(connect).map(End::new).collect();
    for _ in 0..3_000 {
        while let Ok((stream, _)) = listener.accept() {
            ends.push(End::new(stream));
        }
        for end in &mut ends {
            if end.stream.is_connected().is_ok_and(|is_open| is_open) || end.sent > 0 {
                end.go_on(&data);
            }
        }
        if ends.len() == 2 * CONNECTIONS && ends.iter().all(|end| end.is_done) {
            break;
        }
        world.pass(Duration::from_millis(20));
    }
    assert_eq!(ends.len(), 2 * CONNECTIONS);
    for (number, end) in ends.iter().enumerate() {
        assert!(end.got == data, "{number}: {} of {} bytes", end.got.len(), data.len());
    }
    let impaired = world.server.counters().source.impaired;
    assert!(impaired.lost > 0 && impaired.doubled > 0 && impaired.reordered > 0);
    drop(ends);
    world.pass(Duration::from_secs(130));
    assert!(world.is_empty(), "{:?} {:?}", world.client.counters(), world.server.counters());
}

#[test]
fn a_peer_that_vanishes_is_given_up() {
    let mut world = World::new(ImpairmentSettings::default());
    let listener = world.server.handle().listen(server(), 4).unwrap();
    let stream = world.client.handle().connect_nonblocking(server()).unwrap();
    stream.set_nonblocking(true).unwrap();
    world.pass(Duration::from_millis(10));
    listener.set_nonblocking(true).unwrap();
    let (accepted, _) = listener.accept().unwrap();
    fill(&stream, b"is anybody there?");
    // No packet reaches the peer any more, and none comes from it.
    for _ in 0..4_000 {
        let now = world.time.now();
        world.client.turn(now).unwrap();
        drop(world.links[0].take_all());
        let due = world.client.poll_at().unwrap_or(now + Duration::from_secs(1));
        world.time.0.store(due.max(now).as_nanos() + 1_000, Ordering::Relaxed);
        if world.client.counters().connections == 0 {
            break;
        }
    }
    assert_eq!(drain(&stream).unwrap_err().kind(), ErrorKind::TimedOut);
    assert_eq!(world.client.counters().timers, 0);
    drop(accepted);
}
