//! The fields of IP headers that an application may set (RFC 9293, sections 3.9.1.9 and 3.9.2).

/// The DSCP and the hop limit of a connection's packets. The defaults are DSCP 0 and hop limit 64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Marks {
    /// The differentiated services code point (RFC 2474), six bits.
    pub(crate) dscp: u8,
    /// The TTL of IPv4 or the hop limit of IPv6.
    pub(crate) hop_limit: u8,
}

impl Default for Marks {
    fn default() -> Self {
        Self { dscp: 0, hop_limit: 64 }
    }
}

impl Marks {
    /// Writes the DSCP and the TTL or hop limit into an IP header, and sets its ECN bits to 0.
    pub(super) fn write(self, ip: &mut [u8]) {
        let class = self.dscp << 2;
        match ip {
            [version, tos, _, _, _, _, _, _, ttl, ..] if *version >> 4 == 4 => {
                (*tos, *ttl) = (class, self.hop_limit);
            }
            [version, label, _, _, _, _, _, hop_limit, ..] => {
                *version = *version & 0xf0 | class >> 4;
                *label = *label & 0x0f | class << 4;
                *hop_limit = self.hop_limit;
            }
            _ => {}
        }
    }
}
