//! The traffic over time.

use serde::{Deserialize, Serialize};

/// Packets and deliveries in steps of equal length. Steps begin at multiples of that length; the first contains the
/// first packet.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Course {
    /// Length of a step, in nanoseconds.
    pub step_ns: u64,
    /// At most 128 steps. The last may be longer than the rest of the capture.
    pub steps: Vec<CourseStep>,
}

/// Packets and deliveries in one step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CourseStep {
    /// Packets received.
    pub packets: u64,
    /// Bytes on the wire, link-layer headers included.
    pub bytes: u64,
    /// Deliveries to the host under the chosen policy.
    pub deliveries: u64,
}

impl CourseStep {
    /// Adds the counts of another step.
    pub(crate) const fn add(&mut self, other: &Self) {
        self.packets = self.packets.saturating_add(other.packets);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.deliveries = self.deliveries.saturating_add(other.deliveries);
    }
}
