//! Tests of the number of system calls while frames are held, with the system's waiter on real descriptors. A
//! worker whose policy holds frames beyond a poll must sleep while it holds them.

use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{self, Duration};

use rxo::coalesce::Hold;
use rxo::device::{Descriptors, SourceCapabilities, SourceCounters};
use rxo::driver::{DeviceSink, PacketOptions, PacketSource, SubmitMode, Tap, TapKind, TapSource};
use rxo::live::SystemWaiter;
use rxo::worker::{Awake, Waiter, Wanted};
use rxo::{
    DeviceError, Duplex, Frame, FrameSink, FrameSource, Instant, Policy, Reading, Worker,
    WorkerConfig,
};
use rxo_testbed::{Namespace, create_veth};
use rxo_testkit::seg;

use crate::Test;
use crate::path::Stopper;

pub(crate) const TESTS: &[Test] =
    &[("holding_costs_no_more_calls_than_half_of_not_holding_again", holding)];

/// The number of calls for a frame that is not held: a wait and a write.
const CALLS_A_FRAME: u64 = 2;
/// The number of calls for the checks that a worker does ten times a second, of both sources.
const CALLS_A_SECOND: u64 = 60;

/// The time without frames at the beginning of a measurement.
const SILENCE: Duration = Duration::from_millis(500);
/// The longest time for which a worker may have to wait for its core.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The number of policies that are tested on each wire, one after the other.
const EACH_WIRE: usize = 3;

const NIC: &str = "wire0";
const PEER: &str = "peer0";

fn holding() {
    let millis = Duration::from_millis;
    let held = |hold, max_hold| Policy { hold, max_hold, ..Policy::linux_gro() };
    let within = |time| held(Hold::Within(time), millis(100));
    let policies = [
        Policy::linux_gro(),
        within(Duration::from_micros(100)),
        within(millis(1)),
        within(millis(10)),
        within(millis(100)),
        held(Hold::EveryNthPoll(2), millis(100)),
        held(Hold::EveryNthPoll(8), millis(10)),
        held(Hold::EveryNPackets(20), millis(100)),
        Policy::xen_delayed(),
    ];
    // Each of the measurements waits most of the time, so several run in parallel.
    thread::scope(|scope| {
        for policies in policies.chunks(EACH_WIRE) {
            scope.spawn(|| {
                let wire = Wire::new();
                policies.iter().for_each(|policy| wire.holds(*policy));
            });
        }
    });
}

/// A wire to a host whose stack does not answer.
struct Wire {
    host: Namespace,
    peer: Namespace,
}

impl Wire {
    fn new() -> Self {
        let [host, peer] = ["host", "peer"].map(|name| {
            let namespace = Namespace::new(name).unwrap();
            if namespace.has_ipv6() {
                namespace.set_sysctl("net.ipv6.conf.default.disable_ipv6", "1").unwrap();
            }
            namespace
        });
        create_veth(&host.interface(NIC), &peer.interface(PEER)).unwrap();
        host.interface(NIC).up().unwrap();
        peer.interface(PEER).up().unwrap();
        Self { host, peer }
    }

    fn holds(&self, policy: Policy) {
        for (per_s, frames) in [(0, 0), (10, 8), (1_000, 500)] {
            let (calls, elapsed) = self.calls(policy, per_s, frames);
            let idle = CALLS_A_SECOND * (elapsed.as_millis() as u64 + 100) / 1_000;
            let most = CALLS_A_FRAME * 3 / 2 * frames + idle;
            let what = format!("{:?} at {per_s} frames a second for {elapsed:?}", policy.hold);
            assert!(calls <= most, "{what}: {calls} calls, at most {most} for {frames} frames");
        }
    }

    /// Returns the number of system calls of a worker with `policy` while `frames` segments of one flow
    /// arrive at an even rate, and the time that this took.
    fn calls(&self, policy: Policy, per_s: u32, frames: u64) -> (u64, Duration) {
        let stop = AtomicBool::new(false);
        let (calls, delivered) = (AtomicU64::new(0), AtomicU64::new(0));
        thread::scope(|scope| {
            let work = || run(policy, &stop, [&calls, &delivered]);
            let worker = scope.spawn(move || self.host.run(work).unwrap());
            let stopper = Stopper(&stop);
            reach(&calls, 1);
            self.peer.run(|| send(per_s, frames)).unwrap();
            if frames == 0 {
                thread::sleep(SILENCE);
            }
            // The last frame may be held for long.
            reach(&delivered, frames);
            drop(stopper);
            let reading = worker.join().unwrap();
            assert_eq!(reading.host_out.frames, frames, "{:?}: {reading:?}", policy.hold);
            (calls.load(Ordering::Relaxed) + reading.host_out.submissions, reading.elapsed)
        })
    }
}

/// Waits until the worker has counted at least `least`.
fn reach(counter: &AtomicU64, least: u64) {
    let begin = time::Instant::now();
    while counter.load(Ordering::Relaxed) < least {
        assert!(begin.elapsed() < TIMEOUT, "{counter:?} of {least}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Sends one segment after the other, each in order and none with PSH.
fn send(per_s: u32, frames: u64) {
    let mut sink = DeviceSink::packet(PEER).unwrap();
    for index in 0..frames as u32 {
        let frame = seg().seq(1 + index * 100).len(100).frame();
        sink.transmit([frame.borrowed()].into_iter()).unwrap();
        thread::sleep(Duration::from_secs(1) / per_s);
    }
    assert_eq!((sink.counters().frames, sink.counters().dropped_frames), (frames, 0));
}

fn run(policy: Policy, stop: &AtomicBool, [calls, delivered]: [&AtomicU64; 2]) -> Reading {
    let nic = Duplex {
        source: PacketSource::open(NIC, PacketOptions::default()).unwrap(),
        sink: DeviceSink::packet(NIC).unwrap(),
    };
    let tap = Tap::open("rxo0", TapKind::Tap).unwrap();
    tap.interface().set_up(true).unwrap();
    let source = CountedSource { source: tap.source().unwrap(), calls };
    let host = Duplex { source, sink: tap.sink(SubmitMode::Auto).unwrap() };
    // Reports are as frequent as the checks of the worker.
    let report_every = Some(Duration::from_millis(100));
    let config = WorkerConfig { report_every, ..WorkerConfig::new(policy) };
    let mut worker = Worker::new(nic, host, config).unwrap();
    let mut waiter = CountedWaiter { waiter: SystemWaiter::new(), calls };
    let count = |frames| delivered.store(frames, Ordering::Relaxed);
    worker.run(&mut waiter, stop, |report| count(report.reading.all.host_out.frames)).unwrap();
    worker.reading()
}

/// A source that counts its reads: one for each frame, and one that returns no frame.
struct CountedSource<'a> {
    source: TapSource,
    calls: &'a AtomicU64,
}

impl FrameSource for CountedSource<'_> {
    type Buffer = <TapSource as FrameSource>::Buffer;

    fn capabilities(&self) -> SourceCapabilities {
        self.source.capabilities()
    }

    fn receive(
        &mut self,
        batch: &mut Vec<Frame<Self::Buffer>>,
        budget: usize,
    ) -> Result<usize, DeviceError> {
        let received = self.source.receive(batch, budget)?;
        self.calls.fetch_add(received as u64 + 1, Ordering::Relaxed);
        Ok(received)
    }

    fn counters(&mut self) -> SourceCounters {
        self.source.counters()
    }
}

impl Descriptors for CountedSource<'_> {
    fn visit_descriptors<'f>(&'f self, visit: &mut dyn FnMut(BorrowedFd<'f>)) {
        self.source.visit_descriptors(visit);
    }
}

/// The system's waiter, with its calls counted.
struct CountedWaiter<'a> {
    waiter: SystemWaiter,
    calls: &'a AtomicU64,
}

type Waits<'a> = dyn Waiter<PacketSource, DeviceSink, CountedSource<'a>, DeviceSink>;

impl<'a> Waiter<PacketSource, DeviceSink, CountedSource<'a>, DeviceSink> for CountedWaiter<'a> {
    fn now(&mut self) -> Instant {
        let waiter: &mut Waits<'a> = &mut self.waiter;
        waiter.now()
    }

    fn cpu_time(&mut self) -> Duration {
        let waiter: &mut Waits<'a> = &mut self.waiter;
        waiter.cpu_time()
    }

    fn pause(&mut self, time: Duration) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let waiter: &mut Waits<'a> = &mut self.waiter;
        waiter.pause(time);
    }

    fn wait(
        &mut self,
        wanted: Wanted<'_, PacketSource, DeviceSink, CountedSource<'a>, DeviceSink>,
        timeout: Duration,
    ) -> Result<Awake, DeviceError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.waiter.wait(wanted, timeout)
    }
}
