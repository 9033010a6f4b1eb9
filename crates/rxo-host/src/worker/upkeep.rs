//! Upkeep of connection memory: the connections that must return frames or memory, and the times at which they
//! must return them.

use super::kept::Kept;
use super::reclaim::Reclaim;
use super::rests::Rests;

/// The queues of connections that must return frames or memory.
#[derive(Debug)]
pub(super) struct Upkeep {
    /// The connections that keep frames of the device.
    pub(super) kept: Kept,
    /// Number of times that data was copied because the device needed its frames.
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
