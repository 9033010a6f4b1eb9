//! Recovery without SACK (RFC 5681, section 3.2; RFC 6582): each duplicate ACK counts as one segment that has
//! left the network.
//!
//! The RFC adds a segment to the window for each duplicate. This code subtracts the segment from the bytes in
//! flight instead, so that the window keeps its meaning. This also implements limited transmit (RFC 3042).

/// Counts duplicate ACKs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Duplicates {
    count: u32,
    /// The number of bytes that have left the network, as the duplicate ACKs show.
    credit: u32,
    /// The number of partial ACKs since recovery began.
    partials: u32,
}

impl Duplicates {
    /// Counts a duplicate ACK. Returns `true` for the third and every later duplicate (RFC 5681, section 3.2, step 2).
    pub(crate) fn count(&mut self, mss: u32) -> bool {
        self.count = self.count.saturating_add(1);
        self.credit = self.credit.saturating_add(mss);
        self.count >= THRESHOLD
    }

    /// Returns `true` if a duplicate ACK has arrived since the last reset of the count.
    pub(crate) fn any(&self) -> bool {
        self.count > 0
    }

    /// Returns the number of bytes that are no longer in flight, as the duplicate ACKs show.
    pub(crate) fn credit(&self) -> u32 {
        self.credit
    }

    /// Processes a partial ACK of `bytes` bytes: reduces [`Duplicates::credit`] by the acknowledged bytes, and
    /// adds back a segment (RFC 6582, section 3.2, step 3).
    pub(crate) fn partial(&mut self, bytes: u32, mss: u32) {
        self.partials = self.partials.saturating_add(1);
        self.credit = self.credit.saturating_sub(bytes);
        if bytes >= mss {
            self.credit = self.credit.saturating_add(mss);
        }
    }

    /// Returns `true` if the retransmission timer must not be restarted. Only the first partial ACK
    /// restarts the timer: with many losses, a timeout is faster than repairing one loss per round trip (RFC
    /// 6582, section 3.2, step 3).
    pub(crate) fn keeps_timer(&self) -> bool {
        self.partials > 1
    }

    pub(crate) fn reset(&mut self) {
        *self = Self::default();
    }
}

/// The number of duplicate ACKs that counts as a loss rather than reordering (RFC 5681).
const THRESHOLD: u32 = 3;
