//! The memory of received frames: one buffer type for the sources of all devices, so that any source works
//! with any sink.

use std::sync::Arc;

use rxo_frame::{FrameBuffer, PoolBuf};
use rxo_vnet::VNET_HEADER_BYTES;

use crate::packet::ring::SlotBuf;
use crate::xdp::ChunkBuf;

/// Size of a buffer that holds the largest IP packet, its Ethernet header, two VLAN tags, and a
/// `virtio_net_hdr`. The size is an odd number of 64-byte cache lines; with an even number, the first lines
/// of consecutive buffers would fall into only a few cache sets.
pub(crate) const LARGE_BUFFER_BYTES: usize = 1_027 * 64;

/// Size of a buffer for the largest packet that Linux makes if `gso_max_size` or `gro_max_size` is above 64 KiB
/// (BIG TCP): about eight times [`LARGE_BUFFER_BYTES`].
pub(crate) const GIANT_BUFFER_BYTES: usize = 8_193 * 64;

/// The memory of a received frame, on loan from a source. Dropping the buffer returns the memory, in any order
/// and on any thread, even after the source was dropped.
///
/// The memory is a slot of a packet socket's ring, a chunk of an AF_XDP socket, a buffer of a pool, a copy that
/// middleware made, or bytes that several guests share. Drop the buffer soon. The kernel cannot refill a slot
/// before the slot's buffer is dropped. While the oldest slots of the ring are in use, the kernel drops arriving
/// frames.
#[derive(Debug)]
pub struct DeviceBuf(Memory);

#[derive(Debug)]
enum Memory {
    Slot(SlotBuf),
    Chunk(ChunkBuf),
    /// A pooled buffer, and the length in bytes of the header before the frame in the buffer.
    Pooled(PoolBuf, u8),
    /// A vector that contains only the frame.
    Copied(Vec<u8>),
    /// A slice that contains only the frame, shared with other owners.
    Shared(Arc<[u8]>),
}

impl DeviceBuf {
    #[inline]
    pub(crate) const fn slot(slot: SlotBuf) -> Self {
        Self(Memory::Slot(slot))
    }

    #[inline]
    pub(crate) const fn chunk(chunk: ChunkBuf) -> Self {
        Self(Memory::Chunk(chunk))
    }

    /// Wraps a pooled buffer in which the frame follows a `virtio_net_hdr`.
    #[inline]
    pub(crate) const fn pooled(buffer: PoolBuf) -> Self {
        Self::behind(VNET_HEADER_BYTES, buffer)
    }

    /// Wraps a pooled buffer in which the frame follows a header of `header_bytes` bytes (at most 255).
    #[inline]
    pub(crate) const fn behind(header_bytes: usize, buffer: PoolBuf) -> Self {
        Self(Memory::Pooled(buffer, header_bytes as u8))
    }

    /// Copies a frame out of its ring slot into `buffer` and releases the slot. Does nothing if the frame is
    /// not in a slot or does not fit into `buffer`.
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

/// Takes ownership of a vector that contains a whole frame. Does not allocate.
impl From<Vec<u8>> for DeviceBuf {
    fn from(frame: Vec<u8>) -> Self {
        Self(Memory::Copied(frame))
    }
}

/// Takes ownership of a pooled buffer that contains only a frame.
impl From<PoolBuf> for DeviceBuf {
    fn from(frame: PoolBuf) -> Self {
        Self::behind(0, frame)
    }
}

/// Creates a buffer from the bytes of a frame that are shared with other owners. Does not allocate.
impl From<Arc<[u8]>> for DeviceBuf {
    fn from(frame: Arc<[u8]>) -> Self {
        Self(Memory::Shared(frame))
    }
}

impl Default for DeviceBuf {
    /// Returns an empty buffer that borrows no memory of a device.
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
            Memory::Chunk(chunk) => chunk.bytes(),
            Memory::Pooled(buffer, header) => {
                buffer.get(usize::from(*header)..).unwrap_or_default()
            }
            Memory::Copied(frame) => frame,
            Memory::Shared(frame) => frame,
        }
    }
}

impl FrameBuffer for DeviceBuf {
    const RETURN_TOGETHER: bool = true;

    fn drop_all(buffers: impl Iterator<Item = Self>) {
        PoolBuf::drop_all(buffers.filter_map(|buffer| match buffer.0 {
            Memory::Slot(_) | Memory::Chunk(_) | Memory::Copied(_) | Memory::Shared(_) => None,
            Memory::Pooled(buffer, _) => Some(buffer),
        }));
    }
}
