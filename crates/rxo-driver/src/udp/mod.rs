//! UDP sockets that move many datagrams in one system call.
//!
//! Linux passes a train of datagrams of equal size as one message, in both directions: `UDP_GRO` on receipt,
//! `UDP_SEGMENT` on transmission. The cost of a call, of a route lookup and of the queues is then paid once
//! for up to 64 datagrams. One call carries several messages (`recvmmsg`, `sendmmsg`).
//!
//! * [`UdpSocket`] is a bound socket; it detects which options the kernel has. [`UdpSocket::from_fd`] takes over a socket
//!   that other code has opened.
//! * [`UdpSource`] receives [`Train`]s of datagrams.
//! * [`Outbox`] is memory in which the caller writes datagrams one after the other; they are grouped into trains.
//! * [`UdpSink`] sends the datagrams of an outbox, or datagrams in the caller's memory ([`Datagram`]).
//!
//! # Contract
//! No call blocks, or allocates after construction, and datagrams to one address keep their order. On a
//! kernel without the options, all datagrams are sent singly. Some kernels and devices accept `UDP_SEGMENT`
//! and then refuse trains; the sink counts each refusal, and sends the datagrams of the train one by one.
//! After a refusal because the route cannot segment (`EIO`: IPsec, or before Linux 6.11 a device without checksum
//! offload), or because its MTU is too small for the datagrams (`EINVAL`, `EMSGSIZE`), the sink sends the next 1,000
//! datagrams to that destination one by one; a sink remembers eight such destinations. If the system lacks the option
//! (`EOPNOTSUPP`, `ENOPROTOOPT`), the sink sends no more trains. A datagram that cannot be sent at all is dropped and
//! counted, as UDP permits.

mod control;
mod message;
mod outbox;
mod sink;
mod source;
mod sys;
mod trains;

use std::io;
use std::net::{self, IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rxo_device::DeviceError;

pub use message::Datagram;
pub use outbox::Outbox;
pub use sink::{UdpSink, UdpSinkCounters};
pub use source::{Train, UdpSource, UdpSourceCounters};

use self::sys::Names;
use crate::fault;
use crate::sys::{option, set_option};

/// Maximum number of datagrams in one train, which every kernel with `UDP_SEGMENT` accepts.
pub const MOST_IN_TRAIN: usize = 64;

/// Maximum number of bytes in one train, which fit into one IP packet of either version.
pub const MOST_TRAIN_BYTES: usize = 65_535 - 40 - 8;

/// Options of a UDP socket.
#[derive(Clone, Copy, Debug)]
pub struct UdpOptions {
    /// `true` if trains are to be received (`UDP_GRO`), provided that the kernel supports it.
    pub receive_trains: bool,
    /// `true` if trains are to be sent (`UDP_SEGMENT`), provided that the kernel supports it.
    pub send_trains: bool,
    /// The requested size of the kernel's receive buffer and of its send buffer, in bytes; 0 leaves both
    /// sizes unchanged. Without privilege the system may grant less. Small buffers lose datagrams when many
    /// arrive at once.
    pub buffer_bytes: u32,
    /// The mark of all sent packets, which routing rules can match (`SO_MARK`, needs `CAP_NET_ADMIN`); 0 for
    /// none.
    pub mark: u32,
    /// `true` if the kernel is to report the destination address and the ECN bits of each train.
    pub receive_details: bool,
    /// Maximum number of messages that one call receives, 1 to 32. Each needs 64 KiB of memory.
    pub messages: usize,
}

impl Default for UdpOptions {
    fn default() -> Self {
        Self {
            receive_trains: true,
            send_trains: true,
            buffer_bytes: 4 << 20,
            mark: 0,
            receive_details: false,
            messages: 8,
        }
    }
}

/// A bound UDP socket. The source and the sinks that are created from it share the socket.
#[derive(Debug)]
pub struct UdpSocket {
    socket: Arc<net::UdpSocket>,
    options: UdpOptions,
    local: SocketAddr,
    /// The address that the socket is connected to; `None` if it is not connected.
    peer: Option<SocketAddr>,
}

impl UdpSocket {
    /// Binds to `local`. `[::]` also receives IPv4 if the system is so configured; IPv4 addresses then appear
    /// as IPv4, not as mapped IPv6 addresses.
    ///
    /// # Errors
    /// If the address cannot be bound, or packets may not be marked.
    pub fn bind(local: SocketAddr, options: UdpOptions) -> Result<Self, DeviceError> {
        let open = || Self::adopt(net::UdpSocket::bind(local)?, options);
        open().map_err(|error| cannot_bind(local, error))
    }

    /// Takes over a UDP socket that the caller has bound, connected or not, and sets `options`. Other settings of
    /// the caller stay: a mark, a device that the socket is bound to. The socket becomes non-blocking.
    ///
    /// # Errors
    /// If the descriptor is no UDP socket, or the system refuses an option.
    pub fn from_fd(socket: OwnedFd, options: UdpOptions) -> Result<Self, DeviceError> {
        Self::adopt(socket.into(), options).map_err(|error| {
            fault::system(
                "cannot use a descriptor as UDP socket; give one of a bound UDP socket",
                error,
            )
        })
    }

    /// Duplicates a UDP socket that the caller continues to use, and takes the duplicate over as
    /// [`UdpSocket::from_fd`] does. Both descriptors share the options: if the options enable trains, the
    /// caller too receives trains.
    ///
    /// # Errors
    /// Returns the errors of [`UdpSocket::from_fd`], and an error if no descriptor is left.
    pub fn from_borrowed(socket: BorrowedFd<'_>, options: UdpOptions) -> Result<Self, DeviceError> {
        let copy = socket.try_clone_to_owned();
        let copy = copy.map_err(|error| fault::system("cannot duplicate a descriptor", error))?;
        Self::from_fd(copy, options)
    }

    fn adopt(socket: net::UdpSocket, options: UdpOptions) -> io::Result<Self> {
        let fd = socket.as_fd();
        if option::<libc::c_int>(fd, libc::SOL_SOCKET, libc::SO_PROTOCOL)? != libc::IPPROTO_UDP {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let local = socket.local_addr()?;
        socket.set_nonblocking(true)?;
        if options.mark != 0 {
            set_mark(fd, options.mark)?;
        }
        if options.receive_details {
            sys::receive_details(fd, local.is_ipv6())?;
        }
        if options.buffer_bytes > 0 {
            sys::set_buffers(fd, options.buffer_bytes);
        }
        let receive_trains = options.receive_trains && sys::receive_trains(fd);
        let send_trains = options.send_trains && sys::can_send_trains(fd);
        let options = UdpOptions { receive_trains, send_trains, ..options };
        let peer = socket.peer_addr().ok();
        Ok(Self { socket: Arc::new(socket), options, local, peer })
    }

    /// Binds to `port` on all addresses, including IPv6 if the system has it; 0 chooses any free port.
    ///
    /// # Errors
    /// If the port cannot be bound.
    pub fn bind_any(port: u16, options: UdpOptions) -> Result<Self, DeviceError> {
        let at = |ip: IpAddr| Self::bind(SocketAddr::new(ip, port), options);
        let alone = |error| at(Ipv4Addr::UNSPECIFIED.into()).map_err(|_| error);
        at(Ipv6Addr::UNSPECIFIED.into()).or_else(alone)
    }

    /// Returns the address that the socket is bound to.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Returns the options of the socket; those for trains are `false` if the kernel does not support trains.
    #[must_use]
    pub const fn options(&self) -> UdpOptions {
        self.options
    }

    /// Changes the mark of all packets that are sent from now on; 0 for none.
    ///
    /// # Errors
    /// If packets may not be marked (`CAP_NET_ADMIN`).
    pub fn set_mark(&self, mark: u32) -> Result<(), DeviceError> {
        set_mark(self.socket.as_fd(), mark)
            .map_err(|error| fault::system(format!("cannot mark packets with {mark:#x}"), error))
    }

    /// Creates a source, and allocates memory for its messages. If there are several sources, each receives
    /// some of the datagrams.
    #[must_use]
    pub fn source(&self) -> UdpSource {
        UdpSource::new(Arc::clone(&self.socket), self.options.messages)
    }

    /// Creates a sink. Several sinks may send at the same time.
    #[must_use]
    pub fn sink(&self) -> UdpSink {
        let names = Names { is_ipv6: self.local.is_ipv6(), peer: self.peer };
        UdpSink::new(Arc::clone(&self.socket), names, self.options.send_trains)
    }
}

fn set_mark(socket: BorrowedFd<'_>, mark: u32) -> io::Result<()> {
    set_option(socket, libc::SOL_SOCKET, libc::SO_MARK, &mark.cast_signed())
}

fn cannot_bind(local: SocketAddr, error: io::Error) -> DeviceError {
    let remedy = match error.kind() {
        io::ErrorKind::AddrInUse => "; another program has it: end it or choose another port",
        io::ErrorKind::AddrNotAvailable => "; no interface has this address",
        io::ErrorKind::PermissionDenied => "; ports below 1024 need privilege",
        _ => "",
    };
    fault::system(format!("cannot bind UDP to {local}{remedy}"), error)
}
