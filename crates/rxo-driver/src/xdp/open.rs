//! Opens an AF_XDP device: checks the interface, opens a socket on each queue, attaches the program.
//!
//! This module is separate because it decides which failures the user must resolve, and which only mean that
//! AF_XDP is not available.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use rxo_device::DeviceError;

use super::chunks::{Incoming, Outgoing};
use super::port::XdpPort;
use super::program::{Program, TagFunction};
use super::receiver::{Pools, Receiver};
use super::sender::Sender;
use super::shared::Shared;
use super::socket::{Settings, Socket, is_unsupported};
use super::source::{Properties, XdpSource, most_frame_bytes};
use crate::device::{Device, DeviceSink};
use crate::fault;
use crate::interface::Interface;
use crate::packet::PacketOptions;

/// The parameters of a device to open.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeviceRequest<'a> {
    /// The device name as the user wrote it.
    pub(super) label: &'a str,
    /// The name of the interface.
    pub(super) name: &'a str,
    /// The number of the only queue to open; `None` for all queues of the interface.
    pub(super) queue: Option<u32>,
    pub(super) tags: Option<TagFunction>,
}

/// The reason why a device could not be opened.
#[derive(Debug)]
pub(super) enum Unopened {
    /// An error that the user can resolve.
    Refused(DeviceError),
    /// AF_XDP is not available for this interface or process. The string is the reason.
    Unavailable(String),
}

impl From<DeviceError> for Unopened {
    fn from(error: DeviceError) -> Self {
        Self::Refused(error)
    }
}

impl DeviceRequest<'_> {
    /// Opens source and sink.
    pub(super) fn open(self, options: PacketOptions) -> Result<Device, Unopened> {
        let Self { label, name, .. } = self;
        let interface = self.find()?;
        if !interface.is_up()? {
            return Err(fault::is_down(label, name).into());
        }
        let (index, mtu) = (interface.index()?.unsigned_abs(), interface.mtu()?);
        let strips_vlans = interface.strips_vlans();
        if strips_vlans && !interface.is_virtual() {
            return Err(Unopened::Unavailable(format!(
                "the card removes VLAN tags, which would be lost; `ethtool -K {name} rxvlan off`"
            )));
        }
        let count = interface.receive_queues().filter(|count| *count > 0);
        let queues = (self.queues(count)?, count.is_none());
        let opened = Opened::new(self.sockets((index, mtu), queues, options)?, mtu);
        // The program is attached last, when the kernel has chunks for the first frames.
        let program = Program::attach(index, opened.bound(), self.tags);
        let program = program.map_err(|error| self.unattached(error))?;
        if strips_vlans && !program.has_tags {
            let why = "VLAN tags beside its frames would be lost; Linux 6.8 gives them";
            return Err(Unopened::Unavailable(format!("{name}: {why}")));
        }
        self.device(opened, (interface, mtu), program, options)
    }

    /// Creates source and sink from open sockets.
    fn device(
        self,
        opened: Opened,
        (interface, mtu): (Interface, u32),
        program: Program,
        options: PacketOptions,
    ) -> Result<Device, Unopened> {
        let Opened { queues, sender, is_zero_copy, chunk_bytes } = opened;
        let Some(sender) = sender else {
            return Err(DeviceError::Gone(self.label.to_owned()).into());
        };
        let receivers: Vec<_> = queues.into_iter().map(|(_, receiver)| receiver).collect();
        let properties = Properties {
            mtu,
            chunk_bytes,
            chunks: receivers.iter().map(Receiver::chunks).sum(),
            is_virtual: interface.is_virtual(),
            access: if is_zero_copy { ZERO_COPY } else { COPY },
        };
        let shared = Arc::new(Shared::new(program));
        let port = XdpPort::new((self.label, self.find()?), mtu, sender, Arc::clone(&shared));
        let pools = Pools::new(most_frame_bytes(mtu), options.large_buffers);
        let source =
            XdpSource::new((self.label, interface), receivers, (properties, pools), shared);
        Ok(Device { source: Box::new(source), sink: DeviceSink::new(port) })
    }

    fn find(self) -> Result<Interface, DeviceError> {
        Interface::find(self.name).map_err(|error| match error {
            DeviceError::Usage(_) => fault::no_such_interface(self.label, self.name),
            other => other,
        })
    }

    /// Returns the numbers of the queues to open, for an interface that receives in `count` queues. If the
    /// interface does not report the number of its queues (`count` is `None`), some of the returned queues
    /// may not exist.
    fn queues(self, count: Option<u32>) -> Result<Vec<u32>, DeviceError> {
        let Self { label, name, queue, .. } = self;
        match (queue, count) {
            (Some(queue), Some(count)) if queue >= count => Err(DeviceError::Usage(format!(
                "{label}: {name} has no queue {queue}; it receives in {count}: give one from 0 to {}",
                count - 1
            ))),
            (Some(queue), _) => Ok(vec![queue]),
            (None, Some(count)) if count > MOST_QUEUES => Err(DeviceError::Usage(format!(
                "{label}: {name} receives in {count} queues, and one device takes {MOST_QUEUES}; `ethtool -L {name} combined \
                 {MOST_QUEUES}`, or give one queue, such as {label}:0"
            ))),
            (None, count) => Ok((0..count.unwrap_or(MOST_QUEUES)).collect()),
        }
    }

    /// Opens a socket on each queue. Only the first socket also sends.
    fn sockets(
        self,
        (interface, mtu): (u32, u32),
        (queues, may_lack_some): (Vec<u32>, bool),
        options: PacketOptions,
    ) -> Result<Vec<(u32, Socket)>, Unopened> {
        let frame_bytes = most_frame_bytes(mtu) as u32;
        let chunk_bytes =
            if frame_bytes <= SMALL_CHUNK - HEADROOM { SMALL_CHUNK } else { LARGE_CHUNK };
        let needs_pieces = frame_bytes > chunk_bytes - HEADROOM;
        let share = if may_lack_some {
            options.ring_slots
        } else {
            options.ring_slots / queues.len() as u32
        };
        let receive = share.clamp(LEAST_CHUNKS, MOST_CHUNKS).next_power_of_two();
        let mut sockets = Vec::new();
        for queue in queues {
            let send = if sockets.is_empty() { SEND_CHUNKS } else { 0 };
            let settings = Settings { interface, queue, chunk_bytes, receive, send, needs_pieces };
            match Socket::open(settings) {
                Ok(socket) => sockets.push((queue, socket)),
                Err(error) if may_lack_some && !sockets.is_empty() && is_unsupported(&error) => {
                    break;
                }
                Err(error) => return Err(self.unbound(queue, error)),
            }
        }
        Ok(sockets)
    }

    /// Returns the error for a socket that could not be opened on `queue`.
    fn unbound(self, queue: u32, error: io::Error) -> Unopened {
        let Self { label, name, .. } = self;
        let why = match error.raw_os_error() {
            Some(libc::EBUSY) => {
                let message = format!(
                    "cannot open {label}: another program has queue {queue} of {name}; end it, or choose another queue"
                );
                return Unopened::Refused(fault::system(message, error));
            }
            Some(libc::ENODEV | libc::ENXIO) => return DeviceError::Gone(label.to_owned()).into(),
            Some(libc::ENETDOWN) => return fault::is_down(label, name).into(),
            Some(libc::EAFNOSUPPORT) => "this kernel has no AF_XDP".to_owned(),
            Some(libc::EPERM | libc::EACCES) => "it needs CAP_NET_RAW; run as root".to_owned(),
            Some(libc::ENOBUFS | libc::ENOMEM) => {
                "too little memory may be locked; raise `ulimit -l`, or run as root".to_owned()
            }
            Some(libc::EOPNOTSUPP | libc::EINVAL) => {
                format!("neither kernel nor {name} takes frames of this MTU by AF_XDP ({error})")
            }
            _ => format!("no socket can be opened ({error})"),
        };
        Unopened::Unavailable(why)
    }

    /// Returns the error for a program that could not be attached.
    fn unattached(self, error: io::Error) -> Unopened {
        let Self { label, name, .. } = self;
        let why = match error.raw_os_error() {
            Some(libc::EBUSY | libc::EEXIST) => {
                let message = format!(
                    "cannot open {label}: {name} has an XDP program; end what has put it there, or `ip link set {name} xdp off`"
                );
                return Unopened::Refused(fault::system(message, error));
            }
            Some(libc::EPERM | libc::EACCES) => {
                "it needs CAP_BPF and CAP_NET_ADMIN; run as root".to_owned()
            }
            Some(libc::EOPNOTSUPP) => format!("the driver of {name} runs no XDP programs"),
            Some(libc::EINVAL) => {
                format!("the driver of {name} refuses XDP as it is set ({error})")
            }
            _ => format!("the program cannot be attached to {name} ({error})"),
        };
        Unopened::Unavailable(why)
    }
}

/// The sockets of a device, divided into their receiving and sending halves.
struct Opened {
    /// The receiving halves, each with the number of its queue.
    queues: Vec<(u32, Receiver)>,
    /// The sending half of the first socket; `None` without sockets.
    sender: Option<Sender>,
    is_zero_copy: bool,
    chunk_bytes: u32,
}

impl Opened {
    fn new(sockets: Vec<(u32, Socket)>, mtu: u32) -> Self {
        let is_zero_copy = sockets.iter().all(|(_, socket)| socket.is_zero_copy);
        let first = sockets.first().map(|(_, socket)| socket.chunks.chunk_bytes());
        let chunk_bytes = first.unwrap_or_default();
        let mut sender = None;
        let halves = sockets.into_iter().map(|(queue, socket)| {
            let Socket { file, chunks, fill, received, completed, send, has_pieces, .. } = socket;
            if let Some(send) = send {
                let outgoing = Outgoing::new(Arc::clone(&chunks), SEND_CHUNKS);
                let limits = (most_frame_bytes(mtu), has_pieces);
                sender = Some(Sender::new(Arc::clone(&file), outgoing, (send, completed), limits));
            }
            (queue, Receiver::new(file, Incoming::new(chunks), fill, received))
        });
        let queues = halves.collect();
        Self { queues, sender, is_zero_copy, chunk_bytes }
    }

    /// Returns the sockets, each with the number of its queue.
    fn bound(&self) -> impl Iterator<Item = (u32, BorrowedFd<'_>)> {
        self.queues.iter().map(|(queue, receiver)| (*queue, receiver.socket()))
    }
}

/// The maximum number of queues of one device, because its worker waits for all of them at once.
const MOST_QUEUES: u32 = 16;
/// The two sizes of chunks that every kernel accepts, in bytes. With the smaller chunks, twice as many frames fit
/// into the caches.
const SMALL_CHUNK: u32 = 2_048;
const LARGE_CHUNK: u32 = 4_096;
/// The number of bytes before a frame that the kernel keeps free in a chunk (`XDP_PACKET_HEADROOM`).
const HEADROOM: u32 = 256;
/// The minimum number of chunks of a queue for received frames.
const LEAST_CHUNKS: u32 = 64;
const MOST_CHUNKS: u32 = 1 << 16;
/// The number of chunks for frames to send: 64 GSO frames of 64 KiB are 2,900 frames of 1,500 bytes.
const SEND_CHUNKS: u32 = 4_096;

const ZERO_COPY: &str = "AF_XDP, zero-copy";
const COPY: &str = "AF_XDP, copy mode";
