//! Cutter: segments the GSO frames that the device cannot segment: GSO frames inside tunnels and, if the
//! device accepts no header, all GSO frames.
//!
//! This module is separate from the transmitter because it makes no decisions. Contract: only one batch of
//! segments is in memory at a time, so the use of memory does not grow with the number of segments. The
//! memory is allocated for the first such frame and then kept.

use std::num::NonZeroU16;

use rxo_frame::{
    ChecksumStatus, Frame, Gather, Gso, GsoKind, GsoTunnel, Instant, Offload, VlanTag,
};
use rxo_vnet::segments;
use rxo_wire::checksum::{self, Summer};
use rxo_wire::segmentation::{Checksums, Segments};
use rxo_wire::udp::{CHECKSUM_AT as UDP_CHECKSUM_AT, HEADER_BYTES as UDP_BYTES};

use super::batch::Form;

/// The number of segments in memory at the same time: one submission, and the longest train that every kernel
/// accepts.
const BATCH: usize = 64;

/// The largest IP packet, in bytes.
const MOST_BYTES: usize = 65_535;

/// Memory for a GSO frame in several pieces, a batch of its segments, and the headers of a train.
#[derive(Debug)]
pub(super) struct Cutter {
    whole: Vec<u8>,
    batch: Vec<u8>,
    head: Vec<u8>,
    summer: Summer,
}

/// A GSO frame that is being segmented, with the segments that were not produced yet.
pub(super) struct Cut<'c> {
    batch: &'c mut Vec<u8>,
    head: &'c mut Vec<u8>,
    segments: Segments<'c>,
    /// The length of every segment except the last, in bytes.
    segment_bytes: usize,
    /// The offset of the UDP header, if the segments are sent as the datagrams of a train.
    datagrams: Option<usize>,
    checksum: ChecksumStatus,
    vlan: Option<VlanTag>,
}

/// A batch of segments, stored contiguously in memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Batch<'b> {
    bytes: &'b [u8],
    segment_bytes: usize,
    checksum: ChecksumStatus,
    vlan: Option<VlanTag>,
}

/// A batch of segments as one GSO frame: the segments are UDP datagrams with checksums, so a device that does
/// not support their tunnel can still segment the frame. Its original frames are the segments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Train<'b> {
    head: &'b [u8],
    batch: Batch<'b>,
}

impl Cutter {
    pub(super) fn new() -> Self {
        let [whole, batch, head] = [const { Vec::new() }; 3];
        Self { whole, batch, head, summer: Summer::detect() }
    }

    /// Starts to segment a GSO frame for a device of this form. If the frame has a partial checksum, its
    /// segments have partial checksums too, unless they form trains. `None` if the frame cannot be segmented.
    pub(super) fn cut<'c, 'a: 'c>(
        &'c mut self,
        packet: impl Gather<'a>,
        form: Form,
    ) -> Option<Cut<'c>> {
        let Self { whole, batch, head, summer } = self;
        let Offload { checksum, gso, .. } = packet.offload();
        let (gso, bytes) = (gso?, contiguous(packet, whole));
        let forms_trains = form.takes_trains && forms_trains(gso);
        let is_partial = checksum.is_partial() && !forms_trains && form.header_bytes > 0;
        let checksums = if is_partial { Checksums::Partial } else { Checksums::Complete(*summer) };
        let segments = segments(form.link, bytes, (checksum, gso), checksums).ok()?;
        let segment_bytes = segments.header_bytes() + usize::from(gso.size.get());
        let datagrams = segments.datagrams().filter(|_| forms_trains);
        let checksum = match checksum {
            ChecksumStatus::Partial { .. } if !is_partial => ChecksumStatus::Unknown,
            checksum => checksum,
        };
        let vlan = packet.vlan();
        Some(Cut { batch, head, segments, segment_bytes, datagrams, checksum, vlan })
    }

    /// Returns a copy of `packet`, which is no GSO frame, with its partial checksum completed. `None` if the
    /// checksum is complete already, or its field is outside the packet.
    pub(super) fn complete<'a>(&mut self, packet: impl Gather<'a>) -> Option<Frame<&[u8]>> {
        let ChecksumStatus::Partial { start, offset } = packet.offload().checksum else {
            return None;
        };
        self.whole.clear();
        packet.for_each_slice(|piece| self.whole.extend_from_slice(piece));
        let at = usize::from(start) + usize::from(offset);
        let sum = checksum::complete(&self.whole, start.into(), offset.into(), self.summer)?;
        self.whole.get_mut(at..)?.get_mut(..2)?.copy_from_slice(&sum.to_be_bytes());
        Some(Frame { vlan: packet.vlan(), ..Frame::new(&self.whole, Instant::ZERO) })
    }
}

/// Returns `true` if the segments are datagrams with a checksum, which a device can produce from UDP GSO
/// frames.
fn forms_trains(gso: Gso) -> bool {
    gso.tunnel.and_then(GsoTunnel::as_udp).is_some_and(|tunnel| tunnel.has_checksum)
}

/// Returns the bytes of `packet`; copies them into `whole` only if they are in several pieces.
fn contiguous<'c, 'a: 'c>(packet: impl Gather<'a>, whole: &'c mut Vec<u8>) -> &'c [u8] {
    let (mut only, mut pieces) = (&[][..], 0);
    packet.for_each_slice(|piece| {
        only = piece;
        pieces += 1;
    });
    if pieces == 1 {
        return only;
    }
    whole.clear();
    packet.for_each_slice(|piece| whole.extend_from_slice(piece));
    whole
}

impl Cut<'_> {
    /// Produces the next segments in order and, if several form a train, also the train. `None` if no
    /// segments remain.
    pub(super) fn next_batch(&mut self) -> Option<(Batch<'_>, Option<Train<'_>>)> {
        let Self { segment_bytes, datagrams, checksum, vlan, .. } = *self;
        let fit = match datagrams {
            Some(at) => (MOST_BYTES - at) / (segment_bytes - at),
            None => BATCH,
        };
        let most = self.segments.remaining().min(fit).clamp(1, BATCH);
        self.batch.resize(most * segment_bytes, 0);
        let (mut count, mut end) = (0, 0);
        while count < most
            && let Ok(Some(bytes)) = self.segments.next_into(&mut self.batch[end..])
        {
            count += 1;
            end += bytes;
        }
        let bytes = &self.batch[..end];
        let batch = Batch { bytes, segment_bytes, checksum, vlan };
        let train = datagrams.filter(|_| count > 1).and_then(|at| {
            let head_bytes = at + UDP_BYTES;
            self.head.clear();
            self.head.extend_from_slice(bytes.get(..head_bytes)?);
            let carried = end - count * head_bytes;
            self.segments.train_headers(self.head, count, carried).ok()?;
            Some(Train { head: self.head, batch })
        });
        (count > 0).then_some((batch, train))
    }
}

impl<'b> Batch<'b> {
    /// Returns the segments in order, as frames.
    pub(super) fn frames(self) -> impl ExactSizeIterator<Item = Frame<&'b [u8]>> {
        let Self { bytes, segment_bytes, checksum, vlan } = self;
        let segments = bytes.chunks(segment_bytes);
        segments.map(move |bytes| Frame { checksum, vlan, ..Frame::new(bytes, Instant::ZERO) })
    }
}

impl<'b> Gather<'b> for Train<'b> {
    fn offload(self) -> Offload {
        let head_bytes = self.head.len() as u16;
        let start = head_bytes - UDP_BYTES as u16;
        let size = NonZeroU16::new((self.batch.segment_bytes - self.head.len()) as u16);
        Offload {
            checksum: ChecksumStatus::Partial { start, offset: UDP_CHECKSUM_AT as u16 },
            gso: size.map(|size| Gso::new(GsoKind::Udp, size)),
            header_bytes: head_bytes,
        }
    }

    fn vlan(self) -> Option<VlanTag> {
        self.batch.vlan
    }

    fn byte_len(self) -> usize {
        self.batch.bytes.len() - (self.frame_count() - 1) * self.head.len()
    }

    fn for_each_slice(self, mut visit: impl FnMut(&'b [u8])) {
        visit(self.head);
        self.batch.frames().for_each(|frame| visit(&frame.bytes[self.head.len()..]));
    }

    fn frame_count(self) -> usize {
        self.batch.frames().len()
    }

    fn for_each_frame(self, visit: impl FnMut(Frame<&'b [u8]>)) {
        self.batch.frames().for_each(visit);
    }
}
