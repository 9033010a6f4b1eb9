//! Rewrites a segment to the group into a segment of a single connection: addresses, port, and the three fields
//! whose correct values differ between receivers. Checksums are updated incrementally, so a damaged frame still
//! has a wrong checksum.

use std::net::{IpAddr, SocketAddr};

use rxo_wire::checksum::{update_long, update_word};
use rxo_wire::{Offsets, SeqNumber};

/// The fields of the rewritten segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) mac: [u8; 6],
    /// The receiver's address, of the same IP version as the group.
    pub(super) receiver: SocketAddr,
    pub(super) ack: SeqNumber,
    pub(super) window: u16,
    /// The TSecr of the rewritten segment.
    pub(super) echo: u32,
}

/// Rewrites the Ethernet frame in `bytes`, whose headers are at `at` and end with the timestamp option alone.
/// Returns `None` if the frame is too short; in that case the caller must discard `bytes`.
pub(super) fn rewrite(bytes: &mut [u8], at: Offsets, target: &Target) -> Option<()> {
    let (network, tcp) = (at.network as usize, at.transport as usize);
    bytes.get_mut(..6)?.copy_from_slice(&target.mac);
    let check = tcp + CHECKSUM_AT;
    let mut sum = u16::from_be_bytes(*bytes.get(check..)?.first_chunk()?);
    match target.receiver.ip() {
        IpAddr::V4(ip) => {
            let header = network + IPV4_CHECKSUM_AT;
            let mut header_sum = u16::from_be_bytes(*bytes.get(header..)?.first_chunk()?);
            let (old, new) = put_long(bytes, network + IPV4_DESTINATION_AT, ip.to_bits())?;
            sum = update_long(sum, old, new);
            header_sum = update_long(header_sum, old, new);
            bytes.get_mut(header..header + 2)?.copy_from_slice(&header_sum.to_be_bytes());
        }
        IpAddr::V6(ip) => {
            for (place, word) in ip.octets().chunks_exact(4).enumerate() {
                let to = network + IPV6_DESTINATION_AT + 4 * place;
                let (old, new) = put_long(bytes, to, u32::from_be_bytes(*word.first_chunk()?))?;
                sum = update_long(sum, old, new);
            }
        }
    }
    let longs = [(ACK_AT, target.ack.0), (ECHO_AT, target.echo)];
    for (place, value) in longs {
        let (old, new) = put_long(bytes, tcp + place, value)?;
        sum = update_long(sum, old, new);
    }
    let words = [(PORT_AT, target.receiver.port()), (WINDOW_AT, target.window)];
    for (place, value) in words {
        let field = bytes.get_mut(tcp + place..)?.first_chunk_mut()?;
        sum = update_word(sum, u16::from_be_bytes(*field), value);
        *field = value.to_be_bytes();
    }
    bytes.get_mut(check..check + 2)?.copy_from_slice(&sum.to_be_bytes());
    Some(())
}

/// Writes `value` at offset `place`. Returns the previous value and `value`; `None` if `bytes` is too short.
fn put_long(bytes: &mut [u8], place: usize, value: u32) -> Option<(u32, u32)> {
    let field = bytes.get_mut(place..)?.first_chunk_mut()?;
    let old = u32::from_be_bytes(*field);
    *field = value.to_be_bytes();
    Some((old, value))
}

const IPV4_CHECKSUM_AT: usize = 10;
const IPV4_DESTINATION_AT: usize = 16;
const IPV6_DESTINATION_AT: usize = 24;
const PORT_AT: usize = 2;
const ACK_AT: usize = 8;
const WINDOW_AT: usize = 14;
const CHECKSUM_AT: usize = 16;
/// The offset of TSecr in the TCP header, in bytes: after two no-operations, type, length and TSval.
const ECHO_AT: usize = 28;
