//! The traits for sources and sinks of frames, devices in memory, and middleware.
//!
//! ```text
//!  network ──▶ FrameSource::receive ──▶ frames ──▶ engine, worker ──▶ FrameSink::transmit ──▶ host
//!              └ middleware: trace, loss, delay, the wire ┘                └ middleware: trace ┘
//! ```
//!
//! The engine and the worker loops use these traits; `rxo-driver` implements them for the operating system.
//! [`middleware`] wraps any source or sink. This crate does no input or output and depends on no capture
//! format.
//!
//! # Examples
//! ```
//! use rxo_device::{FrameSink, FrameSource, MemoryLink, MemoryOptions};
//! use rxo_frame::{Frame, Instant};
//!
//! let link = MemoryLink::new(MemoryOptions::default());
//! let (mut source, mut sink) = (link.source(), link.sink());
//! link.push(&Frame::new([7; 60], Instant::ZERO));
//!
//! let mut batch = Vec::new();
//! assert_eq!(source.receive(&mut batch, 64)?, 1);
//! let frames = batch.iter().map(|frame| Frame::new(frame.bytes(), frame.arrived_at));
//! sink.transmit(frames)?;
//! assert_eq!(link.take().map(|sent| sent.bytes), Some(vec![7; 60]));
//! # Ok::<(), rxo_device::DeviceError>(())
//! ```

mod capabilities;
#[cfg(unix)]
mod descriptors;
mod error;
mod look;
mod memory;
pub mod middleware;
mod pause;
mod sink;
mod source;

pub use capabilities::{SinkCapabilities, SourceCapabilities};
#[cfg(unix)]
pub use descriptors::Descriptors;
pub use error::DeviceError;
pub use look::{Look, Looked, Verdict};
pub use memory::{MemoryLink, MemoryOptions, MemorySink, MemorySource, Sent};
pub use pause::Pause;
pub use sink::{FrameSink, SinkCounters};
pub use source::{FrameSource, SourceCounters};
