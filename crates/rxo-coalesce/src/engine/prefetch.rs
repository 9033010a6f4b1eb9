//! Asking for the headers and payloads of frames before their turn.

use rxo_frame::Frame;
use rxo_wire::arch;

/// Headers are asked for this many frames ahead: enough to hide a miss, few enough for the processor's
/// queue of outstanding lines.
pub(super) const HEADER_FRAMES: u32 = 8;
/// Payloads, where they will be summed, are asked for this many frames ahead.
pub(super) const PAYLOAD_FRAMES: u32 = 2;
/// A header of 66 bytes (Ethernet, IPv4, TCP with timestamp) spans two lines wherever it starts.
const SECOND_LINE: usize = 64;

/// Asks for the header of a frame.
#[inline(always)]
pub(super) fn prefetch_header<B: AsRef<[u8]>>(frame: &Frame<B>) {
    arch::prefetch(frame.bytes(), 0);
    arch::prefetch(frame.bytes(), SECOND_LINE);
}

/// Asks for the header of a frame further on. `rest` are the frames behind the one in hand.
#[inline(always)]
pub(super) fn prefetch_header_in<B: AsRef<[u8]>>(rest: &[Frame<B>]) {
    rest.get(HEADER_FRAMES as usize - 1).into_iter().for_each(prefetch_header);
}

/// Asks for all of a frame further on, whose checksum will have to be summed. `rest` are the frames behind the one in
/// hand.
#[inline(always)]
pub(super) fn prefetch_payload_in<B: AsRef<[u8]>>(rest: &[Frame<B>]) {
    if let Some(ahead) = rest.get(PAYLOAD_FRAMES as usize - 1) {
        arch::prefetch_all(ahead.bytes());
    }
}
