//! Virtqueues, both sides, over shared memory (VIRTIO 1.2, sections 2.7 and 2.8).
//!
//! ```text
//!  driver: post ── publish ──▶ ┌ ring in shared memory ┐ ── take, reserve ──▶ device
//!          take_used ◀──────── └                       ┘ ◀── publish ────────
//! ```
//!
//! A virtqueue passes buffers, in chains of descriptors, between a driver (a guest, or a program that acts as
//! one) and a device (a vhost-user backend). This crate implements both sides, the split and the packed ring,
//! indirect descriptors, the event index and mergeable receive buffers. `rxo-driver` maps the memory, connects
//! the sides and sends notifications.
//!
//! * [`memory`]: regions of shared memory, and every access to them. Only this module contains unsafe code.
//! * [`DeviceQueue`]: copies frames that the driver sends, fills buffers that the driver posts.
//! * [`DriverQueue`]: posts buffers and takes them back.
//! * [`QueueConfig`]: the addresses of a queue, and its negotiated features.
//! * [`notify`]: the rule by which a side may omit a notification.
//!
//! # Contract
//! No input or output and no clocks. Queues allocate when they are created; their vectors may grow for the first
//! chains. The other side may be hostile. For any content of the memory, no call panics, accesses memory outside
//! the regions, or does more work than a bound that depends only on the queue size. A word of the ring is read
//! once, and only the copy is validated and used. A frame is copied before the caller sees it. A chain that
//! breaks a rule is reported as an [`InvalidChain`] and counted.
//!
//! Notifications may be spurious, but are never lost if each side calls `publish` and then `needs_notify`. Before
//! a side waits, it must call `enable_notifications`, and process the queue again if the result is `true`.
//!
//! # Examples
//! ```
//! use rxo_virtqueue::{Base, DeviceQueue, DriverQueue, Layout, Memory, QueueConfig, Segment, Taken};
//!
//! let (ring, buffer) = (0x1_0000, 0x2_0000);
//! let memory = Memory::zeroed(ring, 0x2_0000)?;
//! let config = QueueConfig::contiguous(Layout::Packed, 256, ring);
//! let mut driver = DriverQueue::new(&memory, &config, None)?;
//! let mut device = DeviceQueue::new(&memory, &config, Base::Start)?;
//!
//! // The driver sends a frame, with the token 9.
//! assert!(memory.write(buffer, b"frame"));
//! driver.post(&[Segment { address: buffer, bytes: 5, is_writable: false }], 9)?;
//! driver.publish();
//!
//! // The device takes it, and the driver gets its buffer back.
//! let mut frame = [0; 2_048];
//! assert_eq!(device.take(&memory, &mut frame), Taken::Frame(5));
//! device.publish();
//! assert_eq!(&frame[..5], b"frame");
//! assert_eq!(driver.take_used().unwrap().map(|used| used.token), Some(9));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

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
pub use device::{
    Base, DeviceQueue, Fit, InflightError, Overrun, Refused, Taken, Writer, inflight_bytes,
};
pub use driver::{DriverQueue, InvalidUsed, NoRoom, Segment, Used};
pub use invalid::{InvalidChain, InvalidCounts};
pub use memory::{DirtyLog, DirtyLogError, Mapping, Memory, Region, RegionError};
