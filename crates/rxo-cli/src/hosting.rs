//! Runs rxo's own host for the commands that need one: its plan from the flags, and its start.

mod fast_path;
mod running;
mod taken;

use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::{Context, Error, Result};
use rxo::live::DeviceOptions;
use rxo::live::host::{self, HostThreads, StartError};
use rxo::tcp::{Algorithm, Buffers, InitialWindow};
use rxo_confine::{Access, Confinement};
use rxo_driver::{DeviceName, Interface, LinkWatch};
use rxo_frame::LinkKind;
use rxo_host::{FastPath, HostConfig, HostError, IDLE_CONNECTION_BYTES, IpCidr, Route};

pub(crate) use self::fast_path::FastTotals;
pub(crate) use self::running::Running;
use crate::exit::usage;
use crate::flags::{HostFlags, WorkersFlags};
use crate::numbers::parse_bytes;
use crate::output;
use crate::sandbox::{self, Sandbox};
use crate::tap::Capture;
use crate::workers::{Workers, WorkersPlan};
pub(crate) use rxo::live::host::Listeners;

/// The device, addresses and limits of a host.
#[derive(Clone, Debug)]
pub(crate) struct HostPlan {
    nic: DeviceName,
    addresses: Vec<IpCidr>,
    gateways: Vec<IpAddr>,
    limits: Limits,
    fast_path: FastPath,
    tap: Option<PathBuf>,
    sandbox: Sandbox,
    workers: WorkersPlan,
}

/// The bounds of the host's tables and memory.
#[derive(Clone, Copy, Debug)]
struct Limits {
    neighbours: usize,
    memory_bytes: u64,
    orphans: usize,
    time_waits: usize,
    /// Maximum buffers of a connection; `None` for the host's default.
    largest_buffers: Option<Buffers>,
    congestion: Algorithm,
    initial_window: InitialWindow,
}

impl Limits {
    fn from_flags(flags: &HostFlags) -> Result<Self> {
        let HostFlags { neighbours, orphans, time_waits, .. } = *flags;
        let rows = [
            ("neighbours", neighbours, NEIGHBOURS),
            ("orphans", orphans, 1..=1 << 20),
            ("time-waits", time_waits, 1..=1 << 24),
        ];
        for (flag, value, range) in rows {
            if !range.contains(&value) {
                let (least, most) = (range.start(), range.end());
                return Err(usage(format!("--{flag} {value}: choose {least} to {most}")));
            }
        }
        let memory_bytes = parse_bytes(&flags.memory).filter(|bytes| MEMORY.contains(bytes));
        let memory_bytes = memory_bytes
            .ok_or_else(|| usage(format!("--memory {}: choose 1M to 1000G", flags.memory)))?;
        // The host refuses less than 1 MiB.
        let memory_bytes = memory_bytes.max(1 << 20);
        let largest_buffers = flags.max_buffer.as_deref().map(largest_buffers).transpose()?;
        let congestion = congestion(&flags.congestion)?;
        let initial_window = initial_window(&flags.initial_window)?;
        Ok(Self {
            neighbours,
            memory_bytes,
            orphans,
            time_waits,
            largest_buffers,
            congestion,
            initial_window,
        })
    }

    fn apply(self, config: &mut HostConfig) {
        let Self { neighbours, memory_bytes, orphans, time_waits, .. } = self;
        (config.neighbours, config.memory_bytes) = (neighbours, memory_bytes);
        (config.orphans, config.time_waits) = (orphans, time_waits);
        config.tcp.congestion = self.congestion;
        config.tcp.initial_window = self.initial_window;
        if self.largest_buffers.is_some() {
            config.tcp.largest_buffers = self.largest_buffers;
        }
    }
}

impl HostPlan {
    /// Makes the plan from the flags.
    ///
    /// # Errors
    /// If a name or an address is invalid; the message describes valid values.
    pub(crate) fn from_flags(flags: &HostFlags) -> Result<Self> {
        let nic: DeviceName = flags.nic.parse().context("--nic")?;
        let addresses = flags.ip.iter().map(|text| address(text)).collect::<Result<Vec<_>>>()?;
        let gateways =
            flags.gateway.iter().map(|text| gateway(text, &addresses)).collect::<Result<_>>()?;
        let (limits, fast_path) = (Limits::from_flags(flags)?, fast_path::from_flags(flags)?);
        let (tap, sandbox) = (flags.tap.clone(), Sandbox::from_user_flags(&flags.user)?);
        let workers = WorkersPlan::default();
        Ok(Self { nic, addresses, gateways, limits, fast_path, tap, sandbox, workers })
    }

    /// Sets the host's workers from `flags`; the default is one worker.
    ///
    /// # Errors
    /// If a value is invalid, or the device cannot have several workers.
    pub(crate) fn with_workers(self, flags: &WorkersFlags) -> Result<Self> {
        let workers = WorkersPlan::from_flags(flags)?;
        workers.check(&[&self.nic])?;
        Ok(Self { workers, ..self })
    }

    /// Returns the number of connections that fit into `--memory` if no connection has data in its buffers.
    pub(crate) fn most_connections(&self) -> u64 {
        self.limits.memory_bytes / IDLE_CONNECTION_BYTES
    }

    /// Returns the device.
    pub(crate) const fn nic(&self) -> &DeviceName {
        &self.nic
    }

    /// Returns the host's addresses.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        self.addresses.iter().map(IpCidr::address)
    }

    /// Opens the device and starts the host, with a thread for each worker. `change` may adjust the host's
    /// configuration before the start. Afterwards the process has given up all privileges except to open
    /// `files`. So everything else that needs a privilege must be done before, and no other thread may exist
    /// yet.
    ///
    /// # Errors
    /// If an address belongs to the system, the device cannot be opened, or the host cannot run on it.
    pub(crate) fn start_with(
        &self,
        files: Vec<(PathBuf, Access)>,
        change: impl FnOnce(&mut HostConfig),
    ) -> Result<Running> {
        self.addresses().try_for_each(taken::refuse)?;
        let routes = self.gateways.iter().map(|&via| Route::default_by(via)).collect();
        let mut config = HostConfig { routes, ..host::config(self.addresses.clone()) };
        self.limits.apply(&mut config);
        config.fast_path = self.fast_path.clone();
        change(&mut config);
        let options = DeviceOptions { bring_up: true, ..DeviceOptions::default() };
        let capture = self.capture()?;
        let point = capture.as_ref().and_then(|capture| capture.points.first().cloned());
        let needs = Confinement::host(files).with_connections(sandbox::connects(&self.nic));
        let (sandbox, of_host) = (self.sandbox.clone(), needs.clone());
        let confine = Box::new(move || sandbox.confine(of_host).map(drop));
        let Workers { count: workers, cpus } = self.workers.resolve(&[&self.nic]);
        let threads = HostThreads { workers, cpus: cpus.clone(), log: point, confine };
        let started = host::start_threads(&self.nic, options, config, threads);
        let host = started.map_err(|error| with_device(error, &self.nic))?;
        if let Some(line) = host.notice() {
            output::note(line);
        }
        let link = self.link_notices()?;
        let in_force = self.sandbox.confine(needs)?;
        sandbox::warn_of_gaps(&in_force);
        let has_rules = !self.fast_path.filter.is_empty();
        Ok(Running { host, cpus, capture, has_rules, link, in_force })
    }

    fn capture(&self) -> Result<Option<Capture>> {
        let link = self.nic.kind().link.unwrap_or(LinkKind::Ethernet);
        let begin = |path| Capture::begin(path, &[&self.nic], link);
        self.tap.as_deref().map(begin).transpose()
    }

    /// Starts to watch the link of the device, which must be open. A device that is not an interface has no
    /// link to watch.
    ///
    /// # Errors
    /// If the interface no longer exists.
    fn link_notices(&self) -> Result<LinkNotices> {
        let is_interface = self.nic.kind().interface.is_some();
        let interface = is_interface.then(|| Interface::find(self.nic.name())).transpose()?;
        let (label, watch) = (self.nic.to_string(), LinkWatch::default());
        Ok(LinkNotices { label, interface, watch, due: Instant::now() })
    }
}

/// Notices for the user when the link of the host's device goes down or comes up.
#[derive(Debug)]
pub(crate) struct LinkNotices {
    label: String,
    interface: Option<Interface>,
    watch: LinkWatch,
    due: Instant,
}

impl LinkNotices {
    /// Returns a notice if the link has changed. Queries the system at most once a second.
    pub(crate) fn next(&mut self) -> Option<String> {
        let now = Instant::now();
        let interface = self.interface.as_ref().filter(|_| now >= self.due)?;
        self.due = now + LINK_PERIOD;
        self.watch.notice(&self.label, interface)
    }
}

/// Time between two checks of the link.
const LINK_PERIOD: Duration = Duration::from_secs(1);

/// Stops the host of a command that prints none of its counters and has ended with `outcome`.
///
/// # Errors
/// The errors of [`Running::finish`], such as the failure of the device, which is then the reason for an error in
/// `outcome`; otherwise the error in `outcome`.
pub(crate) fn finish(host: Running, stop: &AtomicBool, outcome: Result<()>) -> Result<()> {
    host.finish(stop).and(outcome)
}

fn address(text: &str) -> Result<IpCidr> {
    text.parse().map_err(|error| usage(format!("--ip {text}: {error}")))
}

fn gateway(text: &str, addresses: &[IpCidr]) -> Result<IpAddr> {
    let address: IpAddr = text
        .parse()
        .map_err(|_| usage(format!("--gateway {text}: give an address, such as 10.0.0.1")))?;
    if addresses.iter().any(|cidr| cidr.contains(address)) {
        return Ok(address);
    }
    Err(usage(format!("--gateway {text}: it is in no network of --ip; choose one that is")))
}

fn largest_buffers(text: &str) -> Result<Buffers> {
    let bytes = parse_bytes(text).filter(|bytes| BUFFER.contains(bytes));
    let bytes = bytes.and_then(|bytes| u32::try_from(bytes).ok());
    let bytes =
        bytes.ok_or_else(|| usage(format!("--max-buffer {text}: choose 64KiB to 1000M")))?;
    Ok(Buffers { send_bytes: bytes, receive_bytes: bytes })
}

fn congestion(name: &str) -> Result<Algorithm> {
    match name {
        "cubic" => Ok(Algorithm::Cubic),
        "reno" => Ok(Algorithm::Reno),
        "bbr" => Ok(Algorithm::Bbr),
        _ => Err(usage(format!("--congestion {name}: choose cubic, reno or bbr"))),
    }
}

fn initial_window(text: &str) -> Result<InitialWindow> {
    if text == "rfc6928" {
        return Ok(InitialWindow::Rfc6928);
    }
    let segments = text.parse().ok().filter(|segments| INITIAL_SEGMENTS.contains(segments));
    let refused = || {
        let (least, most) = INITIAL_SEGMENTS.into_inner();
        usage(format!("--initial-window {text}: choose rfc6928, or {least} to {most} segments"))
    };
    segments.map(InitialWindow::Segments).ok_or_else(refused)
}

/// Permitted sizes of the neighbour table, in entries. Even the smallest table has free entries in addition to
/// one gateway for each IP version.
const NEIGHBOURS: RangeInclusive<usize> = 16..=1 << 20;
const INITIAL_SEGMENTS: RangeInclusive<u8> = 1..=64;
const BUFFER: RangeInclusive<u64> = 64 << 10..=1_000_000_000;
const MEMORY: RangeInclusive<u64> = 1_000_000..=1_000_000_000_000;

/// Adds the device's name to an error that does not contain it. An error that the user can avoid with other
/// flags becomes a usage error.
fn with_device(error: StartError, nic: &DeviceName) -> Error {
    let error = match error {
        // The error names the privilege that could not be given up.
        StartError::Confine(error) => return error.into(),
        StartError::Device(error) => return Error::from(error).context("--nic"),
        StartError::Host(HostError::NoDescriptor(_)) | StartError::Thread(_) => error.into(),
        StartError::Host(error) => usage(error.to_string()),
        StartError::Conflict(_) | StartError::Taken { .. } => usage(error.to_string()),
    };
    error.context(format!("--nic {nic}"))
}
