//! The worker between devices of the system.
//!
//! [`Device::open`] takes a name as a user types it. [`run`] puts a worker between two devices, and
//! [`run_through`] one with [`Middleware`] around them; [`run_card`] plays a network card, and [`run_guests`]
//! puts a switch between one device and several. `host` runs a host with its own TCP on one.
//! Use a device on the thread that opened it. This module knows no kind of device: the table of
//! kinds is [`rxo_driver::KINDS`]. [`defaults`] has the policy of a live path.

mod alarm;
mod card;
pub mod defaults;
mod engine;
mod guests;
#[cfg(feature = "host")]
pub mod host;
mod middleware;
mod switched;
mod waiter;

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rxo_device::{Descriptors, DeviceError, FrameSink, FrameSource};
use rxo_driver::{DeviceSink, DeviceSource};

use crate::worker::{Duplex, Misfit, Reading, Report, Worker, WorkerConfig};

use alarm::{Alarm, Violations};
use switched::Switched;

pub use card::{Card, run_card};
pub use engine::DeviceEngine;
#[cfg(feature = "capture")]
pub use guests::run_guests_logged;
pub use guests::{GuestsEvent, GuestsOutcome, run_guests};
#[cfg(feature = "capture")]
pub use middleware::FileLog;
pub use middleware::{Middleware, run_through};
pub use rxo_driver::{Device, DeviceOptions};
pub use waiter::SystemWaiter;

/// What an observer of [`run`] is told.
#[derive(Debug)]
pub enum Event<'a> {
    /// The counters, once in an interval.
    Reading(&'a Reading),
    /// One line that the user should see once.
    Notice(String),
}

/// How a run ended.
#[derive(Debug)]
pub struct Outcome {
    /// All counters at the end.
    pub totals: Reading,
    /// The failure that ended it; `Ok` when it was stopped.
    pub result: Result<(), DeviceError>,
}

/// Runs a worker between two devices on this thread until `stop` is set or a device fails.
///
/// # Errors
/// [`Misfit`] before the first frame is taken; a device's later failure is in the [`Outcome`],
/// beside the totals.
///
/// # Examples
/// Until another thread sets `stop`:
/// ```no_run
/// use std::sync::atomic::AtomicBool;
///
/// use rxo::driver::{Device, DeviceOptions};
/// use rxo::{Policy, WorkerConfig, live};
///
/// let open = |name: &str| Device::open(&name.parse()?, DeviceOptions::default());
/// let (nic, host) = (open("packet:eth1")?, open("tap:rxo0")?);
/// let config = WorkerConfig::new(Policy::linux_gro());
/// let stop = AtomicBool::new(false);
/// let outcome = live::run(nic, host, config, &stop, |_event| {})?;
/// outcome.result?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn run(
    nic: Device,
    host: Device,
    config: WorkerConfig,
    stop: &AtomicBool,
    mut observe: impl FnMut(Event<'_>),
) -> Result<Outcome, Misfit> {
    run_observed(nic, host, config, stop, &mut observe)
}

/// An observer of a run. The functions that take one are compiled here, once, and not again for each caller's
/// closure, which would bring the worker and the engine along.
type Observer<'o> = &'o mut dyn FnMut(Event<'_>);

fn run_observed(
    nic: Device,
    host: Device,
    config: WorkerConfig,
    stop: &AtomicBool,
    observe: Observer<'_>,
) -> Result<Outcome, Misfit> {
    between(ends(nic), ends(host), config, stop, observe)
}

fn ends(Device { source, sink }: Device) -> Duplex<DeviceSource, DeviceSink> {
    Duplex { source, sink }
}

fn between<NI, NO, HI, HO>(
    nic: Duplex<NI, NO>,
    host: Duplex<HI, HO>,
    config: WorkerConfig,
    stop: &AtomicBool,
    observe: Observer<'_>,
) -> Result<Outcome, Misfit>
where
    NI: FrameSource + Descriptors,
    NO: FrameSink + Notices + Descriptors,
    HI: FrameSource + Descriptors,
    HO: FrameSink + Notices + Descriptors,
{
    let mut worker = Worker::new(nic, host, on_a_system(config))?;
    let (mut alarm, mut switched) = (Alarm::default(), Switched::default());
    let result = worker.run(&mut SystemWaiter::new(), stop, |report| {
        let Report { reading, is_due, nic_sink, host_sink } = report;
        alarm
            .lines(reading.elapsed, Violations::of(reading))
            .for_each(|line| observe(Event::Notice(line)));
        let coalescing = switched.line(&reading.coalescing).map(str::to_owned);
        let notices = [coalescing, nic_sink.notice(), host_sink.notice()];
        notices.into_iter().flatten().for_each(|line| observe(Event::Notice(line)));
        if is_due {
            observe(Event::Reading(reading));
        }
    });
    let totals = worker.reading();
    alarm.last(Violations::of(&totals)).for_each(|line| observe(Event::Notice(line)));
    let (mut nic, mut host) = worker.into_devices();
    let notices = [nic.sink.notice(), host.sink.notice()];
    notices.into_iter().flatten().for_each(|line| observe(Event::Notice(line)));
    Ok(Outcome { totals, result })
}

/// The configuration with which notices of the devices are observed even if no readings are wanted, or few.
fn on_a_system(config: WorkerConfig) -> WorkerConfig {
    WorkerConfig { look_every: Some(NOTICES_EVERY), ..config }
}

/// How often the devices are asked for notices, at least.
const NOTICES_EVERY: Duration = Duration::from_secs(1);

/// A sink that may have a line for the user.
trait Notices {
    fn notice(&mut self) -> Option<String>;
}

impl Notices for DeviceSink {
    fn notice(&mut self) -> Option<String> {
        self.take_notice()
    }
}
