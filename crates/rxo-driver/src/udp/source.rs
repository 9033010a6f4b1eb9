//! Source of datagrams: receives them as trains.

use std::net::{self, IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::Arc;

use rxo_device::{Descriptors, DeviceError};

use super::control::Details;
use super::sys::{self, MOST_MESSAGES, Received};
use super::{UdpOptions, UdpSocket};
use crate::fault;

/// The size of the largest datagram, and of the largest train, in bytes.
pub(super) const MESSAGE_BYTES: usize = 1 << 16;

/// Receives datagrams, as trains where the kernel supports them. Created by
/// [`UdpSocket::source`](super::UdpSocket::source).
#[derive(Debug)]
pub struct UdpSource {
    socket: Arc<net::UdpSocket>,
    memory: Box<[u8]>,
    counters: UdpSourceCounters,
}

/// Counters of a source, since it was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UdpSourceCounters {
    /// Number of datagrams received.
    pub datagrams: u64,
    /// Number of messages that contained these datagrams; equal to the number of datagrams if there are no
    /// trains.
    pub messages: u64,
    /// Number of bytes in the received datagrams.
    pub bytes: u64,
    /// Number of system calls that received at least one message.
    pub calls: u64,
}

/// Datagrams from one sender in order of arrival. All have one size, except that the last may be shorter.
#[derive(Clone, Copy, Debug)]
pub struct Train<'s> {
    /// The address and port of the sender.
    pub from: SocketAddr,
    /// The datagrams' bytes, one datagram after the other.
    pub bytes: &'s [u8],
    /// The size of each datagram except the last, in bytes; at least 1.
    pub datagram_bytes: usize,
    /// The address that the datagrams were sent to, and the index of the interface that they arrived on. `None` without
    /// [`UdpOptions::receive_details`](super::UdpOptions::receive_details).
    pub to: Option<(IpAddr, u32)>,
    /// The ECN bits of the datagrams' IP headers (RFC 3168), equal for all; 0 without
    /// [`UdpOptions::receive_details`](super::UdpOptions::receive_details).
    pub ecn: u8,
}

impl<'s> Train<'s> {
    /// Returns the datagrams of the train. An empty datagram is omitted.
    pub fn datagrams(&self) -> impl ExactSizeIterator<Item = &'s [u8]> + use<'s> {
        self.bytes.chunks(self.datagram_bytes)
    }
}

impl UdpSource {
    pub(super) fn new(socket: Arc<net::UdpSocket>, messages: usize) -> Self {
        let messages = messages.clamp(1, MOST_MESSAGES);
        let memory = vec![0; messages * MESSAGE_BYTES].into_boxed_slice();
        Self { socket, memory, counters: UdpSourceCounters::default() }
    }

    /// Creates a source for a UDP socket that the caller has bound and keeps, with the default options. The
    /// caller must no longer receive from this socket, because a received message may be a train.
    ///
    /// # Errors
    /// Returns the errors of [`UdpSocket::from_borrowed`].
    pub fn from_borrowed(socket: BorrowedFd<'_>) -> Result<Self, DeviceError> {
        UdpSocket::from_borrowed(socket, UdpOptions::default()).map(|socket| socket.source())
    }

    /// Receives waiting messages by one system call, and passes them to `each` train by train. Returns the
    /// number of messages, 0 if none is waiting. Does not block. An error that a router or the peer reported
    /// for an earlier send (`ECONNREFUSED`) also returns 0.
    ///
    /// # Errors
    /// If the system refuses the call.
    pub fn receive(&mut self, mut each: impl FnMut(Train<'_>)) -> Result<usize, DeviceError> {
        let mut received = [Received::NOTHING; MOST_MESSAGES];
        let count = sys::receive(self.socket.as_fd(), &mut self.memory, &mut received)
            .map_err(|error| fault::system("cannot receive from a UDP socket", error))?;
        self.counters.calls += u64::from(count > 0);
        let memory = self.memory.chunks(MESSAGE_BYTES);
        for (message, memory) in received[..count].iter().zip(memory) {
            let bytes = &memory[..message.bytes.min(memory.len())];
            let Details { datagram_bytes, to, ecn } = message.details;
            let datagram_bytes = datagram_bytes.unwrap_or(bytes.len()).max(1);
            let Some(from) = message.from else { continue };
            let train = Train { from, bytes, datagram_bytes, to, ecn };
            self.counters.messages += 1;
            self.counters.datagrams += train.datagrams().len() as u64;
            self.counters.bytes += bytes.len() as u64;
            each(train);
        }
        Ok(count)
    }

    /// Returns the counters of this source.
    #[must_use]
    pub const fn counters(&self) -> UdpSourceCounters {
        self.counters
    }
}

impl AsFd for UdpSource {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Returns the descriptor as a number, which asynchronous runtimes need.
impl AsRawFd for UdpSource {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

impl Descriptors for UdpSource {
    fn visit_descriptors<'f>(&'f self, visit: &mut dyn FnMut(BorrowedFd<'f>)) {
        visit(self.as_fd());
    }
}
