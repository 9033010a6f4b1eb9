//! Predicts the IP and TCP header of a segment, or the IP and UDP header of a datagram. A transport header of 8
//! bytes is a UDP header.
//!
//! A [`Headers`] contains the bytes from the start of the IP header to the last TCP option. Both checksum
//! fields are 0, because checksums are computed from the other bytes. [`Plan::new`] refuses invalid offsets of
//! a damaged note once; later reads and writes out of bounds are ignored and never panic.

use rxo_wire::checksum::{Sum, Summer, ipv4_header_checksum};
use rxo_wire::udp::HEADER_BYTES as UDP_BYTES;
use rxo_wire::{Offsets, PROTOCOL_TCP, PROTOCOL_UDP};

use super::{BadNote, MAX_HEADER_BYTES, MAX_PAYLOAD_BYTES, Outer, Shape};

const MIN_IPV4_BYTES: usize = 20;
const IPV6_BYTES: usize = 40;
const MIN_TCP_BYTES: usize = 20;
const ENDING_FLAGS: u8 = 0x09;

/// The properties of an aggregate's segments that follow from the merged packet and the beginning of the note.
pub(super) struct Plan<'a> {
    merged: &'a [u8],
    at: Offsets,
    outer: Option<Outer>,
    shape: Shape,
    summer: Summer,
}

impl<'a> Plan<'a> {
    /// Creates the plan from the bytes of the merged packet. The bytes must end where the payload that `at`
    /// describes ends.
    pub(super) fn new(
        merged: &'a [u8],
        (at, outer): (Offsets, Option<Outer>),
        shape: Shape,
    ) -> Result<Self, BadNote> {
        let version = merged.get(at.network as usize).map(|first| first >> 4);
        let ip_bytes = match version {
            Some(4) => MIN_IPV4_BYTES,
            Some(6) => IPV6_BYTES,
            _ => return Err(BadNote("belongs to an IP packet, which this is not")),
        };
        let fits = at.network as usize <= MAX_HEADER_BYTES
            && at.ip_header().len() >= ip_bytes
            && matches!(at.transport_header().len(), UDP_BYTES | MIN_TCP_BYTES..)
            && (at.payload - at.network) as usize <= MAX_HEADER_BYTES
            && at.payload as usize <= merged.len();
        if !fits {
            return Err(BadNote("puts headers where they cannot be"));
        }
        if merged.len() - at.payload as usize > MAX_PAYLOAD_BYTES {
            return Err(BadNote("belongs to an aggregate, and none can be so long"));
        }
        Ok(Self { merged, at, outer, shape, summer: Summer::detect() })
    }

    /// Returns the link header of the merged packet.
    pub(super) fn link(&self) -> &'a [u8] {
        self.merged.get(..self.at.network as usize).unwrap_or_default()
    }

    /// Changes `link` from the link header of the next segment to the predicted link header of `segment`.
    pub(super) fn predict_link(&self, link: &mut Headers, segment: Position) {
        if let Some(outer) = self.outer {
            let id_step = u16::from(self.shape.has(Shape::COUNTING_OUTER_ID));
            outer.predict(link, segment, (self.merged, self.at), id_step);
        }
    }

    /// Returns the payload of all segments.
    pub(super) fn payload(&self) -> &'a [u8] {
        self.merged.get(self.at.payload as usize..).unwrap_or_default()
    }

    /// Returns the length of IP and TCP header together, in bytes.
    pub(super) fn header_bytes(&self) -> usize {
        (self.at.payload - self.at.network) as usize
    }

    fn tcp_at(&self) -> usize {
        self.at.ip_header().len()
    }

    fn is_udp(&self) -> bool {
        self.at.transport_header().len() == UDP_BYTES
    }

    fn is_v4(&self) -> bool {
        self.merged.get(self.at.network as usize).is_some_and(|first| first >> 4 == 4)
    }

    /// Returns the header of the merged packet, from which the header of the last segment is predicted.
    pub(super) fn merged_header(&self) -> Headers {
        let merged = self.merged.get(self.at.network as usize..self.at.payload as usize);
        Headers(merged.unwrap_or_default().to_vec())
    }

    /// Changes `header` to the predicted header of `segment`. On entry, `header` is the header of the next
    /// segment; for the last segment, it is the header of the merged packet.
    pub(super) fn predict(&self, header: &mut Headers, segment: Position) {
        let total = self.header_bytes() + segment.payload_bytes;
        if self.is_v4() {
            let step = u16::from(self.shape.has(Shape::COUNTING_ID));
            let first_id = half(self.merged, self.at.network as usize + 4);
            header.put(2, (total as u16).to_be_bytes());
            header.put(4, first_id.wrapping_add(step * segment.number as u16).to_be_bytes());
        } else {
            header.put(4, (total.saturating_sub(IPV6_BYTES) as u16).to_be_bytes());
        }
        if self.is_udp() {
            let length = UDP_BYTES + segment.payload_bytes;
            header.put(self.tcp_at() + 4, (length as u16).to_be_bytes());
            return self.clear_checksums(header);
        }
        let first_seq = long(self.merged, self.at.transport as usize + 4);
        let seq = first_seq.wrapping_add(segment.payload_at as u32);
        header.put(self.tcp_at() + 4, seq.to_be_bytes());
        if segment.from_end == 1 {
            // Only the last segment has the flag that ended the aggregate.
            let flags = header.0.get(self.tcp_at() + 13).copied().unwrap_or(0);
            header.put(self.tcp_at() + 13, [flags & !ENDING_FLAGS]);
        }
        self.clear_checksums(header);
    }

    /// Sets both checksums in `header` to 0: the IPv4 header checksum, and the TCP or UDP checksum.
    pub(super) fn clear_checksums(&self, header: &mut Headers) {
        if self.is_v4() {
            header.put(10, [0; 2]);
        }
        header.put(self.tcp_checksum_at(), [0; 2]);
    }

    /// Returns the offset of the IPv4 header checksum; `None` for IPv6.
    pub(super) fn ip_checksum_at(&self) -> Option<usize> {
        self.is_v4().then_some(10)
    }

    /// Returns the offset of the TCP or UDP checksum.
    pub(super) fn tcp_checksum_at(&self) -> usize {
        self.tcp_at() + if self.is_udp() { 6 } else { 16 }
    }

    /// Computes the IPv4 header checksum.
    pub(super) fn ip_checksum(&self, header: &Headers) -> [u8; 2] {
        let ip = header.0.get(..self.tcp_at()).unwrap_or_default();
        ipv4_header_checksum(ip).to_be_bytes()
    }

    /// Computes the TCP or UDP checksum of a segment with this header and payload. The checksum field in
    /// `header` must be 0.
    pub(super) fn tcp_checksum(&self, header: &Headers, payload: &[u8]) -> [u8; 2] {
        let addresses = if self.is_v4() { 12..20 } else { 8..40 };
        let addresses = header.0.get(addresses).map_or(Sum::ZERO, Sum::of);
        let tcp = header.0.get(self.tcp_at()..).unwrap_or_default();
        let bytes = tcp.len() + payload.len();
        let protocol = if self.is_udp() { PROTOCOL_UDP } else { PROTOCOL_TCP };
        // These headers are whole words, so the payload begins at an even offset, and sums can be added.
        let sum = addresses
            + Sum::word(protocol.into())
            + Sum::long(bytes as u32)
            + Sum::of(tcp)
            + self.summer.sum(payload);
        match sum.checksum() {
            // In UDP a checksum of zero means that there is none, so zero is written as all ones.
            0 if self.is_udp() => [u8::MAX; 2],
            checksum => checksum.to_be_bytes(),
        }
    }
}

/// The position of a segment in its aggregate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Position {
    /// The segment's number, counted from 0.
    pub(super) number: usize,
    /// The number of segments of the aggregate after this segment.
    pub(super) from_end: usize,
    /// The offset of the segment's payload in the payload of all segments, in bytes.
    pub(super) payload_at: usize,
    /// The length of the segment's payload, in bytes.
    pub(super) payload_bytes: usize,
}

/// The bytes of an IP and a TCP header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Headers(pub(super) Vec<u8>);

impl Headers {
    /// Writes `field` at offset `at`. Does nothing if the field does not fit into the header.
    pub(super) fn put<const N: usize>(&mut self, at: usize, field: [u8; N]) {
        if let Some(place) = self.0.get_mut(at..).and_then(|rest| rest.first_chunk_mut::<N>()) {
            *place = field;
        }
    }

    /// Returns the two bytes at offset `at`; zeros if the header is shorter.
    pub(super) fn pair(&self, at: usize) -> [u8; 2] {
        half(&self.0, at).to_be_bytes()
    }
}

pub(super) fn half(bytes: &[u8], at: usize) -> u16 {
    let field = bytes.get(at..).and_then(|rest| rest.first_chunk());
    field.map_or(0, |field| u16::from_be_bytes(*field))
}

fn long(bytes: &[u8], at: usize) -> u32 {
    let field = bytes.get(at..).and_then(|rest| rest.first_chunk());
    field.map_or(0, |field| u32::from_be_bytes(*field))
}
