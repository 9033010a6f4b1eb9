//! Writes headers into a buffer of the caller.
//!
//! Each header is a value with one field per header field. Its `write` puts the header at the start of a slice
//! and returns the rest of the slice, for the next header. `write` also computes lengths and the IPv4 header
//! checksum. The transport checksum needs the payload, so it is written last ([`write_tcp_checksum`],
//! [`write_udp_checksum`]) or left to a device ([`write_tcp_seed`]).
//!
//! Separate from parsing because a written header needs every field, while a parser reads only the fields that
//! matter. No function of this module allocates or panics.
//!
//! # Examples
//! ```
//! use rxo_wire::build::{EthernetHeader, Ipv4Header, TcpHeader, write_tcp_checksum};
//! use rxo_wire::checksum::{Summer, verify_transport};
//! use rxo_wire::{TcpFlags, parse};
//!
//! let payload = b"hello";
//! let tcp = TcpHeader { flags: TcpFlags::ACK, window: 1000, ..TcpHeader::default() };
//! let segment_bytes = tcp.bytes() + payload.len();
//! let ip = Ipv4Header { protocol: 6, payload_bytes: segment_bytes, ..Ipv4Header::default() };
//!
//! let mut frame = [0; 14 + 20 + 20 + 5];
//! let rest = EthernetHeader { ethertype: 0x0800, ..EthernetHeader::default() }.write(&mut frame)?;
//! let segment = ip.write(rest)?;
//! tcp.write(segment)?.copy_from_slice(payload);
//! write_tcp_checksum(segment, ip.pseudo_header(), Summer::detect())?;
//!
//! let parsed = parse(&frame).map_err(|_| "unreadable").unwrap();
//! assert!(verify_transport(&parsed, &frame, Summer::detect()));
//! # Ok::<(), rxo_wire::build::BuildError>(())
//! ```

mod ethernet;
mod ipv4;
mod ipv6;
mod transport;

#[cfg(test)]
mod tests;

pub use ethernet::{EthernetHeader, VlanTag};
pub use ipv4::Ipv4Header;
pub use ipv6::{Ipv6Extension, Ipv6Header};
pub use transport::{
    TcpHeader, UdpHeader, maximum_segment_size_option, timestamp_option, write_tcp_checksum,
    write_tcp_seed, write_udp_checksum,
};

use core::fmt;

/// Error: a header cannot be written. Nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuildError {
    /// The slice is shorter than the header or field.
    NoRoom {
        /// The number of bytes that the header or field needs.
        needed: usize,
        /// The length of the caller's slice, in bytes.
        given: usize,
    },
    /// Options or an extension header are too long for their length field.
    OptionsTooLong {
        /// The length of the options or the extension header, in bytes.
        bytes: usize,
    },
    /// A packet is too long for its length field.
    PacketTooLong {
        /// The length of the packet, in bytes.
        bytes: usize,
    },
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRoom { needed, given } => {
                write!(f, "a header of {needed} bytes does not fit into {given}; give it more room")
            }
            Self::OptionsTooLong { bytes } => {
                write!(f, "{bytes} bytes of options are more than the header can hold; send fewer")
            }
            Self::PacketTooLong { bytes } => {
                write!(f, "a packet of {bytes} bytes is longer than IP allows; send less at a time")
            }
        }
    }
}

impl core::error::Error for BuildError {}

/// Returns the first `bytes` bytes of `out`, and the rest.
fn split(out: &mut [u8], bytes: usize) -> Result<(&mut [u8], &mut [u8]), BuildError> {
    let given = out.len();
    out.split_at_mut_checked(bytes).ok_or(BuildError::NoRoom { needed: bytes, given })
}

/// Returns the first `BYTES` bytes of `out` as an array, and the rest.
fn split_fixed<const BYTES: usize>(
    out: &mut [u8],
) -> Result<(&mut [u8; BYTES], &mut [u8]), BuildError> {
    let given = out.len();
    out.split_first_chunk_mut().ok_or(BuildError::NoRoom { needed: BYTES, given })
}

/// Copies `data` to the start of `out` and fills the rest with zeros.
fn put_padded(out: &mut [u8], data: &[u8]) {
    out.fill(0);
    for (to, from) in out.iter_mut().zip(data) {
        *to = *from;
    }
}
