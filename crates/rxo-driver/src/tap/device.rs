//! Creates a TAP or TUN interface, or takes over a persistent one and restores its settings at the end.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use rxo_device::DeviceError;
use rxo_vnet::TUNNEL_HEADER_BYTES;

use super::adopted::NO_HEADER;
use super::offload::{Attachment, Offloads};
use super::sink::TapPort;
use super::{SubmitMode, TapKind, TapSource, offload};
use crate::device::{Device, DeviceName, DeviceSink};
use crate::interface::Interface;
use crate::lock::Lock;
use crate::statistics::Statistics;
use crate::succession::Handed;
use crate::{fault, steering};

const TUN_DEVICE: &str = "/dev/net/tun";

/// Minimum capacity of the queue before a TAP, in packets. When the queue is full, the kernel drops packets;
/// there is no backpressure to the sender. A host sends up to a million packets per second, so the queue buffers
/// the packets of 4 ms: the longest time slice of another process on the same core.
const QUEUE_PACKETS: u32 = 4_096;

/// The largest MTU of a TAP, in bytes.
pub(super) const LARGEST_MTU: u32 = 65_521;

/// A TAP or TUN interface whose other side is this process.
///
/// If the interface did not exist before, the kernel removes it when the last of `Tap`, its sources and its
/// sinks is dropped, and when the process is killed. A persistent interface gets back its former MTU, queue
/// length and state (up or down).
#[derive(Debug)]
pub struct Tap {
    device: Arc<TapDevice>,
    /// The queues of the interface, except the first.
    others: Vec<Arc<TapDevice>>,
}

impl Tap {
    /// Creates the interface `name`, or takes over a persistent one that no other process has open.
    ///
    /// # Errors
    /// If the name is taken, or `/dev/net/tun` or privilege is missing.
    pub fn open(name: &str, kind: TapKind) -> Result<Self, DeviceError> {
        Ok(Self { device: Arc::new(TapDevice::open(name, kind, 1)?), others: Vec::new() })
    }

    /// Attaches to the interface of `device`, which another process has opened and hands over.
    pub(super) fn inherit(
        device: &DeviceName,
        kind: TapKind,
        (handed, queues): (Handed, u32),
    ) -> Result<Self, DeviceError> {
        let Handed { files, .. } = handed;
        let locks = usize::from(queues > 1);
        fault::check_queue_count(device, files.len().saturating_sub(locks), queues)?;
        let mut files = files.into_iter();
        let all = files.by_ref().take(queues as usize);
        let all = all.map(|file| TapDevice::inherit(device, kind, file.into()));
        let all = all.collect::<io::Result<Vec<_>>>();
        let mut all = all.map_err(|error| fault::opening(&device.to_string(), error))?.into_iter();
        let mut first = all.next().ok_or_else(|| DeviceError::Gone(device.to_string()))?;
        first.is_first = true;
        first.statistics = Statistics::of(first.interface.index()?).ok();
        first.lock = files.next().map(Lock::inherit);
        Ok(Self { device: Arc::new(first), others: all.map(Arc::new).collect() })
    }

    /// Returns the descriptors of all queues and, if there are several, the descriptor of the lock.
    pub(super) fn hand_over(&self) -> io::Result<Handed> {
        let queues = std::iter::once(&self.device).chain(&self.others).map(|queue| queue.as_fd());
        let files = queues.chain(self.device.lock.iter().map(AsFd::as_fd));
        let files = files.map(|file| file.try_clone_to_owned());
        Ok(Handed::of_files(files.collect::<io::Result<_>>()?))
    }

    /// Returns the settings that a persistent interface had before rxo used it. The process that uses the
    /// interface last restores these settings.
    pub(super) fn position(&self) -> Handed {
        let numbers = self.device.before.get().map(Before::to_numbers).unwrap_or_default();
        Handed { files: Vec::new(), numbers }
    }

    /// Continues at the position at which another process has stopped. That process has counted the drops until
    /// then.
    pub(super) fn go_on_at(&self, position: &Handed) {
        let device = &self.device;
        device.dropped_before.store(device.all_dropped(), Ordering::Relaxed);
        if let Some(before) = Before::from_numbers(&position.numbers) {
            // A process goes on once.
            _ = device.before.set(before);
        }
    }

    /// Creates the interface `name` with `queues` queues, or takes over a persistent one that has several
    /// (`multi_queue`) and that no other process has open. The kernel chooses the queue of each packet by the
    /// rule of [`PacketSource::open_shards`](crate::PacketSource::open_shards).
    ///
    /// # Errors
    /// Returns the errors of [`Tap::open`], and an error if the system does not let this process choose the
    /// rule (`CAP_BPF`).
    pub(super) fn open_queues(name: &str, kind: TapKind, queues: u32) -> Result<Self, DeviceError> {
        let device = TapDevice::open(name, kind, queues)?;
        let others = (1..queues).map(|_| device.another_queue().map(Arc::new));
        let others = others.collect::<Result<_, _>>()?;
        device.steer(queues)?;
        let tap = Self { device: Arc::new(device), others };
        tap.discard_unsteered();
        Ok(tap)
    }

    /// Discards the packets that the stack sent before the rule was in force. Whoever sees the interface may bring it
    /// up at once, and the kernel puts a packet into the wrong queue until all queues are there.
    fn discard_unsteered(&self) {
        // The kernel frees a packet whole, however little of it is read.
        let mut start = [0; TUNNEL_HEADER_BYTES];
        for queue in std::iter::once(&self.device).chain(&self.others) {
            let packets = 0..self.interface().queue_packets().unwrap_or(QUEUE_PACKETS);
            _ = packets.take_while(|_| queue.file().read(&mut start).is_ok()).count();
        }
    }

    /// Creates a [`Tap`] from the open queues of one interface.
    pub(super) fn of_queues(first: TapDevice, others: Vec<Arc<TapDevice>>) -> Self {
        Self { device: Arc::new(first), others }
    }

    /// Creates a source and a sink for each queue, in the order of the queues. Each source and sink may move
    /// to another thread.
    ///
    /// # Errors
    /// If the interface is gone, or `mode` is `Uring` and the system offers no io_uring.
    pub fn devices(&self, mode: SubmitMode) -> Result<Vec<Device>, DeviceError> {
        let all = std::iter::once(&self.device).chain(&self.others);
        let queue = |device: &Arc<TapDevice>| {
            let source = Box::new(TapSource::new(Arc::clone(device))?);
            Ok(Device { source, sink: sink(device, mode)? })
        };
        all.map(queue).collect()
    }

    /// Returns the kind of packets that the interface carries: Ethernet frames or IP packets.
    #[must_use]
    pub fn kind(&self) -> TapKind {
        self.device.kind
    }

    /// Returns the interface, to bring it up and to read its settings.
    #[must_use]
    pub fn interface(&self) -> &Interface {
        &self.device.interface
    }

    /// Sets the MTU, in bytes, at most 65,521. Call it before creating sources and sinks, which read the MTU
    /// only once.
    ///
    /// # Errors
    /// If the MTU is too large or the system refuses.
    pub fn set_mtu(&self, mtu: u32) -> Result<(), DeviceError> {
        if mtu > LARGEST_MTU {
            return Err(DeviceError::Usage(format!(
                "{}: an MTU of {mtu} is too large; the largest is {LARGEST_MTU}",
                self.device.label
            )));
        }
        self.device.interface.set_mtu(mtu)
    }

    /// Creates a source of the packets that the host's stack sends into the interface.
    ///
    /// # Errors
    /// If the interface is gone.
    pub fn source(&self) -> Result<TapSource, DeviceError> {
        TapSource::new(Arc::clone(&self.device))
    }

    /// Creates a sink for packets that the host's stack receives from the interface. The sink may move to
    /// other threads, as the tasks of a multi-threaded runtime do; use [`SubmitMode::Writev`] in such tasks.
    /// With io_uring only the thread that writes first can submit batches: after a move to another thread,
    /// each packet is written by its own system call.
    ///
    /// # Errors
    /// If the interface is gone, or `mode` is `Uring` and the system offers no io_uring.
    pub fn sink(&self, mode: SubmitMode) -> Result<DeviceSink, DeviceError> {
        sink(&self.device, mode)
    }
}

impl AsFd for Tap {
    /// Returns the descriptor of the first queue, which its source and its sink share.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

fn sink(device: &Arc<TapDevice>, mode: SubmitMode) -> Result<DeviceSink, DeviceError> {
    let sink = DeviceSink::new(TapPort::new(Arc::clone(device), mode)?);
    let has_header = device.offloads.header_bytes > 0;
    Ok(if has_header { sink } else { sink.with_notice(NO_HEADER.to_owned()) })
}

/// The open interface, shared by sources and sinks.
#[derive(Debug)]
pub(super) struct TapDevice {
    /// The device's name as the user wrote it: `tap:rxo0`.
    pub(super) label: String,
    pub(super) kind: TapKind,
    pub(super) interface: Interface,
    /// The offloads that the kernel has accepted.
    pub(super) offloads: Offloads,
    file: File,
    /// The settings to restore; empty if the interface did not exist before, or another process restores them.
    before: OnceLock<Before>,
    /// The interface's counters; `None` if the system does not count, or if this is a queue beyond the first.
    statistics: Option<Statistics>,
    /// `true` for the first or only queue.
    pub(super) is_first: bool,
    /// The number of packets that the interface had dropped before this process used it.
    dropped_before: AtomicU64,
    /// The lock of an interface with several queues. The kernel alone would let other processes attach more
    /// queues.
    lock: Option<Lock>,
}

/// The settings of a persistent interface before rxo changed them.
#[derive(Debug)]
struct Before {
    mtu: u32,
    up: bool,
    queue_packets: u32,
    header_bytes: i32,
}

impl TapDevice {
    fn open(name: &str, kind: TapKind, queues: u32) -> Result<Self, DeviceError> {
        let label = format!("{kind}:{name}");
        let file = open_tun(&label)?;
        let found = Interface::find(name).ok();
        let existed = found.is_some();
        let attachment = match queues {
            1 => Attachment::Single,
            _ => Attachment::First { existed },
        };
        let refused = |error| refused(&label, (kind, attachment), name, error);
        // An interface that exists is locked before this process attaches to it; otherwise a process that
        // uses it would lose packets.
        let lock = found.filter(|_| queues > 1).map(|found| lock(&found).map_err(refused));
        let lock = lock.transpose()?;
        offload::attach(file.as_fd(), kind, name, attachment).map_err(refused)?;
        let interface = Interface::find(name)?;
        let lock = match lock {
            None if queues > 1 => Some(self::lock(&interface).map_err(refused)?),
            held => held,
        };
        let mut device = Self::new(label, kind, interface, file);
        if existed {
            device.before = Before::read(&device.interface, &device.file)?.into();
        }
        device.lock = lock;
        device.enable_offloads()?;
        if device.interface.queue_packets()? < QUEUE_PACKETS {
            // The owner of a persistent interface may open it without the privilege to change it.
            let _shorter_is_fine = device.interface.set_queue_packets(QUEUE_PACKETS);
        }
        device.begin_to_count()?;
        Ok(device)
    }

    /// Attaches to a queue that another process has opened. Its settings stay, because that process may still use it.
    fn inherit(device: &DeviceName, kind: TapKind, file: File) -> io::Result<Self> {
        let offloads = offload::accepted(file.as_fd(), kind)?;
        let interface = Interface::find(&offload::attached(file.as_fd())?.name);
        let interface = interface.map_err(|_| io::Error::from_raw_os_error(libc::ENODEV))?;
        let mut queue = Self::new(device.to_string(), kind, interface, file);
        (queue.offloads, queue.is_first) = (offloads, false);
        Ok(queue)
    }

    /// Creates the first queue of an interface, without offloads, counters, a lock, or settings to restore.
    pub(super) fn new(label: String, kind: TapKind, interface: Interface, file: File) -> Self {
        Self {
            label,
            kind,
            interface,
            offloads: Offloads::default(),
            file,
            before: OnceLock::new(),
            statistics: None,
            is_first: true,
            dropped_before: AtomicU64::new(0),
            lock: None,
        }
    }

    fn enable_offloads(&mut self) -> Result<(), DeviceError> {
        let enabled = offload::enable(self.file.as_fd(), self.kind);
        self.offloads = enabled.map_err(|error| fault::opening(&self.label, error))?;
        Ok(())
    }

    /// Opens the interface's counters. Packets that were dropped before do not count.
    pub(super) fn begin_to_count(&mut self) -> Result<(), DeviceError> {
        self.statistics = Statistics::of(self.interface.index()?).ok();
        self.dropped_before = self.all_dropped().into();
        Ok(())
    }

    /// Opens one more queue of this interface. The interface keeps the settings from its first queue.
    fn another_queue(&self) -> Result<Self, DeviceError> {
        let Self { label, kind, offloads, .. } = self;
        let (file, name) = (open_tun(label)?, self.interface.name());
        let attachment = Attachment::Further;
        offload::attach(file.as_fd(), *kind, name, attachment)
            .map_err(|error| refused(label, (*kind, attachment), name, error))?;
        let mut queue = Self::new(label.clone(), *kind, Interface::find(name)?, file);
        (queue.offloads, queue.is_first) = (*offloads, false);
        Ok(queue)
    }

    /// Loads the rule by which the kernel chooses the queue of each packet: both directions of a flow use the
    /// same queue.
    fn steer(&self, queues: u32) -> Result<(), DeviceError> {
        let steered = steering::load(&steering::program(queues))
            .and_then(|program| offload::steer(self.file.as_fd(), Some(program.as_fd())));
        steered.map_err(|error| {
            let remedy = "run as root or give CAP_BPF, or use one worker";
            let label = &self.label;
            fault::system(
                format!("cannot choose the queue of each flow of {label}; {remedy}"),
                error,
            )
        })
    }

    /// Creates a device that reads and writes `descriptor`.
    #[cfg(test)]
    pub(super) fn for_tests(descriptor: std::os::fd::OwnedFd) -> Self {
        let interface = Interface::find("lo").expect("every system has one");
        let mut device =
            Self::new("tap:test".to_owned(), TapKind::Tap, interface, File::from(descriptor));
        device.offloads.header_bytes = rxo_vnet::VNET_HEADER_BYTES;
        device
    }

    /// Returns the number of packets of the host's stack that the kernel has dropped because the queue was
    /// full, since the device was opened; 0 if unknown.
    pub(super) fn dropped(&self) -> u64 {
        self.all_dropped().saturating_sub(self.dropped_before.load(Ordering::Relaxed))
    }

    /// Returns the number of packets of the host's stack that the interface has ever dropped; 0 if unknown.
    fn all_dropped(&self) -> u64 {
        let now = self.statistics.as_ref().and_then(Statistics::read);
        now.map_or(0, |now| now.sent_drops)
    }

    /// Converts an error of the descriptor to the error for the caller.
    pub(super) fn device_error(&self, error: io::Error) -> DeviceError {
        if fault::means_gone(&error) {
            DeviceError::Gone(self.label.clone())
        } else {
            fault::system(format!("{} failed while in use", self.label), error)
        }
    }

    /// Returns the file, for reading and writing packets.
    pub(super) const fn file(&self) -> &File {
        &self.file
    }
}

impl AsFd for TapDevice {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for TapDevice {
    fn drop(&mut self) {
        if let Some(before) = self.before.get() {
            before.restore_settings(&self.interface, &self.file);
        }
    }
}

impl Before {
    fn read(interface: &Interface, file: &File) -> Result<Self, DeviceError> {
        let header_bytes =
            offload::header_bytes(file.as_fd()).map_err(|e| fault::opening(interface.name(), e))?;
        let (mtu, queue_packets) = (interface.mtu()?, interface.queue_packets()?);
        Ok(Self { mtu, up: interface.is_up()?, queue_packets, header_bytes })
    }

    /// Returns the settings as numbers, for another process.
    fn to_numbers(&self) -> Vec<u64> {
        let Self { mtu, up, queue_packets, header_bytes } = self;
        let header_bytes = u64::try_from(*header_bytes).unwrap_or(0);
        vec![(*mtu).into(), u64::from(*up), (*queue_packets).into(), header_bytes]
    }

    /// Decodes the settings from their numbers. Returns `None` if `numbers` is empty, because the interface
    /// did not exist before rxo created it.
    fn from_numbers(numbers: &[u64]) -> Option<Self> {
        let [mtu, up, queue_packets, header_bytes] = <[u64; 4]>::try_from(numbers).ok()?;
        Some(Self {
            mtu: u32::try_from(mtu).ok()?,
            up: up != 0,
            queue_packets: u32::try_from(queue_packets).ok()?,
            header_bytes: i32::try_from(header_bytes).ok()?,
        })
    }

    /// Restores each setting by itself. If one cannot be restored, for example because the interface is gone,
    /// still tries the others.
    fn restore_settings(&self, interface: &Interface, file: &File) {
        let _unless_gone = offload::disable(file.as_fd());
        // Without several queues there was nothing to choose.
        let _unless_gone = offload::steer(file.as_fd(), None);
        let _unless_gone = offload::set_header_bytes(file.as_fd(), self.header_bytes);
        let _unless_gone = interface.set_mtu(self.mtu);
        let _unless_gone = interface.set_up(self.up);
        let _unless_gone = interface.set_queue_packets(self.queue_packets);
    }
}

/// Locks an interface with several queues.
///
/// # Errors
/// If another process holds the lock: `EBUSY`, as the kernel returns for an interface with one queue.
fn lock(interface: &Interface) -> io::Result<Lock> {
    let index = interface.index().map_err(|_| io::Error::from_raw_os_error(libc::ENODEV))?;
    let taken = Lock::try_take(&format!("queues-{index}"))?;
    taken.ok_or_else(|| io::Error::from_raw_os_error(libc::EBUSY))
}

pub(super) fn open_tun(label: &str) -> Result<File, DeviceError> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(libc::O_NONBLOCK);
    options.open(TUN_DEVICE).map_err(|error| {
        let remedy = match error.kind() {
            io::ErrorKind::NotFound => {
                "load the module with `modprobe tun`, or give the device to the container"
            }
            io::ErrorKind::PermissionDenied => "run as root, or allow this user to open it",
            _ => "the system refused",
        };
        fault::system(format!("cannot open {TUN_DEVICE} for {label}; {remedy}"), error)
    })
}

fn refused(
    label: &str,
    (kind, attachment): (TapKind, Attachment),
    name: &str,
    error: io::Error,
) -> DeviceError {
    let message = match error.raw_os_error() {
        Some(libc::EBUSY) => format!(
            "cannot open {label}: another program serves `{name}`; end it or choose another name"
        ),
        Some(libc::EINVAL) if attachment != Attachment::Single => format!(
            "cannot open {label} for several workers: `{name}` is an interface of another kind than {kind}, or has \
             one queue; make it with `ip tuntap add {name} mode {kind} multi_queue`, or choose another name"
        ),
        Some(libc::EINVAL) => format!(
            "cannot open {label}: `{name}` is an interface of another kind than {kind}, or has several queues; choose \
             another name"
        ),
        _ => return fault::opening(label, error),
    };
    fault::system(message, error)
}
