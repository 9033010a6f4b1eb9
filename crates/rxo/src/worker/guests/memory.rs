//! The memory of a frame on its way through the switch: lent by its device, or a copy.

use rxo_frame::{Frame, FrameBuffer};

use crate::switch::Tagging;

/// A frame's bytes.
#[derive(Clone, Debug)]
pub enum Memory<B> {
    /// The memory of the device that gave the frame.
    Lent(B),
    /// A copy, because the frame goes to several ports, comes from another guest, loses its tag, or waits
    /// for a guest without room.
    Copied(Vec<u8>),
}

impl<B: AsRef<[u8]>> AsRef<[u8]> for Memory<B> {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Lent(bytes) => bytes.as_ref(),
            Self::Copied(bytes) => bytes,
        }
    }
}

impl<B: FrameBuffer> FrameBuffer for Memory<B> {
    const RETURN_TOGETHER: bool = B::RETURN_TOGETHER;

    fn drop_all(buffers: impl Iterator<Item = Self>) {
        B::drop_all(buffers.filter_map(|buffer| match buffer {
            Self::Lent(buffer) => Some(buffer),
            Self::Copied(_) => None,
        }));
    }
}

impl<B> Memory<B> {
    /// The bytes of a copy; 0 for memory of the device.
    pub(super) const fn copied_bytes(&self) -> usize {
        match self {
            Self::Lent(_) => 0,
            Self::Copied(bytes) => bytes.len(),
        }
    }
}

/// The frame with a copy of its bytes.
pub(super) fn copied<B: AsRef<[u8]>>(frame: Frame<Memory<B>>) -> Frame<Memory<B>> {
    match frame.bytes {
        Memory::Lent(ref bytes) => {
            let bytes = Memory::Copied(bytes.as_ref().to_vec());
            replaced(&frame, bytes)
        }
        Memory::Copied(_) => frame,
    }
}

/// A copy of `frame`, with the tag that it leaves with.
pub(super) fn tagged_copy<B: AsRef<[u8]>, C>(
    frame: &Frame<B>,
    tagging: Tagging,
) -> Frame<Memory<C>> {
    let bytes = frame.bytes();
    let bytes = if tagging.strips { Tagging::stripped(bytes) } else { bytes.to_vec() };
    let (mut checksum, mut gso) = (frame.checksum, frame.gso);
    if tagging.strips {
        checksum = Tagging::stripped_checksum(checksum);
        gso = gso.map(Tagging::stripped_gso);
    }
    Frame { checksum, gso, vlan: tagging.tag, ..replaced(frame, Memory::Copied(bytes)) }
}

/// `frame` itself with the tag that it leaves with; copied only if a tag must leave its bytes.
pub(super) fn tagged<B: AsRef<[u8]>>(frame: Frame<B>, tagging: Tagging) -> Frame<Memory<B>> {
    if tagging.strips {
        return tagged_copy(&frame, tagging);
    }
    let Frame { bytes, arrived_at, checksum, gso, .. } = frame;
    Frame { bytes: Memory::Lent(bytes), arrived_at, checksum, gso, vlan: tagging.tag }
}

fn replaced<B, C>(frame: &Frame<B>, bytes: C) -> Frame<C> {
    let Frame { arrived_at, checksum, gso, vlan, .. } = *frame;
    Frame { bytes, arrived_at, checksum, gso, vlan }
}
