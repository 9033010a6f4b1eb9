//! Packet sockets: frames from and to an existing interface.
//!
//! * [`PacketSource`] lends frames out of a ring that the kernel fills, without a copy.
//! * [`PacketSink`] sends batches with a `virtio_net_hdr` each, so that the kernel completes
//!   checksums and cuts aggregates into segments where the interface cannot.

mod buffer;
mod ring;
mod sink;
mod socket;
mod source;
mod take;

pub use buffer::PacketBuf;
pub use sink::PacketSink;
pub use source::{PacketOptions, PacketSource};
