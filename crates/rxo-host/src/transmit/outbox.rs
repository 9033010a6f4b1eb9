//! The batch that is being put together.

use std::num::NonZeroU16;

use rxo_ack::AckNumbers;
use rxo_device::{DeviceError, FrameSink};
use rxo_frame::{ChecksumStatus, Gso, Offload};
use rxo_tcp::{Connection, Text, Transmit};
use rxo_wire::SeqNumber;
use rxo_wire::build::BuildError;
use rxo_wire::segmentation::parts;

use super::batch::{Kind, Packets, Planned};
use super::cut::Cutter;
use super::headers::Headers;
use super::large::{Large, Refused};
use super::shape::{Path, Shape};
use super::template::Template;
use crate::buffer::Buffer;
use crate::stages::{Stage, Stopwatch};

/// A batch in the making.
#[derive(Debug)]
pub(crate) struct Outbox {
    pub(super) shape: Shape,
    pub(super) arena: Vec<u8>,
    pub(super) planned: Vec<Planned>,
    /// The GSO sends among them, for the device to segment.
    large: Vec<Large>,
    /// The ACK templates among them.
    pub(super) templates: Vec<Template>,
    refused: Refused,
    /// Packets for the device.
    count: usize,
    /// Some text is not in the arena.
    has_borrowed: bool,
    pub(super) numbers: Vec<AckNumbers>,
    /// Packets given to the device so far; a GSO send is one.
    pub(crate) sent: u64,
    /// The turn's: sending happens inside other stages.
    pub(crate) watch: Stopwatch,
}

impl Outbox {
    pub(crate) fn new(shape: Shape, watch: Stopwatch) -> Self {
        Self {
            shape,
            arena: Vec::with_capacity(MOST_PACKETS * 128),
            planned: Vec::with_capacity(MOST_PACKETS),
            large: Vec::new(),
            templates: Vec::new(),
            refused: Refused::default(),
            count: 0,
            has_borrowed: false,
            numbers: Vec::new(),
            sent: 0,
            watch,
        }
    }

    /// Whether it should go out before more is put in.
    pub(crate) fn is_full(&self) -> bool {
        self.count >= MOST_PACKETS
    }

    /// Whether it must go out before the connection changes.
    pub(crate) const fn has_borrowed(&self) -> bool {
        self.has_borrowed
    }

    /// GSO sends that the device has refused.
    pub(crate) const fn refused(&self) -> u64 {
        self.refused.count
    }

    /// Puts in what `transmit` says; `ids` counts the connection's IPv4 identifications. What is longer
    /// than IP can say, which no setting allows, is left out.
    pub(crate) fn push(&mut self, path: &Path, transmit: &Transmit<'_>, ids: &mut u16) {
        let start = self.arena.len();
        let written = match transmit.gso_size {
            Some(size) => self.write_large(path, transmit, *ids, size),
            None => self.write(path, transmit, *ids),
        };
        let Ok(segments) = written else { return };
        *ids = ids.wrapping_add(segments as u16);
        if !transmit.later_acks.is_empty() {
            self.push_later(path, transmit, start, ids);
        }
    }

    /// Puts in a frame that is complete.
    pub(crate) fn push_frame(&mut self, frame: &[u8]) {
        self.arena.extend_from_slice(frame);
        let offload = Offload { checksum: ChecksumStatus::Verified, ..Offload::default() };
        self.plan(1, frame.len(), offload);
    }

    /// Sends everything. Text that was borrowed is `connection`'s.
    pub(crate) fn send<O: FrameSink, B: AsRef<[u8]>>(
        &mut self,
        sink: &mut O,
        connection: Option<&Connection<Buffer<B>>>,
    ) -> Result<(), DeviceError> {
        self.send_with(sink, |planned| match connection {
            Some(connection) => connection.sent_text(planned.seq, planned.borrowed_bytes),
            None => Text::EMPTY,
        })
    }

    /// Sends everything. `text_of` finds the text that was borrowed, by its first sequence number and its length.
    pub(crate) fn send_from<'t, O: FrameSink>(
        &mut self,
        sink: &mut O,
        text_of: impl Fn(SeqNumber, u32) -> Text<'t>,
    ) -> Result<(), DeviceError> {
        self.send_with(sink, |planned| text_of(planned.seq, planned.borrowed_bytes))
    }

    /// Sends everything. `text_of` finds the text that was borrowed.
    pub(super) fn send_with<'t, O: FrameSink>(
        &mut self,
        sink: &mut O,
        mut text_of: impl FnMut(&Planned) -> Text<'t>,
    ) -> Result<(), DeviceError> {
        if self.planned.is_empty() {
            return Ok(());
        }
        self.watch.switch(Stage::Transmit);
        let Self { arena, planned, large, templates, count, .. } = &*self;
        let whole = (&large[..], &templates[..]);
        let text_of = |planned: &Planned| text_of(planned);
        let outcome = sink.transmit(Packets::new((arena, planned), whole, *count, text_of));
        self.watch.switch(Stage::Serve);
        self.sent += self.count as u64;
        self.refused.remember(&self.large);
        self.clear();
        outcome
    }

    fn clear(&mut self) {
        self.arena.clear();
        self.planned.clear();
        self.large.clear();
        self.templates.clear();
        (self.count, self.has_borrowed) = (0, false);
    }

    /// One segment; returns 1.
    pub(super) fn write(
        &mut self,
        path: &Path,
        transmit: &Transmit<'_>,
        id: u16,
    ) -> Result<usize, BuildError> {
        let (text, text_bytes) = (transmit.payload, transmit.payload_bytes());
        let headers = Headers::new(path, transmit, text_bytes, id)?.with_checksum(
            path,
            text,
            self.shape.summer(),
        );
        let (head, offload) = (headers.bytes(), headers.offload(self.shape.completes_checksums));
        self.arena.extend_from_slice(head);
        if text_bytes <= MOST_COPIED_BYTES {
            text.slices().for_each(|piece| self.arena.extend_from_slice(piece));
            self.plan(1, head.len() + text_bytes, offload);
        } else {
            self.plan_borrowed(1, head.len(), offload).borrow(transmit, usize::MAX);
        }
        Ok(1)
    }

    /// A GSO send, whole if the device takes it, else segmented; returns the number of its segments.
    fn write_large(
        &mut self,
        path: &Path,
        transmit: &Transmit<'_>,
        id: u16,
        size: NonZeroU16,
    ) -> Result<usize, BuildError> {
        let count = transmit.payload_bytes().div_ceil(size.get().into());
        if self.shape.takes_large && self.refused.is_worth_trying(path.kind()) {
            self.write_whole(path, transmit, id, size)?;
        } else {
            self.write_segments(path, transmit, id, size)?;
        }
        Ok(count)
    }

    fn write_whole(
        &mut self,
        path: &Path,
        transmit: &Transmit<'_>,
        id: u16,
        size: NonZeroU16,
    ) -> Result<(), BuildError> {
        let (text, kind) = (transmit.payload, path.kind());
        let headers = Headers::new(path, transmit, transmit.payload_bytes(), id)?
            .with_checksum(path, text, None);
        let gso = Some(Gso::new(kind, size));
        let offload = Offload { gso, ..headers.offload(true) };
        self.arena.extend_from_slice(headers.bytes());
        let planned = self.plan_borrowed(1, headers.bytes().len(), offload);
        planned.borrow(transmit, usize::MAX);
        planned.kind = Kind::Large;
        self.large.push(Large::new(kind, headers.at(), size));
        Ok(())
    }

    fn write_segments(
        &mut self,
        path: &Path,
        transmit: &Transmit<'_>,
        id: u16,
        size: NonZeroU16,
    ) -> Result<(), BuildError> {
        let headers = Headers::new(path, transmit, size.get().into(), id)?;
        let head = headers.bytes();
        let Some(cutter) = Cutter::new(head, headers.at(), size, self.shape.summer()) else {
            return Ok(());
        };
        let parts = parts(transmit.payload_bytes(), size);
        let (count, size) = (parts.len(), size.get().into());
        let mut text = transmit.payload;
        let sums_text = !self.shape.completes_checksums;
        for part in parts {
            let own = if sums_text { text.split_to(part.bytes) } else { Text::EMPTY };
            cutter.append(part, own, &mut self.arena);
        }
        let offload = headers.offload(self.shape.completes_checksums);
        self.plan_borrowed(count, head.len(), offload).borrow(transmit, size);
        Ok(())
    }

    /// Plans `count` packets with `head_bytes` each, which are the arena's last.
    pub(super) fn plan(&mut self, count: usize, head_bytes: usize, offload: Offload) {
        self.count += count;
        self.planned.push(Planned::new(count, head_bytes, offload));
    }

    /// Plans `count` packets with more text, which stays where it is.
    fn plan_borrowed(&mut self, count: usize, head_bytes: usize, offload: Offload) -> &mut Planned {
        self.count += count;
        self.has_borrowed = true;
        self.planned.push_mut(Planned::new(count, head_bytes, offload))
    }
}

/// Texts up to this are copied, so that packets of many connections leave together.
const MOST_COPIED_BYTES: usize = 512;
const MOST_PACKETS: usize = 256;

#[cfg(test)]
mod tests;
