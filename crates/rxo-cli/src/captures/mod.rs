//! Inputs, reading and progress of the commands over captures.

mod input;
mod progress;
mod reading;

pub(crate) use input::Input;
pub(crate) use progress::Progress;
pub(crate) use reading::{Reading, Step};
pub(crate) use rxo_console::output_file::{OutputFile, Report};
