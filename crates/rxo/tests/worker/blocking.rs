//! Tests that neither direction ever waits for the other's sink, whether that sink blocks, refuses packets or
//! is slow.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use rxo::device::middleware::{ImpairedSource, Impairment, ImpairmentSettings};
use rxo::device::{MemorySource, SourceCapabilities, SourceCounters};
use rxo::worker::Overload;
use rxo::{
    DeviceError, Duplex, Frame, FrameSource, Instant, LinkKind, MemoryOptions, Policy, Worker,
    WorkerConfig,
};
use rxo_testkit::seg;

use crate::pausing::bulk;
use crate::world::{Ended, Event, TURN, World};

const SECOND: u32 = 1_000;

fn after_ms(ms: u32) -> Instant {
    Instant::ZERO + Duration::from_millis(ms.into())
}

/// Creates a request or an answer: a frame that is neither held nor coalesced.
fn question(index: u32, at: Instant) -> Frame<Vec<u8>> {
    seg().flow(9).seq(1 + index).len(1).psh().frame_at(at)
}

/// Sends one question in each direction every millisecond for a second.
fn questions(world: &World) {
    for index in 0..SECOND {
        let at = after_ms(index);
        world.at(at, Event::FromNic(question(index, at)));
        world.at(at, Event::FromHost(question(index, at)));
    }
}

/// Returns the longest time that a question waited.
fn longest_wait(sent: &[rxo::device::Sent]) -> Duration {
    let waits = sent.iter().enumerate().map(|(n, sent)| sent.sent_at.since(after_ms(n as u32)));
    waits.max().unwrap_or_default()
}

fn config() -> WorkerConfig {
    WorkerConfig { overload: None, ..WorkerConfig::new(Policy::linux_gro()) }
}

fn is_accounted_for(ended: &Ended) {
    let totals = &ended.totals;
    let out = totals.host_out.frames + totals.host_out.dropped_frames;
    assert_eq!(out + totals.overload, totals.nic_in.frames, "towards the host");
    let out = totals.nic_out.frames + totals.nic_out.dropped_frames;
    assert_eq!(out, totals.host_in.frames, "towards the nic");
}

#[test]
fn a_nic_without_room_does_not_delay_what_comes_from_it() {
    let world = World::new();
    questions(&world);
    world.at(after_ms(100), Event::NicRoom(Some(0)));
    world.at(after_ms(900), Event::NicRoom(None));
    let ended = world.run_with(config());
    assert_eq!((ended.to_host.len(), ended.to_nic.len()), (1_000, 1_000), "nothing is lost");
    assert!(longest_wait(&ended.to_host) <= 3 * TURN, "{:?}", longest_wait(&ended.to_host));
    assert!(longest_wait(&ended.to_nic) >= Duration::from_millis(790), "it did block");
    // The worker does not spin while it waits: its turns are for the questions and a few checks.
    assert!(world.turns() < 6_000, "{} turns", world.turns());
    is_accounted_for(&ended);
}

#[test]
fn a_host_without_room_does_not_delay_what_it_sends() {
    let world = World::new();
    questions(&world);
    world.at(after_ms(100), Event::HostRoom(Some(0)));
    world.at(after_ms(900), Event::HostRoom(None));
    let ended = world.run_with(config());
    assert_eq!((ended.to_host.len(), ended.to_nic.len()), (1_000, 1_000), "nothing is lost");
    assert!(longest_wait(&ended.to_nic) <= 3 * TURN, "{:?}", longest_wait(&ended.to_nic));
    assert!(world.turns() < 6_000, "{} turns", world.turns());
    is_accounted_for(&ended);
}

/// A source that counts the calls of `attend`.
struct Attended {
    inner: MemorySource,
    count: Rc<Cell<u32>>,
}

impl FrameSource for Attended {
    type Buffer = <MemorySource as FrameSource>::Buffer;

    fn capabilities(&self) -> SourceCapabilities {
        self.inner.capabilities()
    }

    fn receive(
        &mut self,
        batch: &mut Vec<Frame<Self::Buffer>>,
        budget: usize,
    ) -> Result<usize, DeviceError> {
        self.inner.receive(batch, budget)
    }

    fn counters(&mut self) -> SourceCounters {
        self.inner.counters()
    }

    fn attend(&mut self) {
        self.count.set(self.count.get() + 1);
    }
}

/// A source that is not read, because the nic is full, is attended all the same: a VM monitor must not wait
/// for answers.
#[test]
fn a_source_that_is_not_read_is_attended_all_the_time() {
    let world = World::new();
    let count = Rc::new(Cell::new(0));
    world.at(after_ms(0), Event::NicRoom(Some(0)));
    world.at(after_ms(1), Event::FromHost(question(0, after_ms(1))));
    world.at(after_ms(500), Event::Stop);
    let host = Duplex {
        source: Attended { inner: world.from_host.source(), count: Rc::clone(&count) },
        sink: world.to_host.sink(),
    };
    let mut worker = Worker::new(world.nic(), host, config()).unwrap();
    worker.run(&mut world.clone(), world.stopping(), |_| ()).unwrap();
    // A worker with a blocked sink does a turn at least every millisecond.
    assert!(count.get() >= 400, "attended {} times", count.get());
}

/// Frames for a blocked sink stay in the ring, where the system counts those that it drops.
#[test]
fn a_blocked_sink_stops_its_source_and_the_ring_counts_what_is_lost() {
    let world = World::with(MemoryOptions { most_packets: 100, ..MemoryOptions::default() });
    world.at(Instant::ZERO, Event::HostRoom(Some(0)));
    world.arrive(after_ms(1), Duration::from_micros(100), 1_000, bulk);
    world.at(after_ms(500), Event::HostRoom(None));
    let ended = world.run_with(config());
    let totals = &ended.totals;
    assert_eq!(totals.nic_in.frames + totals.nic_in.ring_drops, 1_000);
    assert!((890..900).contains(&totals.nic_in.ring_drops), "{}", totals.nic_in.ring_drops);
    is_accounted_for(&ended);
}

/// Frames that a source holds back and that are due do not wake the worker while its sink is blocked.
#[test]
fn frames_that_are_due_for_a_blocked_sink_are_waited_with() {
    let world = World::new();
    questions(&world);
    world.at(after_ms(100), Event::HostRoom(Some(0)));
    world.at(after_ms(900), Event::HostRoom(None));
    world.at(after_ms(1_100), Event::Stop);
    let settings =
        ImpairmentSettings { delay: Duration::from_millis(5), ..ImpairmentSettings::default() };
    let impairment = Impairment::new(settings, LinkKind::Ethernet).unwrap();
    let (Duplex { source, sink }, clock) = (world.nic(), world.clone());
    let source = ImpairedSource::new(source, impairment, move || clock.time_now());
    let mut worker = Worker::new(Duplex { source, sink }, world.host(), config()).unwrap();
    worker.run(&mut world.clone(), world.stopping(), |_| {}).unwrap();
    assert_eq!(world.to_host.take_all().len(), 1_000, "nothing is lost");
    assert!(world.turns() < 10_000, "{} turns", world.turns());
}

#[test]
fn a_filter_that_refuses_packets_delays_nothing_either_way() {
    for every in [1, 2, 7] {
        let world = World::new();
        questions(&world);
        world.to_nic.refuse_every(every);
        world.to_host.refuse_every(every);
        let ended = world.run_with(config());
        let refused = 1_000 / every;
        let dropped = |counters: rxo::device::SinkCounters| counters.dropped_frames as usize;
        assert_eq!(dropped(ended.totals.nic_out), refused);
        assert_eq!(dropped(ended.totals.host_out), refused);
        assert!(world.turns() < 4_000, "{} turns", world.turns());
        is_accounted_for(&ended);
    }
}

/// Each frame received is sent, dropped, or lost to overload, whatever the state of the sinks.
#[test]
fn every_frame_is_accounted_for_whatever_the_sinks_do() {
    for (seed, policy) in Policy::all().into_iter().filter(|p| !p.needs_records).enumerate() {
        let world = World::with(MemoryOptions { most_packets: 64, ..MemoryOptions::default() });
        world.arrive(Instant::ZERO, Duration::from_micros(7), 5_000, bulk);
        for index in 0..300_u32 {
            let at = Instant::from_micros(u64::from(index) * 100);
            world.at(at, Event::FromHost(question(index, at)));
            let room = Some((index as usize * (seed + 3)) % 5).filter(|room| *room < 4);
            let event = if index % 2 == 0 { Event::NicRoom(room) } else { Event::HostRoom(room) };
            world.at(at, event);
        }
        world.at(after_ms(40), Event::NicRoom(None));
        world.at(after_ms(40), Event::HostRoom(None));
        world.to_host.refuse_every(5 + seed);
        let ended = world.run(policy);
        assert!(ended.result.is_ok());
        assert_eq!(ended.totals.nic_in.frames + ended.totals.nic_in.ring_drops, 5_000);
        is_accounted_for(&ended);
    }
}

/// Frames that are old because nobody read are not dropped for their age when reading continues.
#[test]
fn a_host_that_pauses_is_no_overload() {
    let world = World::new();
    for pause in 0..4 {
        world.at(after_ms(pause * 500), Event::HostRoom(Some(0)));
        world.at(after_ms(pause * 500 + 400), Event::HostRoom(None));
    }
    world.arrive(after_ms(1), Duration::from_micros(100), 19_000, bulk);
    let ended = world.run(Policy::linux_gro());
    let totals = &ended.totals;
    assert_eq!((totals.overload, totals.nic_in.ring_drops), (0, 0));
    assert_eq!(totals.host_out.frames, 19_000, "nothing is lost");
    is_accounted_for(&ended);
}

/// More frames arrive than the worker can process, from senders that do not slow down: delivered frames are
/// no older than the target.
#[test]
fn overload_is_dropped_early_and_counted_and_the_rest_is_not_late() {
    let world = World::new();
    world.arrive(Instant::ZERO, Duration::from_micros(20), 100_000, question);
    let overload = Overload::default();
    let budget_frames = 1;
    let config = WorkerConfig { overload: Some(overload), budget_frames, ..config() };
    // A turn takes 10 µs for each reading of the clock, and at most the time of one frame.
    let sink = crate::world::SlowSink {
        time_per_packet: Duration::from_micros(30),
        ..crate::world::SlowSink::new(&world)
    };
    let host = rxo::Duplex { source: world.from_host.source(), sink };
    let ended = world.run_into(host, config);
    let totals = &ended.totals;
    assert!(totals.overload > 20_000, "{} dropped", totals.overload);
    is_accounted_for(&ended);
    let first_at = |sent: &rxo::device::Sent| {
        let seq = u32::from_be_bytes(sent.bytes[38..42].try_into().unwrap());
        Instant::ZERO + Duration::from_micros(20) * (seq - 1)
    };
    let late = ended.to_host.iter().filter(|sent| sent.sent_at > after_ms(300));
    let longest = late.map(|sent| sent.sent_at.since(first_at(sent))).max().unwrap();
    assert!(longest <= overload.target + Duration::from_micros(100), "{longest:?}");
}

/// One flow sends ten times as much as the worker can process, beside 50 small ones that need a tenth of it together.
#[test]
fn a_flow_that_overloads_the_worker_is_the_one_that_loses() {
    const HOT: u32 = 60_000;
    let world = World::new();
    let mut small_sent = 0;
    for n in 0..HOT {
        let at = Instant::ZERO + Duration::from_micros(10) * n;
        world.at(at, Event::FromNic(seg().flow(9).seq(1 + n).len(1_000).psh().frame_at(at)));
        if n % 100 == 0 {
            let small = seg().flow(100 + n / 100 % 50).seq(1 + n).len(100).psh().frame_at(at);
            world.at(at, Event::FromNic(small));
            small_sent += u32::from(at > STANDING_AT);
        }
    }
    let config =
        WorkerConfig { overload: Some(Overload::default()), budget_frames: 32, ..config() };
    let time_per_packet = Duration::from_micros(100);
    let sink = crate::world::SlowSink { time_per_packet, ..crate::world::SlowSink::new(&world) };
    let host = rxo::Duplex { source: world.from_host.source(), sink };
    let ended = world.run_into(host, config);
    is_accounted_for(&ended);
    let later = ended.to_host.iter().filter(|sent| sent.sent_at > STANDING_AT);
    let (small, hot): (Vec<_>, Vec<_>) = later.partition(|sent| sent.bytes.len() < 500);
    let (small, hot) = (small.len() as u32, hot.len() as u32);
    assert!(small * 10 >= small_sent * 9, "{small} of {small_sent}, and {hot} of the large flow");
    assert!(hot > 1_000, "the rest is the large flow's: {hot}");
}

/// The time from which a queue that has existed from the beginning counts as a standing queue.
const STANDING_AT: Instant = Instant::from_micros(210_000);

/// Other threads use the core: after every packet the worker waits for the core, for longer than the target.
/// In all it works for a tenth of the time, and the ring has space for the frames that arrive in the rest.
#[test]
fn a_worker_that_does_not_get_its_core_is_no_overload() {
    let world = World::new();
    world.arrive(Instant::ZERO, Duration::from_micros(100), 7_000, question);
    let config =
        WorkerConfig { overload: Some(Overload::default()), budget_frames: 64, ..config() };
    let sink = crate::world::SlowSink {
        preempted_for: Duration::from_millis(8),
        time_per_packet: Duration::from_micros(10),
        ..crate::world::SlowSink::new(&world)
    };
    let host = rxo::Duplex { source: world.from_host.source(), sink };
    let ended = world.run_into(host, config);
    let totals = &ended.totals;
    assert_eq!((totals.overload, totals.nic_in.ring_drops, totals.not_scheduled), (0, 0, 0));
    assert_eq!(totals.host_out.frames, 7_000, "nothing is lost");
    is_accounted_for(&ended);
}

/// Frames that do not fit into the ring while the worker does not run are lost, and they are not counted as
/// overload.
#[test]
fn what_the_ring_loses_while_the_worker_does_not_run_has_its_reason() {
    let world = World::with(MemoryOptions { most_packets: 128, ..MemoryOptions::default() });
    world.arrive(Instant::ZERO, Duration::from_micros(100), 7_000, question);
    let config =
        WorkerConfig { overload: Some(Overload::default()), budget_frames: 64, ..config() };
    let sink = crate::world::SlowSink {
        preempted_for: Duration::from_millis(30),
        ..crate::world::SlowSink::new(&world)
    };
    let host = rxo::Duplex { source: world.from_host.source(), sink };
    let ended = world.run_into(host, config);
    let totals = &ended.totals;
    assert!(totals.nic_in.ring_drops > 1_000, "{}", totals.nic_in.ring_drops);
    assert_eq!((totals.overload, totals.not_scheduled), (0, totals.nic_in.ring_drops));
    assert_eq!(totals.nic_in.frames + totals.nic_in.ring_drops, 7_000);
    is_accounted_for(&ended);
}
