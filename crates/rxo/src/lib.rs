//! Receive offload in user space: everything an embedder needs, under one name.
//!
//! ```text
//!  packet:eth1 ──▶ source ──▶ Engine ──▶ sink ──▶ tap:rxo0, vhost:vm.sock, the host's own TCP, your closure
//!              ◀── sink ◀──── as it is, or with ACKs split ◀──── source ◀──
//! ```
//!
//! Each crate below is re-exported as a whole, in the order in which a frame passes them:
//!
//! * [`frame`]: packet memory, the metadata of a frame, and time. No sockets.
//! * [`wire`]: reads and writes headers; checksums, sequence numbers. No allocation.
//! * [`coalesce`]: the [`Engine`]: frames in, fewer deliveries out. No input or output, no clock.
//! * [`vnet`]: the header that describes how a packet is segmented, and the pieces of a packet for `writev`. No
//!   input or output.
//! * [`ack`]: expands one ACK of the host into the ACKs that its peer should receive. No input or output, no
//!   clock.
//! * [`device`]: the traits of a frame source and a frame sink, and links in memory. No system calls.
//! * [`tcp`]: one connection as a state machine that counts segments, not packets. No input or output.
//! * `host` (feature `host`): connections over a device, and sockets like those of the standard library; the
//!   feature `tokio` adds asynchronous ones.
//! * `driver` (feature `driver`): packet sockets, TAP and TUN.
//! * `capture` (feature `capture`): capture files, read and written.
//!
//! This crate adds seven modules. [`io`] has a writer that coalesces single packets into few writes, and a
//! reader that splits GSO frames into single packets, as a tunnel needs them. [`desk`] passes questions of
//! other threads to a running worker or host. [`worker`] is the loop between two devices: it coalesces the
//! frames for the host and passes on the frames from the host. [`switch`] chooses the guest for each frame if
//! there are several. `live` (feature `driver`) runs that loop between devices of the system, opened by name;
//! `live::host` runs a host with its own TCP on one of them. `tracer` (feature `capture`) writes the packets of
//! a device to a capture file. `figures` (feature `figures`) turns counters into rates, ratios and losses, to
//! be printed or serialized.
//!
//! A program that already has packets needs only the engine: `examples/vpn.rs` shows all of it. A program
//! that has two devices needs only the worker. This crate contains no rule of coalescing: the rules are data,
//! in a [`Policy`].
//!
//! # Features
//! All features except `tokio` and `bytes` (frames in `bytes::Bytes`) are on by default.
//! `default-features = false` leaves the engine, the endpoint's state machine and the worker, without
//! decompression and without the operating system.
//!
//! # Examples
//! ```
//! use rxo::{Config, Engine, Frame, FrameSink, Instant, MemoryLink, MemoryOptions, Policy};
//!
//! let link = MemoryLink::new(MemoryOptions::default());
//! let mut engine = Engine::<Vec<u8>>::new(Config::new(Policy::linux_gro(), rxo::random_seed()))?;
//! let mut batch = vec![Frame::new(vec![0; 60], Instant::ZERO)];
//! let (mut sink, mut sent) = (link.sink(), Ok(()));
//! engine.poll(&mut batch, Instant::ZERO, |deliveries| sent = sink.transmit(deliveries.iter()));
//! sent?;
//! assert_eq!(link.take_all().len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::hash::{BuildHasher, Hasher, RandomState};

pub mod desk;
#[cfg(feature = "figures")]
pub mod figures;
pub mod io;
#[cfg(feature = "driver")]
pub mod live;
pub mod switch;
#[cfg(feature = "capture")]
pub mod tracer;
pub mod worker;

pub use rxo_ack as ack;
#[cfg(feature = "capture")]
pub use rxo_capture as capture;
pub use rxo_coalesce as coalesce;
pub use rxo_device as device;
#[cfg(feature = "driver")]
pub use rxo_driver as driver;
pub use rxo_frame as frame;
#[cfg(feature = "host")]
pub use rxo_host as host;
pub use rxo_tcp as tcp;
pub use rxo_vnet as vnet;
pub use rxo_wire as wire;

pub use rxo_coalesce::{Aggregate, Config, Counters, Deliveries, Delivery, Engine, Policy};
pub use rxo_device::{DeviceError, FrameSink, FrameSource, MemoryLink, MemoryOptions};
pub use rxo_frame::{ChecksumStatus, Frame, Gather, Instant, LinkKind, Load};
pub use worker::{Duplex, Misfit, Reading, Worker, WorkerConfig};

/// Returns a seed that nobody outside this process can predict, for [`Config::new`]. It comes from the same source as
/// the keys of the standard library's hash maps. Each call returns a different seed. Does not allocate.
#[must_use]
pub fn random_seed() -> u64 {
    RandomState::new().build_hasher().finish()
}
