//! The captures that commands read: the inputs, the reading, and its progress bar.

mod input;
mod progress;
mod rewriting;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use rxo_capture::{Batches, Step};
use rxo_console::numbers::grouped;

pub(crate) use input::Input;
pub(crate) use progress::Progress;
pub(crate) use rewriting::Rewriting;

/// Opens the capture `input` and reads its first batch. Returns the reader of batches, and the outcome of reading the
/// first.
///
/// # Errors
/// If the input cannot be opened, or is not a capture.
pub(crate) fn open(input: &Input, stop: &Arc<AtomicBool>) -> Result<(Batches, Step)> {
    let mut batches = Batches::new(input.open(stop)?, Arc::clone(stop));
    let step = batches.step();
    Ok((batches, step))
}

/// Returns the reason why a capture was not read to its end, given its last `step`; `None` if it was.
pub(crate) fn partial_reason(step: &Step) -> Option<String> {
    match step {
        Step::More | Step::Over => None,
        Step::Damaged(error) => Some(error.to_string()),
        Step::Stopped(packets) => Some(format!("interrupted after {} packets", grouped(*packets))),
    }
}
