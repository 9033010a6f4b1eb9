//! A ring with a slot per frame: the first windows of connections depend on how many bytes a slot has held
//! recently.

use std::time::Duration;

use rxo_device::{
    DeviceError, FrameSource, MemoryLink, MemoryOptions, MemorySink, MemorySource,
    SourceCapabilities, SourceCounters,
};
use rxo_frame::{Frame, Instant};
use rxo_host::{Host, TcpListener};

use crate::world::{MemoryHost, config, drain, fill, options, pattern, server};

/// A source that behaves like a ring with 1,024 slots.
struct Ring(MemorySource);

impl FrameSource for Ring {
    type Buffer = Vec<u8>;

    fn capabilities(&self) -> SourceCapabilities {
        self.0.capabilities()
    }

    fn receive(
        &mut self,
        batch: &mut Vec<Frame<Vec<u8>>>,
        budget: usize,
    ) -> Result<usize, DeviceError> {
        self.0.receive(batch, budget)
    }

    fn counters(&mut self) -> SourceCounters {
        self.0.counters()
    }

    fn queue_frames(&self) -> Option<usize> {
        Some(1_024)
    }
}

struct World {
    client: MemoryHost,
    server: Host<Ring, MemorySink>,
    now: Instant,
}

impl World {
    /// Creates hosts on links that take GSO frames of `gso_bytes`.
    fn new(gso_bytes: u32) -> Self {
        let options = MemoryOptions { gso_bytes, ..options() };
        let (there, back) = (MemoryLink::new(options), MemoryLink::new(options));
        let client = Host::new(back.source(), there.sink(), config("10.0.0.1/24")).unwrap();
        let ring = Ring(there.source());
        let server = Host::new(ring, back.sink(), config("10.0.0.2/24")).unwrap();
        Self { client, server, now: Instant::from_micros(1_000_000) }
    }

    fn pass(&mut self, turns: usize) {
        for _ in 0..turns {
            self.client.turn(self.now).unwrap();
            self.server.turn(self.now).unwrap();
            self.now = self.now + Duration::from_micros(20);
        }
    }

    /// Opens a connection and sends `bytes`. Returns the number of bytes that arrive before any are read, and
    /// then reads all.
    fn send(&mut self, listener: &TcpListener, bytes: usize) -> usize {
        let client = self.client.handle().connect_nonblocking(server()).unwrap();
        client.set_nonblocking(true).unwrap();
        self.pass(20);
        let (accepted, _) = listener.accept().unwrap();
        accepted.set_nonblocking(true).unwrap();
        let data = pattern(bytes);
        let mut sent = fill(&client, &data);
        self.pass(100);
        let first = drain(&accepted).unwrap().0.len();
        let mut read = first;
        while read < bytes {
            sent += fill(&client, &data[sent..]);
            self.pass(10);
            read += drain(&accepted).unwrap().0.len();
        }
        first
    }
}

#[test]
fn where_gso_frames_come_the_next_windows_are_larger() {
    let windows = |gso_bytes| {
        let mut world = World::new(gso_bytes);
        let listener = world.server.handle().listen(server(), 4).unwrap();
        listener.set_nonblocking(true).unwrap();
        [2_000_000, 100_000].map(|bytes| world.send(&listener, bytes))
    };
    let [first, next] = windows(0);
    assert!(
        first <= 16 << 10 && next <= 16 << 10,
        "a 64th of a ring of full frames: {first}, {next}"
    );
    let [first, next] = windows(65_535);
    assert!(first <= 16 << 10, "nothing has come yet: {first}");
    assert!(next > 60_000, "what a connection asks for: {next}");
}
