//! Packet memory, frame metadata, and time.
//!
//! Separate so that the crates above can use frames without knowing where they came from or who
//! owns their bytes. From the bottom up:
//!
//! * [`Instant`] is a point on a monotonic clock. The caller reads the clock; this crate never
//!   does.
//! * [`Pool`] owns a fixed number of buffers. A dropped [`PoolBuf`] returns to it, from any thread.
//! * [`Frame`] is link-layer bytes with the device's metadata. Its buffer is a [`FrameBuffer`]: a
//!   `&[u8]`, a `Vec<u8>`, a [`PoolBuf`], a slot of a memory-mapped ring.
//! * [`Gather`] is the interface through which packets in several pieces reach a sink without a
//!   copy.
//! * [`Load`] is what a sink says of its receiver: how much it has not taken yet.
//! * [`Chain`] is payload in several pieces, read in order.
//! * [`SharedBytes`] is text that an application lends instead of copying it.
//! * [`reasons!`] declares an enum of reasons with the names of their counters.
#![no_std]

extern crate alloc;

#[cfg(test)]
extern crate std;

mod buffer;
mod chain;
mod checksum;
mod frame;
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
pub use frame::{Frame, VlanTag};
pub use gather::{Gather, Gso, GsoKind, Offload};
pub use instant::{Duration, Instant};
pub use link::LinkKind;
pub use load::Load;
pub use pool::{Pool, PoolBuf};
pub use shared::SharedBytes;
