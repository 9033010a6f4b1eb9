//! Tables of the header bytes that must be equal in consecutive packets of a flow.
//!
//! A packet that only continues a flow has the headers of the preceding packet, except for a few fields. A masked
//! compare of whole words recognises such a packet without parsing. Each layout (a row of the table) describes
//! the headers of one kind of packet, starting at the IP header; the caller checks the fields that the layout
//! leaves out. Layouts are constants, so that a compare compiles to straight-line code.

use crate::{IpVersion, ipv4, ipv6};

/// The length of the longest headers in the table, in bytes: TCP over IPv6 with a timestamp.
const MOST_BYTES: usize = 72;
const MOST_WORDS: usize = MOST_BYTES / 8 + 2;

/// Eight bytes of the headers: their offset, and a mask of the bits that must be equal.
type Word = (usize, u64);
/// The offset of a field, and the offset of the first byte after it.
type Field = (usize, usize);

const IPV4_ID: Field = (4, 6);
const IPV4_CHECKSUM: Field = (10, 12);
/// The IPv4 header from identification to checksum. The function [`counted`] predicts these bytes for a
/// packet whose identification is one higher.
const IPV4_COUNTING: Field = (4, 12);

const TCP_SEQ: Field = (4, 8);
const TCP_ACK: Field = (8, 12);
const TCP_WINDOW: Field = (14, 16);
const TCP_CHECKSUM: Field = (16, 18);
/// TSval and TSecr at their usual offset.
const TCP_TIMESTAMP: Field = (24, 32);

const UDP_CHECKSUM: Field = (6, 8);

/// A layout: the bytes that must be equal for one kind of packet.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    words: [Word; MOST_WORDS],
    count: usize,
    fixed: [u8; MOST_BYTES],
}

impl Layout {
    /// Creates a layout for a transport header of `transport_bytes` bytes. The fields `ip` of an IPv4 header
    /// and `fields` of the transport header may differ.
    const fn new(
        version: IpVersion,
        transport_bytes: usize,
        ip: &[Field],
        fields: &[Field],
    ) -> Self {
        let transport = ip_bytes(version);
        let mut layout = Self { words: [(0, 0); MOST_WORDS], count: 0, fixed: [0; MOST_BYTES] };
        let (mut at, end) = (0, transport + transport_bytes);
        while at < end {
            let is_left_out = match version {
                _ if at >= transport => is_in(at - transport, fields),
                IpVersion::V4 => is_in(at, ip),
                IpVersion::V6 => false,
            };
            layout.fixed[at] = if is_left_out { 0 } else { 0xff };
            at += 1;
        }
        layout.cover(end)
    }

    /// Covers all fixed bytes with words. If possible, a word ends with the last fixed byte and overlaps the
    /// word before, so that it needs no mask.
    const fn cover(mut self, end: usize) -> Self {
        let (mut at, mut run) = (0, 0);
        while at < end {
            if self.fixed[at] == 0 {
                at += 1;
                run = at;
                continue;
            }
            let mut run_end = at;
            while run_end < end && self.fixed[run_end] != 0 {
                run_end += 1;
            }
            let start = if run_end < at + 8 && run_end >= run + 8 {
                run_end - 8
            } else if at + 8 <= end {
                at
            } else {
                end - 8
            };
            let (mut mask, mut byte) = ([0; 8], 0);
            while byte < 8 {
                mask[byte] = self.fixed[start + byte];
                byte += 1;
            }
            self.words[self.count] = (start, u64::from_ne_bytes(mask));
            self.count += 1;
            while at < start + 8 {
                if self.fixed[at] == 0 {
                    run = at + 1;
                }
                at += 1;
            }
        }
        self
    }

    /// Returns zero if all fixed bytes of both headers are equal. Words that exceed a slice count as zeros.
    #[inline(always)]
    #[must_use]
    pub fn differing(&self, last: &[u8], next: &[u8]) -> u64 {
        let (mut differing, mut number) = (0, 0);
        while number < self.count {
            let (at, mask) = self.words[number];
            differing |= (word(last, at) ^ word(next, at)) & mask;
            number += 1;
        }
        differing
    }
}

const fn is_in(at: usize, fields: &[Field]) -> bool {
    let mut number = 0;
    while number < fields.len() {
        if at >= fields[number].0 && at < fields[number].1 {
            return true;
        }
        number += 1;
    }
    false
}

const fn ip_bytes(version: IpVersion) -> usize {
    match version {
        IpVersion::V4 => ipv4::MIN_HEADER_BYTES,
        IpVersion::V6 => ipv6::HEADER_BYTES,
    }
}

/// Returns the layout of a data segment, up to its window; [`data_tail`] returns the masks for the header bytes
/// after it. The caller checks SEQ and [`counting`].
#[must_use]
pub const fn data(version: IpVersion) -> Layout {
    Layout::new(version, TCP_WINDOW.1, &[IPV4_COUNTING], &[TCP_SEQ])
}

/// Returns the masks of the last two header words of a TCP data segment; the first word starts at the checksum.
/// `header_bytes` is the length of the TCP header in bytes. `None` unless it is 20 (no options) or 32 (a
/// timestamp only). Separate from [`data`], so that segments with and without a timestamp share the code of
/// [`data`].
#[inline]
#[must_use]
pub const fn data_tail(header_bytes: usize) -> Option<[u64; 2]> {
    match header_bytes {
        20 => Some([u64::from_ne_bytes([0, 0, 255, 255, 0, 0, 0, 0]), 0]),
        32 => Some([u64::from_ne_bytes([0, 0, 255, 255, 255, 255, 255, 255]), u64::MAX]),
        _ => None,
    }
}

/// Returns the layout of a pure ACK with or without a timestamp. The caller checks the IPv4 checksum, that the
/// ACK number advances, and TSval.
#[must_use]
pub const fn ack(version: IpVersion, tcp_bytes: usize) -> Layout {
    let fields = &[TCP_ACK, TCP_WINDOW, TCP_CHECKSUM, TCP_TIMESTAMP];
    Layout::new(version, tcp_bytes, &[IPV4_ID, IPV4_CHECKSUM], fields)
}

/// Returns the layout of a pure ACK for a receiving host, which accepts any SEQ. The caller checks both
/// checksums.
#[must_use]
pub const fn host_ack(version: IpVersion, tcp_bytes: usize) -> Layout {
    let fields = &[TCP_SEQ, TCP_ACK, TCP_WINDOW, TCP_CHECKSUM, TCP_TIMESTAMP];
    Layout::new(version, tcp_bytes, &[IPV4_ID, IPV4_CHECKSUM], fields)
}

/// Returns the layout of a UDP datagram. The caller checks [`counting`], and that the checksum is not 0.
#[must_use]
pub const fn datagram(version: IpVersion) -> Layout {
    Layout::new(version, UDP_CHECKSUM.1, &[IPV4_COUNTING], &[UDP_CHECKSUM])
}

/// Returns the eight bytes of an IPv4 header from the identification to the checksum as a number, with the
/// identification in the upper 16 bits. Returns 0 for IPv6, which has neither field.
#[inline]
#[must_use]
pub fn counting(version: IpVersion, headers: &[u8]) -> u64 {
    match version {
        IpVersion::V4 => u64::from_be(word(headers, IPV4_COUNTING.0)),
        IpVersion::V6 => 0,
    }
}

/// Predicts the value of [`counting`] for the next packet, whose identification is `step` higher.
#[inline]
#[must_use]
pub const fn counted(counting: u64, step: u16) -> u64 {
    // Adding 1 to the ID subtracts 1 from the one's complement checksum.
    counting.wrapping_add(((step as u64) << 48).wrapping_sub(step as u64))
}

/// Returns how many times [`counted`] may be applied before identification or checksum would wrap around.
#[inline]
#[must_use]
pub const fn steps_to_wrap(counting: u64, step: u16) -> u32 {
    let (id, checksum) = ((counting >> 48) as u16, counting as u16);
    let left = u16::MAX - id;
    match (step, checksum < left) {
        (0, _) => u32::MAX,
        (_, true) => checksum as u32,
        (_, false) => left as u32,
    }
}

/// Returns zero if the link-layer headers of two frames of equal length are equal: all bytes before
/// `network`, the offset of the IP header. Compares overlapping words: addresses and EtherType, and the eight
/// bytes before the IP header, which contain up to two VLAN tags. Compares nothing for raw IP.
#[inline(always)]
#[must_use]
pub fn differing_link(last: &[u8], next: &[u8], network: usize) -> u64 {
    let (Some(last), Some(next)) = (last.get(..network), next.get(..network)) else { return 1 };
    if network < ETHERNET_BYTES {
        return 0;
    }
    let differing = |at| word(last, at) ^ word(next, at);
    let addresses = differing(0) | differing(6);
    if network > ETHERNET_BYTES { addresses | differing(network - 8) } else { addresses }
}

const ETHERNET_BYTES: usize = 14;

/// Reads the eight bytes at `at` in native byte order; 0 if they exceed `bytes`.
#[inline]
#[must_use]
pub fn word(bytes: &[u8], at: usize) -> u64 {
    let word = bytes.get(at..).and_then(<[u8]>::first_chunk);
    word.map_or(0, |word| u64::from_ne_bytes(*word))
}

/// Reads the eight bytes at `at` as a big-endian number; 0 if they exceed `bytes`.
#[inline]
#[must_use]
pub fn number(bytes: &[u8], at: usize) -> u64 {
    u64::from_be(word(bytes, at))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Changes each byte in turn: only those that the row leaves out may differ.
    #[test]
    fn a_row_compares_every_byte_but_the_fields_that_it_leaves_out() {
        let rows = [IpVersion::V4, IpVersion::V6].map(|version| {
            let ip = ip_bytes(version);
            [
                (data(version), ip + 16, 4 + 8),
                (ack(version, 20), ip + 20, 8 + 4),
                (ack(version, 32), ip + 32, 16 + 4),
                (host_ack(version, 32), ip + 32, 20 + 4),
                (datagram(version), ip + 8, 2 + 8),
            ]
            .map(|(row, bytes, left_out)| (row, bytes, left_out, version))
        });
        for (row, bytes, left_out, version) in rows.into_iter().flatten() {
            let (last, mut different) = ([7; MOST_BYTES], 0);
            for at in 0..bytes {
                let mut next = last;
                next[at] ^= 0x10;
                let is_equal = row.differing(&last[..bytes], &next[..bytes]) == 0;
                assert_eq!(is_equal, row.fixed[at] == 0, "{at} of {bytes}");
                different += usize::from(is_equal);
            }
            let of_ip = match (version, left_out) {
                (IpVersion::V4, _) => 0,
                (IpVersion::V6, 12 | 10) if bytes != ip_bytes(version) + 20 => 8,
                (IpVersion::V6, _) => 4,
            };
            assert_eq!(different, left_out - of_ip, "{version:?}, {bytes} bytes");
        }
    }

    #[test]
    fn identification_and_checksum_count_together_until_one_wraps() {
        let headers = [0x45, 0, 0, 40, 0xff, 0xfe, 0x40, 0, 64, 6, 0x12, 0x34, 0, 0, 0, 0];
        let before = counting(IpVersion::V4, &headers);
        assert_eq!((steps_to_wrap(before, 1), steps_to_wrap(before, 0)), (1, u32::MAX));
        assert_eq!(counted(before, 1), 0xffff_4000_4006_1233);
        assert_eq!(counted(before, 0), before);
    }
}
