//! Packet memory, frame metadata, and time.
//!
//! ```text
//!  device ──▶ Frame { bytes in a buffer of a Pool, checksum status, VLAN tag, arrival }
//!             ──▶ Gather { header, pieces of payload, offload } ──▶ sink; dropped buffers return to their Pool
//! ```
//!
//! With this crate, other crates can use frames without depending on a device or on the owner of the bytes.
//! From the bottom up:
//!
//! * [`Instant`] is a point on a monotonic clock. The caller reads the clock; this crate never does.
//! * [`Pool`] owns a fixed number of buffers. A dropped [`PoolBuf`] returns to it, from any thread.
//! * [`Frame`] is link-layer bytes with the device's metadata. Its buffer is a [`FrameBuffer`]: a `&[u8]`, a
//!   `Vec<u8>`, a [`PoolBuf`], a slot of a memory-mapped ring.
//! * [`Gather`] is the interface that passes packets in several pieces to a sink without a copy.
//! * [`Load`] is the number of packets that a receiver has not processed yet, as its sink reports it.
//! * [`Chain`] is payload in several pieces, read in order.
//! * [`SharedBytes`] are bytes with several owners, which an application sends without a copy.
//! * [`counters!`] declares a struct of counters with their names, sums and differences.
//! * [`reasons!`] declares an enum of reasons with the names of their counters.
//!
//! # Examples
//! ```
//! use rxo_frame::{Frame, Instant, Pool};
//!
//! let pool = Pool::new(2, 2_048);
//! let mut buffer = pool.take().ok_or("no buffer is free")?;
//! buffer[..5].copy_from_slice(b"frame");
//! buffer.truncate(5);
//!
//! let frame = Frame::new(buffer, Instant::from_micros(3));
//! assert_eq!((frame.bytes(), pool.available()), (&b"frame"[..], 1));
//! drop(frame);
//! assert_eq!(pool.available(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![no_std]

extern crate alloc;

#[cfg(test)]
extern crate std;

mod buffer;
mod chain;
mod checksum;
mod config;
mod counters;
mod frame;
mod frames;
mod gather;
mod instant;
mod link;
mod load;
mod pool;
mod reasons;
mod shared;

pub use buffer::FrameBuffer;
pub use chain::{Chain, ChainFull};
pub use checksum::ChecksumStatus;
pub use config::ConfigError;
pub use counters::Count;
pub use frame::{Frame, VlanTag};
pub use frames::Frames;
pub use gather::{Gather, Gso, GsoKind, GsoTunnel, Offload, UdpTunnel};
pub use instant::{Duration, Instant};
pub use link::LinkKind;
pub use load::Load;
pub use pool::{Pool, PoolBuf};
pub use shared::SharedBytes;
