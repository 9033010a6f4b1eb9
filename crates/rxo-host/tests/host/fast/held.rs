//! ACKs that arrive on the fast path while an application has the lock of their connection wait in its ring; on the
//! ordinary way they wait in its backlog. Both do the same.

use std::time::Duration;

use rxo_device::{MemoryLink, MemoryOptions};
use rxo_frame::{ChecksumStatus, Frame};
use rxo_host::{FallbackReason, FastCounters, FastModules, TcpStream};
use rxo_tcp::{AckPolicy, Statistics};

use crate::world::{World, drain, fill, options, pattern};

/// What arrives while the lock is held.
#[derive(Clone, Copy)]
struct Course {
    /// Segments that are acknowledged meanwhile, two by one ACK.
    segments: usize,
    sack: bool,
    /// Whether the first of them is lost, so that the ACKs of the others repeat one number.
    is_one_lost: bool,
}

struct Outcome {
    /// Once the lock is free.
    seen: Statistics,
    /// What left then, and until all had arrived.
    sent: Vec<Vec<u8>>,
    fast: FastCounters,
}

impl Course {
    fn run(self, modules: FastModules) -> Outcome {
        let mut scene = Scene::new(self, modules);
        scene.send(self);
        scene.arrive_while_held();
        let seen = scene.stream.statistics();
        let sent = scene.finish();
        Outcome { seen, sent, fast: scene.world.client.counters().fast }
    }

    /// On the fast path, and on the ordinary way.
    fn both(self) -> [Outcome; 2] {
        [self.run(FastModules::ON), self.run(FastModules::OFF)]
    }
}

/// A sender that has text to read, so that it can hold the lock, and a window for many segments.
struct Scene {
    world: World,
    stream: TcpStream,
    accepted: TcpStream,
    data: Vec<u8>,
    written: usize,
    read: usize,
    acks: Vec<Vec<u8>>,
}

impl Scene {
    fn new(course: Course, modules: FastModules) -> Self {
        let mut world = World::with(MemoryOptions { gso_bytes: 0, ..options() }, |config| {
            config.tcp.acks = AckPolicy::EverySecondSegment;
            config.tcp.sack = course.sack;
            config.fast_path.modules = modules;
        });
        let listener = world.listen(1);
        let (stream, accepted) = world.connected(&listener);
        assert_eq!(fill(&accepted, b"to be looked at"), 15);
        let (data, acks) = (pattern(400_000), Vec::new());
        let mut scene = Self { world, stream, accepted, data, written: 0, read: 0, acks };
        while scene.read < WARM_BYTES {
            scene.write(WARM_BYTES);
            scene.turn();
        }
        (0..3).for_each(|_| scene.turn());
        scene
    }

    /// Writes what there is room for, up to the position `end`.
    fn write(&mut self, end: usize) {
        self.written += fill(&self.stream, &self.data[self.written..end]);
    }

    fn turn(&mut self) {
        self.world.client.turn(self.world.now).unwrap();
        self.receive();
    }

    /// What has left the sender arrives, and is read.
    fn receive(&mut self) {
        self.world.server.turn(self.world.now).unwrap();
        let read = drain(&self.accepted).unwrap().0;
        assert!(self.data[self.read..].starts_with(&read), "text in order");
        self.read += read.len();
        self.world.now = self.world.now + Duration::from_micros(100);
    }

    /// Sends the segments of `course`, and keeps the ACKs of them.
    fn send(&mut self, course: Course) {
        let _earlier = self.world.back.take_all();
        let mss = self.stream.statistics().mss as usize;
        self.write(self.written + course.segments * mss);
        self.world.client.turn(self.world.now).unwrap();
        let mut sent = taken(&self.world.there);
        assert_eq!(sent.len(), course.segments, "they leave at once");
        if course.is_one_lost {
            sent.remove(0);
        }
        for segment in sent {
            // One by one, as a receiver does that is not busy.
            push(&self.world, &self.world.there, &segment);
            self.receive();
        }
        self.acks = taken(&self.world.back);
    }

    /// The ACKs arrive, in several batches, while the application has the lock.
    fn arrive_while_held(&mut self) {
        let Self { world, stream, acks, .. } = self;
        let shown = stream.read_in_place(|_| {
            for batch in acks.chunks(3) {
                batch.iter().for_each(|ack| push(world, &world.back, ack));
                world.client.turn(world.now).unwrap();
                world.now = world.now + Duration::from_micros(10);
            }
            0
        });
        assert_eq!(shown.unwrap(), 0);
    }

    /// Sends all that is left. Returns what leaves from now on.
    fn finish(&mut self) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        for _ in 0..10_000 {
            self.write(self.data.len());
            self.world.client.turn(self.world.now).unwrap();
            let sent = taken(&self.world.there);
            sent.iter().for_each(|segment| push(&self.world, &self.world.there, segment));
            all.extend(sent);
            self.receive();
            if self.read == self.data.len() {
                return all;
            }
        }
        panic!("{} of {} bytes have arrived", self.read, self.data.len());
    }
}

fn taken(link: &MemoryLink) -> Vec<Vec<u8>> {
    link.take_all().into_iter().map(|sent| sent.bytes).collect()
}

fn push(world: &World, link: &MemoryLink, bytes: &[u8]) {
    link.push(&Frame { checksum: ChecksumStatus::Verified, ..Frame::new(bytes, world.now) });
}

/// Nothing is overwritten: everything is the same, the congestion window too.
#[test]
fn what_fits_into_the_ring_changes_nothing() {
    let [fast, slow] = Course { segments: 12, sack: true, is_one_lost: false }.both();
    assert_eq!(fast.seen, slow.seen);
    assert!(fast.sent == slow.sent, "every packet");
    let FastCounters { ring_pushed, ring_overwritten, ring_most, .. } = fast.fast;
    assert_eq!((ring_pushed, ring_overwritten, ring_most), (6, 0, 6));
    assert_eq!(slow.fast.ring_pushed, 0);
}

/// The same bytes are acknowledged, the window and the retransmissions are the same; the congestion window is not
/// larger (docs/host.md).
#[test]
fn what_is_overwritten_is_like_an_ack_that_was_lost() {
    let [fast, slow] = Course { segments: 36, sack: true, is_one_lost: false }.both();
    let of = |it: &Statistics| (it.snd_una, it.snd_nxt, it.snd_wnd, it.recovery.resent_segments);
    assert_eq!(of(&fast.seen), of(&slow.seen));
    assert!(fast.seen.cwnd <= slow.seen.cwnd, "{} and {}", fast.seen.cwnd, slow.seen.cwnd);
    let FastCounters { ring_pushed, ring_overwritten, ring_refused, .. } = fast.fast;
    assert_eq!((ring_pushed, ring_overwritten, ring_refused), (18, 10, 0));
}

/// Without SACK each of them counts: what does not fit waits in the backlog, behind the ring.
#[test]
fn duplicates_are_never_overwritten() {
    let [fast, slow] = Course { segments: 16, sack: false, is_one_lost: true }.both();
    assert_eq!(fast.seen, slow.seen);
    assert!(fast.sent == slow.sent, "every packet, what is sent again too");
    let FastCounters { ring_pushed, ring_overwritten, ring_refused, .. } = fast.fast;
    // The first that does not fit; the six behind it, in two batches, do not overtake it.
    assert_eq!((ring_pushed, ring_overwritten, ring_refused), (8, 0, 1));
    let behind = [FallbackReason::Backlog, FallbackReason::Order].map(|it| fast.fast.fallback(it));
    assert_eq!(behind, [2, 4]);
}

/// After so much the window is large enough for what follows.
const WARM_BYTES: usize = 200_000;
