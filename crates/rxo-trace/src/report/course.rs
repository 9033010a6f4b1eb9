//! The traffic over time.

use serde::Serialize;

/// Packets and deliveries in equal steps from the first packet on.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Course {
    /// How long a step is, in nanoseconds.
    pub step_ns: u64,
    /// At most 128 steps; the last is not over when the capture is.
    pub steps: Vec<CourseStep>,
}

/// What came and what was delivered in one step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CourseStep {
    /// Packets that came.
    pub packets: u64,
    /// Bytes on the wire, link-layer headers included.
    pub bytes: u64,
    /// Deliveries under the chosen policy, when the host would have been given them.
    pub deliveries: u64,
}
