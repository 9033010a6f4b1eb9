//! What a frame source and a frame sink are, links in memory, and middleware.
//!
//! The engine and the worker loops use these traits; `rxo-driver` implements them for the
//! operating system. [`middleware`] wraps any source or sink. This crate does no input or output,
//! and implementing its traits brings no decompressor.

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
