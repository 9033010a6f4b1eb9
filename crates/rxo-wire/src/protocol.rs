//! Protocol numbers, used in the IPv4 field Protocol and the IPv6 field Next Header (IANA, "Assigned Internet
//! Protocol Numbers").

/// The protocol number of ICMP (RFC 792).
pub const PROTOCOL_ICMP: u8 = 1;
/// The protocol number of IGMP (RFC 3376).
pub const PROTOCOL_IGMP: u8 = 2;
/// The protocol number of TCP (RFC 9293).
pub const PROTOCOL_TCP: u8 = 6;
/// The protocol number of UDP (RFC 768).
pub const PROTOCOL_UDP: u8 = 17;
/// The protocol number of ICMPv6, which is ICMP for IPv6 (RFC 4443).
pub const PROTOCOL_ICMPV6: u8 = 58;
