//! Pure ACKs, read at places that are known.

use rxo_frame::Frame;
use rxo_wire::tcp::AckRecord;

use super::segments::Layout;

/// The records of the pure ACKs in frames of one layout.
#[derive(Clone, Debug)]
pub(crate) struct AckRecords<F> {
    frames: F,
    layout: Layout,
}

impl<F> AckRecords<F> {
    /// The records of the ACKs in `frames`.
    pub(super) const fn new(frames: F, layout: Layout) -> Self {
        Self { frames, layout }
    }
}

impl<B: AsRef<[u8]>, F: Iterator<Item = Frame<B>>> Iterator for AckRecords<F> {
    type Item = AckRecord;

    #[inline]
    fn next(&mut self) -> Option<AckRecord> {
        self.frames.find_map(|frame| record_of(&frame, self.layout))
    }
}

/// The record of the ACK in `frame`. `None` if the headers are not where `layout` says.
#[inline]
fn record_of<B: AsRef<[u8]>>(frame: &Frame<B>, layout: Layout) -> Option<AckRecord> {
    let bytes = frame.bytes();
    let (class, end) = layout.class_and_end(bytes)?;
    let segment = bytes.get(layout.transport..end)?;
    AckRecord::read(segment, class, frame.arrived_at.as_nanos())
}
