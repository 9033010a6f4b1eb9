//! What a flow holds: an aggregate in the making.
//!
//! Kept small, since one is written for every flow of every poll. What a rule needs beyond this
//! is read from the last frame, which is held with it.

use rxo_frame::{Frame, GsoTunnel, Instant};
use rxo_wire::checksum::{self, Sum};
use rxo_wire::tcp::{CHECKSUM_AT, OptionLayout};
use rxo_wire::{
    FlowHash, FlowKey, IpVersion, Offsets, PROTOCOL_TCP, PROTOCOL_UDP, Plain, SeqNumber, TcpFlags,
};

use crate::acks::AckPoint;
use crate::datagrams;
use crate::shape::Shape;
use crate::single::{Kind, Starts};
use crate::store::FrameChain;
use crate::{Candidate, FlushReason, PayloadRule, Policy};

/// How the IPv4 identification runs through an aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdPattern {
    /// Only one segment so far, or IPv6.
    Undecided,
    /// The same in all segments; only with DF set.
    Fixed,
    /// One more in each segment.
    Incrementing,
}

/// The segments that a flow holds: with payload, or pure ACKs, or UDP datagrams.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    /// The flow.
    pub key: FlowKey,
    /// When the first segment arrived.
    pub first_arrival: Instant,
    /// The sequence number that continues the byte stream; of datagrams it says nothing.
    pub next_seq: SeqNumber,
    /// How many segments.
    pub segments: u32,
    /// How many of the first of them are alike: the first itself, and those that only continue it.
    pub(crate) alike: u32,
    /// Their payloads together, in bytes.
    pub payload_bytes: u32,
    /// The last segment's payload, in bytes.
    pub last_payload_bytes: u32,
    /// The payload of every segment but the last, in bytes; where the policy allows any sizes,
    /// the largest.
    pub gso_size: u32,
    /// Where the headers begin; the same in all segments.
    pub(crate) at: Starts,
    /// Where the payload begins: all headers together.
    pub header_bytes: u16,
    /// All flags of all segments.
    pub flags: TcpFlags,
    /// The version of IP.
    pub version: IpVersion,
    /// How the IPv4 ID runs.
    pub id_pattern: IdPattern,
    /// Where the headers around these are, and whether they have a checksum. Written after [`Held::begin`], and read
    /// only of what is in a tunnel, so that nothing else pays for it.
    pub(crate) around: GsoTunnel,
    /// Why it was flushed; meaningful once it is.
    pub(crate) reason: FlushReason,
    pub(crate) chain: FrameChain,
    pub(crate) link: BucketLink,
}

/// What is kept of held pure ACKs besides, and of data where the policy remembers what flows said;
/// apart, so that other data does not carry it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeldAcks {
    pub(crate) flow: FlowHash,
    /// What the last of them says; of data the ACK number only.
    pub(crate) said: AckPoint,
    /// Whether it says more, with SACK blocks or data: what comes next may repeat what it says.
    pub(crate) says_more: bool,
}

impl HeldAcks {
    /// A place that holds none.
    pub(crate) const BLANK: Self = Self {
        flow: FlowHash(0),
        said: AckPoint { ack: SeqNumber(0), window: 0 },
        says_more: false,
    };
}

/// A segment as it is held, delivered or appended, whichever tier judged it.
#[derive(Clone, Copy)]
pub(crate) struct Segment {
    pub(crate) key: FlowKey,
    pub(crate) arrived_at: Instant,
    pub(crate) seq: SeqNumber,
    pub(crate) payload_bytes: u32,
    /// How much its IPv4 ID is ahead of that of the last segment held; 0 if none is.
    pub(crate) id_step: u16,
    pub(crate) at: Starts,
    pub(crate) header_bytes: u16,
    pub(crate) flags: TcpFlags,
    pub(crate) version: IpVersion,
    pub(crate) slot: u32,
    pub(crate) acks: HeldAcks,
}

impl Segment {
    /// The candidate in `frame`, which stands in `slot`; `flow` is the hash of `key`.
    pub(crate) fn of<B>(
        candidate: &Candidate<'_>,
        (key, flow): (FlowKey, FlowHash),
        frame: &Frame<B>,
        slot: u32,
    ) -> Self {
        let Candidate { ip, tcp, at, .. } = candidate;
        let payload_bytes = at.payload_bytes();
        let says_more = payload_bytes != 0 || tcp.options == OptionLayout::Other;
        let said = AckPoint { ack: tcp.ack, window: tcp.window };
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
            acks: HeldAcks { flow, said, says_more },
        }
    }

    /// The plain segment of `packet`, which is in `frame` from `network` on; `flow` is the hash of `key`. `None` if it is
    /// cut short.
    #[inline(always)]
    pub(crate) fn plain<S: Shape, B: AsRef<[u8]>>(
        plain: &Plain,
        (key, flow): (FlowKey, FlowHash),
        (frame, packet, network): (&Frame<B>, &[u8], usize),
        slot: u32,
    ) -> Option<Self> {
        let said = AckPoint::read::<S>(packet)?;
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
            acks: HeldAcks { flow, said, says_more: plain.payload_bytes != 0 },
        })
    }

    /// What it carries: [`Kind::Data`], [`Kind::PureAck`] or [`Kind::Datagrams`].
    #[inline(always)]
    pub(crate) const fn kind(&self) -> Kind {
        kind(self.payload_bytes, self.at)
    }
}

/// What so much payload is, behind headers at `at`. A datagram that is held has payload.
#[inline(always)]
const fn kind(payload_bytes: u32, at: Starts) -> Kind {
    match payload_bytes {
        0 => Kind::PureAck,
        _ if at.is_datagram() => Kind::Datagrams,
        _ => Kind::Data,
    }
}

/// Where this stands in the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BucketLink {
    pub(crate) bucket: u16,
    /// The next place in the same bucket.
    pub(crate) next: u16,
}

impl BucketLink {
    pub(crate) const NOWHERE: Self = Self { bucket: 0, next: u16::MAX };
}

impl Held {
    /// A place that holds nothing yet.
    pub(crate) const BLANK: Self = Self {
        key: FlowKey::NOBODY,
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
        link: BucketLink::NOWHERE,
    };

    /// Holds this one segment and nothing else; where it stands in the table is left as it is.
    ///
    /// Field by field on purpose: a whole value would be put together elsewhere, in narrow stores,
    /// and moved here by wide loads, which have to wait for all of them.
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

    /// Takes note of one more segment, which a verdict allowed.
    #[inline]
    pub(crate) fn append(&mut self, next: &Segment, policy: &Policy) {
        self.decide_id(next.id_step);
        self.next_seq = next.seq + next.payload_bytes;
        self.flags = self.flags | next.flags;
        self.segments += 1;
        self.last_payload_bytes = next.payload_bytes;
        self.payload_bytes += next.payload_bytes;
        if policy.payload == PayloadRule::Any {
            self.gso_size = self.gso_size.max(next.payload_bytes);
        }
    }

    /// What is held: [`Kind::Data`], [`Kind::PureAck`] or [`Kind::Datagrams`], only one of them.
    #[inline(always)]
    #[must_use]
    pub const fn kind(&self) -> Kind {
        kind(self.payload_bytes, self.at)
    }

    /// The protocol number.
    #[inline(always)]
    pub(crate) const fn protocol(&self) -> u8 {
        if self.at.is_datagram() { PROTOCOL_UDP } else { PROTOCOL_TCP }
    }

    /// Takes note of `count` more segments that differ from the last in SEQ, IPv4 ID and checksums
    /// only, the ID of each `step` (0 or 1) more than the one before.
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

    /// The sum of the pseudo-header of a packet of this flow with so much payload (RFC 9293
    /// section 3.1, RFC 8200 section 8.1).
    #[inline]
    pub(crate) fn pseudo_header(&self, protocol: u8, payload_bytes: u32) -> Sum {
        let segment_bytes =
            u32::from(self.header_bytes) - u32::from(self.at.transport()) + payload_bytes;
        checksum::pseudo_header(&self.key, protocol, segment_bytes)
    }

    /// Where headers and payload of the last segment are.
    pub(crate) fn last_offsets(&self) -> Offsets {
        let payload = u32::from(self.header_bytes);
        Offsets {
            network: self.at.network().into(),
            transport: self.at.transport().into(),
            payload,
            end: payload + self.last_payload_bytes,
        }
    }

    /// The tunnel around these; `None` if they are in none.
    #[inline(always)]
    pub(crate) fn tunnel(&self) -> Option<GsoTunnel> {
        self.at.is_in_tunnel().then_some(self.around)
    }

    /// Where the checksum stands in the transport header, in bytes.
    #[inline(always)]
    pub(crate) const fn checksum_at(&self) -> u8 {
        if self.at.is_datagram() { datagrams::CHECKSUM_AT as u8 } else { CHECKSUM_AT as u8 }
    }

    /// The merged IP packet as it stands, in bytes.
    #[inline]
    pub(crate) fn packet_bytes(&self) -> u32 {
        u32::from(self.header_bytes) - u32::from(self.at.network()) + self.payload_bytes
    }
}
