//! The frames that arrive at the card: a bulk transfer, or single requests, on a clock that only they
//! advance.

use std::time::Duration;

use rxo::{ChecksumStatus, Frame, Instant};
use rxo_testkit::seg;

/// Payload bytes of a segment with the timestamp option, for an MTU of 1,500.
pub(super) const SEGMENT_BYTES: usize = 1_448;
/// Time of a frame on the paper's link, which carries 60,000 per second.
pub(super) const FRAME_TIME: Duration = Duration::from_nanos(16_667);
/// Time of a frame on a link that is ten times as fast.
pub(super) const FAST_FRAME_TIME: Duration = Duration::from_nanos(1_667);
/// Frames per tick of the sender's timestamp clock, which ticks every millisecond.
const FRAMES_A_TICK: usize = 60;

/// The frames of one connection in order, each with the same payload length and a checksum verified by the
/// card.
pub(super) struct Traffic(Vec<Vec<u8>>);

impl Traffic {
    /// Makes `count` frames with `payload` bytes each.
    pub(super) fn new(count: usize, payload: usize) -> Self {
        Self((0..count).map(|number| frame(number, payload)).collect())
    }

    /// Returns the `n`-th frame, which arrives after `n + 1` frame times.
    pub(super) fn frame(&self, n: usize) -> Frame<&[u8]> {
        self.frame_every(FRAME_TIME, n)
    }

    /// Returns the `n`-th frame on a link with this frame time.
    pub(super) fn frame_every(&self, frame_time: Duration, n: usize) -> Frame<&[u8]> {
        self.frame_at(n, Instant::ZERO + frame_time * (n as u32 + 1))
    }

    pub(super) fn frame_at(&self, n: usize, arrived_at: Instant) -> Frame<&[u8]> {
        let checksum = ChecksumStatus::Verified;
        Frame { checksum, ..Frame::new(&self.0[n][..], arrived_at) }
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

fn frame(number: usize, payload: usize) -> Vec<u8> {
    let tick = 1_000 + (number / FRAMES_A_TICK) as u32;
    let segment = seg().ts(tick, 1).seq((number * payload) as u32).id(number as u16);
    segment.len(payload).bytes()
}

#[cfg(test)]
mod tests {
    use rxo::wire::parse;

    use super::*;

    #[test]
    fn frames_are_those_of_one_connection_in_order() {
        let traffic = Traffic::new(3, SEGMENT_BYTES);
        for n in 0..traffic.len() {
            let frame = traffic.frame(n);
            let parsed = parse(frame.bytes()).unwrap();
            assert_eq!((frame.bytes().len(), parsed.payload_bytes()), (1_514, 1_448));
            let seq = u32::from_be_bytes(frame.bytes()[38..42].try_into().unwrap());
            assert_eq!(seq, 1_448 * n as u32);
        }
    }
}
