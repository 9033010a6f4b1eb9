//! The traffic over time.

use serde::Serialize;

/// Packets and deliveries in steps of equal length, from the first packet.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Course {
    /// Length of a step, in nanoseconds.
    pub step_ns: u64,
    /// At most 128 steps. The last may be longer than the rest of the capture.
    pub steps: Vec<CourseStep>,
}

/// Packets and deliveries in one step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CourseStep {
    /// Packets received.
    pub packets: u64,
    /// Bytes on the wire, link-layer headers included.
    pub bytes: u64,
    /// Deliveries to the host under the chosen policy.
    pub deliveries: u64,
}
