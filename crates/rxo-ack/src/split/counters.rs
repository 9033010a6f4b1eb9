//! Counters of the splitter: how the host's frames were treated.

use super::PassReason;

rxo_frame::counters! {
    /// Totals of ACK splitting since the splitter was created. Every frame that the host sends is counted once: as
    /// split, or as passed unsplit for a [`PassReason`].
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct SplitCounters {
        /// The number of segments with payload that were delivered to the host.
        pub segments: u64,
        /// The number of frames that the host sent.
        pub frames: u64,
        /// The number of pure ACKs among `frames`: frames with the ACK flag, no payload, no SYN, FIN or RST.
        pub acks: u64,
        /// The number of stretch ACKs among `acks`: ACKs that advance by more than the configured number of full-sized
        /// segments.
        pub stretch_acks: u64,
        /// The number of stretch ACKs that were split, each by one template.
        pub templates: u64,
        /// The number of ACKs that were inserted before stretch ACKs. The host's own ACKs are not counted.
        pub inserted: u64,
        /// The number of flows that were evicted because the table was full.
        pub evicted: u64,
        passed: [u64; PassReason::COUNT],
    }
}

impl SplitCounters {
    /// Returns the number of frames of the host that were sent with nothing inserted, for `reason`.
    #[must_use]
    pub const fn passed(&self, reason: PassReason) -> u64 {
        self.passed[reason as usize]
    }

    /// Returns the number of frames of the host that were sent with nothing inserted, for any reason.
    #[must_use]
    pub fn passed_total(&self) -> u64 {
        self.passed.iter().sum()
    }

    /// Returns the number of ACKs sent for split stretch ACKs, including the host's own.
    #[must_use]
    pub const fn expanded(&self) -> u64 {
        self.templates + self.inserted
    }

    /// Returns the number of pure ACKs sent: the host's and the inserted ones.
    #[must_use]
    pub const fn acks_out(&self) -> u64 {
        self.acks + self.inserted
    }

    #[inline]
    pub(super) const fn pass(&mut self, reason: PassReason) {
        self.passed[reason as usize] += 1;
    }
}
