//! Accepts: the kinds of packets that the receiving side of a ring accepts, by the negotiated features.

use rxo_frame::{ChecksumStatus, Gso, GsoKind};
use rxo_vnet::{VIRTIO_HEADER_BYTES, VNET_HEADER_BYTES, VnetHeader};

use crate::vhost_user::features::{
    ACK_TEMPLATES, CSUM, GUEST_CSUM, GUEST_ECN, GUEST_TSO4, GUEST_TSO6, GUEST_USO4, GUEST_USO6,
    HOST_ECN, HOST_TSO4, HOST_TSO6, HOST_USO, MRG_RXBUF, RSC_EXT, VERSION_1,
};

/// The length of an Ethernet header, in bytes. Shorter frames are invalid.
const LEAST_FRAME_BYTES: usize = 14;

/// Returns the length of the virtio-net header in rings with these features, in bytes.
pub(crate) const fn header_bytes(features: u64) -> usize {
    if features & (VERSION_1 | MRG_RXBUF) != 0 { VIRTIO_HEADER_BYTES } else { VNET_HEADER_BYTES }
}

/// The kinds of packets that the receiving side accepts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Accepts {
    /// `true` if frames with a partial checksum are accepted.
    partial: bool,
    /// `true` if the sender may mark a checksum as verified (`DATA_VALID`).
    valid: bool,
    tcp_v4: bool,
    tcp_v6: bool,
    /// `true` if GSO frames in which only the first segment has CWR are accepted.
    ecn: bool,
    udp: bool,
    /// `true` if an aggregate may carry the number of its segments (`RSC_EXT`). The count replaces the
    /// offsets of a partial checksum in the header.
    coalesced: bool,
    /// `true` if ACK templates are accepted, which only rxo's own device expands.
    ack_templates: bool,
}

/// The form in which a packet must be sent to the receiving side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fit {
    /// Send the packet with this header.
    Send(VnetHeader),
    /// Complete the packet's checksum, and send it with an empty header.
    Complete {
        /// The offset in the packet at which summing starts, in bytes.
        start: u16,
        /// The offset of the checksum field from `start`, in bytes.
        offset: u16,
    },
    /// Segment the packet, because the receiving side cannot.
    Segment(Gso),
}

impl Accepts {
    /// Returns the kinds of packets that a driver with these features accepts.
    pub(crate) fn driver(features: u64) -> Self {
        let has = |bits: u64| features & bits == bits;
        Self {
            partial: has(GUEST_CSUM),
            valid: has(GUEST_CSUM),
            tcp_v4: has(GUEST_CSUM | GUEST_TSO4),
            tcp_v6: has(GUEST_CSUM | GUEST_TSO6),
            ecn: has(GUEST_ECN),
            // The kind of a GSO frame of UDP does not contain its IP version.
            udp: has(GUEST_CSUM | GUEST_USO4 | GUEST_USO6),
            coalesced: has(GUEST_CSUM | RSC_EXT),
            ack_templates: false,
        }
    }

    /// Returns the kinds of packets that a device with these features accepts. A driver must not mark a checksum
    /// as verified.
    pub(crate) fn device(features: u64) -> Self {
        let has = |bits: u64| features & bits == bits;
        Self {
            partial: has(CSUM),
            valid: false,
            tcp_v4: has(CSUM | HOST_TSO4),
            tcp_v6: has(CSUM | HOST_TSO6),
            ecn: has(HOST_ECN),
            udp: has(CSUM | HOST_USO),
            coalesced: false,
            ack_templates: has(CSUM | ACK_TEMPLATES),
        }
    }

    /// Returns `true` if the receiving side accepts ACK templates.
    pub(crate) const fn ack_templates(self) -> bool {
        self.ack_templates
    }

    /// Returns `true` if the receiving side accepts UDP GSO frames.
    pub(crate) const fn udp(self) -> bool {
        self.udp
    }

    /// Returns `true` if the receiving side accepts frames with a partial checksum.
    pub(super) const fn partial(self) -> bool {
        self.partial
    }

    /// Returns `true` if an aggregate with this segmentation must contain the number of its segments. Only
    /// TCP aggregates may contain it (virtio 1.2, section 5.1.6.4).
    pub(super) const fn coalesced(self, gso: Gso) -> bool {
        self.coalesced && matches!(gso.kind, GsoKind::TcpV4 | GsoKind::TcpV6)
    }

    const fn takes(self, gso: Gso) -> bool {
        let takes_kind = match gso.kind {
            GsoKind::TcpV4 => self.tcp_v4,
            GsoKind::TcpV6 => self.tcp_v6,
            GsoKind::Udp => self.udp,
            GsoKind::UdpFragment => false,
            GsoKind::AckTemplate => self.ack_templates,
        };
        takes_kind && gso.tunnel.is_none() && (self.ecn || !gso.ecn)
    }

    /// Returns the form in which a packet with this header must be sent.
    pub(super) fn fit(self, header: VnetHeader) -> Fit {
        if let Some(gso) = header.gso() {
            let is_whole = self.takes(gso) && header.checksum().is_partial();
            return if is_whole { Fit::Send(header) } else { Fit::Segment(gso) };
        }
        match header.checksum() {
            ChecksumStatus::Partial { start, offset } if !self.partial => {
                Fit::Complete { start, offset }
            }
            ChecksumStatus::Verified if !self.valid => Fit::Send(VnetHeader::default()),
            _ => Fit::Send(header),
        }
    }

    /// Parses the header of a received frame of `frame_bytes` bytes. `None` if the frame must be discarded: it is
    /// shorter than an Ethernet header, its header refers to bytes beyond the frame or uses a feature that was
    /// not negotiated, or it is a GSO frame without a partial checksum (virtio 1.2, section 5.1.6.2), whose
    /// segments would have wrong checksums. GSO frames with more than [`MOST_SEGMENTS`] segments are discarded
    /// too, to limit the work per frame. An aggregate with segment counts has a complete and verified checksum
    /// (section 5.1.6.4); the counts themselves are ignored, so wrong counts do no harm.
    #[inline]
    pub(crate) fn read(
        self,
        header: &[u8],
        frame_bytes: usize,
    ) -> Option<(ChecksumStatus, Option<Gso>)> {
        let header = VnetHeader::read(header)?;
        if frame_bytes < LEAST_FRAME_BYTES {
            return None;
        }
        let gso = if header.has_gso() { self.gso(header, frame_bytes)? } else { None };
        let checksum = match header.checksum() {
            ChecksumStatus::Partial { start, offset } => {
                let end = usize::from(start) + usize::from(offset) + 2;
                (self.partial && end <= frame_bytes).then_some(header.checksum())?
            }
            ChecksumStatus::Verified if !self.valid => ChecksumStatus::Unknown,
            other => other,
        };
        Some((checksum, gso))
    }

    /// Returns the segmentation of a received frame with this header; `None` if the frame must be discarded.
    #[inline(never)]
    fn gso(self, header: VnetHeader, frame_bytes: usize) -> Option<Option<Gso>> {
        let Some(gso) = header.gso() else { return Some(None) };
        let has_checksum = match header.checksum() {
            ChecksumStatus::Partial { .. } => true,
            ChecksumStatus::Verified => header.coalesced().is_some() && self.coalesced(gso),
            ChecksumStatus::Unknown => false,
        };
        let segments = frame_bytes / usize::from(gso.size.get());
        let is_right = self.takes(gso) && has_checksum && segments <= MOST_SEGMENTS;
        is_right.then_some(Some(gso))
    }
}

/// Maximum number of segments in a received GSO frame; a frame with more is discarded. Linux never exceeds
/// it: 64 KiB in segments of 48 bytes, its smallest size, are 1,365.
const MOST_SEGMENTS: usize = 2_048;

#[cfg(test)]
mod tests {
    use std::num::NonZeroU16;

    use proptest::prelude::*;
    use rxo_frame::Offload;
    use rxo_vnet::Coalesced;

    use super::*;

    const PARTIAL: ChecksumStatus = ChecksumStatus::Partial { start: 34, offset: 16 };

    fn gso(kind: GsoKind, ecn: bool) -> Gso {
        Gso { ecn, ..Gso::new(kind, NonZeroU16::new(1_448).unwrap()) }
    }

    fn header(checksum: ChecksumStatus, gso: Option<Gso>) -> VnetHeader {
        VnetHeader::for_packet(Offload { checksum, gso, header_bytes: 66 }, 0)
    }

    const ALL_GUEST: u64 = GUEST_CSUM | GUEST_TSO4 | GUEST_TSO6 | GUEST_ECN;
    const ALL_HOST: u64 = CSUM | HOST_TSO4 | HOST_TSO6 | HOST_ECN;

    /// Each feature affects only its own kind of frame, in both directions.
    #[test]
    fn a_kind_is_accepted_by_its_feature_alone() {
        let rows = [
            (GsoKind::TcpV4, false, GUEST_TSO4, HOST_TSO4),
            (GsoKind::TcpV6, false, GUEST_TSO6, HOST_TSO6),
            (GsoKind::TcpV4, true, GUEST_ECN, HOST_ECN),
            (GsoKind::TcpV4, false, GUEST_CSUM, CSUM),
            (GsoKind::TcpV6, true, GUEST_CSUM, CSUM),
        ];
        for (kind, ecn, guest, host) in rows {
            let frame = header(PARTIAL, Some(gso(kind, ecn)));
            for (all, without) in [
                (Accepts::driver(ALL_GUEST), Accepts::driver(ALL_GUEST & !guest)),
                (Accepts::device(ALL_HOST), Accepts::device(ALL_HOST & !host)),
            ] {
                assert_eq!(all.fit(frame), Fit::Send(frame));
                assert_eq!(without.fit(frame), Fit::Segment(gso(kind, ecn)), "{kind:?} {ecn}");
                assert!(all.read(&frame.to_bytes(), 3_000).is_some());
                assert_eq!(without.read(&frame.to_bytes(), 3_000), None, "{kind:?} {ecn}");
            }
        }
        let template = header(PARTIAL, Some(gso(GsoKind::AckTemplate, false)));
        assert!(matches!(Accepts::device(ALL_HOST).fit(template), Fit::Segment(_)));
        assert_eq!(Accepts::device(ALL_HOST).read(&template.to_bytes(), 100), None);
        let with = Accepts::device(ALL_HOST | ACK_TEMPLATES);
        assert_eq!(with.fit(template), Fit::Send(template));
        assert!(with.read(&template.to_bytes(), 100).is_some());
        let udp = header(PARTIAL, Some(gso(GsoKind::Udp, false)));
        assert!(matches!(Accepts::driver(ALL_GUEST).fit(udp), Fit::Segment(_)));
        let with = Accepts::driver(ALL_GUEST | GUEST_USO4 | GUEST_USO6);
        assert_eq!(with.fit(udp), Fit::Send(udp));
    }

    #[test]
    fn checksums_are_passed_on_only_as_far_as_agreed() {
        let (partial, valid) = (header(PARTIAL, None), header(ChecksumStatus::Verified, None));
        let rows = [
            (Accepts::driver(ALL_GUEST), Fit::Send(partial), Fit::Send(valid)),
            (Accepts::device(ALL_HOST), Fit::Send(partial), Fit::Send(VnetHeader::default())),
            (
                Accepts::driver(0),
                Fit::Complete { start: 34, offset: 16 },
                Fit::Send(VnetHeader::default()),
            ),
        ];
        for (accepts, of_partial, of_valid) in rows {
            assert_eq!((accepts.fit(partial), accepts.fit(valid)), (of_partial, of_valid));
        }
        let of_guest = Accepts::device(ALL_HOST).read(&valid.to_bytes(), 60);
        assert_eq!(of_guest, Some((ChecksumStatus::Unknown, None)), "a guest cannot vouch");
        let of_device = Accepts::driver(ALL_GUEST).read(&valid.to_bytes(), 60);
        assert_eq!(of_device, Some((ChecksumStatus::Verified, None)));
    }

    /// Each segment gets its own checksum, so the checksum of a GSO frame must be partial.
    #[test]
    fn a_gso_frame_has_a_partial_checksum() {
        for checksum in [ChecksumStatus::Unknown, ChecksumStatus::Verified] {
            let gso = gso(GsoKind::TcpV4, false);
            let frame = header(checksum, Some(gso));
            for accepts in [Accepts::device(ALL_HOST), Accepts::driver(ALL_GUEST)] {
                assert_eq!(accepts.read(&frame.to_bytes(), 3_000), None, "{checksum:?}");
                assert_eq!(accepts.fit(frame), Fit::Segment(gso), "{checksum:?}");
            }
        }
    }

    #[test]
    fn a_gso_frame_has_a_bounded_number_of_segments() {
        for (size, is_read) in [(1, false), (31, false), (32, true), (48, true)] {
            let size = NonZeroU16::new(size).unwrap();
            let frame = header(PARTIAL, Some(Gso { size, ..gso(GsoKind::TcpV4, false) }));
            for accepts in [Accepts::device(ALL_HOST), Accepts::driver(ALL_GUEST)] {
                assert_eq!(accepts.read(&frame.to_bytes(), 65_536).is_some(), is_read, "{size}");
            }
        }
    }

    #[test]
    fn an_aggregate_with_counts_is_accepted_where_that_was_agreed() {
        let gso = gso(GsoKind::TcpV4, false);
        let counts = Coalesced { segments: 7, duplicate_acks: 0 };
        let bytes = header(PARTIAL, Some(gso)).with_coalesced(counts).to_bytes();
        let verified = Some((ChecksumStatus::Verified, Some(gso)));
        assert_eq!(Accepts::driver(ALL_GUEST | RSC_EXT).read(&bytes, 3_000), verified);
        assert_eq!(Accepts::driver(ALL_GUEST).read(&bytes, 3_000), None);
        assert_eq!(Accepts::device(ALL_HOST | RSC_EXT).read(&bytes, 3_000), None, "of a guest");
    }

    proptest! {
        /// For any ten bytes: a partial checksum lies inside the frame and has its flag set, and the flag for
        /// counts is ignored by a side that did not negotiate it.
        #[test]
        fn any_header_is_read(
            mut bytes: [u8; VIRTIO_HEADER_BYTES],
            flags in 0_u8..8,
            gso_type in 0_u8..6,
            frame_bytes in 0_usize..70_000,
        ) {
            bytes[..2].copy_from_slice(&[flags, gso_type]);
            let counting = Accepts::driver(ALL_GUEST | RSC_EXT);
            if let Some((ChecksumStatus::Partial { start, offset }, _)) = counting.read(&bytes, frame_bytes) {
                prop_assert_eq!(flags & 1, 1);
                prop_assert!(usize::from(start) + usize::from(offset) + 2 <= frame_bytes);
            }
            let others = [Accepts::driver(ALL_GUEST), Accepts::device(ALL_HOST | RSC_EXT)];
            let read = others.map(|accepts| accepts.read(&bytes, frame_bytes));
            bytes[0] &= !4;
            prop_assert_eq!(read, others.map(|accepts| accepts.read(&bytes, frame_bytes)));
        }
    }

    #[test]
    fn a_header_beyond_its_frame_discards_it() {
        let accepts = Accepts::device(ALL_HOST);
        let bytes = header(PARTIAL, None).to_bytes();
        assert_eq!(accepts.read(&bytes, 52), Some((PARTIAL, None)));
        assert_eq!(accepts.read(&bytes, 51), None);
        assert_eq!(accepts.read(&[0; 10], 13), None);
        assert_eq!(accepts.read(&[0; 9], 60), None);
        let last = ChecksumStatus::Partial { start: u16::MAX, offset: u16::MAX };
        assert_eq!(accepts.read(&header(last, None).to_bytes(), 65_535), None);
    }
}
