//! What a frame source and a frame sink are, links in memory, middleware, and capture files.
//!
//! The engine and the worker loops speak to these traits; `rxo-driver` implements them for the
//! operating system. [`middleware`] goes around any of them. Only [`capture`] does input and
//! output of its own: it reads and writes files.

mod capabilities;
pub mod capture;
mod error;
mod memory;
pub mod middleware;
mod pause;
mod sink;
mod source;

pub use capabilities::{SinkCapabilities, SourceCapabilities};
pub use error::DeviceError;
pub use memory::{MemoryLink, MemoryOptions, MemorySink, MemorySource, Sent};
pub use pause::Pause;
pub use sink::{FrameSink, SinkCounters};
pub use source::{FrameSource, SourceCounters};
