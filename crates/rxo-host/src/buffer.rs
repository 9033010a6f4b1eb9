//! The buffer that holds a frame's bytes until the application has read the data in it.

use std::sync::Arc;

use rxo_frame::FrameBuffer;

/// The memory that holds the bytes of a received frame.
#[derive(Debug, Default)]
pub(crate) enum Buffer<B> {
    /// An empty buffer: no memory, and no bytes.
    #[default]
    Empty,
    /// A buffer of the device, which must be returned to it.
    Lent(B),
    /// A buffer of the device, shared by the segments of a GSO frame.
    Shared(Arc<B>),
    /// Memory of the host, into which the bytes were copied. The device's buffer has been returned.
    Owned(Box<[u8]>),
}

impl<B> Buffer<B> {
    /// Copies `bytes`, a part of this buffer, into a new allocation. `None` if this buffer does not belong to
    /// the device.
    pub(crate) fn copy(&self, bytes: &[u8]) -> Option<Self> {
        match self {
            Self::Lent(_) | Self::Shared(_) => Some(Self::Owned(bytes.into())),
            Self::Empty | Self::Owned(_) => None,
        }
    }

    /// Returns two buffers with the same bytes. A buffer of the device is shared through an `Arc`; an owned
    /// buffer is copied.
    pub(crate) fn share(self) -> (Self, Self) {
        let shared = match self {
            Self::Lent(buffer) => Arc::new(buffer),
            Self::Shared(buffer) => buffer,
            Self::Owned(bytes) => return (Self::Owned(bytes.clone()), Self::Owned(bytes)),
            Self::Empty => return (Self::Empty, Self::Empty),
        };
        (Self::Shared(Arc::clone(&shared)), Self::Shared(shared))
    }
}

impl<B: AsRef<[u8]>> Buffer<B> {
    /// Returns the bytes of any buffer. Marked cold, because the caller handles `Lent`, the frequent variant,
    /// inline.
    #[cold]
    fn kept(&self) -> &[u8] {
        match self {
            Self::Empty => &[],
            Self::Lent(buffer) => buffer.as_ref(),
            Self::Shared(buffer) => buffer.as_ref().as_ref(),
            Self::Owned(bytes) => bytes,
        }
    }
}

impl<B: AsRef<[u8]>> AsRef<[u8]> for Buffer<B> {
    /// Returns the bytes of the buffer. Inlined because it is called for every frame.
    #[inline]
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Lent(buffer) => buffer.as_ref(),
            _ => self.kept(),
        }
    }
}

impl<B: FrameBuffer> FrameBuffer for Buffer<B> {
    const RETURN_TOGETHER: bool = B::RETURN_TOGETHER;

    fn drop_all(buffers: impl Iterator<Item = Self>) {
        B::drop_all(buffers.filter_map(|buffer| match buffer {
            Self::Lent(buffer) => Some(buffer),
            Self::Empty | Self::Shared(_) | Self::Owned(_) => None,
        }));
    }
}
