//! Decides if a frame is a pure ACK for this host: checks 2 to 5 of `docs/fast-path.md`, and the checks of the
//! link.
//!
//! This module reads only bytes, and is separate from all code that uses connections. Fields are read at fixed
//! offsets, as on the engine's path for plain segments. Frames with another layout are classified in a separate
//! function, to count a reason.

use rxo_frame::{Frame, Instant, LinkKind};
use rxo_wire::checksum::{Summer, verify_tcp};
use rxo_wire::tcp::{AckRecord, CHECKSUM_AT, FixedHeader};
use rxo_wire::{
    ETHERNET_HEADER_BYTES, ETHERTYPE_IPV4, ETHERTYPE_IPV6, FlowKey, Offsets, Plain, SeqNumber,
    TcpFlags, Transport, class_and_length, ethertype, parse_ip, plain_v4, plain_v4_checksum,
    plain_v6,
};

use super::FallbackReason;
use super::order::spot_of_plain;

/// The link, the Ethernet address and the checksum routine by which frames are checked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expect {
    pub(crate) link: LinkKind,
    /// The host's Ethernet address.
    pub(crate) mac: [u8; 6],
    pub(crate) summer: Summer,
}

/// A parsed pure ACK, which borrows the bytes of its frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PureAck<'a> {
    pub(crate) key: FlowKey,
    /// The slot of the ACK's flow, see [`super::order`].
    pub(crate) spot: usize,
    /// The ECN field of the ACK's IP header.
    pub(crate) ecn: u8,
    /// The ACK's TCP header without options.
    header: &'a [u8; 20],
    /// The timestamp option with its padding; `None` if the ACK has none.
    pub(crate) timestamp: Option<&'a [u8; 12]>,
    arrived_at: Instant,
}

impl Expect {
    /// Parses `packet`, the IP packet in `frame`, whose IP header has `TRANSPORT` bytes. The packet must be a
    /// pure ACK: its checksums are right, and it has no flag but ACK, no data, and no option but the timestamp.
    ///
    /// # Errors
    /// The first check that fails. The TCP checksum of a frame with an unusual layout is not verified by this
    /// function, but by the slow path.
    #[inline(always)]
    pub(crate) fn read_plain<'a, const TRANSPORT: u32>(
        &self,
        frame: &Frame<&[u8]>,
        packet: &'a [u8],
    ) -> Result<PureAck<'a>, FallbackReason> {
        let is_v4 = TRANSPORT == V4_BYTES;
        let plain = if is_v4 { plain_v4(packet, 0) } else { plain_v6(packet, 0) };
        let Some(Plain { key, header_bytes, payload_bytes, .. }) = plain else {
            return Err(reason_of_unusual(packet));
        };
        if is_v4 && !plain_v4_checksum(packet) {
            return Err(FallbackReason::Ip);
        }
        let transport = frame.bytes.len() - packet.len() + TRANSPORT as usize;
        if !frame.checksum.covers_payload(transport, CHECKSUM_AT as u16) {
            let end = header_bytes + payload_bytes;
            let at = Offsets { network: 0, transport: TRANSPORT, payload: header_bytes, end };
            // A copy, so that the key can stay in registers if nothing must be verified.
            let verified = key;
            if !verify_tcp(&verified, at, packet, self.summer) {
                return Err(FallbackReason::Checksum);
            }
        }
        if payload_bytes != 0 {
            return Err(FallbackReason::Flags);
        }
        let tcp = packet.get(TRANSPORT as usize..).unwrap_or_default();
        let (header, options) = tcp.split_first_chunk().ok_or(FallbackReason::Options)?;
        let timestamp = match header_bytes > TRANSPORT + 20 {
            true => Some(options.first_chunk().ok_or(FallbackReason::Options)?),
            false => None,
        };
        let ecn = match is_v4 {
            true => packet.get(1).map_or(0, |class| class & 3),
            false => class_and_length(packet).map_or(0, |(class, _)| class & 3),
        };
        let spot = spot_of_plain(packet, is_v4).ok_or(FallbackReason::Ip)?;
        Ok(PureAck { key, spot, ecn, header, timestamp, arrived_at: frame.arrived_at })
    }

    /// Returns the IP packet in `frame`, and `true` if it is IPv4. `None` if the frame does not have the
    /// length of a pure ACK or is not addressed to this host.
    #[inline(always)]
    pub(crate) fn packet<'a>(&self, frame: &Frame<&'a [u8]>) -> Option<(&'a [u8], bool)> {
        if frame.gso.is_some() || frame.vlan.is_some() {
            return None;
        }
        let bytes = frame.bytes;
        if self.link == LinkKind::RawIp {
            let is_v4 = bytes.first()? >> 4 == 4;
            return matches!(bytes.len(), 40 | 52 | 60 | 72).then_some((bytes, is_v4));
        }
        let is_usual = matches!(bytes.len(), 54 | 60 | 66 | 74 | 86);
        if !is_usual || bytes.first_chunk() != Some(&self.mac) {
            return None;
        }
        let is_v4 = match ethertype(bytes)? {
            ETHERTYPE_IPV4 => true,
            ETHERTYPE_IPV6 => false,
            _ => return None,
        };
        Some((bytes.get(ETHERNET_HEADER_BYTES..)?, is_v4))
    }
}

impl PureAck<'_> {
    /// Returns the fields of the ACK in the form that the connection accepts. The fields are parsed only in
    /// this call, to save registers.
    #[inline]
    pub(crate) fn record(&self) -> AckRecord {
        let header = self.header;
        let word = |at: usize| {
            u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        };
        let (ts_value, ts_echo) = match self.timestamp {
            Some([_, _, _, _, a, b, c, d, e, f, g, h]) => {
                (u32::from_be_bytes([*a, *b, *c, *d]), u32::from_be_bytes([*e, *f, *g, *h]))
            }
            None => (0, 0),
        };
        AckRecord {
            arrived_at_ns: self.arrived_at.as_nanos(),
            seq: SeqNumber(word(4)),
            ack: SeqNumber(word(8)),
            ts_value,
            ts_echo,
            window: u16::from_be_bytes([header[14], header[15]]),
            flags: TcpFlags::ACK,
            ecn: self.ecn,
            has_timestamp: self.timestamp.is_some(),
        }
    }
}

/// Returns the reason for which a packet with an unusual layout is not a pure ACK.
#[cold]
fn reason_of_unusual(packet: &[u8]) -> FallbackReason {
    let Ok(parsed) = parse_ip(packet) else { return FallbackReason::Ip };
    if !parsed.ip.checksum_ok || parsed.ip.has_options {
        return FallbackReason::Ip;
    }
    let Transport::Tcp(_) = parsed.transport else { return FallbackReason::Ip };
    let tcp = packet.get(parsed.at.transport_header()).and_then(FixedHeader::of);
    let is_ack = tcp.is_some_and(|tcp| tcp.flags() == TcpFlags::ACK && tcp.urgent() == 0);
    match is_ack && parsed.payload_bytes() == 0 {
        true => FallbackReason::Options,
        false => FallbackReason::Flags,
    }
}

/// Length of the IPv4 header of a plain packet, in bytes.
pub(crate) const V4_BYTES: u32 = 20;
/// Length of the IPv6 header of a plain packet, in bytes.
pub(crate) const V6_BYTES: u32 = 40;
