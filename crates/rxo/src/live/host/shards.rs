//! Shards of a running host: each runs on a thread of its own, on a queue of the device.
//!
//! ```text
//!  queue 0 ── shard 0 ── the loops of applications      The device chooses the queue of a flow by
//!  queue 1 ── shard 1 ── the loops of applications      `rxo_wire::shard_of`, as the host does.
//! ```
//!
//! The first thread opens all queues and gives up privileges before it starts the other threads, so that no
//! thread has more privileges than necessary. Contract: either all shards begin, or none. When a shard fails or
//! panics, the other shards end in order. The outcome contains the counters of all shards that did not panic.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Duration;

use rxo_device::DeviceError;
use rxo_driver::{Device, DeviceBuf, bind_to_cpu, clock};
use rxo_host::{Handle, Host, HostConfig, HostCounters, ShardOpener};

use super::asker::Question;
use super::{Opened, StartError};
use crate::desk::Desk;
use crate::live::middleware::ends;
use crate::live::workers::{EndsAll, cannot_bind, panicked};
use crate::live::{FileLog, SystemWaiter};

/// The threads of a host.
pub struct HostThreads {
    /// The number of workers, each with a thread, a queue of the device and a shard of the host. More than
    /// one worker requires a kind of device with several queues.
    pub workers: u32,
    /// The processors to which the workers are bound, in their order. Workers beyond the last one are not bound.
    pub cpus: Vec<u16>,
    /// The log of all packets that are received or sent, shared by all workers; `None` for no log.
    pub log: Option<FileLog>,
    /// The function that gives up privileges that the workers do not need. It is called once, on the first
    /// thread, after the device is open and before any received byte is processed. The caller gives up the
    /// privileges of its own thread itself.
    pub confine: Confine,
}

/// The function that gives up privileges on a host's first thread. Boxed, so that the host is not compiled again
/// for each caller's closure.
pub type Confine = Box<dyn FnOnce() -> io::Result<()> + Send>;

impl Default for HostThreads {
    /// Returns the settings for one worker that is not bound to a processor, has no log, and gives up no
    /// privileges.
    fn default() -> Self {
        Self { workers: 1, cpus: Vec::new(), log: None, confine: Box::new(|| Ok(())) }
    }
}

/// The counters of one worker of a host.
#[derive(Clone, Debug, Default)]
pub struct HostReading {
    /// The counters of the worker's shard of the host.
    pub counters: HostCounters,
    /// The processor time of the worker's thread.
    pub cpu: Duration,
}

/// The result of a host that has ended.
#[derive(Debug)]
pub struct Outcome {
    /// The host's counters at the end: the sum of all workers.
    pub counters: HostCounters,
    /// The processor time of the host's threads.
    pub cpu: Duration,
    /// The failure of the device that ended the host; `Ok` if it was stopped.
    pub result: Result<(), DeviceError>,
    /// The counters of each worker, in the order of the queues.
    pub workers: Vec<HostReading>,
}

/// The parts that all threads of a host share: the stop flag, a desk for questions to each thread, and the
/// channel that reports the start.
pub(super) struct Orders {
    pub(super) stop: Arc<AtomicBool>,
    pub(super) desks: Arc<[Desk<Question>]>,
    pub(super) started: Sender<Result<Started, StartError>>,
}

/// The message that a shard has started: its number, a handle that opens connections on this shard alone, and
/// the handle of the whole host.
pub(super) struct Started {
    pub(super) number: u32,
    pub(super) of_shard: Handle,
    pub(super) of_host: Handle,
    /// The notice for the user from opening the shard's queue; `None` if there is none.
    pub(super) notice: Option<String>,
}

/// A shard that is ready to run on its thread.
struct Shard {
    opener: ShardOpener<DeviceBuf>,
    device: Device,
    log: Option<FileLog>,
    cpu: Option<u16>,
    desk: Desk<Question>,
}

/// The result of a shard that has ended: its last counters, and the failure that ended it.
type Ended = (HostReading, Result<(), DeviceError>);

/// Runs the shards of a host on the queues of `opened`, the first of them on this thread, until all have ended.
pub(super) fn run(
    opened: Opened,
    (cpus, log): (&[u16], Option<FileLog>),
    config: HostConfig,
    orders: &Orders,
) -> Outcome {
    let Opened { devices, _queues, _isolation, _claims } = opened;
    if devices.len() != orders.desks.len() {
        let (queues, workers) = (devices.len(), orders.desks.len());
        let message = format!("{queues} queues for {workers} workers; open one for each");
        return Outcome::of_failure(DeviceError::Usage(message).into(), orders);
    }
    let mac = devices.first().and_then(|device| device.source.hardware_address());
    let config = HostConfig { mac: config.mac.or(mac), ..config };
    let openers = match ShardOpener::all(devices.len(), &config) {
        Ok(openers) => openers,
        Err(error) => return Outcome::of_all([failed(error, orders)]),
    };
    let shards = openers.into_iter().zip(devices).zip(orders.desks.iter().cloned());
    let mut cpus = cpus.iter().copied();
    let shards: Vec<_> = shards
        .map(|((opener, device), desk)| Shard {
            opener,
            device,
            log: log.clone(),
            cpu: cpus.next(),
            desk,
        })
        .collect();
    thread::scope(|scope| {
        let mut shards = shards.into_iter();
        let first = shards.next();
        let start = |shard: Shard| {
            let name = format!("rxo-host-{}", shard.opener.index() + 1);
            thread::Builder::new().name(name).spawn_scoped(scope, move || shard.run(orders))
        };
        let others: Vec<_> = shards.map(start).collect();
        let first = first.map(|shard| {
            catch_unwind(AssertUnwindSafe(|| shard.run(orders)))
                .unwrap_or_else(|_| ended_by_panic())
        });
        let others = others.into_iter().map(|other| match other {
            Ok(thread) => thread.join().unwrap_or_else(|_| ended_by_panic()),
            // The shard's right to begin is dropped, so that no other shard begins.
            Err(error) => failed(error, orders),
        });
        Outcome::of_all(first.into_iter().chain(others))
    })
}

impl Shard {
    /// Opens the shard, and runs it until the stop flag is set. If the shard ends for another reason, all
    /// other shards end, too.
    fn run(self, orders: &Orders) -> Ended {
        let _ends_all = EndsAll(&orders.stop);
        let Self { opener, mut device, log, cpu, desk } = self;
        let notice = device.sink.take_opening_notice();
        if let Some((cpu, Err(error))) = cpu.map(|cpu| (cpu, bind_to_cpu(cpu))) {
            return failed(cannot_bind(cpu, error), orders);
        }
        let (number, ends) = (opener.index(), ends(device, log));
        let (mut host, of_host) = match opener.open(ends.source, ends.sink) {
            Ok(opened) => opened,
            Err(error) => return failed(error, orders),
        };
        let mut waiter = SystemWaiter::new();
        match host.probe(&mut waiter, &orders.stop) {
            Ok(None) => {}
            Ok(Some(conflict)) => return failed(conflict, orders),
            Err(error) => return failed(error, orders),
        }
        // The thread that starts the host waits for this message.
        _ = orders.started.send(Ok(Started { number, of_shard: host.handle(), of_host, notice }));
        let result = host.run(&mut waiter, &orders.stop, |host, _| {
            if let Some(question) = desk.take() {
                question.answer(host);
            }
        });
        (HostReading::of(&mut host), result)
    }
}

impl HostReading {
    /// Reads the counters of `host`, on its thread.
    pub(super) fn of<I, O>(host: &mut Host<I, O>) -> Self
    where
        I: rxo_device::FrameSource,
        I::Buffer: Default + Send + Sync + 'static,
        O: rxo_device::FrameSink,
    {
        Self { counters: host.counters(), cpu: Duration::from_nanos(clock::thread_cpu_ns()) }
    }

    /// Returns the counters of all workers together.
    #[must_use]
    pub fn sum(all: &[Self]) -> HostCounters {
        let counters = all.iter().map(|worker| &worker.counters);
        counters.fold(HostCounters::default(), |sum, counters| sum.plus(counters))
    }
}

impl Outcome {
    fn of_all(ended: impl IntoIterator<Item = Ended>) -> Self {
        let (workers, results): (Vec<_>, Vec<_>) = ended.into_iter().unzip();
        Self {
            counters: HostReading::sum(&workers),
            cpu: workers.iter().map(|worker| worker.cpu).sum(),
            result: results.into_iter().collect(),
            workers,
        }
    }

    /// Returns the result of a host whose first thread has panicked before it had shards.
    pub(super) fn of_panic() -> Self {
        Self::of_all([ended_by_panic()])
    }

    /// Reports that the host could not be started, and returns the result of such a host.
    pub(super) fn of_failure(error: StartError, orders: &Orders) -> Self {
        Self::of_all([failed(error, orders)])
    }
}

/// Returns the result of a shard whose thread has panicked.
fn ended_by_panic() -> Ended {
    (HostReading::default(), Err(panicked()))
}

/// Reports that a shard could not be started.
fn failed(error: impl Into<StartError>, orders: &Orders) -> Ended {
    orders.stop.store(true, Ordering::Relaxed);
    // The thread that starts the host waits for this message.
    _ = orders.started.send(Err(error.into()));
    (HostReading::default(), Ok(()))
}

impl std::fmt::Debug for HostThreads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HostThreads({} workers)", self.workers)
    }
}
