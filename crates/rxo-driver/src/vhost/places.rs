//! Where payload lies in a guest's memory: what a guest pays for copying may depend on it.

use std::array;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use rxo_virtqueue::Writer;
use rxo_wire::parse;

/// Bytes of payload by the address of the first of them in the guest's memory, modulo [`LINE_BYTES`]. Payload that lies in
/// several buffers counts at each.
///
/// It is filled by a device that has it in [`GuestOptions::places`](super::GuestOptions::places).
#[derive(Debug)]
pub struct PayloadPlaces([AtomicU64; LINE_BYTES]);

/// Bytes of a cache line.
pub const LINE_BYTES: usize = 64;

impl PayloadPlaces {
    /// Without payload.
    #[must_use]
    pub const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; LINE_BYTES])
    }

    /// The bytes at each address modulo [`LINE_BYTES`].
    #[must_use]
    pub fn bytes(&self) -> [u64; LINE_BYTES] {
        array::from_fn(|at| self.0[at].load(Ordering::Relaxed))
    }

    /// Counts the payload of a packet that is about to be written to `writer`, behind a virtio-net `header` and up to
    /// `end`. `first` is its first piece. What has no headers that can be read has no payload.
    #[cold]
    #[inline(never)]
    pub(super) fn count(&self, writer: &Writer<'_>, (header, end): (&[u8], u32), first: &[u8]) {
        // A GSO frame's header says where its payload begins, and its first piece may end there.
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

/// Two are the same if they are one: their counts change.
impl PartialEq for PayloadPlaces {
    fn eq(&self, other: &Self) -> bool {
        ptr::eq(self, other)
    }
}

impl Eq for PayloadPlaces {}
