//! Packet memory, what is known about a frame, and time.
//!
//! This crate is separate so that everything above it can speak of frames without knowing where
//! they came from or who owns their bytes. From the bottom up:
//!
//! * [`Instant`] is a point on a monotonic clock that the caller reads; nothing here reads one.
//! * [`Pool`] owns a fixed number of buffers; a [`PoolBuf`] goes back on drop, from any thread.
//! * [`Frame`] is link-layer bytes and what the device said of them. Its buffer is any
//!   `AsRef<[u8]>`: a `&[u8]`, a `Vec<u8>`, a [`PoolBuf`], a slot of a memory-mapped ring.
//! * [`Gather`] is how something made of several pieces presents itself to a sink without a copy.
//! * [`Chain`] is payload that arrived in pieces, read in order.
//! * [`reasons!`] declares why something was done, with the names of its counters.
#![no_std]

extern crate alloc;

#[cfg(test)]
extern crate std;

mod chain;
mod checksum;
mod frame;
mod gather;
mod instant;
mod link;
mod pool;
mod reasons;

pub use chain::{Chain, ChainFull};
pub use checksum::ChecksumStatus;
pub use frame::{Frame, VlanTag};
pub use gather::{Gather, Gso, GsoKind, Offload};
pub use instant::{Duration, Instant};
pub use link::LinkKind;
pub use pool::{Pool, PoolBuf};
