//! The memory of received frames: one type for the sources of every device, so that any source
//! goes with any sink.

use rxo_frame::{FrameBuffer, PoolBuf};
use rxo_vnet::VNET_HEADER_BYTES;

use crate::packet::ring::SlotBuf;

/// Room for the largest IP packet, its Ethernet header, two VLAN tags, and a `virtio_net_hdr`. An
/// odd number of cache lines, so that the first lines of such buffers do not all meet in one set.
pub(crate) const LARGE_BUFFER_BYTES: usize = 1_027 * 64;

/// Room for the largest packet that Linux makes where `gso_max_size` or `gro_max_size` is above
/// 64 KiB (BIG TCP): eight times as much.
pub(crate) const GIANT_BUFFER_BYTES: usize = 8_193 * 64;

/// A frame's bytes, lent by a source. Dropping it gives the memory back, in any order and on any
/// thread, even after the source is gone.
///
/// It is a slot of a packet socket's ring, a buffer of a pool, or a copy that middleware made. Drop it soon: the
/// kernel cannot fill a slot that is held, and while the oldest slots of a lap are held it drops what arrives.
#[derive(Debug)]
pub struct DeviceBuf(Memory);

#[derive(Debug)]
enum Memory {
    Slot(SlotBuf),
    /// The frame follows a header of so many bytes.
    Pooled(PoolBuf, u8),
    /// Nothing but the frame, in memory of its own.
    Copied(Vec<u8>),
}

impl DeviceBuf {
    #[inline]
    pub(crate) const fn slot(slot: SlotBuf) -> Self {
        Self(Memory::Slot(slot))
    }

    /// A buffer in which the frame follows a `virtio_net_hdr`.
    #[inline]
    pub(crate) const fn pooled(buffer: PoolBuf) -> Self {
        Self::behind(VNET_HEADER_BYTES, buffer)
    }

    /// A buffer in which the frame follows a header of so many bytes.
    #[inline]
    pub(crate) const fn behind(header_bytes: usize, buffer: PoolBuf) -> Self {
        Self(Memory::Pooled(buffer, header_bytes as u8))
    }

    /// Copies a frame out of its slot into `buffer` and gives the slot back. Does nothing if the
    /// frame is in a buffer already or does not fit.
    pub(crate) fn detach_into(&mut self, mut buffer: PoolBuf) {
        let Memory::Slot(slot) = &self.0 else { return };
        let bytes = slot.bytes();
        if buffer.capacity() < VNET_HEADER_BYTES + bytes.len() {
            return;
        }
        buffer.set_len(VNET_HEADER_BYTES + bytes.len());
        buffer[VNET_HEADER_BYTES..].copy_from_slice(bytes);
        *self = Self::pooled(buffer);
    }
}

/// Takes a copy of a frame. Does not allocate.
impl From<Vec<u8>> for DeviceBuf {
    fn from(frame: Vec<u8>) -> Self {
        Self(Memory::Copied(frame))
    }
}

impl Default for DeviceBuf {
    /// No bytes, and no memory of a device.
    #[inline]
    fn default() -> Self {
        Self::pooled(PoolBuf::default())
    }
}

impl AsRef<[u8]> for DeviceBuf {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        match &self.0 {
            Memory::Slot(slot) => slot.bytes(),
            Memory::Pooled(buffer, header) => {
                buffer.get(usize::from(*header)..).unwrap_or_default()
            }
            Memory::Copied(frame) => frame,
        }
    }
}

impl FrameBuffer for DeviceBuf {
    const RETURN_TOGETHER: bool = true;

    fn drop_all(buffers: impl Iterator<Item = Self>) {
        PoolBuf::drop_all(buffers.filter_map(|buffer| match buffer.0 {
            Memory::Slot(_) | Memory::Copied(_) => None,
            Memory::Pooled(buffer, _) => Some(buffer),
        }));
    }
}
