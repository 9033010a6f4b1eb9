//! The worker between devices of the system.
//!
//! [`Device::open`] takes a name as a user types it; [`run`] puts a worker between two of them,
//! [`run_through`] one with [`Middleware`] around it.
//! Devices are used on the thread that opened them. [`host`] runs a host with its own TCP on one.
//! [`defaults`] has the policy of a live path.

pub mod defaults;
#[cfg(feature = "host")]
pub mod host;
mod middleware;
mod waiter;

use std::hash::{BuildHasher, Hasher, RandomState};
use std::os::fd::AsFd;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rxo_coalesce::Config;
use rxo_device::{DeviceError, FrameSink, FrameSource};
use rxo_driver::{
    DeviceName, PacketOptions, PacketSink, PacketSource, SubmitMode, Tap, TapSink, TapSource,
};

use crate::worker::{Duplex, Misfit, Reading, Report, Worker, WorkerConfig};

pub use middleware::{Middleware, run_through};
pub use waiter::SystemWaiter;

/// A device of the system, open both ways.
#[derive(Debug)]
pub enum Device {
    /// An existing interface, through packet sockets.
    Packet(Duplex<PacketSource, PacketSink>),
    /// A TAP or TUN interface.
    Tap(Duplex<TapSource, TapSink>),
}

/// How a device is opened.
#[derive(Clone, Copy, Debug, Default)]
pub struct DeviceOptions {
    /// The ring of a packet socket.
    pub packet: PacketOptions,
    /// How writes to a TAP or TUN are submitted.
    pub submit: SubmitMode,
    /// The MTU that a TAP or TUN gets, in bytes; `None` leaves it as it is.
    pub mtu: Option<u32>,
    /// Whether a TAP or TUN is switched on. While one is down, what is sent to it is dropped.
    pub bring_up: bool,
}

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

impl Device {
    /// Opens the device `name`.
    ///
    /// # Errors
    /// When it does not exist, is down or taken, or privilege is missing; one line says which.
    pub fn open(name: &DeviceName, options: DeviceOptions) -> Result<Self, DeviceError> {
        match name {
            DeviceName::Packet(name) => Ok(Self::Packet(Duplex {
                source: PacketSource::open(name, options.packet)?,
                sink: PacketSink::open(name)?,
            })),
            DeviceName::Tap(kind, name) => Self::of_tap(&Tap::open(name, *kind)?, options),
        }
    }

    /// The ends of a TAP or TUN that is open already. It lives as long as they do.
    ///
    /// # Errors
    /// When the interface is gone or refuses the options.
    pub fn of_tap(tap: &Tap, options: DeviceOptions) -> Result<Self, DeviceError> {
        if let Some(mtu) = options.mtu {
            tap.set_mtu(mtu)?;
        }
        if options.bring_up {
            tap.interface().set_up(true)?;
        }
        Ok(Self::Tap(Duplex { source: tap.source()?, sink: tap.sink(options.submit)? }))
    }
}

/// Runs a worker between two devices on this thread until `stop` is set or a device fails. The
/// flow hash gets a seed of its own, chosen at random.
///
/// # Errors
/// [`Misfit`] before the first frame is taken; a device's later failure is in the [`Outcome`],
/// beside the totals.
pub fn run(
    nic: Device,
    host: Device,
    config: WorkerConfig,
    stop: &AtomicBool,
    observe: impl FnMut(Event<'_>),
) -> Result<Outcome, Misfit> {
    match (nic, host) {
        (Device::Packet(nic), Device::Packet(host)) => between(nic, host, config, stop, observe),
        (Device::Packet(nic), Device::Tap(host)) => between(nic, host, config, stop, observe),
        (Device::Tap(nic), Device::Packet(host)) => between(nic, host, config, stop, observe),
        (Device::Tap(nic), Device::Tap(host)) => between(nic, host, config, stop, observe),
    }
}

/// A seed that nobody outside can know: the standard library's hash maps have theirs from the
/// system too.
fn random_seed() -> u64 {
    RandomState::new().build_hasher().finish()
}

fn between<NI, NO, HI, HO>(
    nic: Duplex<NI, NO>,
    host: Duplex<HI, HO>,
    config: WorkerConfig,
    stop: &AtomicBool,
    mut observe: impl FnMut(Event<'_>),
) -> Result<Outcome, Misfit>
where
    NI: FrameSource + AsFd,
    NO: FrameSink + Notices + AsFd,
    HI: FrameSource + AsFd,
    HO: FrameSink + Notices + AsFd,
{
    let engine = Config { seed: random_seed(), ..config.engine };
    let mut pace = Pace::new(config.report_every);
    // Whoever wants no readings, or few, is still told what the devices have to say.
    let report_every = Some(config.report_every.unwrap_or(NOTICES_EVERY).min(NOTICES_EVERY));
    let mut worker = Worker::new(nic, host, WorkerConfig { engine, report_every, ..config })?;
    let result = worker.run(&mut SystemWaiter::new(), stop, |report| {
        let Report { reading, nic_sink, host_sink } = report;
        let notices = [nic_sink.notice(), host_sink.notice()];
        notices.into_iter().flatten().for_each(|line| observe(Event::Notice(line)));
        if pace.is_due(reading.elapsed) {
            observe(Event::Reading(reading));
        }
    });
    let totals = worker.reading();
    let (mut nic, mut host) = worker.into_devices();
    let notices = [nic.sink.notice(), host.sink.notice()];
    notices.into_iter().flatten().for_each(|line| observe(Event::Notice(line)));
    Ok(Outcome { totals, result })
}

/// How often the devices are asked what they have to say, at least.
const NOTICES_EVERY: Duration = Duration::from_secs(1);

/// Which of the worker's reports are shown as readings.
struct Pace {
    every: Option<Duration>,
    due: Duration,
}

impl Pace {
    fn new(every: Option<Duration>) -> Self {
        Self { every, due: every.unwrap_or_default() }
    }

    /// Whether one is due after `elapsed`; the next one is then an interval later.
    fn is_due(&mut self, elapsed: Duration) -> bool {
        let Some(every) = self.every.filter(|_| elapsed >= self.due) else { return false };
        self.due = (self.due + every).max(elapsed);
        true
    }
}

/// A sink that may have something to say.
trait Notices {
    fn notice(&mut self) -> Option<String>;
}

impl Notices for PacketSink {
    fn notice(&mut self) -> Option<String> {
        self.take_notice()
    }
}

impl Notices for TapSink {
    fn notice(&mut self) -> Option<String> {
        self.take_notice()
    }
}
