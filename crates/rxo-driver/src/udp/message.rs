//! Messages: one or more datagrams that are passed to the kernel in one `msghdr`.
//!
//! This module is separate because datagrams come from two places: an [`Outbox`](super::Outbox), and the
//! caller's memory. Both use the rule of this module by which datagrams form a train.

use std::net::{IpAddr, SocketAddr};

use super::{MOST_IN_TRAIN, MOST_TRAIN_BYTES};

/// A datagram in the caller's memory, which [`UdpSink::send_from`](super::UdpSink::send_from) sends without a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'d> {
    /// The address to send to.
    pub to: SocketAddr,
    /// The bytes of the datagram.
    pub bytes: &'d [u8],
    /// The address to send from, of the version of `to`; `None` lets the system choose.
    pub from: Option<IpAddr>,
    /// The ECN bits of the IP header (RFC 3168), 0 to 3.
    pub ecn: u8,
}

impl<'d> Datagram<'d> {
    /// Creates a datagram that leaves from the address that the system chooses, without an ECN mark.
    #[must_use]
    pub const fn new(to: SocketAddr, bytes: &'d [u8]) -> Self {
        Self { to, bytes, from: None, ecn: 0 }
    }
}

/// Datagrams that are sent as one message: a train, or a single datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Message<'o> {
    pub(super) to: SocketAddr,
    pub(super) from: Option<IpAddr>,
    pub(super) ecn: u8,
    /// The number of bytes of all datagrams.
    pub(super) bytes: usize,
    /// The size of every datagram except the last, in bytes.
    pub(super) datagram_bytes: usize,
    memory: Memory<'o>,
}

/// The bytes of a message: all datagrams in one slice, one after the other, or each datagram in its own
/// slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Memory<'o> {
    Together(&'o [u8]),
    Apart(&'o [Datagram<'o>]),
}

impl<'o> Message<'o> {
    /// Creates a message from datagrams that lie one after the other in memory.
    pub(super) const fn together(
        to: SocketAddr,
        ecn: u8,
        bytes: &'o [u8],
        datagram_bytes: usize,
    ) -> Self {
        let memory = Memory::Together(bytes);
        Self { to, from: None, ecn, bytes: bytes.len(), datagram_bytes, memory }
    }

    /// Creates a message from the longest train at the start of `datagrams`, or only of the first datagram if
    /// `as_train` is `false`. `None` if `datagrams` is empty.
    pub(super) fn first_of(datagrams: &'o [Datagram<'o>], as_train: bool) -> Option<Self> {
        let Datagram { to, from, ecn, bytes: first } = *datagrams.first()?;
        let mut train = Train::begin(first.len());
        let rest = &datagrams[1..];
        let goes_on = |next: &&Datagram<'_>| {
            (next.to, next.from, next.ecn) == (to, from, ecn) && train.take(next.bytes.len())
        };
        let more = if as_train { rest.iter().take_while(goes_on).count() } else { 0 };
        let Train { bytes, datagram_bytes } = train;
        Some(Self {
            to,
            from,
            ecn,
            bytes,
            datagram_bytes,
            memory: Memory::Apart(&datagrams[..=more]),
        })
    }

    /// Returns the pieces of memory that contain the datagrams.
    pub(super) fn slices(&self) -> impl Iterator<Item = &'o [u8]> {
        let (together, apart) = match self.memory {
            Memory::Together(bytes) => (Some(bytes), &[][..]),
            Memory::Apart(datagrams) => (None, datagrams),
        };
        together.into_iter().chain(apart.iter().map(|datagram| datagram.bytes))
    }

    /// Returns the number of datagrams. An empty datagram counts as one.
    pub(super) const fn datagrams(&self) -> usize {
        match self.memory {
            Memory::Apart(datagrams) => datagrams.len(),
            Memory::Together(_) if self.bytes <= self.datagram_bytes => 1,
            Memory::Together(_) => self.bytes.div_ceil(self.datagram_bytes),
        }
    }
}

/// The lengths of a train's datagrams. Datagrams of one size are added to it; a shorter datagram ends the train.
#[derive(Clone, Copy, Debug)]
pub(super) struct Train {
    pub(super) bytes: usize,
    pub(super) datagram_bytes: usize,
}

impl Train {
    /// Begins a train with a datagram of `bytes` bytes.
    pub(super) const fn begin(bytes: usize) -> Self {
        Self { bytes, datagram_bytes: bytes }
    }

    /// Adds a datagram of `bytes` bytes. Returns `false` and adds nothing if the datagram begins another
    /// train.
    pub(super) const fn take(&mut self, bytes: usize) -> bool {
        // All datagrams of the train have the same size so far, so no shorter one has ended it. An empty one is alone.
        let takes = bytes > 0
            && self.datagram_bytes > 0
            && self.bytes.is_multiple_of(self.datagram_bytes)
            && bytes <= self.datagram_bytes
            && self.bytes / self.datagram_bytes < MOST_IN_TRAIN
            && self.bytes + bytes <= MOST_TRAIN_BYTES;
        if takes {
            self.bytes += bytes;
        }
        takes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    /// Returns the numbers of datagrams in the messages of datagrams that are in places of their own.
    fn counts(mut datagrams: &[Datagram<'_>], as_trains: bool) -> Vec<usize> {
        let mut counts = Vec::new();
        while let Some(message) = Message::first_of(datagrams, as_trains) {
            assert_eq!(message.slices().count(), message.datagrams());
            assert_eq!(message.slices().map(<[u8]>::len).sum::<usize>(), message.bytes);
            counts.push(message.datagrams());
            datagrams = &datagrams[message.datagrams()..];
        }
        counts
    }

    #[test]
    fn datagrams_of_a_caller_form_trains_by_the_same_rule() {
        let memory = [0; 100];
        let of = |bytes: usize, port| Datagram::new(to(port), &memory[..bytes]);
        let datagrams =
            [of(100, 1), of(100, 1), of(60, 1), of(60, 1), of(0, 1), of(100, 2), of(100, 3)];
        assert_eq!(counts(&datagrams, true), [3, 1, 1, 1, 1]);
        assert_eq!(counts(&datagrams, false), [1; 7]);
        assert_eq!(counts(&[of(10, 1); 65], true), [64, 1]);
    }

    #[test]
    fn a_mark_and_a_source_belong_to_the_whole_train() {
        let plain = Datagram::new(to(1), &[0; 50]);
        let marked = Datagram { ecn: 1, ..plain };
        let placed = Datagram { from: Some([127, 0, 0, 9].into()), ..plain };
        assert_eq!(
            counts(&[plain, plain, marked, marked, placed, placed, plain], true),
            [2, 2, 2, 1]
        );
    }
}
