//! Pure ACKs, read at places that are known.

use rxo_frame::Frame;
use rxo_wire::Offsets;
use rxo_wire::tcp::AckRecord;

use super::segments::class_and_end;

/// The records of the pure ACKs in frames whose headers begin at the same places.
#[derive(Clone, Debug)]
pub(crate) struct AckRecords<F> {
    frames: F,
    at: Offsets,
}

impl<F> AckRecords<F> {
    /// The records of the ACKs in `frames`.
    pub(super) const fn new(frames: F, at: Offsets) -> Self {
        Self { frames, at }
    }
}

impl<B: AsRef<[u8]>, F: Iterator<Item = Frame<B>>> Iterator for AckRecords<F> {
    type Item = AckRecord;

    #[inline]
    fn next(&mut self) -> Option<AckRecord> {
        self.frames.find_map(|frame| record_of(&frame, self.at))
    }
}

/// The record of the ACK in `frame`. `None` if the headers are not where `at` says.
#[inline]
fn record_of<B: AsRef<[u8]>>(frame: &Frame<B>, at: Offsets) -> Option<AckRecord> {
    let bytes = frame.bytes();
    let (class, end) = class_and_end(bytes, at.network)?;
    let segment = bytes.get(at.transport as usize..end)?;
    AckRecord::read(segment, class, frame.arrived_at.as_nanos())
}
