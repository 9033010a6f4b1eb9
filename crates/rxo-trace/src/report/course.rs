//! The course of the traffic over time.

use serde::{Deserialize, Serialize};

/// Packets and deliveries in steps of equal length. Steps begin at multiples of that length; the first contains the
/// first packet.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Course {
    /// The length of each step, in nanoseconds.
    pub step_ns: u64,
    /// The counts of each step, at most 128 steps. The last step may extend beyond the end of the capture.
    pub steps: Vec<CourseStep>,
}

/// The counts of packets, bytes and deliveries in one step of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CourseStep {
    /// The number of packets received.
    pub packets: u64,
    /// The number of bytes on the wire, link-layer headers included.
    pub bytes: u64,
    /// The number of deliveries to the host under the chosen policy.
    pub deliveries: u64,
}

impl CourseStep {
    /// Adds the counts of another step of time.
    pub(crate) const fn add(&mut self, other: &Self) {
        self.packets = self.packets.saturating_add(other.packets);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.deliveries = self.deliveries.saturating_add(other.deliveries);
    }
}
