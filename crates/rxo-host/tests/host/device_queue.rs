//! A host with a slow device: the bytes in the device's queue, and the data that the host keeps back.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use rxo_device::{
    DeviceError, FrameSink, MemoryLink, MemorySink, MemorySource, SinkCapabilities, SinkCounters,
};
use rxo_frame::{Frame, Gather, Instant, Offload};
use rxo_host::{Host, TcpListener, TcpStream};

use crate::world::{MemoryHost, config, drain, fill, options, pattern, server};

/// A device with a queue and a wire of limited rate.
struct Wire {
    queue: VecDeque<Frame<Vec<u8>>>,
    /// The number of bytes of the first packet that are on the wire already.
    begun: usize,
    bytes_a_second: u64,
    most_queued: usize,
    tells: bool,
    is_blocked: bool,
}

impl Wire {
    fn queued(&self) -> usize {
        self.queue.iter().map(|frame| frame.bytes.len()).sum::<usize>() - self.begun
    }

    /// Sends what the wire can carry in `time`. Returns the packets that have left.
    fn pass(&mut self, time: Duration) -> Vec<Frame<Vec<u8>>> {
        let bytes = u128::from(self.bytes_a_second) * time.as_nanos() / 1_000_000_000;
        self.begun += usize::try_from(bytes).unwrap().min(self.queued());
        let mut left = Vec::new();
        while let Some(first) = self.queue.pop_front_if(|first| first.bytes.len() <= self.begun) {
            self.begun -= first.bytes.len();
            left.push(first);
        }
        left
    }
}

struct SlowSink {
    capabilities: SinkCapabilities,
    wire: Rc<RefCell<Wire>>,
}

impl FrameSink for SlowSink {
    fn capabilities(&self) -> SinkCapabilities {
        self.capabilities
    }

    fn transmit<'a, G: Gather<'a>>(
        &mut self,
        batch: impl ExactSizeIterator<Item = G>,
    ) -> Result<(), DeviceError> {
        let mut wire = self.wire.borrow_mut();
        for packet in batch {
            let mut bytes = Vec::new();
            packet.for_each_slice(|slice| bytes.extend_from_slice(slice));
            let Offload { checksum, gso, .. } = packet.offload();
            wire.queue.push_back(Frame { checksum, gso, ..Frame::new(bytes, Instant::ZERO) });
        }
        wire.most_queued = wire.most_queued.max(wire.queued());
        Ok(())
    }

    fn counters(&self) -> SinkCounters {
        SinkCounters::default()
    }

    fn is_blocked(&self) -> bool {
        self.wire.borrow().is_blocked
    }

    fn queued_bytes(&self) -> Option<u64> {
        let wire = self.wire.borrow();
        wire.tells.then(|| wire.queued() as u64)
    }
}

/// A client, and a server with a slow device.
struct Scene {
    client: MemoryHost,
    server: Host<MemorySource, SlowSink>,
    wire: Rc<RefCell<Wire>>,
    back: MemoryLink,
    now: Instant,
    listener: TcpListener,
    turns: u64,
}

const STEP: Duration = Duration::from_micros(100);

impl Scene {
    fn new(bytes_a_second: u64) -> Self {
        let (there, back) = (MemoryLink::new(options()), MemoryLink::new(options()));
        let wire = Wire {
            queue: VecDeque::new(),
            begun: 0,
            bytes_a_second,
            most_queued: 0,
            tells: true,
            is_blocked: false,
        };
        let wire = Rc::new(RefCell::new(wire));
        let there_sink: MemorySink = there.sink();
        let sink = SlowSink { capabilities: back.sink().capabilities(), wire: Rc::clone(&wire) };
        let client = Host::new(back.source(), there_sink, config("10.0.0.1/24")).unwrap();
        let server_host = Host::new(there.source(), sink, config("10.0.0.2/24")).unwrap();
        let listener = server_host.handle().listen(server(), 16).unwrap();
        listener.set_nonblocking(true).unwrap();
        let now = Instant::from_micros(1_000_000);
        Self { client, server: server_host, wire, back, now, listener, turns: 0 }
    }

    /// Advances the time by `STEP`; both hosts run rounds whenever they are due.
    fn step(&mut self) {
        let end = self.now + STEP;
        loop {
            while !self.client.turn(self.now).unwrap().is_idle() {}
            while !self.server.turn(self.now).unwrap().is_idle() {
                self.turns += 1;
            }
            self.turns += 1;
            let due = [self.client.poll_at(), self.server.poll_at()].into_iter().flatten().min();
            let next = due.map_or(end, |due| due.clamp(self.now.plus_nanos(1), end));
            for frame in self.wire.borrow_mut().pass(next.since(self.now)) {
                self.back.push(&frame);
            }
            self.now = next;
            if next == end {
                return;
            }
        }
    }

    fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.step();
        }
    }

    /// Opens a connection. Returns the ends of the client and of the server.
    fn connected(&mut self) -> (TcpStream, TcpStream) {
        let stream = self.client.handle().connect_nonblocking(server()).unwrap();
        stream.set_nonblocking(true).unwrap();
        let accepted = (0..10_000).find_map(|_| {
            self.step();
            self.listener.accept().ok()
        });
        let (accepted, _) = accepted.unwrap();
        accepted.set_nonblocking(true).unwrap();
        // Without the Nagle algorithm, no data waits for a delayed ACK.
        [&stream, &accepted].into_iter().for_each(|end| end.set_nodelay(true).unwrap());
        (stream, accepted)
    }
}

/// Downloads: the ends of the client and of the server, and the bytes received on each.
struct Downloads {
    ends: Vec<(TcpStream, TcpStream)>,
    came: Vec<usize>,
    data: Vec<u8>,
}

impl Downloads {
    fn begin(scene: &mut Scene, count: usize) -> Self {
        let ends = (0..count).map(|_| scene.connected()).collect();
        Self { ends, came: vec![0; count], data: pattern(1 << 20) }
    }

    fn run(&mut self, scene: &mut Scene, time: Duration) {
        let end = scene.now + time;
        while scene.now < end {
            for ((stream, accepted), came) in self.ends.iter().zip(&mut self.came) {
                while fill(accepted, &self.data) > 0 {}
                *came += drain(stream).unwrap().0.len();
            }
            scene.step();
        }
    }
}

const SLOW: u64 = 12_500_000;

/// At 12.5 MB/s two milliseconds are 25 kB, which one frame may exceed.
#[test]
fn a_slow_device_has_a_short_queue_and_is_always_busy() {
    let mut scene = Scene::new(SLOW);
    let mut downloads = Downloads::begin(&mut scene, 8);
    downloads.run(&mut scene, Duration::from_millis(500));
    scene.wire.borrow_mut().most_queued = 0;
    downloads.came.fill(0);
    let turns_before = scene.turns;
    downloads.run(&mut scene, Duration::from_secs(1));
    let most_queued = scene.wire.borrow().most_queued;
    assert!(most_queued < 60_000, "{most_queued} bytes wait");
    let came: usize = downloads.came.iter().sum();
    assert!(came > SLOW as usize * 94 / 100, "{came} bytes came");
    let (least, most) =
        (downloads.came.iter().min().unwrap(), downloads.came.iter().max().unwrap());
    assert!(most - least <= 3 * (64 << 10), "{:?}", downloads.came);
    assert!(scene.turns - turns_before < 60_000, "{} turns", scene.turns - turns_before);
    assert_eq!(scene.server.counters().tcp.stalls, 0);
}

#[test]
fn a_short_answer_passes_downloads() {
    let mut scene = Scene::new(SLOW);
    let mut downloads = Downloads::begin(&mut scene, 8);
    let (stream, accepted) = scene.connected();
    downloads.run(&mut scene, Duration::from_millis(500));
    for _ in 0..20 {
        assert_eq!(fill(&accepted, &[7; 1_000]), 1_000);
        let since = scene.now;
        while drain(&stream).unwrap().0.is_empty() {
            downloads.run(&mut scene, STEP);
        }
        let took = scene.now.since(since);
        assert!(took < Duration::from_millis(10), "{took:?}");
        downloads.run(&mut scene, Duration::from_millis(7));
    }
}

/// Segments without data leave at once, so an upload is acknowledged during downloads.
#[test]
fn acknowledgements_do_not_wait() {
    let mut scene = Scene::new(SLOW);
    let mut downloads = Downloads::begin(&mut scene, 8);
    let (stream, accepted) = scene.connected();
    downloads.run(&mut scene, Duration::from_millis(500));
    for _ in 0..20 {
        fill(&stream, &[7; 4_000]);
        scene.client.turn(scene.now).unwrap();
        scene.server.turn(scene.now).unwrap();
        assert_eq!(drain(&accepted).unwrap().0.len(), 4_000, "the application has it at once");
        let last = scene.wire.borrow().queue.back().map(|frame| frame.bytes.len());
        assert!(last.is_some_and(|bytes| bytes < 60), "and it is acknowledged");
        downloads.run(&mut scene, Duration::from_millis(5));
    }
}

#[test]
fn a_device_that_cannot_know_gets_all() {
    let mut scene = Scene::new(SLOW);
    scene.wire.borrow_mut().tells = false;
    let mut downloads = Downloads::begin(&mut scene, 8);
    downloads.run(&mut scene, Duration::from_millis(500));
    assert!(scene.wire.borrow().most_queued > 400_000);
    assert_eq!(scene.server.counters().waiting_for_device, 0);
}

/// A device that is stuck is given data ten times a second, and continues to send when it can.
#[test]
fn a_device_that_stands_still_does_not_stop_the_host() {
    let mut scene = Scene::new(SLOW);
    let mut downloads = Downloads::begin(&mut scene, 4);
    downloads.run(&mut scene, Duration::from_millis(300));
    scene.wire.borrow_mut().bytes_a_second = 0;
    let turns_before = scene.turns;
    downloads.run(&mut scene, Duration::from_secs(1));
    let counters = scene.server.counters();
    assert!((1..=10).contains(&counters.tcp.stalls), "{}", counters.tcp.stalls);
    assert!(scene.turns - turns_before < 40_000, "{} turns", scene.turns - turns_before);
    scene.wire.borrow_mut().bytes_a_second = SLOW;
    scene.run(Duration::from_secs(1));
    downloads.came.fill(0);
    downloads.run(&mut scene, Duration::from_secs(2));
    assert!(downloads.came.iter().all(|came| *came > SLOW as usize / 8), "{:?}", downloads.came);
}

#[test]
fn a_blocked_device_is_given_nothing_until_it_is_stuck() {
    let mut scene = Scene::new(SLOW);
    scene.wire.borrow_mut().tells = false;
    let (_stream, accepted) = scene.connected();
    scene.wire.borrow_mut().is_blocked = true;
    assert_eq!(fill(&accepted, &[7; 1_000]), 1_000);
    scene.run(Duration::from_millis(50));
    assert!(scene.wire.borrow().queue.is_empty());
    assert_eq!(scene.server.counters().waiting_for_device, 1);
    scene.run(Duration::from_millis(100));
    assert_eq!(scene.server.counters().tcp.stalls, 1);
    assert_eq!(scene.server.counters().waiting_for_device, 0);
    assert!(scene.turns < 100_000);
}

/// Stopping a host does not wait for its device.
#[test]
fn resets_leave_at_the_end_beside_a_full_queue() {
    let mut scene = Scene::new(SLOW);
    let mut downloads = Downloads::begin(&mut scene, 8);
    downloads.run(&mut scene, Duration::from_millis(300));
    let before = scene.wire.borrow().queue.len();
    scene.server.close(scene.now).unwrap();
    assert!(scene.wire.borrow().queue.len() >= before + 8);
}
