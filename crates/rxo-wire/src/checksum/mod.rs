//! The Internet checksum (RFC 1071): summed, verified, combined, updated.
//!
//! * [`Sum`] is an unfolded sum. Sums of parts add up to the sum of the whole, also at odd offsets, so a
//!   checksum can be computed from other checksums without reading their bytes again.
//! * [`Summer`] sums bytes with the widest instructions that the processor has. The caller detects it once, and
//!   passes it to every function that sums many bytes.
//! * [`verify_transport`] and [`complete`] verify and compute the checksums of TCP and UDP.
//! * [`update_word`] and [`update_long`] change a checksum as a field changes (RFC 1624).
//!
//! Checksums and words are `u16` numbers, big-endian on the wire; code outside this module need not care
//! about byte order.

mod portable;
mod sum;
mod summer;
mod transport;
mod update;

pub use crate::ipv4::verify_ip_header;
pub use sum::Sum;
pub use summer::Summer;
pub use transport::{complete, pseudo_header, verify_tcp, verify_transport};
pub use update::{ipv4_header_checksum, update_long, update_word};

#[cfg(test)]
mod tests;
