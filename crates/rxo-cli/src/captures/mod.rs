//! What the commands over captures share: what they read, what they write, how far they are.

mod input;
mod output;
mod progress;
mod reading;

pub(crate) use input::Input;
pub(crate) use output::{OutputFile, Report};
pub(crate) use progress::Progress;
pub(crate) use reading::{Reading, Step};
