//! Payload positions: counts the positions, within a cache line, at which payload starts in a guest's memory. The
//! guest's cost of copying may depend on this position.

use std::array;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use rxo_virtqueue::Writer;
use rxo_wire::parse;

/// A histogram of payload bytes by the guest address of their first byte, modulo [`LINE_BYTES`]. Payload in
/// several buffers counts once for each buffer.
///
/// A device fills the histogram if [`GuestOptions::places`](super::GuestOptions::places) refers to it.
#[derive(Debug)]
pub struct PayloadPlaces([AtomicU64; LINE_BYTES]);

/// The size of a cache line, in bytes.
pub const LINE_BYTES: usize = 64;

impl PayloadPlaces {
    /// Creates an empty histogram.
    #[must_use]
    pub const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; LINE_BYTES])
    }

    /// Returns the number of payload bytes for each address modulo [`LINE_BYTES`].
    #[must_use]
    pub fn bytes(&self) -> [u64; LINE_BYTES] {
        array::from_fn(|at| self.0[at].load(Ordering::Relaxed))
    }

    /// Counts the payload of a packet that is about to be written to `writer`, after a virtio-net `header`
    /// and up to offset `end`. `first` is the packet's first piece. A packet whose headers cannot be read
    /// counts as having no payload.
    #[cold]
    #[inline(never)]
    pub(super) fn count(&self, writer: &Writer<'_>, (header, end): (&[u8], u32), first: &[u8]) {
        // A GSO frame's header contains the payload's offset, and its first piece may end there.
        let said = header.get(2..4).map_or(0, |bytes| u16::from_le_bytes([bytes[0], bytes[1]]));
        let payload = match said {
            0 => parse(first).map_or(end, |parsed| parsed.at.payload),
            said => said.into(),
        };
        let start = (header.len() as u32).saturating_add(payload);
        for (address, bytes) in writer.places(start..end) {
            self.0[address % LINE_BYTES].fetch_add(bytes.into(), Ordering::Relaxed);
        }
    }
}

impl Default for PayloadPlaces {
    fn default() -> Self {
        Self::new()
    }
}

/// Two histograms are equal only if they are the same object, because their counts change.
impl PartialEq for PayloadPlaces {
    fn eq(&self, other: &Self) -> bool {
        ptr::eq(self, other)
    }
}

impl Eq for PayloadPlaces {}
