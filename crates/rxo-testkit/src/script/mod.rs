//! A test case for the engine: how it is set up, which frames come, and what happens in between.
//!
//! The property tests and the fuzz targets run the same scripts; [`Script::from_bytes`] makes one
//! of any bytes, so a fuzzer's finding is a test case as it stands.

mod acks;
mod change;
mod flow;
mod generate;
mod setup;
mod show;
mod strategy;

use rxo_frame::{Duration, Frame};

pub use setup::{Form, Setup};
pub use strategy::{ack_scripts, property, scripts, scripts_for};

/// Frames and the events between them.
#[derive(Clone)]
pub struct Script {
    /// How the engine is set up.
    pub setup: Setup,
    /// What happens, in order.
    pub steps: Vec<Step>,
    pub(crate) all_frames: Vec<Frame<Vec<u8>>>,
    /// What it was made from, if from bytes.
    pub(crate) source: Vec<u8>,
}

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The frame of this number joins the batch.
    Frame(usize),
    /// The batch is pushed; the poll goes on.
    Push,
    /// The poll ends.
    EndOfPoll,
    /// The batch is pushed and the poll ends.
    Poll,
    /// Time passes; the caller keeps the engine's deadlines.
    Advance(Duration),
    /// The batch is pushed and everything held is asked for.
    Flush,
}

impl Script {
    /// A script of `frames`, all in one poll.
    #[must_use]
    pub fn one_poll(setup: Setup, frames: Vec<Frame<Vec<u8>>>) -> Self {
        let mut steps: Vec<Step> = (0..frames.len()).map(Step::Frame).collect();
        steps.push(Step::Poll);
        Self { setup, steps, all_frames: frames, source: Vec::new() }
    }

    /// The frames, by number.
    #[must_use]
    pub fn frames(&self) -> Vec<&Frame<Vec<u8>>> {
        self.all_frames.iter().collect()
    }

    /// Frame `index`.
    ///
    /// # Panics
    /// When there are not that many.
    #[must_use]
    pub fn frame(&self, index: usize) -> &Frame<Vec<u8>> {
        &self.all_frames[index]
    }

    /// How many frames there are.
    #[must_use]
    pub fn frame_count(&self) -> usize {
        self.all_frames.len()
    }
}
