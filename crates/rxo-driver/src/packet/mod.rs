//! Packet sockets: receive and send frames on an existing interface.
//!
//! * [`PacketSource`] receives frames from a ring that the kernel fills, without copying them.
//! * [`DeviceSink::packet`](crate::DeviceSink::packet) sends batches with a `virtio_net_hdr` for
//!   each packet, so that the kernel completes checksums and segments aggregates where the
//!   interface cannot.
//! * `departures` counts what the interface has sent, to compare it with what was written to the socket.

mod arrivals;
mod departures;
mod fanout;
mod kind;
mod queue;
pub(crate) mod ring;
mod sent;
mod sink;
pub(crate) mod socket;
mod source;
mod take;

pub(crate) use kind::{KIND, survey};
pub use source::{PacketOptions, PacketSource};
