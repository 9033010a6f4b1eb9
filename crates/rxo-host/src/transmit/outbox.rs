//! Collects the packets of the next batch and passes them to the device.

use std::num::NonZeroU16;

use rxo_ack::AckNumbers;
use rxo_device::{DeviceError, FrameSink};
use rxo_frame::{ChecksumStatus, Gso, Offload};
use rxo_tcp::{Connection, Text, Transmit};
use rxo_wire::SeqNumber;
use rxo_wire::build::{BuildError, UdpHeader, write_udp_checksum};
use rxo_wire::checksum::{Sum, Summer};
use rxo_wire::segmentation::parts;
use rxo_wire::udp;

use super::batch::{Kind, Packets, Planned};
use super::cut::Cutter;
use super::headers::Headers;
use super::large::{Large, Refused};
use super::shape::{Ip, Path, Shape};
use super::template::Template;
use crate::buffer::Buffer;
use crate::stages::{Stage, Stopwatch};

/// The next batch of packets for the device.
#[derive(Debug)]
pub(crate) struct Outbox {
    pub(super) shape: Shape,
    pub(super) arena: Vec<u8>,
    pub(super) planned: Vec<Planned>,
    /// The descriptions of the batch's GSO frames, for a device that segments them.
    large: Vec<Large>,
    /// The descriptions of the batch's ACK templates, for a device that expands them.
    pub(super) templates: Vec<Template>,
    refused: Refused,
    /// The number of packets in the batch, as passed to the device.
    count: usize,
    /// `true` if some data of the batch is still in a send buffer.
    has_borrowed: bool,
    pub(super) numbers: Vec<AckNumbers>,
    /// Number of packets passed to the device so far; a GSO frame counts as one.
    pub(crate) sent: u64,
    /// The stopwatch for the stages of [`Host::turn`](crate::Host::turn). The stopwatch is part of the outbox
    /// because transmission happens inside other stages.
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

    /// Returns `true` if the batch should be sent before more packets are added.
    pub(crate) fn is_full(&self) -> bool {
        self.count >= MOST_PACKETS
    }

    /// Returns `true` if the batch refers to data in a send buffer, so that it must be sent before the
    /// connection changes.
    pub(crate) const fn has_borrowed(&self) -> bool {
        self.has_borrowed
    }

    /// Returns the number of GSO frames that the device has refused.
    pub(crate) const fn refused(&self) -> u64 {
        self.refused.count
    }

    /// Adds the packets for `transmit`; `ids` is the IPv4 ID of the connection's next packet. A packet that is
    /// too long for IP is omitted, which cannot happen with a valid configuration.
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

    /// Adds a frame that is complete with all headers.
    pub(crate) fn push_frame(&mut self, frame: &[u8]) {
        self.arena.extend_from_slice(frame);
        let offload = Offload { checksum: ChecksumStatus::Verified, ..Offload::default() };
        self.plan(1, frame.len(), offload);
    }

    /// Adds a UDP datagram with `payload`, addresses and ports of `path`, and the IPv4 ID `id`. A datagram that is too
    /// long for IP is omitted.
    pub(crate) fn push_datagram(&mut self, path: &Path, payload: &[u8], id: u16) {
        let start = self.arena.len();
        let bytes = udp::HEADER_BYTES + payload.len();
        self.arena.resize(start + usize::from(path.transport) + bytes, 0);
        let frame = &mut self.arena[start..];
        match write_datagram(path, payload, id, self.shape.summer, frame) {
            Ok(()) => {
                let offload = Offload { checksum: ChecksumStatus::Verified, ..Offload::default() };
                self.plan(1, usize::from(path.transport) + bytes, offload);
            }
            Err(_) => self.arena.truncate(start),
        }
    }

    /// Sends the batch. Data that is not in the arena is in the send buffer of `connection`.
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

    /// Sends the batch. `text_of` returns data in a send buffer, by its first sequence number and its length
    /// in bytes.
    pub(crate) fn send_from<'t, O: FrameSink>(
        &mut self,
        sink: &mut O,
        text_of: impl Fn(SeqNumber, u32) -> Text<'t>,
    ) -> Result<(), DeviceError> {
        self.send_with(sink, |planned| text_of(planned.seq, planned.borrowed_bytes))
    }

    /// Sends the batch. `text_of` returns the data of a group of packets that is in a send buffer.
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

    /// Adds one segment. Returns 1, the number of segments added.
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

    /// Adds a GSO frame, whole if the device accepts GSO frames, otherwise split. Returns the number of its
    /// segments.
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

    /// Records the last `count` packets of the arena, each of `head_bytes` bytes, as a group.
    pub(super) fn plan(&mut self, count: usize, head_bytes: usize, offload: Offload) {
        self.count += count;
        self.planned.push(Planned::new(count, head_bytes, offload));
    }

    /// Records a group of `count` packets whose data stays in the send buffer.
    fn plan_borrowed(&mut self, count: usize, head_bytes: usize, offload: Offload) -> &mut Planned {
        self.count += count;
        self.has_borrowed = true;
        self.planned.push_mut(Planned::new(count, head_bytes, offload))
    }
}

fn write_datagram(
    path: &Path,
    payload: &[u8],
    id: u16,
    summer: Summer,
    frame: &mut [u8],
) -> Result<(), BuildError> {
    let bytes = udp::HEADER_BYTES + payload.len();
    let datagram = path.write(Ip { bytes, ecn: 0, id }, frame)?;
    let header = UdpHeader {
        source_port: path.pair.source_port(),
        destination_port: path.pair.destination_port(),
        payload_bytes: payload.len(),
    };
    header.write(datagram)?.copy_from_slice(payload);
    write_udp_checksum(datagram, path.pseudo + Sum::long(bytes as u32), summer)
}

/// Maximum length in bytes of a payload that is copied, so that packets of many connections can share a
/// batch.
const MOST_COPIED_BYTES: usize = 512;
const MOST_PACKETS: usize = 256;

#[cfg(test)]
mod tests;
