//! A small memory, and scripts of what happens in it.

pub(crate) mod device;
pub(crate) mod driver;
mod naive;
mod scene;

use scene::{Scene, Script};
