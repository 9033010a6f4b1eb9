//! The bytes of a frame from a packet socket: a slot of the ring, lent without a copy, or, for a
//! frame too large for a slot, a buffer of its own.

use rxo_frame::PoolBuf;
use rxo_vnet::VNET_HEADER_BYTES;

use super::ring::SlotBuf;

/// A frame's bytes, lent by a packet source; dropping it gives the memory back, in any order, on any
/// thread, also when the source is gone. Drop it soon: while the oldest slots of a lap are held, the
/// kernel cannot fill them, and in the end drops what arrives.
#[derive(Debug)]
pub struct PacketBuf(Memory);

#[derive(Debug)]
enum Memory {
    Slot(SlotBuf),
    /// Begins with the header that came before the frame.
    Copied(PoolBuf),
}

impl PacketBuf {
    #[inline]
    pub(super) const fn slot(slot: SlotBuf) -> Self {
        Self(Memory::Slot(slot))
    }

    /// Copies the frame into `buffer` and gives its slot back. Leaves it where it is if it is in a
    /// buffer already, or does not fit.
    pub(super) fn detach_into(&mut self, mut buffer: PoolBuf) {
        let Memory::Slot(slot) = &self.0 else { return };
        let bytes = slot.bytes();
        if buffer.capacity() < VNET_HEADER_BYTES + bytes.len() {
            return;
        }
        buffer.set_len(VNET_HEADER_BYTES + bytes.len());
        buffer[VNET_HEADER_BYTES..].copy_from_slice(bytes);
        self.0 = Memory::Copied(buffer);
    }

    /// A buffer in which the frame follows a `virtio_net_hdr`.
    pub(super) const fn copied(buffer: PoolBuf) -> Self {
        Self(Memory::Copied(buffer))
    }
}

impl AsRef<[u8]> for PacketBuf {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        match &self.0 {
            Memory::Slot(slot) => slot.bytes(),
            Memory::Copied(buffer) => buffer.get(VNET_HEADER_BYTES..).unwrap_or_default(),
        }
    }
}
