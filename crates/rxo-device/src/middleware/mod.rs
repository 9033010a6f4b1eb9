//! Middleware: wrappers of sources and sinks that log packets, change their form or impair them.
//!
//! Separate from devices because middleware wraps any of them, live or in memory:
//!
//! * [`TracedSource`] and [`TracedSink`] pass each packet to a [`PacketLog`]; `Tracer` in the crate `rxo`
//!   implements one that writes a capture file.
//! * [`ImpairedSource`] is an impaired network in front of a source: an [`Impairment`] loses, delays, reorders
//!   and duplicates frames. There is no impaired sink, because a delayed frame must be sent at its time, and a
//!   worker only polls sources for due frames.
//! * [`WireSource`] provides frames as a network carries them: segmented, with complete checksums.
//!
//! Contract: the clock is an argument (a function that returns an [`Instant`]), and so is the seed. Equal
//! frames, times and seeds give equal results.
//!
//! [`Instant`]: rxo_frame::Instant

mod cut;
mod impairment;
mod log;
mod traced;
mod wire;

pub use impairment::{
    BadImpairment, Displacement, ImpairedSource, Impairment, ImpairmentCounters, ImpairmentError,
    ImpairmentSettings, parse_rate,
};
pub use log::{Direction, NoLog, PacketLog};
pub use traced::{TracedSink, TracedSource};
pub use wire::{Expand, WireCounters, WireSource};
