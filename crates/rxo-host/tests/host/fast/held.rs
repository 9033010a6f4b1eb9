//! ACKs that arrive while an application holds the lock of their connection: on the fast path they wait in
//! its ring, on the slow path in its backlog. Both have the same effect.

use std::time::Duration;

use proptest::prelude::*;
use rxo_device::{MemoryLink, MemoryOptions};
use rxo_frame::{ChecksumStatus, Frame};
use rxo_host::{FallbackReason, FastCounters, FastModules, TcpStream};
use rxo_tcp::{AckPolicy, Algorithm, Statistics};

use crate::world::{World, drain, fill, options, pattern};

/// The events while the lock is held.
#[derive(Clone, Copy, Debug)]
struct Course {
    /// Number of bytes that were transferred before, which determines the congestion window.
    warm: usize,
    /// Number of segments that are acknowledged while the lock is held, two per ACK. `None` for as many as
    /// the congestion window allows, which lets the window grow.
    segments: Option<usize>,
    sack: bool,
    /// The segment that is lost, so that the ACKs of later segments are duplicates.
    lost: Option<usize>,
    /// Number of ACKs per batch.
    batch: usize,
    /// Number of ACKs that arrive before the lock is taken, with the delay of earlier ACKs.
    prompt: usize,
    /// The additional delay of the other ACKs.
    delay: Duration,
    algorithm: Algorithm,
}

const PLAIN: Course = Course {
    warm: WARM_BYTES,
    segments: Some(12),
    sack: true,
    lost: None,
    batch: 3,
    prompt: 0,
    delay: Duration::ZERO,
    algorithm: Algorithm::Cubic,
};

struct Outcome {
    /// The statistics once the lock is free.
    seen: Statistics,
    /// The packets that left from the release of the lock until all data had arrived.
    sent: Vec<Vec<u8>>,
    /// Number of segments that the ACKs acknowledge.
    flight: usize,
    /// Number of segments that were retransmitted until the end.
    resent: u32,
    fast: FastCounters,
}

impl Course {
    fn run(self, modules: FastModules) -> Outcome {
        let mut scene = Scene::new(self, modules);
        scene.send(self);
        scene.arrive_while_held(self);
        let seen = scene.stream.statistics();
        let sent = scene.finish();
        let resent = scene.stream.statistics().recovery.resent_segments;
        let flight = scene.flight;
        Outcome { seen, sent, flight, resent, fast: scene.world.client.counters().fast }
    }

    /// The outcome on the fast path and on the slow path.
    fn both(self) -> [Outcome; 2] {
        [self.run(FastModules::PURE_ACK), self.run(FastModules::OFF)]
    }
}

/// A sender with unread data, so that a reader can hold the lock, and with a window for many segments.
struct Scene {
    world: World,
    stream: TcpStream,
    accepted: TcpStream,
    data: Vec<u8>,
    written: usize,
    read: usize,
    acks: Vec<Vec<u8>>,
    /// Number of segments that the ACKs acknowledge.
    flight: usize,
}

impl Scene {
    fn new(course: Course, modules: FastModules) -> Self {
        let mut world = World::with(MemoryOptions { gso_bytes: 0, ..options() }, |config| {
            config.tcp.acks = AckPolicy::EverySecondSegment;
            config.tcp.sack = course.sack;
            config.tcp.congestion = course.algorithm;
            config.fast_path.modules = modules;
        });
        let listener = world.listen(1);
        let (stream, accepted) = world.connected(&listener);
        assert_eq!(fill(&accepted, b"to be looked at"), 15);
        let (data, acks) = (pattern(400_000), Vec::new());
        let mut scene =
            Self { world, stream, accepted, data, written: 0, read: 0, acks, flight: 0 };
        while scene.read < course.warm {
            scene.write(course.warm);
            scene.turn();
        }
        (0..3).for_each(|_| scene.turn());
        scene
    }

    /// Writes as much as fits, up to the position `end`.
    fn write(&mut self, end: usize) {
        self.written += fill(&self.stream, &self.data[self.written..end]);
    }

    fn turn(&mut self) {
        self.world.client.turn(self.world.now).unwrap();
        self.receive();
    }

    /// Delivers the sender's packets to the receiver, and reads the data.
    fn receive(&mut self) {
        self.world.server.turn(self.world.now).unwrap();
        let read = drain(&self.accepted).unwrap().0;
        assert!(self.data[self.read..].starts_with(&read), "text in order");
        self.read += read.len();
        self.world.now = self.world.now + Duration::from_micros(100);
    }

    /// Sends the segments of `course`, and keeps their ACKs.
    fn send(&mut self, course: Course) {
        let _earlier = self.world.back.take_all();
        let mss = self.stream.statistics().mss as usize;
        self.write(course.segments.map_or(self.data.len(), |it| self.written + it * mss));
        self.world.client.turn(self.world.now).unwrap();
        let mut sent = taken(&self.world.there);
        self.flight = sent.len();
        assert!(course.segments.is_none_or(|it| it == self.flight), "they leave at once");
        if let Some(lost) = course.lost.filter(|lost| *lost < sent.len()) {
            sent.remove(lost);
        }
        for segment in sent {
            // One by one, as an idle receiver processes them.
            push(&self.world, &self.world.there, &segment);
            self.receive();
        }
        self.acks = taken(&self.world.back);
    }

    /// Delivers the ACKs in several batches, while the application holds the lock.
    fn arrive_while_held(&mut self, course: Course) {
        let Self { world, stream, acks, .. } = self;
        for ack in acks.drain(..course.prompt.min(acks.len())) {
            push(world, &world.back, &ack);
            world.client.turn(world.now).unwrap();
        }
        world.now = world.now + course.delay;
        let shown = stream.read_in_place(|_| {
            for batch in acks.chunks(course.batch) {
                batch.iter().for_each(|ack| push(world, &world.back, ack));
                world.client.turn(world.now).unwrap();
                world.now = world.now + Duration::from_micros(10);
            }
            0
        });
        assert_eq!(shown.unwrap(), 0);
    }

    /// Sends all remaining data. Returns the packets that leave from now on.
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

/// If nothing is overwritten, everything is equal, including the congestion window.
#[test]
fn what_fits_into_the_ring_changes_nothing() {
    let [fast, slow] = PLAIN.both();
    assert_eq!(fast.seen, slow.seen);
    assert!(fast.sent == slow.sent, "every packet");
    let FastCounters { ring_pushed, ring_overwritten, ring_most, .. } = fast.fast;
    assert_eq!((ring_pushed, ring_overwritten, ring_most), (6, 0, 6));
    assert_eq!(slow.fast.ring_pushed, 0);
}

/// Acknowledged bytes, send window and retransmissions are equal; the congestion window is within its bound
/// (docs/fast-path.md).
fn is_like_loss_of_acks([fast, slow]: &[Outcome; 2]) -> Result<(), TestCaseError> {
    let of = |it: &Statistics| {
        let resent = (it.recovery.resent_segments, it.recovery.phase, it.recovery.lost);
        (it.snd_una, it.snd_nxt, it.snd_wnd, it.bytes_acked, resent)
    };
    prop_assert_eq!(of(&fast.seen), of(&slow.seen));
    let differ = fast.seen.cwnd.abs_diff(slow.seen.cwnd);
    prop_assert!(
        differ <= fast.flight as u32 * fast.seen.mss,
        "{} and {}",
        fast.seen.cwnd,
        slow.seen.cwnd
    );
    Ok(())
}

#[test]
fn what_is_overwritten_is_like_an_ack_that_was_lost() {
    let both = Course { segments: Some(36), ..PLAIN }.both();
    is_like_loss_of_acks(&both).unwrap();
    let FastCounters { ring_pushed, ring_overwritten, ring_refused, .. } = both[0].fast;
    assert_eq!((ring_pushed, ring_overwritten, ring_refused), (18, 10, 0));
}

/// Returns the congestion windows on both paths for a series of flights, beginning with small ones.
fn windows(delay: Duration) -> Vec<[u32; 2]> {
    let warm = (20_000..WARM_BYTES).step_by(10_000);
    warm.map(|warm| {
        let both = Course { segments: None, warm, prompt: 1, delay, ..PLAIN }.both();
        is_like_loss_of_acks(&both).unwrap();
        both.map(|it| it.seen.cwnd)
    })
    .collect()
}

/// In slow start one large ACK counts for less than several small ones.
#[test]
fn what_is_overwritten_may_let_the_window_grow_less() {
    let windows = windows(Duration::ZERO);
    assert!(windows.iter().any(|[fast, slow]| fast < slow), "{windows:?}");
}

/// HyStart++ needs eight samples to detect that the delay has risen, and then slows the growth of the window.
/// So the window may be larger if samples are missing.
#[test]
fn what_is_overwritten_may_hide_that_the_delay_has_risen() {
    let windows = windows(Duration::from_millis(8));
    assert!(windows.iter().any(|[fast, slow]| fast > slow), "{windows:?}");
}

fn courses() -> impl Strategy<Value = Course> {
    let algorithm = prop::sample::select(&[Algorithm::Cubic, Algorithm::Reno]);
    let lost = prop_oneof![2 => Just(None), 1 => (0_usize..40).prop_map(Some)];
    let segments = prop_oneof![Just(None), (2_usize..37).prop_map(Some)];
    let rest = (any::<bool>(), lost, 1_usize..25, 0_usize..3, 0_u64..40_000, algorithm);
    (20_000..WARM_BYTES, segments, rest).prop_map(
        |(warm, segments, (sack, lost, batch, prompt, micros, algorithm))| {
            // A smaller window may not allow that many segments.
            let warm = if segments.is_some() { WARM_BYTES } else { warm };
            let delay = Duration::from_micros(micros);
            Course { warm, segments, sack, lost, batch, prompt, delay, algorithm }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    /// If nothing was overwritten, everything is equal; otherwise the effect is as if the network had lost
    /// these ACKs. All data arrives (`finish`).
    #[test]
    fn whatever_waits_in_the_ring_is_like_the_ordinary_way_or_a_lost_ack(course in courses()) {
        let both = course.both();
        is_like_loss_of_acks(&both)?;
        let [fast, slow] = both;
        if fast.fast.ring_overwritten == 0 {
            prop_assert_eq!(fast.seen, slow.seen);
            prop_assert!(fast.sent == slow.sent, "every packet");
        }
        prop_assert_eq!(fast.resent, slow.resent, "to the end");
    }
}

/// Without SACK each duplicate counts: an ACK that does not fit goes to the backlog, after the ACKs in the
/// ring.
#[test]
fn duplicates_are_never_overwritten() {
    let [fast, slow] = Course { segments: Some(16), sack: false, lost: Some(0), ..PLAIN }.both();
    assert_eq!(fast.seen, slow.seen);
    assert!(fast.sent == slow.sent, "every packet, what is sent again too");
    let FastCounters { ring_pushed, ring_overwritten, ring_refused, .. } = fast.fast;
    // The first ACK that does not fit; the six after it, in two batches, do not overtake it.
    assert_eq!((ring_pushed, ring_overwritten, ring_refused), (8, 0, 1));
    let behind = [FallbackReason::Backlog, FallbackReason::Order].map(|it| fast.fast.fallback(it));
    assert_eq!(behind, [2, 4]);
}

/// The number of bytes after which the window is large enough for the tests.
const WARM_BYTES: usize = 200_000;
