//! A device that lends its buffers must get them back.

use std::io::{Read, Write};
use std::time::Duration;

use rxo_device::{
    DeviceError, FrameSource, MemoryLink, MemorySink, MemorySource, SourceCapabilities,
    SourceCounters,
};
use rxo_frame::{Frame, Instant, Pool, PoolBuf};
use rxo_host::{Host, TcpListener, TcpStream};

use crate::world::{MemoryHost, config, drain, fill, options, pattern, server};

/// A source that delivers frames in buffers of a pool, and nothing while all are in use.
struct Lender {
    source: MemorySource,
    pool: Pool,
    buffers: usize,
    waiting: Vec<Frame<Vec<u8>>>,
}

impl FrameSource for Lender {
    type Buffer = PoolBuf;

    fn capabilities(&self) -> SourceCapabilities {
        self.source.capabilities()
    }

    fn receive(
        &mut self,
        batch: &mut Vec<Frame<PoolBuf>>,
        budget: usize,
    ) -> Result<usize, DeviceError> {
        let mut given = 0;
        while given < budget {
            if self.waiting.is_empty() {
                self.source.receive(&mut self.waiting, 1)?;
            }
            if self.waiting.is_empty() {
                break;
            }
            let Some(mut buffer) = self.pool.take() else { break };
            let Some(frame) = self.waiting.pop() else { break };
            buffer.truncate(frame.bytes.len());
            buffer.copy_from_slice(&frame.bytes);
            batch.push(frame.with_bytes(buffer));
            given += 1;
        }
        Ok(given)
    }

    fn counters(&mut self) -> SourceCounters {
        self.source.counters()
    }

    fn lends(&self) -> Option<usize> {
        Some(self.buffers)
    }

    fn is_starved(&self) -> bool {
        self.pool.is_exhausted()
    }
}

struct World {
    client: MemoryHost,
    server: Host<Lender, MemorySink>,
    pool: Pool,
    now: Instant,
}

const BUFFERS: usize = 64;

impl World {
    fn new() -> Self {
        let (there, back) = (MemoryLink::new(options()), MemoryLink::new(options()));
        let pool = Pool::new(BUFFERS, 70_000);
        let lender = Lender {
            source: there.source(),
            pool: pool.clone(),
            buffers: BUFFERS,
            waiting: Vec::new(),
        };
        let client = Host::new(back.source(), there.sink(), config("10.0.0.1/24")).unwrap();
        let server = Host::new(lender, back.sink(), config("10.0.0.2/24")).unwrap();
        Self { client, server, pool, now: Instant::from_micros(1_000_000) }
    }

    /// Opens a connection with both ends in nonblocking mode.
    fn connect(&mut self, listener: &TcpListener) -> (TcpStream, TcpStream) {
        let stream = self.client.handle().connect_nonblocking(server()).unwrap();
        stream.set_nonblocking(true).unwrap();
        self.pass(10);
        let (accepted, _) = listener.accept().unwrap();
        accepted.set_nonblocking(true).unwrap();
        (stream, accepted)
    }

    fn pass(&mut self, turns: usize) {
        for _ in 0..turns {
            self.client.turn(self.now).unwrap();
            self.server.turn(self.now).unwrap();
            self.now = self.now + Duration::from_micros(500);
        }
    }
}

/// Of two connections, the first is not read. That must not stop the second.
#[test]
fn who_does_not_read_stops_nobody_else() {
    let mut world = World::new();
    let listener = world.server.handle().listen(server(), 4).unwrap();
    let streams = [(); 2].map(|()| world.connect(&listener));
    let [(idle, unread), (busy, read)] = &streams;
    // Many small segments, each in its own buffer.
    idle.set_nodelay(true).unwrap();
    let text = pattern(100);
    for piece in text.chunks(1) {
        (&*idle).write_all(piece).unwrap();
        world.pass(1);
    }
    let data = pattern(2_000_000);
    let (mut sent, mut got) = (0, Vec::new());
    for _ in 0..20_000 {
        sent += fill(busy, &data[sent..]);
        world.pass(1);
        got.extend(drain(read).unwrap().0);
    }
    assert!(got == data, "{} of {}", got.len(), data.len());
    assert!(world.server.counters().tcp.copied_out > 0);

    // Copied data reads the same, and in the end every buffer is returned.
    let mut late = vec![0; text.len()];
    (&*unread).read_exact(&mut late).unwrap();
    assert_eq!(late, text);
    drop(streams);
    drop(listener);
    world.pass(10);
    world.now = world.now + Duration::from_secs(61);
    world.pass(10);
    assert_eq!(world.server.counters().connections, 0);
    let free: Vec<_> = std::iter::from_fn(|| world.pool.take()).collect();
    assert_eq!(free.len(), BUFFERS);
}

/// The first of two connections reads once and then pauses, while its data occupies every buffer. Only rounds
/// are run, as by a program with its own loop, which nothing wakes.
#[test]
fn text_that_keeps_every_buffer_keeps_nobody_out() {
    let mut world = World::new();
    let listener = world.server.handle().listen(server(), 4).unwrap();
    let [(one, pauses), (two, reads)] = [(); 2].map(|()| world.connect(&listener));
    one.set_nodelay(true).unwrap();
    for lap in 0..3 {
        for _ in 0..BUFFERS / 2 {
            (&one).write_all(b"x").unwrap();
            world.client.turn(world.now).unwrap();
        }
        world.server.turn(world.now).unwrap();
        if lap == 0 {
            drain(&pauses).unwrap();
        }
    }
    assert!(world.pool.is_exhausted());

    let data = pattern(100_000);
    let (mut sent, mut got) = (0, Vec::new());
    for _ in 0..1_000 {
        sent += fill(&two, &data[sent..]);
        world.pass(1);
        got.extend(drain(&reads).unwrap().0);
    }
    assert!(got == data, "{} of {}", got.len(), data.len());
    assert_eq!(drain(&pauses).unwrap().0.len(), BUFFERS);
}

/// A closed connection with unread data keeps none of the device's buffers.
#[test]
fn what_is_left_of_a_closed_connection_is_our_own() {
    let mut world = World::new();
    let listener = world.server.handle().listen(server(), 4).unwrap();
    let mut stream = world.client.handle().connect_nonblocking(server()).unwrap();
    world.pass(10);
    let (mut accepted, _) = listener.accept().unwrap();
    stream.write_all(b"last words").unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    accepted.shutdown(std::net::Shutdown::Write).unwrap();
    world.pass(10);
    world.now = world.now + Duration::from_secs(61);
    world.pass(10);
    assert_eq!(world.server.counters().connections, 0);
    let free: Vec<_> = std::iter::from_fn(|| world.pool.take()).collect();
    assert_eq!(free.len(), BUFFERS);
    let mut words = String::new();
    accepted.read_to_string(&mut words).unwrap();
    assert_eq!(words, "last words");
}
