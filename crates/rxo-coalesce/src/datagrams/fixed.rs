//! Reads ordinary datagrams from fixed offsets: no IP options, no extension headers, not a fragment.

use rxo_frame::Frame;
use rxo_wire::udp::{CHECKSUM_AT, HEADER_BYTES, LENGTH_AT};
use rxo_wire::{Offsets, UdpDatagram, class_and_length};

use crate::Candidate;
use crate::shape::Shape;

/// Reads the datagram in `frame`, whose IP header begins at `network`. `None` if the datagram is not ordinary,
/// its lengths contradict each other, or its IP checksum is wrong; the *Rules* tier then handles the datagram.
#[inline(always)]
pub(crate) fn plain_datagram<S: Shape, B: AsRef<[u8]>>(
    frame: &Frame<B>,
    network: usize,
) -> Option<(Candidate<'_>, UdpDatagram)> {
    let packet = frame.bytes().get(network..)?;
    let (_, packet_bytes) = class_and_length(packet)?;
    let header: &[u8; HEADER_BYTES] = packet.get(S::IP_BYTES..packet_bytes)?.first_chunk()?;
    if S::datagram_key(packet).is_none() || S::is_unusual(packet) || !S::is_checksum_right(packet) {
        return None;
    }
    let half = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let udp = UdpDatagram { length: half(LENGTH_AT), checksum: half(CHECKSUM_AT) };
    let transport = (network + S::IP_BYTES) as u32;
    let at = Offsets {
        network: network as u32,
        transport,
        payload: transport + HEADER_BYTES as u32,
        end: (network + packet_bytes) as u32,
    };
    // The parser rejects a length below the header's, or beyond the packet, as malformed.
    let is_possible = (HEADER_BYTES as u32..=at.segment_bytes()).contains(&udp.length.into());
    is_possible.then_some((Candidate::datagram(S::ip(packet)?, at, frame), udp))
}
