//! A question of a router or a switch: which channels have members here.

use std::net::IpAddr;

use rxo_frame::Duration;

/// A query, of IGMP or MLD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::link) struct Query {
    /// Whether the querier speaks this host's version, which knows sources.
    pub(in crate::link) knows_sources: bool,
    /// The group that is asked about; `None` means all.
    pub(in crate::link) group: Option<IpAddr>,
    /// The sources that are asked about; none means all.
    pub(in crate::link) sources: Vec<IpAddr>,
    /// How long the answer may take.
    pub(in crate::link) within: Duration,
    /// How often the querier wants changes reported; 0 if it does not say.
    pub(in crate::link) robustness: u8,
}

/// The value of a code of `bits` bits: itself, or from half the range on a floating-point number with three bits of
/// exponent (RFC 3376, section 4.1.1; RFC 3810, section 5.1.3).
pub(super) const fn value_of(code: u32, bits: u32) -> u32 {
    let mantissa_bits = bits - 4;
    if code < 1 << (bits - 1) {
        return code;
    }
    let mantissa = code & ((1 << mantissa_bits) - 1) | 1 << mantissa_bits;
    mantissa << (3 + (code >> mantissa_bits & 7))
}

/// The robustness in the byte of flags of a query.
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
