//! The buffer that a frame's bytes stay in until an application has read its text.

use std::sync::Arc;

/// Where bytes are.
#[derive(Debug, Default)]
pub(crate) enum Buffer<B> {
    /// Nowhere: there are none.
    #[default]
    Empty,
    /// In the device's memory, lent.
    Lent(B),
    /// There, with others: a GSO frame.
    Shared(Arc<B>),
    /// In our own memory: the device wanted its own back.
    Owned(Box<[u8]>),
}

impl<B> Buffer<B> {
    /// A copy of `bytes`, which stand in it; `None` when they are in our own memory already.
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
    /// The bytes of one that is not lent, which is seldom.
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
    /// Everything that looks at a frame asks for its bytes.
    #[inline(always)]
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Lent(buffer) => buffer.as_ref(),
            _ => self.kept(),
        }
    }
}
