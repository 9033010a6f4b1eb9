//! Whether a frame is a pure ACK for this host: checks 2 to 5 and the link's.
//!
//! Separate from everything that knows connections: it looks at bytes only. It reads from fixed offsets, as the
//! engine's tier for plain segments does; what is not plain is classified out of line, to count a reason.

use rxo_frame::{Frame, Instant, LinkKind};
use rxo_wire::checksum::{Summer, verify_tcp};
use rxo_wire::tcp::{AckRecord, FixedHeader};
use rxo_wire::{
    ETHERNET_HEADER_BYTES, ETHERTYPE_IPV4, ETHERTYPE_IPV6, FlowKey, Offsets, Plain, SeqNumber,
    TcpFlags, Transport, class_and_length, ethertype, parse_ip, plain_v4, plain_v4_checksum,
    plain_v6,
};

use super::FallbackReason;
use super::order::spot_of_plain;

/// What is looked for on a link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expect {
    pub(crate) link: LinkKind,
    /// The host's Ethernet address.
    pub(crate) mac: [u8; 6],
    pub(crate) summer: Summer,
}

/// A pure ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PureAck {
    pub(crate) key: FlowKey,
    /// The spot of its flow.
    pub(crate) spot: usize,
    pub(crate) record: AckRecord,
}

impl Expect {
    /// Reads `frame` if it is a pure ACK: with right checksums, no flag but ACK, no text, and no option but the
    /// timestamp.
    ///
    /// # Errors
    /// The first check that fails. The TCP checksum of a frame that is not plain is not verified: it falls back anyhow,
    /// and the ordinary way verifies it.
    #[inline(always)]
    pub(crate) fn read(&self, frame: &Frame<&[u8]>) -> Result<PureAck, FallbackReason> {
        let (packet, is_v4) = self.packet(frame).ok_or(FallbackReason::Length)?;
        match is_v4 {
            true => self.read_plain::<V4_BYTES>(frame, packet, plain_v4(packet, 0)),
            false => self.read_plain::<V6_BYTES>(frame, packet, plain_v6(packet, 0)),
        }
    }

    /// [`Expect::read`] of a packet whose IP header has `TRANSPORT` bytes, if it is plain.
    #[inline(always)]
    fn read_plain<const TRANSPORT: u32>(
        &self,
        frame: &Frame<&[u8]>,
        packet: &[u8],
        plain: Option<Plain>,
    ) -> Result<PureAck, FallbackReason> {
        let is_v4 = TRANSPORT == V4_BYTES;
        let Some(Plain { key, header_bytes, payload_bytes, .. }) = plain else {
            return Err(reason_of_unusual(packet));
        };
        if is_v4 && !plain_v4_checksum(packet) {
            return Err(FallbackReason::Ip);
        }
        if !frame.checksum.is_trusted() {
            let end = header_bytes + payload_bytes;
            let at = Offsets { network: 0, transport: TRANSPORT, payload: header_bytes, end };
            if !verify_tcp(&key, at, packet, self.summer) {
                return Err(FallbackReason::Checksum);
            }
        }
        if payload_bytes != 0 {
            return Err(FallbackReason::Flags);
        }
        let tcp = packet.get(TRANSPORT as usize..).unwrap_or_default();
        let has_timestamp = header_bytes > TRANSPORT + 20;
        let class = class_and_length(packet).map_or(0, |(class, _)| class);
        let record = record_of_plain(tcp, has_timestamp, class, frame.arrived_at);
        let record = record.ok_or(FallbackReason::Options)?;
        let spot = spot_of_plain(packet, is_v4).ok_or(FallbackReason::Ip)?;
        Ok(PureAck { key, spot, record })
    }

    /// The packet in a frame that has the length of a pure ACK and is for this station, and whether it is IPv4.
    #[inline(always)]
    fn packet<'a>(&self, frame: &Frame<&'a [u8]>) -> Option<(&'a [u8], bool)> {
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

/// The fields of a plain segment: it has no flag but ACK, and a timestamp in its usual place or no option.
#[inline(always)]
fn record_of_plain(
    tcp: &[u8],
    has_timestamp: bool,
    class: u8,
    arrived_at: Instant,
) -> Option<AckRecord> {
    let (header, options) = tcp.split_first_chunk::<20>()?;
    let timestamp = options.first_chunk::<12>().filter(|_| has_timestamp);
    let word = |at: usize| {
        u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
    };
    let (ts_value, ts_echo) = match timestamp {
        Some([_, _, _, _, a, b, c, d, e, f, g, h]) => {
            (u32::from_be_bytes([*a, *b, *c, *d]), u32::from_be_bytes([*e, *f, *g, *h]))
        }
        None => (0, 0),
    };
    Some(AckRecord {
        arrived_at_ns: arrived_at.as_nanos(),
        seq: SeqNumber(word(4)),
        ack: SeqNumber(word(8)),
        ts_value,
        ts_echo,
        window: u16::from_be_bytes([header[14], header[15]]),
        flags: TcpFlags::ACK,
        ecn: class & 3,
        has_timestamp: timestamp.is_some(),
    })
}

/// Why a packet that is not plain is no pure ACK.
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

/// Bytes of the IP header of a plain packet.
const V4_BYTES: u32 = 20;
const V6_BYTES: u32 = 40;
