//! Host with its own TCP, on a device of the system that is opened by name.
//!
//! [`start`] opens the device on a new thread and runs a [`Host`](rxo_host::Host) there. [`RunningHost`]
//! returns its [`Handle`] and stops it. [`start_threads`] runs a host with several workers, on a thread each.
//! The device belongs to the network namespace of the thread that calls [`start`].
//!
//! On `packet:IF` the interface must have no addresses of the system, not even the link-local address of IPv6,
//! otherwise both stacks answer. While the host runs, [`start`] keeps the frames for the host's addresses (up
//! to 16), and no others, from the kernel. This saves a fifth of the processor time of receiving. On `tap:NAME`
//! and `tun:NAME` the peers are the system and the networks behind it.
//!
//! [`start`] probes the addresses for 400 ms, those of a cast for 100 ms, before the host uses them
//! ([`rxo_host::link::Probe`]), and refuses an address that another station, or another host of this system on
//! the same interface, already uses. [`HostConfig::probe`] changes how the addresses are probed.
//!
//! [`Listeners`] combines listeners on several addresses; [`wait_until_delivered()`] waits until a peer has
//! received everything; [`linger()`] waits until no peer needs the last ACK again. [`cast_sender`] and
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
mod shards;

use std::io;
use std::net::IpAddr;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rxo_device::{Descriptors, DeviceError};
use rxo_driver::wait::{self, Interest, WaitList};
use rxo_driver::{DeviceHandle, DeviceName, Isolation, Origin, clock};
use rxo_frame::Instant;
use rxo_host::link::{Conflict, Probe};
use rxo_host::{Handle, HostConfig, HostCounters, HostError, IpCidr, Waiter};
use thiserror::Error;

use asker::Question;
use claims::Claims;
use shards::{Orders, Started};

pub use asker::HostAsker;
pub use cast::{
    CAST_BUFFER_BYTES, CAST_DELAYED_ACK, CAST_QUICK_ACKS, CAST_SEGMENTS_FOR_AN_ACK,
    CAST_WINDOW_BYTES, cast_receiver, cast_sender,
};
pub use linger::{Lingering, linger};
pub use listeners::Listeners;
pub use settle::{Settling, Unsettled, wait_until_delivered};
pub use shards::{Confine, HostReading, HostThreads, Outcome};

use super::waiter::cannot_wait;
use super::{Device, DeviceOptions, SystemWaiter};
use crate::desk::Desk;
use crate::random_seed;

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
/// If the device cannot be opened, the configuration does not fit it, or another station already uses one of
/// the addresses.
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
    start_threads(name, options, config, HostThreads::default())
}

/// Opens the device `name`, with a queue for each worker of `threads`, and runs a host on it. With several
/// workers the host is sharded: a connection stays with the worker to which the device steers it
/// ([`rxo_wire::shard_of()`]).
///
/// # Errors
/// Returns the errors of [`start`], and an error if a thread cannot be started, or privileges cannot be given
/// up.
pub fn start_threads(
    name: &DeviceName,
    options: DeviceOptions,
    config: HostConfig,
    threads: HostThreads,
) -> Result<RunningHost, StartError> {
    let (name, label, count) = (name.clone(), name.name().to_owned(), threads.workers);
    let addresses: Vec<IpAddr> = config.addresses.iter().map(|it| it.address()).collect();
    let open = Box::new(move || open_isolated(&name, options, &addresses, count));
    start_opened(label, open, threads, config)
}

/// Opens the device `name`. If this device is an interface of the system, keeps frames for `addresses` from the
/// kernel.
fn open_isolated(
    name: &DeviceName,
    options: DeviceOptions,
    addresses: &[IpAddr],
    queues: u32,
) -> Result<Opened, StartError> {
    let (devices, queues) = match queues {
        1 => (vec![Device::open(name, options)?], None),
        _ => {
            let queues = name.attach_queues(queues)?;
            (queues.open_queues(options)?, Some(queues))
        }
    };
    let is_shared = name.kind().interface == Some(Origin::Existing);
    let claims = is_shared.then(|| Claims::new(name.name(), addresses)).transpose()?;
    let isolation = is_shared.then(|| Isolation::of_addresses(name.name(), addresses)).flatten();
    Ok(Opened { devices, _queues: queues, _isolation: isolation, _claims: claims })
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
    start_queues(label, || Ok(vec![open()?]), HostThreads::default(), config)
}

/// Runs a host on the queues that `open` returns, one for each worker of `threads`. `open` runs on the host's first thread,
/// whose name contains `label`.
///
/// # Errors
/// Returns the errors of [`start_threads`].
pub fn start_queues(
    label: String,
    open: impl FnOnce() -> Result<Vec<Device>, DeviceError> + Send + 'static,
    threads: HostThreads,
    config: HostConfig,
) -> Result<RunningHost, StartError> {
    let open = || Ok(Opened { devices: open()?, _queues: None, _isolation: None, _claims: None });
    start_opened(label, Box::new(open), threads, config)
}

/// The function that opens a host's device, on the host's thread. Boxed, so that the host is compiled once
/// and not again for each caller's closure type.
type Open = Box<dyn FnOnce() -> Result<Opened, StartError> + Send>;

/// The queues of an open device, with the isolation and the address locks that last as long as the host runs.
struct Opened {
    devices: Vec<Device>,
    /// Keeps all queues open until the last worker has ended: the kernel would give the frames of a closed queue to
    /// another worker.
    _queues: Option<Box<dyn DeviceHandle>>,
    _isolation: Option<Isolation>,
    _claims: Option<Claims>,
}

fn start_opened(
    label: String,
    open: Open,
    threads: HostThreads,
    config: HostConfig,
) -> Result<RunningHost, StartError> {
    let HostThreads { workers, cpus, log, confine } = threads;
    let stop = Arc::new(AtomicBool::new(false));
    let desks: Arc<[_]> = (0..workers).map(|_| Desk::new()).collect();
    let (started, starting) = channel();
    let orders = Orders { stop: Arc::clone(&stop), desks: Arc::clone(&desks), started };
    let run = move || {
        let opened = open();
        match opened.and_then(|opened| confine().map(|()| opened).map_err(StartError::Confine)) {
            Ok(opened) => shards::run(opened, (&cpus, log), config, &orders),
            Err(error) => Outcome::of_failure(error, &orders),
        }
    };
    let thread = thread::Builder::new().name(format!("rxo-host {label}")).spawn(run)?;
    match all_started(&starting, workers) {
        Ok((handle, shards)) => {
            let notice = shards.iter().find_map(|shard| shard.notice.clone());
            let handles = shards.into_iter().map(|shard| shard.of_shard).collect();
            Ok(RunningHost { handle, handles, stop, desks, notice, thread: Some(thread) })
        }
        Err(error) => {
            stop.store(true, Ordering::Relaxed);
            // The device is closed when the thread has ended.
            _ = thread.join();
            Err(error)
        }
    }
}

/// Waits until all `workers` have started. Returns the handle of the host, and the shards in their order.
fn all_started(
    starting: &Receiver<Result<Started, StartError>>,
    workers: u32,
) -> Result<(Handle, Vec<Started>), StartError> {
    let (mut started, mut failure) = (Vec::new(), None);
    for message in starting.iter().take(workers.max(1) as usize) {
        match message {
            Ok(shard) => started.push(shard),
            // A shard that was not opened because of another one does not know the reason.
            Err(StartError::Host(HostError::OtherShard)) => {}
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    started.sort_by_key(|shard| shard.number);
    let of_host = started.first().map(|shard| shard.of_host.clone());
    match (failure, of_host) {
        (None, Some(handle)) if started.len() == workers as usize => Ok((handle, started)),
        // Without a reason, a thread has panicked and has printed the panic.
        (failure, _) => {
            Err(failure.unwrap_or_else(|| StartError::Thread(io::ErrorKind::Other.into())))
        }
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
    /// Another station already uses an address of the host.
    #[error(transparent)]
    Conflict(#[from] Conflict),
    /// Another rxo of this system uses an address of the host on the same interface.
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
    /// One handle per shard. Each handle opens connections on its own shard alone.
    handles: Vec<Handle>,
    stop: Arc<AtomicBool>,
    desks: Arc<[Desk<Question>]>,
    notice: Option<String>,
    thread: Option<JoinHandle<Outcome>>,
}

impl RunningHost {
    /// Returns a handle for applications that use the host's TCP.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Returns the notice for the user from opening the device, for example that another kind of device was
    /// opened than requested; `None` if there is none.
    #[must_use]
    pub fn notice(&self) -> Option<&str> {
        self.notice.as_deref()
    }

    /// Returns a handle for each worker, in the order of the workers' numbers. Connections and listeners of
    /// such a handle belong to its worker alone, and listeners on several workers may share an address. For
    /// applications with a loop per worker.
    #[must_use]
    pub fn handles(&self) -> &[Handle] {
        &self.handles
    }

    /// Returns the counters of all workers after the current turn, within a tenth of a second; `None` if the host has ended.
    #[must_use]
    pub fn counters(&self) -> Option<HostCounters> {
        self.asker().counters()
    }

    /// Returns an asker for the running host. The asker can be used on any thread, also after the host has ended.
    #[must_use]
    pub fn asker(&self) -> HostAsker {
        HostAsker::new(Arc::clone(&self.desks), self.handle.clone())
    }

    /// Returns `true` if the host is still running. The host ends by itself if its device fails.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Stops the host and waits until it has ended. The host resets its connections and wakes all waiting
    /// threads.
    #[must_use]
    pub fn stop(mut self) -> Outcome {
        self.end().unwrap_or_else(Outcome::of_panic)
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
        // A read shows whether the source has frames.
        list.wait(Some(timeout)).map(|_| ()).map_err(cannot_wait)
    }
}
