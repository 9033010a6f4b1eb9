//! Packet sockets: frames from and to an existing interface.
//!
//! * [`PacketSource`] lends frames out of a ring that the kernel fills, without a copy.
//! * [`DeviceSink::packet`](crate::DeviceSink::packet) sends batches with a `virtio_net_hdr` for
//!   each packet, so that the kernel completes checksums and segments aggregates where the
//!   interface cannot.
//! * `departures` asks the system what the interface has sent, to compare it with what was written.

mod departures;
mod fanout;
mod kind;
pub(crate) mod ring;
mod sink;
pub(crate) mod socket;
mod source;
mod take;

pub(crate) use kind::KIND;
pub use source::{PacketOptions, PacketSource};
