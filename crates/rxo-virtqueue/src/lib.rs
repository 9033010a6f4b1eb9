//! Virtqueues of both sides over shared memory (VIRTIO 1.2, sections 2.7 and 2.8).
//!
//! A virtqueue moves buffers between a driver (a guest, or a program that acts as one) and a device (a
//! vhost-user backend). This crate has both sides, the split and the packed ring, indirect
//! descriptors, the event index and mergeable receive buffers. It does not know how memory is mapped,
//! how the sides find each other, or how a notification travels; `rxo-driver` does that.
//!
//! * [`memory`]: regions of shared memory, and every access to them. All unsafe code is there.
//! * [`DeviceQueue`]: takes frames that the driver sends, fills buffers that the driver posts.
//! * [`DriverQueue`]: posts buffers and takes them back.
//! * [`QueueConfig`]: where a queue lies and what was negotiated.
//! * [`notify`]: the rule by which a side may leave out a notification.
//!
//! # Contract
//! No input or output and no clocks. Queues allocate when they are made; their vectors may grow for
//! the first chains. The other side is hostile: whatever it writes, no call panics, reads or writes
//! outside the regions, or does more work than the queue size bounds. A word of the ring is read once
//! and only its copy is checked and used. A frame is copied out before the caller sees it. A chain that
//! breaks a rule is an [`InvalidChain`], and counted.
//!
//! Notifications may be spurious but are never lost, if each side follows this order: `publish`, then
//! `needs_notify`; and before it waits, `enable_notifications`, then work again if that returns
//! `true`.

mod config;
mod device;
mod driver;
mod invalid;
pub mod memory;
pub mod notify;
mod ring;
#[cfg(test)]
mod tests;

pub use config::{Area, ConfigError, IndirectTables, Layout, QueueConfig};
pub use device::{Base, DeviceQueue, Fit, Overrun, Refused, Taken, Writer};
pub use driver::{DriverQueue, InvalidUsed, NoRoom, Segment, Used};
pub use invalid::{InvalidChain, InvalidCounts};
pub use memory::{Mapping, Memory, Region, RegionError};
