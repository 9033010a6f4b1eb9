//! Receives trains of datagrams.

use std::net::{self, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use rxo_device::{Descriptors, DeviceError};

use super::sys::{self, MOST_MESSAGES, Received};
use crate::fault;

/// Room for the largest datagram, and for the largest train.
pub(super) const MESSAGE_BYTES: usize = 1 << 16;

/// Receives datagrams. Made by [`UdpSocket::source`](super::UdpSocket::source).
#[derive(Debug)]
pub struct UdpSource {
    socket: Arc<net::UdpSocket>,
    memory: Box<[u8]>,
    counters: UdpSourceCounters,
}

/// Totals of a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UdpSourceCounters {
    /// Datagrams received.
    pub datagrams: u64,
    /// Messages in which they came: as many if there are no trains.
    pub messages: u64,
    /// Bytes of those datagrams.
    pub bytes: u64,
    /// System calls that gave something.
    pub calls: u64,
}

/// Datagrams of one sender, in the order in which they came; all have one size, and the last may be shorter.
#[derive(Clone, Copy, Debug)]
pub struct Train<'s> {
    /// Who sent them.
    pub from: SocketAddr,
    /// Their bytes, one behind the other.
    pub bytes: &'s [u8],
    /// The size of all but the last, in bytes; at least 1.
    pub datagram_bytes: usize,
}

impl<'s> Train<'s> {
    /// The datagrams. An empty one is left out.
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

    /// Receives what is there, at most one call's worth, and gives it to `each` train by train. Returns the
    /// number of messages: if it is 0, nothing is there. Does not wait. An error that a router or the peer
    /// reported for an earlier send (`ECONNREFUSED`) counts as nothing there.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn receive(&mut self, mut each: impl FnMut(Train<'_>)) -> Result<usize, DeviceError> {
        let mut received = [Received::NOTHING; MOST_MESSAGES];
        let count = sys::receive(self.socket.as_fd(), &mut self.memory, &mut received)
            .map_err(|error| fault::system("cannot receive from a UDP socket", error))?;
        self.counters.calls += u64::from(count > 0);
        let memory = self.memory.chunks(MESSAGE_BYTES);
        for (message, memory) in received[..count].iter().zip(memory) {
            let bytes = &memory[..message.bytes.min(memory.len())];
            let datagram_bytes = message.datagram_bytes.unwrap_or(bytes.len()).max(1);
            let Some(from) = message.from else { continue };
            let train = Train { from, bytes, datagram_bytes };
            self.counters.messages += 1;
            self.counters.datagrams += train.datagrams().len() as u64;
            self.counters.bytes += bytes.len() as u64;
            each(train);
        }
        Ok(count)
    }

    /// Totals since it was made.
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

impl Descriptors for UdpSource {
    fn visit_descriptors<'f>(&'f self, visit: &mut dyn FnMut(BorrowedFd<'f>)) {
        visit(self.as_fd());
    }
}
