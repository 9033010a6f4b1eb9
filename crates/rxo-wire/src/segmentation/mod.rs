//! Segmentation: divides a GSO frame into the frames that a network carries.
//!
//! A GSO frame is one TCP or UDP header in front of more payload than a segment holds, together with the
//! payload length of each segment (`gso_size`, in bytes). A kernel delivers such frames on a TUN or TAP
//! device that offers offloads, on a packet socket with a virtio-net header, and to a guest; a network does
//! not carry them.
//!
//! Every segment gets a copy of the headers and its share of the payload. These fields are changed:
//!
//! | field | value | source |
//! |---|---|---|
//! | IPv4 total length, IPv6 payload length | of this segment | RFC 791, RFC 8200 section 3 |
//! | IPv4 identification | the first one's plus the segment's number, or the first one's | RFC 791, RFC 6864 |
//! | IPv4 header checksum | of this header | RFC 791, RFC 1624 |
//! | sequence number | the first one's plus the payload before this segment | RFC 9293 section 3.4 |
//! | PSH, FIN | on the last segment only | RFC 9293 sections 3.9.1, 3.6 |
//! | CWR | on the first segment only | RFC 3168 section 6.1.2 |
//! | UDP length | of this datagram | RFC 768 |
//! | TCP or UDP checksum | of this segment, or the sum of its pseudo-header | RFC 9293 section 3.1, RFC 768 |
//!
//! For a GSO frame in a tunnel ([`segment_inside`]), this applies to the inner headers. The outer lengths,
//! the outer IPv4 identification and the checksums of UDP and GRE are computed for each segment, too.
//!
//! Segmentation undoes coalescing: an aggregate that `rxo-coalesce` makes under `linux-gro` is divided into
//! its original frames, byte for byte, without their padding.
//!
//! # How to use it
//! [`segment`] receives a frame and its headers as [`parse`](crate::parse()) returns them, and yields the
//! segments one by one: written into the caller's buffer ([`Segments::next_into`]), or as headers to send
//! with a slice of the payload ([`Segments::next_headers`]). A caller with headers and payload in different
//! buffers uses [`Segmenter`] and [`parts`] directly.
//!
//! Separate from [`build`](crate::build) because it changes existing headers. IP, TCP and UDP have one file
//! each.
//!
//! # Contract
//! No function of this module allocates or panics. A segment costs one copy of the headers and a few additions;
//! complete checksums read its payload once.
//!
//! # Examples
//! A GSO frame from a TUN device, where packets begin with the IP header:
//!
//! ```
//! use core::num::NonZeroU16;
//! use rxo_wire::checksum::Summer;
//! use rxo_wire::parse_ip;
//! use rxo_wire::segmentation::{Checksums, segment};
//! # use rxo_wire::build::{Ipv4Header, TcpHeader};
//! # let mut from_tun = [0; 20 + 20 + 3_000];
//! # let ip = Ipv4Header { protocol: 6, payload_bytes: 3_020, ..Ipv4Header::default() };
//! # TcpHeader::default().write(ip.write(&mut from_tun)?)?;
//! # let mut lengths = Vec::new();
//! # let mut send = |frame: &[u8]| lengths.push(frame.len());
//!
//! // `gso_size` of the virtio-net header, and a buffer that holds one segment.
//! let size = NonZeroU16::new(1_400).ok_or("no GSO frame")?;
//! let mut buffer = [0; 1_500];
//!
//! let parsed = parse_ip(&from_tun).map_err(|_| "no IP packet")?;
//! let mut segments = segment(&from_tun, &parsed, size, Checksums::Complete(Summer::detect()))?;
//! while let Some(bytes) = segments.next_into(&mut buffer)? {
//!     send(&buffer[..bytes]);
//! }
//! # assert_eq!(lengths, [1_440, 1_440, 240]);
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```

mod around;
mod ip;
mod layer;
mod part;
mod segmenter;
mod segments;
mod tcp;
mod udp;

pub use part::{Part, Parts, parts};
pub use segmenter::Segmenter;
pub use segments::{Segments, Stated, segment, segment_inside, segment_stated};
pub use tcp::Tcp;
pub use udp::Udp;

use core::fmt;

use crate::checksum::Summer;

/// The content of the TCP or UDP checksum field of each segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksums {
    /// The checksum of the segment, summed by this [`Summer`].
    Complete(Summer),
    /// The folded sum of the pseudo-header, for a device that completes checksums (`NEEDS_CSUM` in a
    /// virtio-net header, `ChecksumStatus::Partial` in rxo).
    Partial,
}

/// The reason why a frame cannot be segmented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotSegmentable {
    /// The frame is not TCP or UDP over IPv4 or IPv6, the UDP length is not that of the packet, or the frame
    /// ends before its payload.
    Transport,
    /// An IPv6 extension header covers the whole packet (authentication) or may change the addresses (routing,
    /// Home Address). A copy of such a header would be wrong in the segments.
    Extensions,
    /// The frame has no payload, so there is nothing to segment.
    NoPayload,
}

impl fmt::Display for NotSegmentable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Transport => "the frame is neither TCP nor UDP over IPv4 or IPv6",
            Self::Extensions => "an IPv6 extension header forbids to divide the packet",
            Self::NoPayload => "the frame has no payload; send it as it is",
        })
    }
}

impl core::error::Error for NotSegmentable {}
