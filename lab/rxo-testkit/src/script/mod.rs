//! A test case for the engine: its configuration, its frames, and the events between them.
//!
//! The property tests and the fuzz targets run the same scripts. [`Script::from_bytes`] makes one
//! from any bytes, so a fuzzer's finding is a test case.

mod acks;
mod change;
mod flow;
mod generate;
mod setup;
mod show;
mod strategy;

use rxo_frame::{Duration, Frame, Load};

use crate::naive::{Reading, read, read_inside};

pub use setup::{Form, Setup};
pub use strategy::{ack_scripts, property, scripts, scripts_for};

/// Frames and the events between them.
#[derive(Clone)]
pub struct Script {
    /// The configuration of the engine.
    pub setup: Setup,
    /// The events, in order.
    pub steps: Vec<Step>,
    pub(crate) all_frames: Vec<Frame<Vec<u8>>>,
    /// The bytes that it was made from, if any.
    pub(crate) source: Vec<u8>,
}

/// One event.
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
    /// Advances time; the caller keeps the engine's deadlines meanwhile.
    Advance(Duration),
    /// Pushes the batch and flushes everything held.
    Flush,
    /// Changes what the receiver's load is from now on. At the start it is unknown.
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

    /// The frames, in the order of their numbers.
    #[must_use]
    pub fn frames(&self) -> Vec<&Frame<Vec<u8>>> {
        self.all_frames.iter().collect()
    }

    /// Frame `index`.
    ///
    /// # Panics
    /// If there is no such frame.
    #[must_use]
    pub fn frame(&self, index: usize) -> &Frame<Vec<u8>> {
        &self.all_frames[index]
    }

    /// Reads the frame `index`; with tunnels looked into, if the rules are about the segments inside.
    ///
    /// # Panics
    /// If there is no such frame.
    #[must_use]
    pub fn reading(&self, index: usize) -> Reading {
        let (frame, link) = (&self.all_frames[index], self.setup.link);
        if self.setup.rules().looks_inside() { read_inside(frame, link) } else { read(frame, link) }
    }

    /// Number of frames.
    #[must_use]
    pub fn frame_count(&self) -> usize {
        self.all_frames.len()
    }
}
