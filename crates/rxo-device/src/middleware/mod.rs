//! Wrappers of sources and sinks: what passes is written down, or made to suffer.
//!
//! They are separate from devices because they go around any of them, live or in memory:
//!
//! * [`TracedSource`] and [`TracedSink`] show what passes to a [`PacketLog`]; `Tracer` in
//!   the crate `rxo` is one that writes a capture.
//! * [`ImpairedSource`] is a worse network in front of a source: an [`Impairment`] loses, delays,
//!   reorders and doubles frames. There is none for a sink: a frame that is held back has to leave
//!   when its time comes, and only a source is asked again without being given anything.
//!
//! Contract: the clock is an argument (anything that can be called for an [`Instant`]), and so is
//! the seed. Same frames, same times, same seed: same outcome.
//!
//! [`Instant`]: rxo_frame::Instant

mod impairment;
mod log;
mod traced;

pub use impairment::{
    Displacement, ImpairedSource, Impairment, ImpairmentCounters, ImpairmentError,
    ImpairmentSettings,
};
pub use log::{Direction, NoLog, PacketLog};
pub use traced::{TracedSink, TracedSource};
