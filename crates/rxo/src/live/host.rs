//! Host with its own TCP on a device of the system, opened by name.
//!
//! [`start`] opens the device on a new thread and runs a [`Host`] there. [`RunningHost`] returns its
//! [`Handle`] and stops it. The device belongs to the network namespace of the thread that calls [`start`].
//!
//! On `packet:IF` the interface must have no addresses of the system, not even the link-local address of
//! IPv6, or both stacks answer. While the host runs, [`start`] keeps frames for the host's addresses (up to
//! 16) from the kernel, and only those, which saves a fifth of the processor time of receiving. On `tap:NAME`
//! and `tun:NAME` the peers are the system and the networks behind it.
//!
//! [`start`] probes the addresses for 400 ms before the host uses them ([`rxo_host::link::Probe`]), and
//! refuses an address that another station, or another host of this system on the same interface, already
//! has. [`HostConfig::probe`] changes that.
//!
//! [`Listeners`] combines listeners on several addresses; [`settle()`] waits until a peer has received
//! everything, [`linger()`] until no peer needs the last acknowledgement again. [`cast_sender`] and
//! [`cast_receiver`] configure the hosts of a cast.
//!
//! # Examples
//! ```no_run
//! use std::io::Write;
//! use rxo::live::{DeviceOptions, host};
//!
//! let config = host::config(vec!["10.0.0.2/24".parse()?]);
//! let options = DeviceOptions { bring_up: true, ..DeviceOptions::default() };
//! let host = host::start(&"tap:rxo0".parse()?, options, config)?;
//! let mut stream = host.handle().connect("10.0.0.1:7".parse()?)?;
//! stream.write_all(b"hello")?;
//! let outcome = host.stop();
//! assert!(outcome.result.is_ok());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod asker;
mod cast;
mod claims;
mod linger;
mod listeners;
mod settle;

use std::io;
use std::net::IpAddr;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rxo_device::{Descriptors, DeviceError};
use rxo_driver::wait::{self, Interest, WaitList};
use rxo_driver::{DeviceName, Isolation, Origin, clock};
use rxo_frame::Instant;
use rxo_host::link::{Conflict, Probe};
use rxo_host::{Handle, Host, HostConfig, HostCounters, HostError, IpCidr, Waiter};
use thiserror::Error;

use asker::Question;
use claims::Claims;

pub use asker::HostAsker;
pub use cast::{
    CAST_BUFFER_BYTES, CAST_DELAYED_ACK, CAST_QUICK_ACKS, CAST_SEGMENTS_FOR_AN_ACK,
    CAST_WINDOW_BYTES, cast_receiver, cast_sender,
};
pub use linger::{Lingering, linger};
pub use listeners::Listeners;
pub use settle::{Settling, Unsettled, settle};

use super::middleware::{Ends, ends};
use super::waiter::cannot_wait;
use super::{Device, DeviceOptions, FileLog, SystemWaiter};
use crate::desk::Desk;
use crate::random_seed;
use crate::worker::Duplex;

/// Creates a configuration with `addresses`, which will be probed, a random secret, and defaults for
/// everything else.
///
/// # Examples
/// ```
/// use rxo::live::host;
///
/// let config = host::config(vec!["10.0.0.2/24".parse()?]);
/// assert_eq!(config.addresses.len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn config(addresses: Vec<IpCidr>) -> HostConfig {
    let config = HostConfig::new(addresses, [random_seed(), random_seed()]);
    HostConfig { probe: Some(Probe::default()), ..config }
}

/// Opens the device `name` and runs a host on it, on a new thread.
///
/// # Errors
/// If the device cannot be opened, the configuration does not fit it, or another station has an address.
///
/// # Examples
/// Requires the privilege to create a TAP device:
/// ```no_run
/// use rxo::driver::DeviceOptions;
/// use rxo::live::host;
///
/// let config = host::config(vec!["10.0.0.2/24".parse()?]);
/// let running = host::start(&"tap:rxo0".parse()?, DeviceOptions::default(), config)?;
/// assert!(running.is_running());
/// running.stop();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn start(
    name: &DeviceName,
    options: DeviceOptions,
    config: HostConfig,
) -> Result<RunningHost, StartError> {
    let (label, open) = opening(name, options, &config, Box::new(|| Ok(())));
    start_opened(label, open, None, config)
}

/// Opens the device `name` and runs a host on it, on a new thread. Every packet that comes or leaves
/// goes to `log`, also those that the fast path consumes. `confine` is called on
/// that thread when the device is open, before a byte of the network is looked at: to give up what the host's thread needs
/// no more. The caller does so for its own thread.
///
/// # Errors
/// Returns the errors of [`start`], and an error if `confine` returns an error.
#[cfg(feature = "capture")]
pub fn start_confined(
    name: &DeviceName,
    options: DeviceOptions,
    config: HostConfig,
    log: Option<FileLog>,
    confine: Confine,
) -> Result<RunningHost, StartError> {
    let (label, open) = opening(name, options, &config, confine);
    start_opened(label, open, log, config)
}

/// The function that gives up privileges on the host's thread. Boxed, so that the host is not compiled again
/// for each caller's closure.
pub type Confine = Box<dyn FnOnce() -> io::Result<()> + Send>;

/// Returns the label of the host's thread, and the function that opens the device there.
fn opening(
    name: &DeviceName,
    options: DeviceOptions,
    config: &HostConfig,
    confine: Confine,
) -> (String, Open) {
    let (name, label) = (name.clone(), name.name().to_owned());
    let addresses: Vec<IpAddr> = config.addresses.iter().map(|it| it.address()).collect();
    let open = move || {
        let opened = open_isolated(&name, options, &addresses)?;
        confine().map(|()| opened).map_err(StartError::Confine)
    };
    (label, Box::new(open))
}

/// Opens the device `name`. If it is an interface of the system, keeps frames for `addresses` from the
/// kernel.
fn open_isolated(
    name: &DeviceName,
    options: DeviceOptions,
    addresses: &[IpAddr],
) -> Result<Opened, StartError> {
    let device = Device::open(name, options)?;
    let is_shared = name.kind().interface == Some(Origin::Existing);
    let claims = is_shared.then(|| Claims::new(name.name(), addresses)).transpose()?;
    let isolation = is_shared.then(|| Isolation::of_addresses(name.name(), addresses)).flatten();
    Ok(Opened { device, _isolation: isolation, _claims: claims })
}

/// Runs a host on the device that `open` returns. `open` runs on the host's thread, whose name contains
/// `label`.
///
/// # Errors
/// Returns the errors of [`start`].
pub fn start_with(
    label: String,
    open: impl FnOnce() -> Result<Device, DeviceError> + Send + 'static,
    config: HostConfig,
) -> Result<RunningHost, StartError> {
    let open = || Ok(Opened { device: open()?, _isolation: None, _claims: None });
    start_opened(label, Box::new(open), None, config)
}

/// The function that opens a host's device, on the host's thread. Boxed, so that the host is compiled only
/// once, here, and not for each caller's closure.
type Open = Box<dyn FnOnce() -> Result<Opened, StartError> + Send>;

/// An open device, with the isolation and the address locks that last as long as the host runs.
struct Opened {
    device: Device,
    _isolation: Option<Isolation>,
    _claims: Option<Claims>,
}

fn start_opened(
    label: String,
    open: Open,
    log: Option<FileLog>,
    config: HostConfig,
) -> Result<RunningHost, StartError> {
    let (stop, desk) = (Arc::new(AtomicBool::new(false)), Desk::new());
    let (started, starting) = channel();
    let orders = Orders { stop: Arc::clone(&stop), desk: desk.clone(), started };
    let thread = thread::Builder::new()
        .name(format!("rxo-host {label}"))
        .spawn(move || open_and_run(open, log, config, &orders))?;
    match starting.recv() {
        Ok(Ok(handle)) => Ok(RunningHost { handle, stop, desk, thread: Some(thread) }),
        Ok(Err(error)) => Err(error),
        // The thread has panicked and printed the reason.
        Err(_) => Err(StartError::Thread(io::ErrorKind::Other.into())),
    }
}

/// The reason why a host could not be started.
#[derive(Debug, Error)]
pub enum StartError {
    /// The device cannot be opened.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The configuration is invalid, or does not fit the device.
    #[error(transparent)]
    Host(#[from] HostError),
    /// Another station has an address of the host.
    #[error(transparent)]
    Conflict(#[from] Conflict),
    /// Another rxo of this system has an address of the host on the same interface.
    #[error(
        "address {address} is in use: another rxo of this system has it on {interface}; wait until that has ended, or choose another address"
    )]
    Taken {
        /// The address that is in use.
        address: IpAddr,
        /// The name of the interface.
        interface: String,
    },
    /// The host's thread could not give up its privileges.
    #[error("{0}")]
    Confine(io::Error),
    /// The host's thread could not be started.
    #[error("cannot start the host's thread: {0}")]
    Thread(#[from] io::Error),
}

/// A host that runs on a thread. Dropping it stops the host.
#[derive(Debug)]
pub struct RunningHost {
    handle: Handle,
    stop: Arc<AtomicBool>,
    desk: Desk<Question>,
    thread: Option<JoinHandle<Outcome>>,
}

/// The values that the host's thread gets: the stop flag, its desk, and the channel that reports the start.
struct Orders {
    stop: Arc<AtomicBool>,
    desk: Desk<Question>,
    started: Sender<Result<Handle, StartError>>,
}

/// The result of a host that has ended.
#[derive(Debug)]
pub struct Outcome {
    /// The host's counters at the end.
    pub counters: HostCounters,
    /// The processor time of the host's thread.
    pub cpu: Duration,
    /// The failure of the device that ended the host; `Ok` if it was stopped.
    pub result: Result<(), DeviceError>,
}

impl RunningHost {
    /// Returns a handle for applications.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Returns the counters after the current turn, within a tenth of a second; `None` if the host has ended.
    #[must_use]
    pub fn counters(&self) -> Option<HostCounters> {
        self.asker().counters()
    }

    /// Returns an asker for the running host. It works on any thread, also after the host's end.
    #[must_use]
    pub fn asker(&self) -> HostAsker {
        HostAsker::new(self.desk.clone(), self.handle.clone())
    }

    /// Returns `true` if the host is still running. It ends by itself if its device fails.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Stops the host and waits for its end. It resets connections and wakes all waiting threads.
    #[must_use]
    pub fn stop(mut self) -> Outcome {
        self.end().unwrap_or_else(|| Outcome {
            counters: HostCounters::default(),
            cpu: Duration::ZERO,
            result: Err(DeviceError::Gone("the host's thread".to_owned())),
        })
    }

    fn end(&mut self) -> Option<Outcome> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take()?.join().ok()
    }
}

impl Drop for RunningHost {
    fn drop(&mut self) {
        let _ended = self.end();
    }
}

fn open_and_run(open: Open, log: Option<FileLog>, config: HostConfig, orders: &Orders) -> Outcome {
    let Opened { device, _isolation, _claims } = match open() {
        Ok(opened) => opened,
        Err(error) => return failed(error, &orders.started),
    };
    let mac = config.mac.or_else(|| device.source.hardware_address());
    run(ends(device, log), HostConfig { mac, ..config }, orders)
}

fn run(Duplex { source, sink }: Ends, config: HostConfig, orders: &Orders) -> Outcome {
    let mut host = match Host::new(source, sink, config) {
        Ok(host) => host,
        Err(error) => return failed(error, &orders.started),
    };
    let mut waiter = SystemWaiter::new();
    match host.probe(&mut waiter, &orders.stop) {
        Ok(None) => {}
        Ok(Some(conflict)) => return failed(conflict, &orders.started),
        Err(error) => return failed(error, &orders.started),
    }
    // `start_opened` waits for this message.
    let _told = orders.started.send(Ok(host.handle()));
    let result = host.run(&mut waiter, &orders.stop, |host, _| {
        if let Some(question) = orders.desk.take() {
            question.answer(host);
        }
    });
    let cpu = Duration::from_nanos(clock::thread_cpu_ns());
    Outcome { counters: host.counters(), cpu, result }
}

fn failed(error: impl Into<StartError>, started: &Sender<Result<Handle, StartError>>) -> Outcome {
    // `start_opened` waits for this message.
    let _told = started.send(Err(error.into()));
    Outcome { counters: HostCounters::default(), cpu: Duration::ZERO, result: Ok(()) }
}

impl<I: Descriptors> Waiter<I> for SystemWaiter {
    fn now(&mut self) -> Instant {
        clock::now()
    }

    fn pause(&mut self, time: Duration) {
        wait::pause(time);
    }

    fn wait(
        &mut self,
        source: Option<&I>,
        alarm: BorrowedFd<'_>,
        timeout: Duration,
    ) -> Result<(), DeviceError> {
        if let Some(time) = self.rest {
            wait::pause(time);
            return Ok(());
        }
        let mut list = WaitList::new();
        list.add(source, Interest::Readable);
        list.add(Some(&alarm), Interest::Readable);
        // A source that is ready shows that when it is read.
        list.wait(Some(timeout)).map(|_| ()).map_err(cannot_wait)
    }
}
