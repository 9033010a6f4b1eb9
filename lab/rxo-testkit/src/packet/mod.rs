//! The packet language of the tests.
//!
//! A [`Packet`] is a frame under construction. The defaults make a plain data segment, and each
//! setter changes one thing. [`Packet::bytes`] writes the frame with right lengths and checksums,
//! unless a setter asked for wrong ones.

mod encode;
mod ip;
mod link;
mod outer;
mod tcp;
mod udp;

pub use outer::{Outer, geneve, vxlan};
use rxo_frame::{ChecksumStatus, Gso, LinkKind};

/// A frame under construction.
#[derive(Clone, Debug)]
pub struct Packet {
    pub(crate) link: LinkKind,
    /// VLAN tags (TPID and TCI), outer first.
    pub(crate) tags: Vec<(u16, u16)>,
    /// The byte that pads the frame to `pad_to` bytes.
    pub(crate) padding: u8,
    pub(crate) pad_to: usize,
    /// Bytes removed from the end of the finished frame.
    pub(crate) cut: usize,
    pub(crate) body: Body,
    pub(crate) v6: bool,
    pub(crate) host: u32,
    pub(crate) ports: (u16, u16),
    /// `true` if the packet goes from the second host to the first.
    pub(crate) is_reply: bool,
    pub(crate) hop_limit: u8,
    pub(crate) traffic_class: u8,
    pub(crate) flow_label: u32,
    pub(crate) id: u16,
    pub(crate) dont_fragment: bool,
    pub(crate) reserved_bit: bool,
    pub(crate) ip_options: Vec<u8>,
    /// Extension headers: type, and everything after the first two bytes.
    pub(crate) extensions: Vec<(u8, Vec<u8>)>,
    /// Protocol number that replaces the packet's own.
    pub(crate) protocol: Option<u8>,
    /// Fragment offset in 8-byte units, and `true` if more fragments follow.
    pub(crate) fragment: Option<(u16, bool)>,
    /// Error added to the IP length field.
    pub(crate) length_lie: i32,
    /// Error added to the IP header length, in words (v4).
    pub(crate) header_lie: i8,
    /// Error added to the TCP data offset, in words.
    pub(crate) offset_lie: i8,
    /// Error added to the UDP length field.
    pub(crate) udp_length_lie: i16,
    /// `true` if a UDP datagram has no checksum.
    pub(crate) has_no_checksum: bool,
    pub(crate) ip_checksum_error: u16,
    pub(crate) checksum_error: u16,
    pub(crate) seq: u32,
    pub(crate) ack: u32,
    pub(crate) flags: u16,
    pub(crate) window: u16,
    pub(crate) urgent: u16,
    pub(crate) tcp_options: Vec<u8>,
    pub(crate) stream: u32,
    pub(crate) len: usize,
    pub(crate) status: ChecksumStatus,
    /// Start of another partial checksum, from the transport header, and the offset of its field; `None` for
    /// the packet's own.
    pub(crate) elsewhere: Option<(u16, u16)>,
    pub(crate) gso: Option<Gso>,
    /// Tunnel around the packet.
    pub(crate) outer: Option<Outer>,
}

/// The content of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    Tcp,
    Udp,
    Arp,
}

pub(crate) const ACK: u16 = 0x010;

/// Makes a TCP data segment: IPv4, flow 0, SEQ 100, 100 bytes, ACK 100, window 65,535, TTL 8, DF, ID 0, no
/// options.
#[must_use]
pub fn seg() -> Packet {
    Packet {
        link: LinkKind::Ethernet,
        tags: Vec::new(),
        padding: 0,
        pad_to: 0,
        cut: 0,
        body: Body::Tcp,
        v6: false,
        host: 0,
        ports: (1000, 443),
        is_reply: false,
        hop_limit: 8,
        traffic_class: 0,
        flow_label: 0,
        id: 0,
        dont_fragment: true,
        reserved_bit: false,
        ip_options: Vec::new(),
        extensions: Vec::new(),
        protocol: None,
        fragment: None,
        length_lie: 0,
        header_lie: 0,
        offset_lie: 0,
        udp_length_lie: 0,
        has_no_checksum: false,
        ip_checksum_error: 0,
        checksum_error: 0,
        seq: 100,
        ack: 100,
        flags: ACK,
        window: 65_535,
        urgent: 0,
        tcp_options: Vec::new(),
        stream: 0,
        len: 100,
        status: ChecksumStatus::Unknown,
        elsewhere: None,
        gso: None,
        outer: None,
    }
}

/// Makes a UDP datagram, otherwise like [`seg`].
#[must_use]
pub fn udp() -> Packet {
    Packet { body: Body::Udp, ..seg() }
}

/// Makes an ARP request.
#[must_use]
pub fn arp() -> Packet {
    Packet { body: Body::Arp, ..seg() }
}
