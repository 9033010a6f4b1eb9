//! The packets that engines get here. One type for studies and for coalesced captures, so that the engine is compiled
//! once for both: it takes longer to compile than the rest of this crate.

use rxo_capture::SharedBytes;
use rxo_frame::FrameBuffer;

/// The bytes of a packet, with a number by which its owner knows it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Numbered {
    pub(crate) bytes: SharedBytes,
    pub(crate) number: u32,
}

impl AsRef<[u8]> for Numbered {
    #[inline(always)]
    fn as_ref(&self) -> &[u8] {
        self.bytes.as_ref()
    }
}

impl FrameBuffer for Numbered {}
