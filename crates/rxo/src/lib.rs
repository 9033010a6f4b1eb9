//! Receive offload in user space: everything an embedder needs, under one name.
//!
//! The crates below, in the order in which a frame meets them; each is re-exported whole:
//!
//! * [`frame`]: packet memory, what is known of a frame, and time. No sockets.
//! * [`wire`]: bytes to headers and back, checksums, sequence numbers. No allocation.
//! * [`coalesce`]: the [`Engine`]: frames in, fewer deliveries out. No input or output, no clock.
//! * [`ack`]: one ACK of the host becomes those that its peer should see. No input or output, no clock.
//! * [`device`]: what a source and a sink of frames are, and links in memory. No system.
//! * [`capture`]: capture files, read and written.
//! * [`tcp`]: one connection as a state machine that counts segments, not packets. No input or output.
//! * [`host`]: connections over a device, and sockets like those of the standard library.
//! * `driver` (feature `driver`, on unless switched off): packet sockets, TAP and TUN.
//!
//! What this crate adds is [`worker`]: the loop between two devices, which coalesces what goes to
//! the host and passes on what comes back; and `live` (feature `driver`): that loop between
//! devices of the system, chosen by name; `live::host` is a host with its own TCP on one of them.
//!
//! Who has packets in hand needs only the engine; `examples/vpn.rs` is all of it. Who has two
//! devices needs only the worker. What this crate does not own is any rule of coalescing: those
//! are data, in a [`Policy`].
//!
//! # Examples
//! ```
//! use rxo::{Config, Engine, Frame, FrameSink, Instant, MemoryLink, MemoryOptions, Policy};
//!
//! let link = MemoryLink::new(MemoryOptions::default());
//! let mut engine = Engine::<Vec<u8>>::new(Config::new(Policy::linux_gro()))?;
//! let mut batch = vec![Frame::new(vec![0; 60], Instant::ZERO)];
//! let (mut sink, mut sent) = (link.sink(), Ok(()));
//! engine.poll(&mut batch, Instant::ZERO, |deliveries| sent = sink.transmit(deliveries.iter()));
//! sent?;
//! assert_eq!(link.take_all().len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(feature = "driver")]
pub mod live;
pub mod tracer;
pub mod worker;

pub use rxo_ack as ack;
pub use rxo_capture as capture;
pub use rxo_coalesce as coalesce;
pub use rxo_device as device;
#[cfg(feature = "driver")]
pub use rxo_driver as driver;
pub use rxo_frame as frame;
pub use rxo_host as host;
pub use rxo_tcp as tcp;
pub use rxo_wire as wire;

pub use rxo_coalesce::{Aggregate, Config, Counters, Deliveries, Delivery, Engine, Policy};
pub use rxo_device::{DeviceError, FrameSink, FrameSource, MemoryLink, MemoryOptions};
pub use rxo_frame::{ChecksumStatus, Frame, Gather, Instant, LinkKind};
pub use worker::{Duplex, Misfit, Reading, Worker, WorkerConfig};
