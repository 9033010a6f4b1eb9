//! The Internet checksum word by word (RFC 1071), adding each carry at once.

/// Adds two 16-bit words, and the carry to the result.
#[must_use]
pub const fn fold(a: u16, b: u16) -> u16 {
    let (sum, carry) = a.overflowing_add(b);
    if carry { sum + 1 } else { sum }
}

/// Adds `bytes` to `start` as big-endian words in one's complement. An odd last byte is the high
/// half of a word.
#[must_use]
pub(super) fn sum(start: u16, bytes: &[u8]) -> u16 {
    let mut total = start;
    for pair in bytes.chunks(2) {
        let low = if pair.len() == 2 { pair[1] } else { 0 };
        total = fold(total, u16::from_be_bytes([pair[0], low]));
    }
    total
}

/// Returns the Internet checksum of `bytes`; 0 if they contain their own valid checksum.
#[must_use]
pub fn internet_checksum(bytes: &[u8]) -> u16 {
    !sum(0, bytes)
}

/// Returns the sum of the pseudo-header (RFC 9293 section 3.1, RFC 8200 section 8.1). `addresses` holds
/// source and destination as in the IP header: 8 or 32 bytes.
#[must_use]
pub fn pseudo_header_sum(addresses: &[u8], protocol: u8, length: usize) -> u16 {
    let total = sum(0, addresses);
    let total = sum(total, &[0, protocol]);
    sum(total, &(length as u32).to_be_bytes())
}

/// Returns the transport checksum of `segment`; 0 if it contains its own valid checksum.
#[must_use]
pub fn transport_checksum(addresses: &[u8], protocol: u8, segment: &[u8]) -> u16 {
    !sum(pseudo_header_sum(addresses, protocol, segment.len()), segment)
}

#[cfg(test)]
mod tests {
    use super::internet_checksum;

    #[test]
    fn the_example_of_rfc_1071_section_3() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(internet_checksum(&bytes), !0xddf2);
    }

    #[test]
    fn an_odd_byte_is_the_high_half_of_a_word() {
        assert_eq!(internet_checksum(&[0x12]), !0x1200);
    }
}
