//! An aggregate as its receiver sees it: a merged header, the payloads, and the fields of each segment that the
//! merged header cannot express.

use core::num::NonZeroU16;
use core::ops::Range;

use rxo_frame::{ChecksumStatus, Frame, Gso, GsoKind, GsoTunnel, Instant, Offload, VlanTag};
use rxo_wire::{FlowKey, IpVersion, Offsets};

use crate::candidate::MAX_HEADER_BYTES;
use crate::held::{Held, IdPattern};
use crate::links::FrameChain;
use crate::merge::{self, ChecksumForm, Merge, MergedHeader};
use crate::record::SegmentRecord;
use crate::slots::{ChainFrames, Slots};
use crate::store::Store;
use crate::tunnels::Around;
use crate::{FlushReason, Kind};

/// Several TCP segments, or several UDP datagrams of equal size, merged into one. A `Copy` view: the frames
/// stay in the engine's store.
#[derive(Debug)]
pub struct Aggregate<'a, B> {
    slots: &'a Slots<B>,
    held: &'a Held,
    header: &'a MergedHeader,
}

impl<B> Clone for Aggregate<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B> Copy for Aggregate<'_, B> {}

impl<'a, B: AsRef<[u8]>> Aggregate<'a, B> {
    #[inline]
    pub(crate) fn new(store: &'a Store<B>, index: u16) -> Self {
        let index = usize::from(index);
        Self::of(&store.slots, &store.held[index], &store.headers[index])
    }

    /// Creates the view of `held`, whose frames are in `slots`.
    #[inline]
    pub(crate) const fn of(slots: &'a Slots<B>, held: &'a Held, header: &'a MergedHeader) -> Self {
        Self { slots, held, header }
    }

    /// Returns the link, network and transport header of the merged packet, with the checksum form of the
    /// engine. The IP length is 0 if the packet exceeds the field's range; see
    /// [`Policy::for_records`](crate::Policy::for_records).
    #[inline]
    #[must_use]
    pub fn header(&self) -> &'a [u8] {
        self.header.bytes()
    }

    /// Writes the merged header with the TCP checksum in the form `form` and returns its length in bytes.
    /// [`ChecksumForm::Complete`] reads every segment's header, but no payload.
    #[must_use]
    pub fn write_header(&self, form: ChecksumForm, to: &mut [u8; MAX_HEADER_BYTES]) -> usize {
        Merge::new(self.slots, self.held).write(form, to)
    }

    /// Returns the number of segments or datagrams in the aggregate.
    #[inline]
    #[must_use]
    pub const fn segment_count(&self) -> usize {
        self.held.segments as usize
    }

    /// Returns the number of leading segments that are alike, at least one. Their headers differ only in SEQ,
    /// IPv4 ID and checksums, and their payloads have the same length, so a receiver has to read only the
    /// first header.
    #[inline]
    #[must_use]
    pub const fn alike_segments(&self) -> usize {
        self.held.alike as usize
    }

    /// Returns the number of payload bytes of every segment but the last, which may be shorter. If the policy
    /// allows payloads of any size, returns the length of the longest payload.
    #[inline]
    #[must_use]
    pub const fn gso_size(&self) -> u16 {
        self.held.gso_size as u16
    }

    /// Returns the sum of all payload lengths, in bytes.
    #[inline]
    #[must_use]
    pub const fn payload_bytes(&self) -> u32 {
        self.held.payload_bytes
    }

    /// Returns the arrival time of the first segment.
    #[must_use]
    pub const fn first_arrival(&self) -> Instant {
        self.held.first_arrival
    }

    /// Returns the arrival time of the last segment.
    #[must_use]
    pub fn last_arrival(&self) -> Instant {
        self.slots.frame(self.held.chain.tail).arrived_at
    }

    /// Returns the flow to which all segments belong.
    #[must_use]
    pub const fn flow_key(&self) -> FlowKey {
        self.held.key
    }

    /// Returns the reason for which the engine flushed the aggregate.
    #[must_use]
    pub const fn flush_reason(&self) -> FlushReason {
        self.held.reason
    }

    /// Returns the change of the IPv4 ID from one segment to the next: fixed or incrementing. Segmentation
    /// needs this pattern to restore the IDs.
    #[must_use]
    pub const fn id_pattern(&self) -> IdPattern {
        self.held.id_pattern
    }

    /// Returns the change of the IPv4 ID in the outer headers of a tunnel. `None` without a tunnel, or if the
    /// outer header is IPv6.
    #[must_use]
    pub fn outer_id_pattern(&self) -> Option<IdPattern> {
        let around = Around::of(self.held.tunnel()?)?;
        let FrameChain { head, tail } = self.held.chain;
        let [first, last] = [head, tail].map(|slot| around.id(self.slots.frame(slot).bytes()));
        Some(if first? == last? { IdPattern::Fixed } else { IdPattern::Incrementing })
    }

    /// Returns the tunnel that carries the segments; `None` without one. All other methods describe the inner
    /// headers.
    #[must_use]
    pub fn tunnel(&self) -> Option<GsoTunnel> {
        self.held.tunnel()
    }

    /// Returns the offset of the IP header, in bytes from the first link-layer byte; the same in each frame.
    #[must_use]
    pub fn network_at(&self) -> usize {
        usize::from(self.held.at.network())
    }

    /// Returns the offset of the TCP or UDP header, in bytes from the first link-layer byte; the same in each
    /// frame.
    #[must_use]
    pub fn transport_at(&self) -> usize {
        usize::from(self.held.at.transport())
    }

    /// Returns the offsets of the headers, the same in each frame, and the end of the payload in the last
    /// frame.
    #[must_use]
    pub fn offsets(&self) -> Offsets {
        self.held.last_offsets()
    }

    /// Returns the original frames, in order of arrival.
    #[inline]
    pub fn frames(&self) -> ChainFrames<'a, B> {
        self.slots.chain(self.held.chain)
    }

    /// Returns the payload of each segment, in order, without padding.
    #[inline]
    pub fn payloads(&self) -> impl Iterator<Item = &'a [u8]> + use<'a, B> {
        let held = self.held;
        self.frames().map(move |frame| payload(held, frame))
    }

    /// Calls `visit` with each frame and its payload, in order, without padding. For frames in consecutive slots
    /// this method is cheaper than [`Aggregate::frames`] and [`Aggregate::payloads`]: of several segments that
    /// are alike, it reads only the first one's length.
    #[inline]
    pub fn for_each_segment(&self, mut visit: impl FnMut(&'a Frame<B>, &'a [u8])) {
        let Some(frames) = self.slots.run_of(self.held) else {
            return self.frames().for_each(|frame| visit(frame, payload(self.held, frame)));
        };
        let (alike, others) = frames.split_at(frames.len().min(self.alike_segments()));
        let header = usize::from(self.held.header_bytes);
        let end = header + alike.first().map_or(0, |first| payload(self.held, first).len());
        for frame in alike {
            visit(frame, frame.bytes().get(header..end).unwrap_or_default());
        }
        others.iter().for_each(|frame| visit(frame, payload(self.held, frame)));
    }

    /// Returns the content of the aggregate: [`Kind::Data`] or [`Kind::Datagrams`].
    #[inline]
    #[must_use]
    pub const fn kind(&self) -> Kind {
        self.held.kind()
    }

    /// Returns one record for each segment, in order: the fields in which the segment may differ from the merged
    /// header. For datagrams, the TCP fields are 0.
    pub fn segments(&self) -> impl Iterator<Item = SegmentRecord> + use<'a, B> {
        let transport = usize::from(self.held.at.transport());
        let header = match self.held.at.is_datagram() {
            true => 0..0,
            false => transport..usize::from(self.held.header_bytes),
        };
        self.frames().zip(self.payloads()).map(move |(frame, payload)| {
            let header = frame.bytes().get(header.clone()).unwrap_or_default();
            SegmentRecord::read(header, payload.len() as u32, frame.arrived_at)
        })
    }

    /// Returns the offload metadata that a sink must pass on.
    #[inline]
    pub(crate) fn offload(&self) -> Offload {
        Offload { checksum: self.checksum(), gso: self.gso(), header_bytes: self.held.header_bytes }
    }

    /// Returns the VLAN tag that the device removed from each segment; `None` if it removed none.
    #[inline]
    pub(crate) fn vlan(&self) -> Option<VlanTag> {
        self.slots.frame(self.held.chain.head).vlan
    }

    fn gso(&self) -> Option<Gso> {
        if !self.held.at.is_plain() {
            return self.unusual_gso();
        }
        let kind = match self.held.version {
            IpVersion::V4 => GsoKind::TcpV4,
            IpVersion::V6 => GsoKind::TcpV6,
        };
        // CWR is never merged, so no segment needs its special handling.
        NonZeroU16::new(self.gso_size()).map(|size| Gso::new(kind, size))
    }

    /// Returns the GSO metadata of datagrams, or of segments inside a tunnel; `None` if the segment size is
    /// 0.
    #[inline(never)]
    fn unusual_gso(&self) -> Option<Gso> {
        let kind = match self.held.version {
            _ if self.held.at.is_datagram() => GsoKind::Udp,
            IpVersion::V4 => GsoKind::TcpV4,
            IpVersion::V6 => GsoKind::TcpV6,
        };
        let tunnel = self.held.tunnel();
        NonZeroU16::new(self.gso_size()).map(|size| Gso { tunnel, ..Gso::new(kind, size) })
    }

    fn checksum(&self) -> ChecksumStatus {
        match self.header.form() {
            ChecksumForm::PseudoHeader => {
                let (start, offset) = (self.held.at.transport(), self.held.checksum_at());
                ChecksumStatus::Partial { start: start.into(), offset: offset.into() }
            }
            ChecksumForm::Complete | ChecksumForm::Verified => ChecksumStatus::Verified,
        }
    }
}

/// Returns the payload of `frame`, one of the frames of `held`.
#[inline]
fn payload<'a, B: AsRef<[u8]>>(held: &Held, frame: &'a Frame<B>) -> &'a [u8] {
    let (bytes, network) = (frame.bytes(), usize::from(held.at.network()));
    let end = network + merge::packet_bytes(bytes, network, held.version);
    bytes.get::<Range<usize>>(held.header_bytes.into()..end).unwrap_or_default()
}
