//! Tests of adaptive hold between two devices: the worker reads the load of the host from the host's sink.

use std::time::Duration;

use rxo::coalesce::Hold;
use rxo::device::{MemorySink, Pause, Sent, SinkCapabilities, SinkCounters};
use rxo::{DeviceError, Duplex, Frame, FrameSink, Gather, Instant, Load, Policy, WorkerConfig};
use rxo_testkit::seg;

use crate::pausing::bulk;
use crate::world::{Ended, Event, TURN, World};

/// A sink that reports a load.
struct Loaded<L> {
    inner: MemorySink,
    load: L,
}

impl<L: Fn() -> Option<Load>> FrameSink for Loaded<L> {
    fn capabilities(&self) -> SinkCapabilities {
        self.inner.capabilities()
    }

    fn transmit<'a, G: Gather<'a>>(
        &mut self,
        batch: impl ExactSizeIterator<Item = G>,
    ) -> Result<(), DeviceError> {
        self.inner.transmit(batch)
    }

    fn counters(&self) -> SinkCounters {
        self.inner.counters()
    }

    fn load(&self) -> Option<Load> {
        (self.load)()
    }
}

const BUSY: Option<Load> = Some(Load { unread: 5 });
const IDLE: Option<Load> = Some(Load { unread: 0 });

fn micros(us: u64) -> Duration {
    Duration::from_micros(us)
}

/// Runs 400 frames, each `apart` after the previous one, under `policy` to a host with this load. The worker
/// does not pause, so that polls are small.
fn run(
    policy: Policy,
    load: Option<Load>,
    apart: Duration,
    frame: impl Fn(u32, Instant) -> Frame<Vec<u8>>,
) -> Ended {
    let world = World::new();
    world.arrive(Instant::ZERO, apart, 400, frame);
    run_in(&world, policy, || load)
}

fn run_in(world: &World, policy: Policy, load: impl Fn() -> Option<Load>) -> Ended {
    let host = Duplex {
        source: world.from_host.source(),
        sink: Loaded { inner: world.to_host.sink(), load },
    };
    let pause = Pause { time: Duration::ZERO, ..Pause::default() };
    world.run_into(host, WorkerConfig { pause, ..WorkerConfig::new(policy) })
}

fn auto() -> Policy {
    Policy { hold: Hold::AUTO, ..Policy::inet_lro() }
}

fn request(index: u32, at: Instant) -> Frame<Vec<u8>> {
    seg().seq(100 + index).len(1).psh().frame_at(at)
}

#[test]
fn towards_an_idle_or_silent_host_nothing_is_held() {
    for load in [IDLE, None] {
        for apart in [micros(1), micros(7), micros(35)] {
            let held = run(auto(), load, apart, bulk).to_host;
            assert_eq!(held, run(Policy::inet_lro(), load, apart, bulk).to_host, "{load:?}");
        }
    }
}

#[test]
fn towards_a_busy_host_aggregates_grow_beyond_a_poll() {
    let ended = run(auto(), BUSY, micros(1), bulk);
    let without = run(Policy::inet_lro(), BUSY, micros(1), bulk);
    assert_eq!(ended.totals.host_out.frames, 400);
    let (some, more) = (ended.to_host.len(), without.to_host.len());
    assert!(some * 3 < more * 2, "{some} deliveries, {more} without");
    let bytes = |sent: &[Sent]| sent.iter().map(|sent| sent.bytes.len() - 54).sum::<usize>();
    assert_eq!(bytes(&ended.to_host), bytes(&without.to_host), "no payload is lost");
    // The first frame of a delivery is the one held longest.
    let mut first = 0;
    for sent in &ended.to_host {
        let held = sent.sent_at.since(Instant::from_micros(first));
        assert!(held <= micros(50) + 2 * TURN, "frame {first} was held for {held:?}");
        first += sent.frames as u64;
    }
}

/// Held frames are delivered after their time budget when traffic stops, or earlier if the worker wakes and
/// the host is idle.
#[test]
fn a_host_that_becomes_idle_is_given_what_is_held() {
    let last_leaves = |idle_from: Instant| {
        let world = World::new();
        world.arrive(Instant::ZERO, micros(1), 400, bulk);
        for us in (400..500).step_by(10) {
            let at = Instant::from_micros(us);
            world.at(at, Event::FromHost(request(us as u32, at)));
        }
        let unread = || u32::from(world.time_now() < idle_from);
        let ended = run_in(&world, auto(), || Some(Load { unread: unread() }));
        assert_eq!(ended.totals.host_out.frames, 400);
        ended.to_host.last().unwrap().sent_at
    };
    let idle_from = Instant::from_micros(410);
    let (idle, busy) = (last_leaves(idle_from), last_leaves(Instant::from_micros(9_999)));
    assert!(idle <= idle_from + 2 * TURN, "{idle:?}");
    assert!(busy > idle_from + 2 * TURN, "{busy:?}");
}

#[test]
fn requests_leave_exactly_as_without_coalescing() {
    for load in [BUSY, IDLE, None] {
        for apart in [micros(35), micros(400)] {
            let auto = run(auto(), load, apart, request);
            let none = run(Policy::none(), load, apart, request);
            assert_eq!(auto.to_host, none.to_host, "{load:?} {apart:?}");
            assert_eq!(auto.to_host.len(), 400);
        }
    }
}

/// Requests beside a flow of bulk data, much of which is held, are sent exactly as without it.
#[test]
fn requests_beside_held_bulk_leave_exactly_as_without_coalescing() {
    let requests = |policy| {
        let world = World::new();
        world.arrive(Instant::ZERO, micros(1), 2_000, bulk);
        world.arrive(Instant::ZERO, micros(37), 50, |index, at| {
            seg().flow(1).seq(100 + index).len(1).psh().frame_at(at)
        });
        let ended = run_in(&world, policy, || BUSY);
        let deliveries = ended.to_host.len();
        let requests = ended.to_host.into_iter().filter(|sent| sent.bytes.len() < 100);
        (deliveries, requests.collect::<Vec<Sent>>())
    };
    let ((held, auto), (each, none)) = (requests(auto()), requests(Policy::none()));
    assert!(held * 5 < each, "{held} deliveries, {each} without coalescing");
    assert_eq!(none.len(), 50);
    assert_eq!(auto, none);
}
