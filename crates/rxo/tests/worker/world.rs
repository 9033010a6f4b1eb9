//! Two devices in memory, a clock that only the test advances, and a script of timed events.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rxo::device::{MemorySink, MemorySource, Sent, SinkCapabilities, SinkCounters};
use rxo::worker::{Awake, Imbalance, Waiter, Wanted};
use rxo::{
    DeviceError, Duplex, Frame, FrameSink, Gather, Instant, Load, MemoryLink, MemoryOptions,
    Policy, Reading, Worker, WorkerConfig,
};

/// The time that one turn of the worker takes. Frames that arrive during a turn are in its next batch.
pub(crate) const TURN: Duration = Duration::from_micros(10);

/// An event that happens at a given time.
#[derive(Clone)]
pub(crate) enum Event {
    /// A frame arrives on the wire.
    FromNic(Frame<Vec<u8>>),
    /// The host sends a frame.
    FromHost(Frame<Vec<u8>>),
    /// The nic accepts this many more packets; `None` removes the limit.
    NicRoom(Option<usize>),
    /// The host's device accepts this many more packets; `None` removes the limit.
    HostRoom(Option<usize>),
    /// The nic is removed.
    NicGone,
    /// The host's device is removed.
    HostGone,
    /// The worker is asked to stop.
    Stop,
}

/// A pause or wait of the worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    Pause(Duration),
    Wait,
}

/// The links, the clock and the events. Clones share their state.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) from_nic: MemoryLink,
    pub(crate) to_nic: MemoryLink,
    pub(crate) from_host: MemoryLink,
    pub(crate) to_host: MemoryLink,
    time: Rc<RefCell<Time>>,
    stop: Rc<AtomicBool>,
}

#[derive(Default)]
struct Time {
    now: Instant,
    events: VecDeque<(Instant, Event)>,
    rests: Vec<Rest>,
    turns: usize,
    /// The time in which the worker did not run.
    idle: Duration,
}

/// The result of a run.
pub(crate) struct Ended {
    pub(crate) result: Result<(), DeviceError>,
    pub(crate) totals: Reading,
    pub(crate) reports: Vec<Reading>,
    pub(crate) rests: Vec<Rest>,
    pub(crate) to_host: Vec<Sent>,
    pub(crate) to_nic: Vec<Sent>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(MemoryOptions { most_packets: 8_192, ..MemoryOptions::default() })
    }

    pub(crate) fn with(options: MemoryOptions) -> Self {
        let link = || MemoryLink::new(options);
        Self {
            from_nic: link(),
            to_nic: link(),
            from_host: link(),
            to_host: link(),
            time: Rc::default(),
            stop: Rc::default(),
        }
    }

    /// Adds an event; events of one instant happen in the order in which they were added.
    pub(crate) fn at(&self, at: Instant, event: Event) {
        let mut time = self.time.borrow_mut();
        let place = time.events.partition_point(|(earlier, _)| *earlier <= at);
        time.events.insert(place, (at, event));
    }

    /// Adds `count` frames that arrive on the wire, `apart` from each other, beginning at `start`.
    pub(crate) fn arrive(
        &self,
        start: Instant,
        apart: Duration,
        count: u32,
        frame: impl Fn(u32, Instant) -> Frame<Vec<u8>>,
    ) {
        for index in 0..count {
            let at = start + apart * index;
            self.at(at, Event::FromNic(frame(index, at)));
        }
    }

    /// Returns the time without advancing the clock.
    pub(crate) fn time_now(&self) -> Instant {
        self.time.borrow().now
    }

    /// Returns the number of readings of the clock: turns, with and without a pause or wait after them.
    pub(crate) fn turns(&self) -> usize {
        self.time.borrow().turns
    }

    /// Returns the flag that tells a worker to stop.
    pub(crate) fn stopping(&self) -> &AtomicBool {
        &self.stop
    }

    pub(crate) fn nic(&self) -> Duplex<MemorySource, MemorySink> {
        Duplex { source: self.from_nic.source(), sink: self.to_nic.sink() }
    }

    pub(crate) fn host(&self) -> Duplex<MemorySource, MemorySink> {
        Duplex { source: self.from_host.source(), sink: self.to_host.sink() }
    }

    /// Runs a worker with `policy` until all events have happened.
    pub(crate) fn run(&self, policy: Policy) -> Ended {
        self.run_with(WorkerConfig::new(policy))
    }

    pub(crate) fn run_with(&self, config: WorkerConfig) -> Ended {
        self.run_into(self.host(), config)
    }

    /// Like [`World::run_with`], with another sink to the host, whose frames end up in [`World::to_host`].
    pub(crate) fn run_into<K: FrameSink>(
        &self,
        host: Duplex<MemorySource, K>,
        config: WorkerConfig,
    ) -> Ended {
        let mut worker = Worker::new(self.nic(), host, config).unwrap();
        let mut reports = Vec::new();
        let result = worker
            .run(&mut self.clone(), &self.stop, |report| reports.push(report.reading.all.clone()));
        let totals = worker.reading();
        // Whatever events a test causes, all counters of the worker must be consistent.
        assert_eq!(totals.imbalance, Imbalance::default(), "{totals:?}");
        Ended {
            result,
            totals,
            reports,
            rests: self.time.borrow().rests.clone(),
            to_host: self.to_host.take_all(),
            to_nic: self.to_nic.take_all(),
        }
    }

    /// Advances the clock by `time`, and applies the events in that time.
    pub(crate) fn advance(&self, time: Duration) {
        let end = self.time.borrow().now + time;
        while self.happen_before(end) {}
        self.set_now(end);
    }

    /// Advances the clock by `time` while the worker does not run.
    pub(crate) fn sleep(&self, time: Duration) {
        self.time.borrow_mut().idle += time;
        self.advance(time);
    }

    /// Applies the next event if it is not after `end`.
    fn happen_before(&self, end: Instant) -> bool {
        let mut time = self.time.borrow_mut();
        let Some((at, event)) = time.events.pop_front_if(|(at, _)| *at <= end) else {
            return false;
        };
        drop(time);
        self.set_now(at);
        match event {
            Event::FromNic(frame) => self.from_nic.push(&frame),
            Event::FromHost(frame) => self.from_host.push(&frame),
            Event::NicRoom(packets) => self.to_nic.set_room(packets),
            Event::HostRoom(packets) => self.to_host.set_room(packets),
            Event::NicGone => {
                [&self.from_nic, &self.to_nic].into_iter().for_each(MemoryLink::vanish)
            }
            Event::HostGone => {
                [&self.from_host, &self.to_host].into_iter().for_each(MemoryLink::vanish);
            }
            Event::Stop => self.stop.store(true, Ordering::Relaxed),
        }
        true
    }

    fn set_now(&self, now: Instant) {
        let mut time = self.time.borrow_mut();
        time.now = time.now.max(now);
        for link in [&self.from_nic, &self.to_nic, &self.from_host, &self.to_host] {
            link.set_now(time.now);
        }
    }

    /// Returns which of the `wanted` sources have frames.
    fn awake<NI, NO, HI, HO>(&self, wanted: &Wanted<'_, NI, NO, HI, HO>) -> Awake {
        let is_wanted = wanted.hosts.iter().any(|host| host.source.is_some());
        Awake {
            nic: wanted.nic_source.is_some() && !self.from_nic.is_silent(),
            hosts: u64::from(is_wanted && !self.from_host.is_silent()),
        }
    }

    fn next_event_at(&self) -> Option<Instant> {
        self.time.borrow().events.front().map(|(at, _)| *at)
    }
}

/// Every reading of the clock counts as a turn, and advances the clock.
impl<NI, NO, HI, HO> Waiter<NI, NO, HI, HO> for World {
    fn now(&mut self) -> Instant {
        let now = self.time.borrow().now;
        self.time.borrow_mut().turns += 1;
        self.advance(TURN);
        now
    }

    fn cpu_time(&mut self) -> Duration {
        let time = self.time.borrow();
        time.now.since(Instant::ZERO) - time.idle
    }

    fn pause(&mut self, time: Duration) {
        self.time.borrow_mut().rests.push(Rest::Pause(time));
        self.sleep(time);
    }

    fn wait(
        &mut self,
        wanted: Wanted<'_, NI, NO, HI, HO>,
        timeout: Duration,
    ) -> Result<Awake, DeviceError> {
        self.time.borrow_mut().rests.push(Rest::Wait);
        let now = self.time.borrow().now;
        // A wait for frames that have already arrived returns at once, as on a real system.
        if self.awake(&wanted) == Awake::NONE {
            match self.next_event_at() {
                Some(at) => self.sleep(at.since(now).min(timeout)),
                None => self.sleep(timeout),
            }
        }
        if self.next_event_at().is_none() && self.awake(&wanted) == Awake::NONE {
            // All events have happened, so the test ends.
            self.stop.store(true, Ordering::Relaxed);
        }
        Ok(self.awake(&wanted))
    }
}

/// A sink that takes some time for every packet, and after which other threads use the core.
pub(crate) struct SlowSink {
    pub(crate) inner: MemorySink,
    pub(crate) world: World,
    pub(crate) time_per_packet: Duration,
    /// The time in which the worker does not run after each batch.
    pub(crate) preempted_for: Duration,
}

impl SlowSink {
    /// Creates the sink of the host, which takes no time yet.
    pub(crate) fn new(world: &World) -> Self {
        let (time_per_packet, preempted_for) = (Duration::ZERO, Duration::ZERO);
        Self { inner: world.to_host.sink(), world: world.clone(), time_per_packet, preempted_for }
    }
}

impl FrameSink for SlowSink {
    fn capabilities(&self) -> SinkCapabilities {
        self.inner.capabilities()
    }

    fn transmit<'a, G: Gather<'a>>(
        &mut self,
        batch: impl ExactSizeIterator<Item = G>,
    ) -> Result<(), DeviceError> {
        self.world.advance(self.time_per_packet * batch.len() as u32);
        self.world.sleep(self.preempted_for);
        self.inner.transmit(batch)
    }

    fn counters(&self) -> SinkCounters {
        self.inner.counters()
    }

    fn is_blocked(&self) -> bool {
        self.inner.is_blocked()
    }

    fn resume(&mut self) -> Result<(), DeviceError> {
        self.inner.resume()
    }

    fn load(&self) -> Option<Load> {
        self.inner.load()
    }

    fn kept_frames(&self) -> u64 {
        self.inner.kept_frames()
    }

    fn abandon(&mut self) {
        self.inner.abandon();
    }
}
