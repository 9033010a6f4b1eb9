//! A small memory, and scripts of operations on it.

pub(crate) mod device;
pub(crate) mod driver;
mod naive;
mod scene;

use scene::{Scene, Script};
