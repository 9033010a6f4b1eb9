//! Prefetches headers and payloads of frames before they are processed.

use rxo_frame::Frame;
use rxo_wire::arch;

/// The number of frames by which headers are prefetched ahead: enough to hide a cache miss, few enough for
/// the processor's queue of outstanding cache lines.
pub(super) const HEADER_FRAMES: u32 = 8;
/// The number of frames by which payloads that will be summed are prefetched ahead.
pub(super) const PAYLOAD_FRAMES: u32 = 2;
/// The offset of a header's second cache line: a header of 66 bytes (Ethernet, IPv4, TCP with timestamp)
/// spans at least two.
const SECOND_LINE: usize = 64;

/// Prefetches the header of a frame.
#[inline]
pub(super) fn prefetch_header<B: AsRef<[u8]>>(frame: &Frame<B>) {
    arch::prefetch(frame.bytes(), 0);
    arch::prefetch(frame.bytes(), SECOND_LINE);
}

/// Prefetches the header of the frame [`HEADER_FRAMES`] ahead. `rest` are the frames behind the current one.
#[inline]
pub(super) fn prefetch_header_in<B: AsRef<[u8]>>(rest: &[Frame<B>]) {
    rest.get(HEADER_FRAMES as usize - 1).into_iter().for_each(prefetch_header);
}

/// Prefetches the whole frame [`PAYLOAD_FRAMES`] ahead, whose checksum will be summed. `rest` are the frames
/// behind the current one.
#[inline]
pub(super) fn prefetch_payload_in<B: AsRef<[u8]>>(rest: &[Frame<B>]) {
    if let Some(ahead) = rest.get(PAYLOAD_FRAMES as usize - 1) {
        arch::prefetch_all(ahead.bytes());
    }
}
