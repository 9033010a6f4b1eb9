//! What the commands over captures share: inputs, outputs and progress.

mod input;
mod output;
mod progress;
mod reading;

pub(crate) use input::Input;
pub(crate) use output::{OutputFile, Report};
pub(crate) use progress::Progress;
pub(crate) use reading::{Reading, Step};
