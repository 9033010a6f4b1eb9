//! The packet type of all engines in this crate. Studies and coalesced captures share this type, so that the
//! generic engine is compiled only once. The engine takes longer to compile than the rest of this crate.

use rxo_capture::SharedBytes;
use rxo_frame::FrameBuffer;

/// The bytes of a packet, and a number. The code that passes the packet to an engine recognizes the packet by
/// this number when the engine delivers it.
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
