//! The buffer in which a frame stays until an application has read its text.

use std::sync::Arc;

use rxo_frame::FrameBuffer;

/// The memory in which the bytes of a frame are.
#[derive(Debug, Default)]
pub(crate) enum Buffer<B> {
    /// None: there are no bytes.
    #[default]
    Empty,
    /// In the device's memory, lent.
    Lent(B),
    /// In the device's memory, shared by the segments of a GSO frame.
    Shared(Arc<B>),
    /// In our own memory: the device has got back its own.
    Owned(Box<[u8]>),
}

impl<B> Buffer<B> {
    /// Copies `bytes`, a part of this buffer, into our own memory. `None` if they are there already.
    pub(crate) fn copy(&self, bytes: &[u8]) -> Option<Self> {
        match self {
            Self::Lent(_) | Self::Shared(_) => Some(Self::Owned(bytes.into())),
            Self::Empty | Self::Owned(_) => None,
        }
    }

    /// Two buffers with the same bytes. Those in the device's memory stay there and are shared; those in
    /// our own are copied.
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
    /// The bytes of a buffer that is not lent, which is rare.
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
    /// Inlined because it is called for every frame.
    #[inline(always)]
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
