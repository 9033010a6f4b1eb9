//! What a flow holds: an aggregate in the making.

use rxo_frame::{ChecksumStatus, Instant, VlanTag};
use rxo_wire::checksum::{self, Sum};
use rxo_wire::tcp::{OptionLayout, Timestamp};
use rxo_wire::{
    FlowKey, Ip, IpVersion, Parsed, SeqNumber, TcpFlags, TcpSegment, Transport, VlanStack,
};

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

/// The segments that a flow holds, as far as a verdict needs to know them.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    /// The flow.
    pub key: FlowKey,
    /// What the first segment's IP header says.
    pub ip: Ip,
    /// The last segment's TCP header; its acknowledgement number, window and timestamp count.
    /// Its SEQ and checksum may be those of an earlier segment.
    pub last: TcpSegment,
    /// The sequence number that continues the byte stream.
    pub next_seq: SeqNumber,
    /// The last segment's IPv4 identification.
    pub last_id: u16,
    /// How it runs.
    pub id_pattern: IdPattern,
    /// All flags of all segments.
    pub flags: TcpFlags,
    /// The last segment's checksum status.
    pub checksum: ChecksumStatus,
    /// The VLAN tag that the device took out.
    pub vlan: Option<VlanTag>,
    /// Where the IP header, the TCP header and the payload begin, in bytes; the same in all.
    pub network: u32,
    /// See `network`.
    pub transport: u32,
    /// See `network`.
    pub header_bytes: u32,
    /// How many segments.
    pub segments: u32,
    /// Their payloads together, in bytes.
    pub payload_bytes: u32,
    /// The last segment's payload, in bytes.
    pub last_payload_bytes: u32,
    /// The payload of every segment but the last, in bytes; where the policy allows any sizes,
    /// the largest.
    pub gso_size: u32,
    /// When the first segment arrived.
    pub first_arrival: Instant,
    /// Why it was flushed; meaningful once it is.
    pub(crate) reason: FlushReason,
    pub(crate) chain: FrameChain,
    pub(crate) links: Links,
}

/// Where this stands in the table: hash bucket and order of use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Links {
    pub(crate) bucket: u32,
    pub(crate) next_in_bucket: u16,
    pub(crate) older: u16,
    pub(crate) newer: u16,
}

impl Links {
    pub(crate) const NOWHERE: Self =
        Self { bucket: 0, next_in_bucket: u16::MAX, older: u16::MAX, newer: u16::MAX };
}

impl Held {
    /// A place that holds nothing yet.
    pub(crate) fn blank() -> Self {
        let ip = Ip {
            version: IpVersion::V4,
            traffic_class: 0,
            hop_limit: 0,
            flow_label: 0,
            id: 0,
            dont_fragment: false,
            reserved_bit: false,
            has_options: false,
            checksum_ok: false,
        };
        let tcp = TcpSegment {
            seq: SeqNumber(0),
            ack: SeqNumber(0),
            flags: TcpFlags::default(),
            window: 0,
            checksum: 0,
            urgent: 0,
            options: OptionLayout::None,
            timestamp: Timestamp::default(),
        };
        let parsed = Parsed {
            key: FlowKey::default(),
            network: 0,
            transport_at: 0,
            payload: 0,
            end: 0,
            vlans: VlanStack::default(),
            ip,
            transport: Transport::Tcp(tcp),
        };
        let candidate =
            Candidate { parsed: &parsed, tcp: &tcp, checksum: ChecksumStatus::Unknown, vlan: None };
        Self::start(FlowKey::default(), candidate, Instant::ZERO)
    }

    /// Holds one segment.
    #[inline]
    pub(crate) fn start(key: FlowKey, candidate: Candidate<'_>, arrived_at: Instant) -> Self {
        let Candidate { parsed, tcp, checksum, vlan } = candidate;
        let payload_bytes = parsed.payload_bytes();
        Self {
            key,
            ip: parsed.ip,
            last: *tcp,
            next_seq: next_seq(parsed, tcp),
            last_id: parsed.ip.id,
            id_pattern: IdPattern::Undecided,
            flags: tcp.flags,
            checksum,
            vlan,
            network: parsed.network,
            transport: parsed.transport_at,
            header_bytes: parsed.payload,
            segments: 1,
            payload_bytes,
            last_payload_bytes: payload_bytes,
            gso_size: payload_bytes,
            first_arrival: arrived_at,
            reason: FlushReason::EndOfPoll,
            chain: FrameChain::EMPTY,
            links: Links::NOWHERE,
        }
    }

    /// Takes note of one more segment, which a verdict allowed.
    #[inline]
    pub(crate) fn append(&mut self, candidate: Candidate<'_>, policy: &Policy) {
        let Candidate { parsed, tcp, checksum, .. } = candidate;
        if self.id_pattern == IdPattern::Undecided && self.ip.version == IpVersion::V4 {
            self.id_pattern = if parsed.ip.id == self.last_id {
                IdPattern::Fixed
            } else {
                IdPattern::Incrementing
            };
        }
        self.last = *tcp;
        self.last_id = parsed.ip.id;
        self.next_seq = next_seq(parsed, tcp);
        self.flags = self.flags | tcp.flags;
        self.checksum = checksum;
        self.segments += 1;
        self.last_payload_bytes = parsed.payload_bytes();
        self.payload_bytes += self.last_payload_bytes;
        if policy.payload == PayloadRule::Any {
            self.gso_size = self.gso_size.max(self.last_payload_bytes);
        }
    }

    /// Takes note of `count` more segments like the last, the IPv4 ID of each `step` (0 or 1)
    /// more than the one before.
    #[inline]
    pub(crate) fn append_run(&mut self, count: u32, step: u16) {
        if self.id_pattern == IdPattern::Undecided && self.ip.version == IpVersion::V4 {
            self.id_pattern = if step == 0 { IdPattern::Fixed } else { IdPattern::Incrementing };
        }
        let payload_bytes = count * self.last_payload_bytes;
        self.last_id = self.last_id.wrapping_add(step.wrapping_mul(count as u16));
        self.next_seq = self.next_seq + payload_bytes;
        self.segments += count;
        self.payload_bytes += payload_bytes;
    }

    /// The sum of the pseudo-header of a segment of this flow with so much payload (RFC 9293
    /// section 3.1, RFC 8200 section 8.1).
    #[inline]
    pub(crate) fn pseudo_header(&self, payload_bytes: u32) -> Sum {
        let segment_bytes = self.header_bytes - self.transport + payload_bytes;
        checksum::pseudo_header(&self.key, PROTOCOL_TCP, segment_bytes)
    }

    /// How many segments like the last still fit, by segments and by bytes.
    #[inline]
    pub(crate) fn room(&self, policy: &Policy) -> u32 {
        let segments = u32::from(policy.max_segments).saturating_sub(self.segments);
        let packet = self.packet_bytes();
        let bytes = policy.max_bytes.saturating_sub(packet);
        let buffer = policy.buffer_bytes.saturating_sub(self.payload_bytes);
        segments.min(bytes.min(buffer) / self.last_payload_bytes.max(1))
    }

    /// The merged IP packet as it stands, in bytes.
    #[inline]
    pub(crate) const fn packet_bytes(&self) -> u32 {
        self.header_bytes - self.network + self.payload_bytes
    }
}

const PROTOCOL_TCP: u8 = 6;

#[inline]
fn next_seq(parsed: &Parsed, tcp: &TcpSegment) -> SeqNumber {
    tcp.seq + parsed.payload_bytes()
}
