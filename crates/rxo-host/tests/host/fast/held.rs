//! ACKs that arrive on the fast path while an application has the lock of their connection wait in its ring; on the
//! ordinary way they wait in its backlog. Both do the same.

use std::time::Duration;

use proptest::prelude::*;
use rxo_device::{MemoryLink, MemoryOptions};
use rxo_frame::{ChecksumStatus, Frame};
use rxo_host::{FallbackReason, FastCounters, FastModules, TcpStream};
use rxo_tcp::{AckPolicy, Algorithm, Statistics};

use crate::world::{World, drain, fill, options, pattern};

/// What arrives while the lock is held.
#[derive(Clone, Copy, Debug)]
struct Course {
    /// Bytes that arrive before, which decide how large the congestion window is.
    warm: usize,
    /// Segments that are acknowledged meanwhile, two by one ACK. `None` for as many as the congestion window lets leave,
    /// which lets it grow.
    segments: Option<usize>,
    sack: bool,
    /// Which of them is lost, so that the ACKs of those behind it repeat one number.
    lost: Option<usize>,
    /// How many ACKs arrive at once.
    batch: usize,
    /// How many of them arrive before, when the lock is free and the delay is still as it was.
    prompt: usize,
    /// How much later than those before the others arrive.
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
    /// Once the lock is free.
    seen: Statistics,
    /// What left then, and until all had arrived.
    sent: Vec<Vec<u8>>,
    /// Segments that the ACKs were of.
    flight: usize,
    /// Segments that were sent again, to the end.
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
    /// Segments that the ACKs are of.
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
        self.write(course.segments.map_or(self.data.len(), |it| self.written + it * mss));
        self.world.client.turn(self.world.now).unwrap();
        let mut sent = taken(&self.world.there);
        self.flight = sent.len();
        assert!(course.segments.is_none_or(|it| it == self.flight), "they leave at once");
        if let Some(lost) = course.lost.filter(|lost| *lost < sent.len()) {
            sent.remove(lost);
        }
        for segment in sent {
            // One by one, as a receiver does that is not busy.
            push(&self.world, &self.world.there, &segment);
            self.receive();
        }
        self.acks = taken(&self.world.back);
    }

    /// The ACKs arrive, in several batches, while the application has the lock.
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
    let [fast, slow] = PLAIN.both();
    assert_eq!(fast.seen, slow.seen);
    assert!(fast.sent == slow.sent, "every packet");
    let FastCounters { ring_pushed, ring_overwritten, ring_most, .. } = fast.fast;
    assert_eq!((ring_pushed, ring_overwritten, ring_most), (6, 0, 6));
    assert_eq!(slow.fast.ring_pushed, 0);
}

/// The same bytes are acknowledged, the window and the retransmissions are the same; the congestion window is within its
/// bound (docs/host.md).
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

/// The congestion windows of both ways for one flight after the other, beginning with small ones.
fn windows(delay: Duration) -> Vec<[u32; 2]> {
    let warm = (20_000..WARM_BYTES).step_by(10_000);
    warm.map(|warm| {
        let both = Course { segments: None, warm, prompt: 1, delay, ..PLAIN }.both();
        is_like_loss_of_acks(&both).unwrap();
        both.map(|it| it.seen.cwnd)
    })
    .collect()
}

/// A large acknowledgement counts for less than several small ones in slow start.
#[test]
fn what_is_overwritten_may_let_the_window_grow_less() {
    let windows = windows(Duration::ZERO);
    assert!(windows.iter().any(|[fast, slow]| fast < slow), "{windows:?}");
}

/// HyStart++ needs eight samples to see that the delay has risen, and then lets the window grow more slowly. So the window
/// may be larger where samples are missing.
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
            // A smaller window may not let so many leave.
            let warm = if segments.is_some() { WARM_BYTES } else { warm };
            let delay = Duration::from_micros(micros);
            Course { warm, segments, sack, lost, batch, prompt, delay, algorithm }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    /// Where nothing was overwritten all is the same; otherwise it is as if the network had lost these ACKs. All text
    /// arrives (`finish`).
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

/// Without SACK each of them counts: what does not fit waits in the backlog, behind the ring.
#[test]
fn duplicates_are_never_overwritten() {
    let [fast, slow] = Course { segments: Some(16), sack: false, lost: Some(0), ..PLAIN }.both();
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
