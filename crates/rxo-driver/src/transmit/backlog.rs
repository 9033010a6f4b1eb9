//! Backlog: copies of packets that a full device could not take, in order.
//!
//! This module is separate so that its limits can be tested alone. Contract: a backlog reserves its memory at the
//! start, and does not touch that memory before the first packet. It refuses a packet that does not fit; the
//! caller counts that packet as dropped.

use std::collections::VecDeque;
use std::ops::Range;

use rxo_frame::{Frame, Gather, Instant, Offload};

/// The capacity of the backlog in bytes: one batch of the largest packets, 64 of 64 KiB. A larger backlog is
/// not needed, because the owner of a blocked sink stops reading frames for that sink.
const MOST_BYTES: usize = 64 * (64 << 10);

/// The capacity of the backlog in packets, whatever their size.
const MOST_PACKETS: usize = 4_096;

/// The packets that wait until the device has free space.
#[derive(Debug)]
pub(crate) struct Backlog {
    bytes: Vec<u8>,
    packets: VecDeque<Frame<Range<usize>>>,
}

impl Backlog {
    pub(crate) fn new() -> Self {
        Self {
            bytes: Vec::with_capacity(MOST_BYTES),
            packets: VecDeque::with_capacity(MOST_PACKETS),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.packets.len()
    }

    /// Appends a copy of `packet`. Returns `false` and stores nothing if it does not fit.
    pub(crate) fn push<'a>(&mut self, packet: impl Gather<'a>) -> bool {
        let start = self.bytes.len();
        let end = start + packet.byte_len();
        if end > MOST_BYTES || self.packets.len() == MOST_PACKETS {
            return false;
        }
        packet.for_each_slice(|piece| self.bytes.extend_from_slice(piece));
        let (Offload { checksum, gso, .. }, vlan) = (packet.offload(), packet.vlan());
        let arrived_at = Instant::ZERO;
        self.packets.push_back(Frame { bytes: start..end, arrived_at, checksum, gso, vlan });
        true
    }

    /// Iterates over the packets, oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Frame<&[u8]>> {
        self.packets.iter().map(|packet| packet.with_bytes(&self.bytes[packet.bytes.clone()]))
    }

    /// Removes the `count` oldest packets. Their memory is reused only once all packets are removed.
    pub(crate) fn forget(&mut self, count: usize) {
        self.packets.drain(..count);
        if self.packets.is_empty() {
            self.bytes.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(bytes: &[u8]) -> Frame<&[u8]> {
        Frame::new(bytes, Instant::ZERO)
    }

    #[test]
    fn what_is_kept_comes_out_in_order() {
        let mut backlog = Backlog::new();
        for n in 0..10_u8 {
            assert!(backlog.push(frame(&[n; 60])));
        }
        backlog.forget(3);
        assert!(backlog.push(frame(&[10; 9])));
        let seen: Vec<_> =
            backlog.iter().map(|frame| (frame.bytes[0], frame.bytes.len())).collect();
        let expected: Vec<_> = (3..10).map(|n| (n, 60)).chain([(10, 9)]).collect();
        assert_eq!(seen, expected);
    }

    #[test]
    fn it_is_bounded_in_bytes_and_in_packets_and_never_grows() {
        let large = vec![0; 64 << 10];
        let mut backlog = Backlog::new();
        let reserved = backlog.bytes.capacity();
        for (bytes, fit) in [(&large[..], 64), (&large[..1], MOST_PACKETS)] {
            assert_eq!((0..10_000).filter(|_| backlog.push(frame(bytes))).count(), fit);
            backlog.forget(fit);
        }
        assert_eq!(backlog.bytes.capacity(), reserved);
    }
}
