//! Middleware: wrappers of sources and sinks that log packets, change their form or impair them.
//!
//! Middleware is separate from devices because it wraps any of them, live or in memory:
//!
//! * [`TracedSource`] and [`TracedSink`] show each packet to a [`PacketLog`]; `Tracer` in
//!   the crate `rxo` is one that writes a capture.
//! * [`ImpairedSource`] is a worse network in front of a source: an [`Impairment`] loses, delays,
//!   reorders and duplicates frames. There is none for a sink, because a delayed frame must leave
//!   when its time comes, and a worker polls only sources for that.
//! * [`WireSource`] gives frames as a wire carries them: segmented, with complete checksums.
//!
//! Contract: the clock is an argument (a function that returns an [`Instant`]), and so is the seed.
//! The same frames, times and seed give the same outcome.
//!
//! [`Instant`]: rxo_frame::Instant

mod cut;
mod impairment;
mod log;
mod traced;
mod wire;

pub use impairment::{
    BadImpairment, Displacement, ImpairedSource, Impairment, ImpairmentCounters, ImpairmentError,
    ImpairmentSettings,
};
pub use log::{Direction, NoLog, PacketLog};
pub use traced::{TracedSink, TracedSource};
pub use wire::{Expand, WireCounters, WireSource};
