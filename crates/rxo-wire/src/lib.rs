//! Bytes to headers and back.
//!
//! * [`parse()`] reads a frame once, from the link layer to the payload, into a [`Parsed`] view
//!   where IPv4 and IPv6 have met. Nothing above reads a header twice.
//! * [`Offsets`] says where the headers are; it goes along with the frame from then on.
//! * [`plain_v4`] and [`plain_v6`] recognise ordinary TCP segments several times faster.
//! * [`checksum`] is the Internet checksum: portable and SIMD, verified, combined, updated.
//! * [`SeqNumber`] compares as sequence numbers do, and has no `Ord`.
//! * [`FlowKey`] names one direction of a connection; [`FlowHasher`] hashes it under a seed.
//! * [`build`] writes headers.
//! * [`segmentation`] divides a GSO frame into the frames that a network carries.
//!
//! Contract: no function here panics, whatever the bytes; none allocates, reads a clock or does
//! input or output. Unsafe code stands in [`arch`] alone.
#![no_std]

#[cfg(test)]
extern crate std;

pub mod arch;
pub mod build;
pub mod checksum;
mod ethernet;
mod flow;
mod ipv4;
mod ipv6;
mod offsets;
mod packet;
mod parse;
mod plain;
mod protocol;
pub mod segmentation;
mod seq;
mod steering;
pub mod tcp;
mod udp;

pub use ethernet::{
    ETHERNET_HEADER_BYTES, ETHERTYPE_IPV4, ETHERTYPE_IPV6, VLAN_TAG_BYTES, VlanStack, ethertype,
};
pub use flow::{FlowHash, FlowHasher, FlowKey};
pub use ipv6::is_extension_header;
pub use offsets::Offsets;
pub use packet::class_and_length;
pub use parse::{Ip, IpVersion, Malformed, Parsed, Transport, Unparsed, parse, parse_ip};
pub use plain::{Plain, plain_v4, plain_v4_checksum, plain_v4_key, plain_v6, plain_v6_key};
pub use protocol::{PROTOCOL_ICMP, PROTOCOL_ICMPV6, PROTOCOL_IGMP, PROTOCOL_TCP, PROTOCOL_UDP};
pub use seq::SeqNumber;
pub use steering::{STEERING_MULTIPLIER, STEERING_SHIFT, shard_of};
pub use tcp::{TcpFlags, TcpSegment};
pub use udp::UdpDatagram;
