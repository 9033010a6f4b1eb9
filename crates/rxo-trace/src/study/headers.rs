//! The headers of a captured packet as fields, for tables of packets.

use rxo_capture::{LinkType, Record};
use rxo_wire::FlowKey;

use super::checksum::ChecksumMode;
use super::intake;
use super::packet_kind::PacketKind;
use crate::report::Protocol;

/// The headers of a packet. If the packet is in an encapsulation that can be read, these are the headers of the
/// inner packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Headers {
    /// The length of the packet on the wire in bytes, with the link-layer header.
    pub(crate) wire_bytes: u64,
    /// The addresses, and the ports of TCP and UDP; `None` if the packet is not IP or unreadable.
    pub(crate) key: Option<FlowKey>,
    /// The transport protocol, TCP or UDP; `None` for other protocols and for fragments.
    pub(crate) protocol: Option<Protocol>,
    pub(crate) vlan: Option<u16>,
    pub(crate) payload_bytes: Option<u32>,
    /// The fields of the TCP header; `None` for other packets.
    pub(crate) tcp: Option<Tcp>,
}

/// Fields of a TCP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tcp {
    pub(crate) seq: u32,
    pub(crate) ack: u32,
    /// The flags of byte 13 of the header, from FIN (1) to CWR (128).
    pub(crate) flags: u8,
    /// The window field of the header (SEG.WND), unscaled.
    pub(crate) window: u16,
}

impl Headers {
    /// Parses a record of an interface with the link type `link`. Fields that the capture truncated are 0.
    #[inline]
    pub(crate) fn read(record: &Record, link: LinkType) -> Self {
        let taken = intake::take(record, link, ChecksumMode::Verify);
        let headers = Self {
            wire_bytes: taken.wire_bytes,
            key: taken.kind.key().copied(),
            ..Self::default()
        };
        let (PacketKind::Segment(segment), Some(network)) = (&taken.kind, &taken.network) else {
            return headers;
        };
        let tcp = (segment.protocol == Protocol::Tcp).then(|| {
            let header = network.packet.as_ref().get(segment.at.transport as usize..);
            Tcp::read(header.unwrap_or_default())
        });
        Self {
            protocol: Some(segment.protocol),
            vlan: segment.vlan,
            payload_bytes: Some(segment.at.payload_bytes()),
            tcp,
            ..headers
        }
    }
}

impl Tcp {
    #[inline]
    fn read(header: &[u8]) -> Self {
        let word = |at: usize| header.get(at..).and_then(|rest| rest.first_chunk::<4>());
        let number = |at: usize| word(at).map_or(0, |word| u32::from_be_bytes(*word));
        let last = number(12);
        Self { seq: number(4), ack: number(8), flags: (last >> 16) as u8, window: last as u16 }
    }
}
