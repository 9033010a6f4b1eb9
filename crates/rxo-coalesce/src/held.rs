//! State of one held flow: an aggregate under construction.
//!
//! The state is small, because it is written for every flow in every poll. Rules that need further fields read
//! them from the last held frame.

use rxo_frame::{Frame, GsoTunnel, Instant};
use rxo_wire::checksum::{self, Sum};
use rxo_wire::tcp::{CHECKSUM_AT, OptionLayout};
use rxo_wire::{
    FlowHash, FlowKey, IpVersion, Offsets, PROTOCOL_TCP, PROTOCOL_UDP, Plain, SeqNumber, TcpFlags,
    udp,
};

use crate::ack_point::AckPoint;
use crate::links::FrameChain;
use crate::shape::Shape;
use crate::single::Starts;
use crate::{Candidate, FlushReason, IdRule, Kind, PayloadRule, Policy};

/// The change of the IPv4 identification from segment to segment within an aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdPattern {
    /// The pattern is unknown: there is only one segment so far, or the packets are IPv6.
    Undecided,
    /// The ID is equal in all segments; allowed only with DF set.
    Fixed,
    /// The ID of each segment is one more than that of the segment before.
    Incrementing,
    /// The IDs follow no rule; allowed only by [`IdRule::Any`].
    Mixed,
}

/// The segments that a flow holds: all with payload, all pure ACKs, or all UDP datagrams.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    /// The flow to which the segments belong.
    pub key: FlowKey,
    /// The arrival time of the first segment.
    pub first_arrival: Instant,
    /// The sequence number of the next byte in the stream; meaningless for datagrams.
    pub next_seq: SeqNumber,
    /// The number of segments.
    pub segments: u32,
    /// The number of leading segments that are alike: the first segment, and the segments after it that only
    /// continue the stream.
    pub(crate) alike: u32,
    /// The sum of all payload lengths, in bytes.
    pub payload_bytes: u32,
    /// The payload length of the last segment, in bytes.
    pub last_payload_bytes: u32,
    /// The payload length of every segment but the last, in bytes. If the policy allows payloads of any size,
    /// the greatest payload length.
    pub gso_size: u32,
    /// The offsets at which the headers begin; the same in all segments.
    pub(crate) at: Starts,
    /// The length of all headers together, which is the offset of the payload, in bytes.
    pub header_bytes: u16,
    /// The union of the flags of all segments.
    pub flags: TcpFlags,
    /// The IP version of the packets.
    pub version: IpVersion,
    /// The change of the IPv4 ID from segment to segment.
    pub id_pattern: IdPattern,
    /// The outer headers of a tunnel: their offsets, and whether they have a checksum. This field is written
    /// after [`Held::begin`], and only for flows in a tunnel, which saves a store for all other flows.
    pub(crate) around: GsoTunnel,
    /// The reason for which the flow was flushed; valid only after the flush.
    pub(crate) reason: FlushReason,
    pub(crate) chain: FrameChain,
    pub(crate) link: BucketLink,
}

/// Additional state of held pure ACKs, and of data if the policy records each flow's last ACK. This state is
/// not part of [`Held`], which keeps the state of all other flows small.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeldAcks {
    pub(crate) flow: FlowHash,
    /// The ACK number and the window of the last held ACK. If the flow holds data, only the ACK number is used.
    pub(crate) point: AckPoint,
    /// `true` if the last held segment also has SACK blocks or payload. A following pure ACK with the same ACK
    /// number is then not necessarily a duplicate.
    pub(crate) has_other_content: bool,
}

impl HeldAcks {
    /// The value at the index of a flow that holds no pure ACKs.
    pub(crate) const BLANK: Self = Self {
        flow: FlowHash(0),
        point: AckPoint { ack: SeqNumber(0), window: 0 },
        has_other_content: false,
    };
}

/// The fields that the engine needs to hold, deliver or append a segment. Every tier fills in the same fields.
#[derive(Clone, Copy)]
pub(crate) struct Segment {
    pub(crate) key: FlowKey,
    pub(crate) arrived_at: Instant,
    pub(crate) seq: SeqNumber,
    pub(crate) payload_bytes: u32,
    /// The increment of the segment's IPv4 ID over that of the last held segment, as `verdict::regular_step`
    /// returns it; 0 if the flow holds no segment.
    pub(crate) id_step: u16,
    pub(crate) at: Starts,
    pub(crate) header_bytes: u16,
    pub(crate) flags: TcpFlags,
    pub(crate) version: IpVersion,
    pub(crate) slot: u32,
    pub(crate) acks: HeldAcks,
}

impl Segment {
    /// Creates the segment for the candidate in `frame`, which is in `slot`; `flow` is the hash of `key`.
    pub(crate) fn of<B>(
        candidate: &Candidate<'_>,
        (key, flow): (FlowKey, FlowHash),
        frame: &Frame<B>,
        slot: u32,
    ) -> Self {
        let Candidate { ip, tcp, at, .. } = candidate;
        let payload_bytes = at.payload_bytes();
        let has_other_content = payload_bytes != 0 || tcp.options == OptionLayout::Other;
        let point = AckPoint { ack: tcp.ack, window: tcp.window };
        Self {
            key,
            arrived_at: frame.arrived_at,
            seq: tcp.seq,
            payload_bytes,
            id_step: 0,
            at: if candidate.is_datagram { Starts::of_datagram(*at) } else { Starts::at(*at) },
            header_bytes: at.payload as u16,
            flags: tcp.flags,
            version: ip.version,
            slot,
            acks: HeldAcks { flow, point, has_other_content },
        }
    }

    /// Creates the segment for the plain segment in `packet`, which begins at `network` in `frame`; `flow` is
    /// the hash of `key`. `None` if the packet is truncated.
    #[inline(always)]
    pub(crate) fn plain<S: Shape, B: AsRef<[u8]>>(
        plain: &Plain,
        (key, flow): (FlowKey, FlowHash),
        (frame, packet, network): (&Frame<B>, &[u8], usize),
        slot: u32,
    ) -> Option<Self> {
        let point = AckPoint::read::<S>(packet)?;
        Some(Self {
            key,
            arrived_at: frame.arrived_at,
            seq: plain.seq,
            payload_bytes: plain.payload_bytes,
            id_step: 0,
            at: Starts::after(network, S::IP_BYTES),
            header_bytes: network as u16 + plain.header_bytes as u16,
            flags: TcpFlags::ACK,
            version: S::VERSION,
            slot,
            acks: HeldAcks { flow, point, has_other_content: plain.payload_bytes != 0 },
        })
    }

    /// Returns the kind of the segment: [`Kind::Data`], [`Kind::PureAck`] or [`Kind::Datagrams`].
    #[inline]
    pub(crate) const fn kind(&self) -> Kind {
        Kind::of_candidate(self.payload_bytes, self.at.is_datagram())
    }
}

/// The position of a held flow in the flow table: its bucket, and the next flow in that bucket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BucketLink {
    pub(crate) bucket: u16,
    /// The next flow index in the same bucket.
    pub(crate) next: u16,
}

impl BucketLink {
    pub(crate) const NONE: Self = Self { bucket: 0, next: u16::MAX };
}

impl Held {
    /// The value at a flow index that was never used.
    pub(crate) const BLANK: Self = Self {
        key: FlowKey::NONE,
        first_arrival: Instant::ZERO,
        next_seq: SeqNumber(0),
        segments: 0,
        alike: 0,
        payload_bytes: 0,
        last_payload_bytes: 0,
        gso_size: 0,
        at: Starts::UNKNOWN,
        header_bytes: 0,
        flags: TcpFlags::ACK,
        version: IpVersion::V4,
        id_pattern: IdPattern::Undecided,
        around: GsoTunnel::OTHER,
        reason: FlushReason::EndOfPoll,
        chain: FrameChain::EMPTY,
        link: BucketLink::NONE,
    };

    /// Starts a new aggregate with the segment `first`. Leaves the flow's position in the table unchanged.
    ///
    /// Assigns field by field on purpose: the compiler would assemble a whole struct elsewhere by narrow stores,
    /// and copy it by wide loads, which must wait for all these stores.
    #[inline(always)]
    pub(crate) fn begin(&mut self, first: &Segment) {
        self.key = first.key;
        self.first_arrival = first.arrived_at;
        self.next_seq = first.seq + first.payload_bytes;
        self.segments = 1;
        self.alike = 1;
        self.payload_bytes = first.payload_bytes;
        self.last_payload_bytes = first.payload_bytes;
        self.gso_size = first.payload_bytes;
        self.at = first.at;
        self.header_bytes = first.header_bytes;
        self.flags = first.flags;
        self.version = first.version;
        self.id_pattern = IdPattern::Undecided;
        self.chain.head = first.slot;
        self.chain.tail = first.slot;
    }

    /// Adds one more segment to the aggregate's state. The verdict must have allowed the segment.
    #[inline]
    pub(crate) fn append(&mut self, next: &Segment, policy: &Policy) {
        self.decide_id(next.id_step);
        if policy.ip_id == IdRule::Any {
            self.admit_any_id(next.id_step);
        }
        self.next_seq = next.seq + next.payload_bytes;
        self.flags = self.flags | next.flags;
        self.segments += 1;
        self.last_payload_bytes = next.payload_bytes;
        self.payload_bytes += next.payload_bytes;
        if policy.payload == PayloadRule::Any {
            self.gso_size = self.gso_size.max(next.payload_bytes);
        }
    }

    /// Returns the kind of all held segments: [`Kind::Data`], [`Kind::PureAck`] or [`Kind::Datagrams`].
    #[inline]
    #[must_use]
    pub const fn kind(&self) -> Kind {
        Kind::of_candidate(self.payload_bytes, self.at.is_datagram())
    }

    /// Returns the IP protocol number: that of TCP or of UDP.
    #[inline]
    pub(crate) const fn protocol(&self) -> u8 {
        if self.at.is_datagram() { PROTOCOL_UDP } else { PROTOCOL_TCP }
    }

    /// Adds `count` segments that differ from the last only in SEQ, IPv4 ID and checksums. The ID increments
    /// by `step` (0 or 1) per segment.
    #[inline(always)]
    pub(crate) fn append_run(&mut self, count: u32, step: u16) {
        self.decide_id(step);
        let payload_bytes = count * self.last_payload_bytes;
        self.next_seq = self.next_seq + payload_bytes;
        if self.alike == self.segments {
            self.alike += count;
        }
        self.segments += count;
        self.payload_bytes += payload_bytes;
    }

    #[inline]
    fn decide_id(&mut self, step: u16) {
        if self.id_pattern == IdPattern::Undecided && self.version == IpVersion::V4 {
            self.id_pattern = if step == 0 { IdPattern::Fixed } else { IdPattern::Incrementing };
        }
    }

    /// Sets the pattern of the IPv4 IDs to [`IdPattern::Mixed`] if the increment `step` breaks the pattern.
    fn admit_any_id(&mut self, step: u16) {
        let is_broken = match self.id_pattern {
            IdPattern::Undecided | IdPattern::Mixed => false,
            IdPattern::Fixed => step != 0,
            IdPattern::Incrementing => step != 1,
        };
        if is_broken {
            self.id_pattern = IdPattern::Mixed;
        }
    }

    /// Returns the sum of the pseudo-header for a packet of this flow with this payload length (RFC 9293
    /// section 3.1, RFC 8200 section 8.1).
    #[inline]
    pub(crate) fn pseudo_header(&self, protocol: u8, payload_bytes: u32) -> Sum {
        let segment_bytes =
            u32::from(self.header_bytes) - u32::from(self.at.transport()) + payload_bytes;
        checksum::pseudo_header(&self.key, protocol, segment_bytes)
    }

    /// Returns the offsets of the headers and the payload of the last segment.
    pub(crate) fn last_offsets(&self) -> Offsets {
        let payload = u32::from(self.header_bytes);
        Offsets {
            network: self.at.network().into(),
            transport: self.at.transport().into(),
            payload,
            end: payload + self.last_payload_bytes,
        }
    }

    /// Returns the tunnel that carries the flow; `None` without one.
    #[inline]
    pub(crate) fn tunnel(&self) -> Option<GsoTunnel> {
        self.at.is_in_tunnel().then_some(self.around)
    }

    /// Returns the offset of the checksum in the transport header, in bytes.
    #[inline]
    pub(crate) const fn checksum_at(&self) -> u8 {
        if self.at.is_datagram() { udp::CHECKSUM_AT as u8 } else { CHECKSUM_AT as u8 }
    }

    /// Returns the length of the merged IP packet so far, in bytes.
    #[inline]
    pub(crate) fn packet_bytes(&self) -> u32 {
        u32::from(self.header_bytes) - u32::from(self.at.network()) + self.payload_bytes
    }

    /// Returns `true` if one more segment with the payload length of the last one may be appended under
    /// `policy`.
    #[inline(always)]
    pub(crate) fn has_room(&self, policy: &Policy) -> bool {
        self.segments < u32::from(policy.max_segments)
            && self.packet_bytes() + self.last_payload_bytes <= policy.max_bytes
            && self.payload_bytes + self.last_payload_bytes <= policy.buffer_bytes
    }

    /// Returns the number of further segments with the payload length of the last one that may be appended
    /// under `policy`; at most `most`.
    #[inline]
    pub(crate) fn room(&self, policy: &Policy, most: u32) -> u32 {
        let segments = u32::from(policy.max_segments).saturating_sub(self.segments).min(most);
        let packet = policy.max_bytes.saturating_sub(self.packet_bytes());
        let bytes = packet.min(policy.buffer_bytes.saturating_sub(self.payload_bytes));
        // A division costs more than the rest of this function, and most aggregates are far from a limit.
        match u64::from(segments) * u64::from(self.last_payload_bytes) <= u64::from(bytes) {
            true => segments,
            false => bytes / self.last_payload_bytes.max(1),
        }
    }
}
