//! What the splitter did.

use super::PassReason;

/// Totals since the splitter was made. Every frame of the host is counted once: split or passed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SplitCounters {
    /// Segments with payload that the host was told to have been given.
    pub segments: u64,
    /// Frames of the host.
    pub frames: u64,
    /// Pure ACKs among them: no payload, the ACK flag, no SYN, FIN or RST.
    pub acks: u64,
    /// Stretch ACKs among those: they advance by more than N full-sized segments.
    pub stretch_acks: u64,
    /// Stretch ACKs that were split: templates made.
    pub templates: u64,
    /// ACKs inserted before those, the host's own not counted.
    pub inserted: u64,
    /// Flows forgotten because the table was full.
    pub evicted: u64,
    passed: [u64; PassReason::COUNT],
}

impl SplitCounters {
    /// Frames of the host that went out with nothing before them, for this reason.
    #[must_use]
    pub const fn passed(&self, reason: PassReason) -> u64 {
        self.passed[reason as usize]
    }

    /// The same for all reasons together.
    #[must_use]
    pub fn passed_total(&self) -> u64 {
        self.passed.iter().sum()
    }

    /// ACKs that left for the stretch ACKs that were split, the host's own included.
    #[must_use]
    pub const fn expanded(&self) -> u64 {
        self.templates + self.inserted
    }

    /// Pure ACKs that left: the host's and the inserted ones.
    #[must_use]
    pub const fn acks_out(&self) -> u64 {
        self.acks + self.inserted
    }

    #[inline]
    pub(super) const fn pass(&mut self, reason: PassReason) {
        self.passed[reason as usize] += 1;
    }
}
