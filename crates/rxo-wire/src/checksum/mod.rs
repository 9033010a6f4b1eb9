//! The Internet checksum (RFC 1071): summed, verified, combined, updated.
//!
//! * [`Sum`] is an unfolded sum. The sums of the parts of a packet add up to the sum of the whole, also at
//!   odd offsets, so a checksum can be computed from other checksums without reading their bytes again.
//! * [`Summer`] sums bytes with the widest instructions of the processor. It is detected once and then kept
//!   by the code that sums payloads.
//! * [`verify_transport`], [`complete`] and [`payload_sum`] are the operations for TCP and UDP.
//! * [`update_word`] and [`update_long`] update a checksum after a field changed (RFC 1624).
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
pub use transport::{complete, payload_sum, pseudo_header, verify_tcp, verify_transport};
pub use update::{ipv4_header_checksum, update_long, update_word};

#[cfg(test)]
mod tests;
