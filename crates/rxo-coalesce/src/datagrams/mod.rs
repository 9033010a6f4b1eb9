//! UDP datagrams: which may be coalesced, and which continue what is held.
//!
//! Separate from the rules of TCP because there is no byte stream: datagrams have neither sequence numbers nor
//! flags, and only their sizes say where one ends. The rules are those of Linux (`net/ipv4/udp_offload.c`). What
//! both have in common (IP header, link header, limits) is in `verdict`.

mod expected;
mod fixed;
mod rules;

pub(crate) use expected::ExpectedDatagram;
pub(crate) use fixed::plain_datagram;
pub(crate) use rules::{datagram, with_datagram};

/// The header (RFC 768), in bytes.
pub(crate) const HEADER_BYTES: usize = 8;
/// The length and the checksum in it.
pub(crate) const LENGTH_AT: usize = 4;
pub(crate) const CHECKSUM_AT: usize = 6;
