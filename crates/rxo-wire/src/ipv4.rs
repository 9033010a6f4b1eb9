//! Reads the IPv4 header (RFC 791).

use crate::parse::{Ip, IpHeader, IpVersion, Malformed};
use crate::{FlowKey, Offsets};

pub(crate) const MIN_HEADER_BYTES: usize = 20;

/// Reads the IPv4 header at the start of `packet`. `vlans` is the result of `VlanStack::key`.
#[inline]
pub(crate) fn read(packet: &[u8], vlans: u32) -> Result<IpHeader, Malformed> {
    let fixed: &[u8; MIN_HEADER_BYTES] = packet.first_chunk().ok_or(Malformed::Truncated)?;
    let header = usize::from(fixed[0] & 0x0f) * 4;
    if fixed[0] >> 4 != 4 {
        return Err(Malformed::Version);
    }
    let total = usize::from(u16::from_be_bytes([fixed[2], fixed[3]]));
    let fragment = u16::from_be_bytes([fixed[6], fixed[7]]);
    let has_options = header != MIN_HEADER_BYTES;
    let ip = Ip {
        version: IpVersion::V4,
        traffic_class: fixed[1],
        hop_limit: fixed[8],
        flow_label: 0,
        id: u16::from_be_bytes([fixed[4], fixed[5]]),
        dont_fragment: fragment & 0x4000 != 0,
        reserved_bit: fragment & 0x8000 != 0,
        has_options,
        has_odd_extensions: false,
        checksum_ok: if has_options { options_ok(packet, header) } else { fixed_ok(fixed) },
    };
    let source = u32::from_be_bytes([fixed[12], fixed[13], fixed[14], fixed[15]]);
    let destination = u32::from_be_bytes([fixed[16], fixed[17], fixed[18], fixed[19]]);
    Ok(IpHeader {
        ip,
        addresses: FlowKey::v4(source, destination, 0, vlans),
        protocol: fixed[9],
        header,
        total: check_lengths(packet.len(), header, total),
        is_fragment: fragment & 0x3fff != 0,
    })
}

#[inline]
const fn check_lengths(have: usize, header: usize, total: usize) -> Result<usize, Malformed> {
    if header < MIN_HEADER_BYTES || total < header {
        Err(Malformed::Length)
    } else if total > have {
        Err(Malformed::Truncated)
    } else {
        Ok(total)
    }
}

/// Returns `true` if the checksum of the IP header in `frame` is right. `at` contains the offset of the header.
/// The result equals [`Ip::checksum_ok`], but the caller need not parse the frame. An IPv6 header has no
/// checksum and counts as right. `false` if `frame` ends before the header.
#[inline]
#[must_use]
pub fn verify_ip_header(at: Offsets, frame: &[u8]) -> bool {
    let Some(header) = frame.get(at.ip_header()) else { return false };
    match (header.first(), header.first_chunk()) {
        (Some(0x45), Some(fixed)) => fixed_ok(fixed),
        (Some(first), _) if first >> 4 == 4 => options_ok(header, header.len()),
        (first, _) => first.is_some(),
    }
}

/// Returns `true` if the checksum of a header without options is right (RFC 1071): its ten words, including
/// the checksum, sum to all ones. The sum does not depend on byte order.
#[inline]
pub(crate) fn fixed_ok(header: &[u8; MIN_HEADER_BYTES]) -> bool {
    let (words, _) = header.as_chunks::<4>();
    let sum: u64 = words.iter().map(|word| u64::from(u32::from_ne_bytes(*word))).sum();
    // Folding to 16 bits with all carries gives the remainder modulo 2¹⁶ - 1. Since (2¹⁶ - 1) × ONES = -1,
    // exactly the multiples of 2¹⁶ - 1 become small negative numbers when multiplied by ONES. A header of
    // zeros stays 0, so it counts as wrong.
    sum.wrapping_mul(ONES) >= ONES.wrapping_neg()
}

/// The quotient of 2⁶⁴ - 1 and 2¹⁶ - 1: a factor that repeats a 16-bit word four times.
const ONES: u64 = u64::MAX / 0xffff;

#[cold]
fn options_ok(packet: &[u8], header: usize) -> bool {
    let Some(bytes) = packet.get(..header) else { return false };
    let (words, _) = bytes.as_chunks::<2>();
    let sum: u32 = words.iter().map(|word| u32::from(u16::from_be_bytes(*word))).sum();
    let sum = (sum >> 16) + (sum & 0xffff);
    (sum >> 16) + (sum & 0xffff) == 0xffff
}
