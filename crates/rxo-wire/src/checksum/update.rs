//! Header checksums: computed, and updated after a field changed.

use super::Sum;

/// Returns the checksum after a 16-bit field changed from `old` to `new` (RFC 1624, equation 3).
///
/// The field must be at an even offset. The result equals a newly computed checksum unless all summed bytes are
/// zero, which is impossible in an IP header or with a pseudo-header.
///
/// # Examples
/// ```
/// use rxo_wire::build::Ipv4Header;
/// use rxo_wire::checksum::{ipv4_header_checksum, update_word};
///
/// let mut header = [0; 20];
/// Ipv4Header { id: 1, ..Ipv4Header::default() }.write(&mut header)?;
/// let before = u16::from_be_bytes([header[10], header[11]]);
/// header[4..6].copy_from_slice(&2_u16.to_be_bytes());
/// assert_eq!(update_word(before, 1, 2), ipv4_header_checksum(&header));
/// # Ok::<(), rxo_wire::build::BuildError>(())
/// ```
#[inline]
#[must_use]
pub const fn update_word(checksum: u16, old: u16, new: u16) -> u16 {
    Sum::word(!checksum).plus(Sum::word(!old)).plus(Sum::word(new)).checksum()
}

/// Returns the checksum after a 32-bit field changed from `old` to `new`; see [`update_word`].
#[inline]
#[must_use]
pub const fn update_long(checksum: u16, old: u32, new: u32) -> u16 {
    Sum::word(!checksum).plus(Sum::long(!old)).plus(Sum::long(new)).checksum()
}

/// Returns the checksum of the IPv4 header `header`, computed without the value in its checksum field. `header` is the
/// whole header, options included, and nothing else.
#[inline]
#[must_use]
pub const fn ipv4_header_checksum(header: &[u8]) -> u16 {
    let all = Sum::of(header);
    match header {
        [_, _, _, _, _, _, _, _, _, _, high, low, ..] => {
            all.minus(Sum::word(u16::from_be_bytes([*high, *low]))).checksum()
        }
        _ => all.checksum(),
    }
}
