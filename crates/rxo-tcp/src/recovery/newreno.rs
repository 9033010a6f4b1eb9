//! Recovery without SACK (RFC 5681, section 3.2; RFC 6582): duplicates are counted, and each says
//! that one segment has left the network.
//!
//! The RFC inflates the window by each; here the same number is taken from what counts as in
//! flight, so that the window stays what it means. Limited transmit (RFC 3042) follows of itself.

/// Duplicate acknowledgements.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Duplicates {
    count: u32,
    /// What has left the network by their account, in bytes.
    credit: u32,
    /// Partial acknowledgements since recovery began.
    partials: u32,
}

impl Duplicates {
    /// Another one. Says whether it is the third (RFC 5681, section 3.2, step 2).
    pub(crate) fn count(&mut self, mss: u32) -> bool {
        self.count = self.count.saturating_add(1);
        self.credit = self.credit.saturating_add(mss);
        self.count >= THRESHOLD
    }

    /// Whether there was one since the last progress.
    pub(crate) fn any(&self) -> bool {
        self.count > 0
    }

    /// Bytes that are not in flight any more.
    pub(crate) fn credit(&self) -> u32 {
        self.credit
    }

    /// A partial acknowledgement of `bytes` (RFC 6582, section 3.2, step 3): deflates by what was
    /// acknowledged, and adds back a segment.
    pub(crate) fn partial(&mut self, bytes: u32, mss: u32) {
        self.partials = self.partials.saturating_add(1);
        self.credit = self.credit.saturating_sub(bytes);
        if bytes >= mss {
            self.credit = self.credit.saturating_add(mss);
        }
    }

    /// Whether the retransmission timer goes on as it was: only the first partial acknowledgement
    /// restarts it, because where much is lost a timeout is faster than a loss each round trip
    /// (RFC 6582, section 3.2, step 3).
    pub(crate) fn keeps_timer(&self) -> bool {
        self.partials > 1
    }

    pub(crate) fn reset(&mut self) {
        *self = Self::default();
    }
}

/// RFC 5681: three duplicates are not reordering any more.
const THRESHOLD: u32 = 3;
