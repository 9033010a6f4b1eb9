//! A membership query: a router or a switch requests the channels that this host has joined.

use std::net::IpAddr;

use rxo_frame::Duration;

/// The content of an IGMP or MLD query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::link) struct Query {
    /// `true` if the querier uses the current version of IGMP or MLD, whose reports list sources.
    pub(in crate::link) knows_sources: bool,
    /// The group to which the query is limited; `None` for all groups.
    pub(in crate::link) group: Option<IpAddr>,
    /// The sources to which the query is limited; empty for all sources.
    pub(in crate::link) sources: Vec<IpAddr>,
    /// The maximum time until the query must be answered.
    pub(in crate::link) within: Duration,
    /// Number of times that each change must be reported to the querier; 0 if the query does not specify a
    /// number.
    pub(in crate::link) robustness: u8,
}

/// Decodes a time code of `bits` bits: in the lower half of the range, the code is the time itself; the upper
/// half is a floating-point number with a 3-bit exponent (RFC 3376, section 4.1.1; RFC 3810, section 5.1.3).
pub(super) const fn value_of(code: u32, bits: u32) -> u32 {
    let mantissa_bits = bits - 4;
    if code < 1 << (bits - 1) {
        return code;
    }
    let mantissa = code & ((1 << mantissa_bits) - 1) | 1 << mantissa_bits;
    mantissa << (3 + (code >> mantissa_bits & 7))
}

/// Returns the robustness variable in the flags byte of a query.
pub(super) const fn robustness_in(flags: u8) -> u8 {
    flags & 7
}

#[cfg(test)]
mod tests {
    use super::value_of;

    #[test]
    fn codes_above_half_are_floating_point() {
        let rows =
            [(0, 8, 0), (127, 8, 127), (128, 8, 128), (255, 8, 31 << 10), (0x9a, 8, 26 << 4)];
        let wide = [(32_767, 16, 32_767), (32_768, 16, 32_768), (65_535, 16, 0x1fff << 10)];
        for (code, bits, value) in rows.into_iter().chain(wide) {
            assert_eq!(value_of(code, bits), value, "{code:#x}");
        }
    }
}
