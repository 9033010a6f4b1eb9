//! Reads and writes packet headers.
//!
//! ```text
//!  frame bytes ── parse ──▶ Parsed { flow key, header, payload range }
//!  values ── build ──▶ header bytes ── segmentation ──▶ the frames that a network carries
//! ```
//!
//! * [`parse()`] reads a frame once, from the link layer to the payload, into a [`Parsed`] view that is the
//!   same for IPv4 and IPv6. No layer above parses a header again.
//! * [`Offsets`] contains the offsets of the headers. Later layers receive it together with the frame.
//! * [`plain_v4`] and [`plain_v6`] recognise ordinary TCP segments several times faster.
//! * [`checksum`] sums, verifies, combines and updates Internet checksums, with portable code and with SIMD.
//! * [`SeqNumber`] compares modulo 2³², and has no `Ord`.
//! * [`FlowKey`] identifies one direction of a connection; [`FlowHasher`] hashes it with a seed.
//! * [`build`] writes headers.
//! * [`layout`] lists the header bytes that must be equal in consecutive packets of a flow.
//! * [`tunnel`] parses the packet inside a tunnel packet.
//! * [`segmentation`] divides a GSO frame into the frames that a network carries.
//!
//! Contract: no function of this crate panics, whatever the bytes, or allocates, reads a clock, or does input or
//! output. Only [`arch`] contains unsafe code.
//!
//! # Examples
//! ```
//! use rxo_wire::build::{EthernetHeader, Ipv4Header, TcpHeader, write_tcp_checksum};
//! use rxo_wire::checksum::{Summer, verify_transport};
//! use rxo_wire::{ETHERTYPE_IPV4, PROTOCOL_TCP, SeqNumber, TcpFlags, Transport, parse};
//!
//! let tcp = TcpHeader { seq: SeqNumber(7), flags: TcpFlags::ACK, ..TcpHeader::default() };
//! let ip = Ipv4Header { protocol: PROTOCOL_TCP, payload_bytes: 25, ..Ipv4Header::default() };
//! let mut frame = [0; 14 + 20 + 25];
//! let ethernet = EthernetHeader { ethertype: ETHERTYPE_IPV4, ..EthernetHeader::default() };
//! let segment = ip.write(ethernet.write(&mut frame)?)?;
//! tcp.write(segment)?.copy_from_slice(b"hello");
//! write_tcp_checksum(segment, ip.pseudo_header(), Summer::detect())?;
//!
//! let parsed = parse(&frame).map_err(|_| "unreadable")?;
//! assert!(verify_transport(&parsed, &frame, Summer::detect()));
//! assert_eq!(&frame[parsed.at.payload as usize..], b"hello");
//! assert!(matches!(parsed.transport, Transport::Tcp(tcp) if tcp.seq == SeqNumber(7)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
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
pub mod layout;
mod offsets;
mod packet;
mod parse;
mod plain;
mod protocol;
pub mod segmentation;
mod seq;
mod steering;
pub mod tcp;
pub mod tunnel;
pub mod udp;

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
pub use steering::{STEERING_MULTIPLIER, STEERING_SHIFT, queue_of, shard_of};
pub use tcp::{TcpFlags, TcpSegment};
pub use udp::UdpDatagram;
