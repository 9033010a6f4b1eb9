//! Upkeep: the connections that give memory back, and the time when they do.

use super::kept::Kept;
use super::reclaim::Reclaim;
use super::rests::Rests;

/// The memory of connections, as the worker looks after it.
#[derive(Debug)]
pub(super) struct Upkeep {
    /// The connections that keep frames of the device.
    pub(super) kept: Kept,
    /// Texts that were copied because the device needed its frames.
    pub(super) copied_out: u64,
    pub(super) reclaim: Reclaim,
    pub(super) rests: Rests,
}

impl Upkeep {
    pub(super) fn new(kept: Kept) -> Self {
        let (reclaim, rests) = (Reclaim::default(), Rests::default());
        Self { kept, copied_out: 0, reclaim, rests }
    }
}
