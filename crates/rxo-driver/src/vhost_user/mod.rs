//! vhost-user: the messages by which two processes share the queues of a virtio device.
//!
//! The *front end* (a virtual machine monitor such as QEMU, or [`virtio:PATH`](crate::DeviceName)) owns the
//! memory and acts as the driver; the *back end* (`vhost:PATH`) is the device. The front end sends requests over
//! a unix socket, with descriptors for its memory and its notifications; some requests have a reply.
//!
//! * [`features`]: the features that both sides negotiate.
//! * [`Header`], [`Request`], [`Reply`]: messages as bytes and as values, for both sides.
//! * [`Assembler`]: reconstructs messages from a stream. [`Channel`]: a socket with an assembler.
//! * [`Session`]: the settings that a front end has sent, and the check of each further request.
//!
//! This module is separate from the devices so that a fuzzer and tests can use it without a socket. Contract:
//! only [`Channel`] makes system calls; it accepts only descriptors of eventfds and of files in memory, and lets
//! a separate thread close other descriptors, because closing them may block. No bytes and no order of messages
//! cause a panic. Source: the vhost-user specification of QEMU, `docs/interop/vhost-user.rst`.

mod area;
mod assembler;
mod channel;
pub mod features;
mod fields;
pub(crate) mod foreign;
mod header;
mod region;
mod reply;
mod request;
mod session;
mod wrong;

pub use crate::descriptors::MOST_DESCRIPTORS;
pub use area::{InflightArea, InflightShape, LogArea};
pub use assembler::{Assembler, Message};
pub use channel::Channel;
pub(crate) use channel::connect;
pub use header::{HEADER_BYTES, Header, MOST_PAYLOAD_BYTES};
pub use region::{Region, SharedRegion};
pub use reply::Reply;
pub use request::{Request, RingAddresses, RingDescriptor, RingNumber};
pub(crate) use session::MOST_REGIONS;
pub use session::{Change, Done, Ring, Session};
pub use wrong::Wrong;

/// Maximum number of regions in a table of memory regions.
pub const MOST_TABLE_REGIONS: usize = 8;
