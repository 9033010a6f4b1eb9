//! The buffer that a frame's bytes stay in until an application has read its text.

/// Where bytes are: in a device's memory, lent.
#[derive(Debug, Default)]
pub(crate) enum Buffer<B> {
    /// None.
    #[default]
    Empty,
    /// The device's.
    Lent(B),
}

impl<B: AsRef<[u8]>> AsRef<[u8]> for Buffer<B> {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Empty => &[],
            Self::Lent(buffer) => buffer.as_ref(),
        }
    }
}
