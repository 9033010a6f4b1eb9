//! Reads pure ACKs at known offsets.

use rxo_coalesce::IntoFrames;
use rxo_frame::Frame;
use rxo_wire::tcp::AckRecord;
use rxo_wire::{Offsets, class_and_length};

/// An iterator over the records of pure ACKs, in frames whose headers are at equal offsets. The frames stay in
/// the engine.
#[derive(Debug)]
pub(crate) struct AckRecords<'a, B> {
    frames: IntoFrames<'a, B>,
    at: Offsets,
}

impl<'a, B> AckRecords<'a, B> {
    /// Creates an iterator over the ACKs in `frames`.
    pub(super) const fn new(frames: IntoFrames<'a, B>, at: Offsets) -> Self {
        Self { frames, at }
    }
}

impl<B: AsRef<[u8]>> Iterator for AckRecords<'_, B> {
    type Item = AckRecord;

    #[inline(always)]
    fn next(&mut self) -> Option<AckRecord> {
        loop {
            let record = record_of(self.frames.next_ref()?, self.at);
            if record.is_some() {
                return record;
            }
        }
    }
}

/// Returns the record of the ACK in `frame`; `None` if the headers are not at the offsets `at`.
#[inline(always)]
fn record_of<B: AsRef<[u8]>>(frame: &Frame<B>, at: Offsets) -> Option<AckRecord> {
    let packet = frame.bytes().get(at.network as usize..)?;
    let (class, packet_bytes) = class_and_length(packet)?;
    let segment = packet.get(at.ip_header().len()..packet_bytes)?;
    AckRecord::read(segment, class, frame.arrived_at.as_nanos())
}
