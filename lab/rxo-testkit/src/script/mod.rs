//! A test case for the engine: its configuration, its frames, and the events between them.
//!
//! The property tests and the fuzz targets run the same scripts. [`Script::from_bytes`] makes one
//! from any bytes, so a fuzzer's finding is a test case.

mod acks;
mod change;
mod flow;
mod generate;
mod maker;
mod setup;
mod show;
mod strategy;

use rxo_frame::{Duration, Frame, Load};

use crate::naive::{Reading, read, read_inside};

pub use setup::{Form, Setup};
pub use strategy::{ack_scripts, property, scripts, scripts_for};

/// A configuration, frames, and the events between them.
#[derive(Clone)]
pub struct Script {
    /// The configuration of the engine.
    pub setup: Setup,
    /// The events, in order.
    pub steps: Vec<Step>,
    pub(crate) all_frames: Vec<Frame<Vec<u8>>>,
    /// Bytes from which the script was made; empty if it was not made from bytes.
    pub(crate) source: Vec<u8>,
}

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Adds the frame with this number to the batch.
    Frame(usize),
    /// Pushes the batch; the poll continues.
    Push,
    /// Ends the poll.
    EndOfPoll,
    /// Pushes the batch and ends the poll.
    Poll,
    /// Advances time; meanwhile the caller runs the engine's timeouts at their deadlines.
    Advance(Duration),
    /// Pushes the batch and flushes everything held.
    Flush,
    /// Sets the receiver's load from now on; `None` means unknown, as at the start.
    Load(Option<Load>),
}

impl Script {
    /// Makes a script of `frames`, all in one poll.
    #[must_use]
    pub fn one_poll(setup: Setup, frames: Vec<Frame<Vec<u8>>>) -> Self {
        let mut steps: Vec<Step> = (0..frames.len()).map(Step::Frame).collect();
        steps.push(Step::Poll);
        Self { setup, steps, all_frames: frames, source: Vec::new() }
    }

    /// Returns the frames, in the order of their numbers.
    #[must_use]
    pub fn frames(&self) -> Vec<&Frame<Vec<u8>>> {
        self.all_frames.iter().collect()
    }

    /// Returns frame `index`.
    ///
    /// # Panics
    /// If there is no such frame.
    #[must_use]
    pub fn frame(&self, index: usize) -> &Frame<Vec<u8>> {
        &self.all_frames[index]
    }

    /// Parses the frame `index`, including the packet inside a tunnel if the rules cover it.
    ///
    /// # Panics
    /// If there is no such frame.
    #[must_use]
    pub fn reading(&self, index: usize) -> Reading {
        let (frame, link) = (&self.all_frames[index], self.setup.link);
        if self.setup.rules().looks_inside() { read_inside(frame, link) } else { read(frame, link) }
    }

    /// Returns the number of frames.
    #[must_use]
    pub fn frame_count(&self) -> usize {
        self.all_frames.len()
    }
}
