//! Layout of rings and buffers in the memory that is shared with the back end.

use rxo_virtqueue::{Layout, QueueConfig};

use crate::vhost_user::features::{EVENT_IDX, INDIRECT_DESC, MRG_RXBUF, RING_PACKED};

/// The number of descriptors in each ring.
pub(super) const ENTRIES: u16 = 1_024;

/// The number of send buffers in the shared memory.
pub(super) const SEND_BUFFERS: u32 = 256;

/// The size of a buffer for a header and the largest GSO frame with its link-layer header, in bytes; a
/// multiple of the cache line.
pub(super) const LARGE_BYTES: u32 = 1_027 * 64;

/// The size of a receive buffer if a frame may span several buffers, in bytes.
const MERGED_BYTES: u32 = 4_096;

/// The number of receive buffers if each frame must fit into one buffer.
const LARGE_BUFFERS: u32 = 256;

/// The address at which the shared memory begins in messages and descriptors. The value is arbitrary, but not 0.
pub(super) const START: u64 = 1 << 32;

/// The layout of the shared memory. Positions are addresses as in messages and descriptors.
#[derive(Clone, Debug)]
pub(super) struct Places {
    /// The receive ring and the transmit ring of each pair, one pair after the other.
    pub(super) rings: Vec<QueueConfig>,
    /// The address of the first receive buffer.
    receive: u64,
    /// The address of the first send buffer.
    send: u64,
    /// The length of a receive buffer, in bytes.
    pub(super) receive_bytes: u32,
    /// The number of receive buffers of each receive ring. The buffers of the first ring come first.
    pub(super) receive_buffers: u32,
    /// The length of the whole memory, in bytes.
    pub(super) bytes: u64,
}

impl Places {
    /// Computes the layout for `pairs` pairs of rings with these virtio features.
    pub(super) fn new(features: u64, pairs: u16) -> Self {
        let has = |bits| features & bits != 0;
        let layout = if has(RING_PACKED) { Layout::Packed } else { Layout::Split };
        let (receive_bytes, receive_buffers) = if has(MRG_RXBUF) {
            (MERGED_BYTES, u32::from(ENTRIES))
        } else {
            (LARGE_BYTES, LARGE_BUFFERS)
        };
        let mut next = START;
        let mut room = |bytes: u64| {
            let at = next;
            next = (next + bytes).next_multiple_of(PAGE_BYTES);
            at
        };
        let ring_bytes = QueueConfig::bytes(layout, ENTRIES) as u64;
        let ring = |_| QueueConfig {
            event_index: has(EVENT_IDX),
            indirect: has(INDIRECT_DESC),
            ..QueueConfig::contiguous(layout, ENTRIES, room(ring_bytes))
        };
        let rings = (0..2 * pairs).map(ring).collect();
        let all_buffers = u64::from(receive_buffers) * u64::from(pairs);
        let receive = room(u64::from(receive_bytes) * all_buffers);
        let send = room(u64::from(LARGE_BYTES) * u64::from(SEND_BUFFERS));
        Self { rings, receive, send, receive_bytes, receive_buffers, bytes: next - START }
    }

    /// Returns the address of the receive buffer with number `n`.
    pub(super) fn receive(&self, n: u32) -> u64 {
        self.receive + u64::from(n) * u64::from(self.receive_bytes)
    }

    /// Returns the address of the send buffer with number `n`.
    pub(super) fn send(&self, n: u32) -> u64 {
        self.send + u64::from(n) * u64::from(LARGE_BYTES)
    }
}

const PAGE_BYTES: u64 = 4_096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_overlaps() {
        let kinds = [0, MRG_RXBUF, RING_PACKED, MRG_RXBUF | RING_PACKED];
        for (features, pairs) in kinds.into_iter().flat_map(|it| [(it, 1), (it, 3)]) {
            let places = Places::new(features, pairs);
            let layout = places.rings[0].layout;
            let ring = QueueConfig::bytes(layout, ENTRIES) as u64;
            let last = places.receive_buffers * u32::from(pairs) - 1;
            let mut parts = vec![
                (
                    places.receive(0),
                    places.receive(last) - places.receive(0) + u64::from(places.receive_bytes),
                ),
                (places.send(0), u64::from(SEND_BUFFERS) * u64::from(LARGE_BYTES)),
            ];
            parts.extend(places.rings.iter().map(|config| (config.descriptors, ring)));
            assert_eq!(places.rings.len(), 2 * usize::from(pairs));
            parts.sort_unstable();
            for pair in parts.windows(2) {
                assert!(pair[0].0 + pair[0].1 <= pair[1].0, "{pair:x?}");
            }
            assert!(parts.last().is_some_and(|last| last.0 + last.1 <= START + places.bytes));
        }
    }
}
