//! The congestion window of RFC 5681, counting ACKs as before byte counting (RFC 3465).
//!
//! Each ACK that advances counts as one, however much it covers. Stretch ACKs slow down such a
//! sender.

/// The congestion window and the slow start threshold, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CongestionWindow {
    cwnd: u64,
    ssthresh: u64,
    mss: u64,
}

impl CongestionWindow {
    /// Makes a window of `segments` segments, in slow start.
    pub(super) const fn new(mss: u64, segments: u64) -> Self {
        Self { cwnd: segments * mss, ssthresh: u64::MAX, mss }
    }

    pub(super) const fn bytes(self) -> u64 {
        self.cwnd
    }

    /// Grows the window: an ACK advanced while the window limited the sender (RFC 5681, equations 2
    /// and 3).
    pub(super) fn on_advancing_ack(&mut self) {
        self.cwnd += if self.cwnd < self.ssthresh {
            self.mss
        } else {
            (self.mss * self.mss / self.cwnd).max(1)
        };
    }

    /// Enters recovery at the third duplicate ACK (section 3.2, steps 2 and 3).
    pub(super) fn enter_recovery(&mut self, flight: u64) {
        self.ssthresh = self.half_of(flight);
        self.cwnd = self.ssthresh + 3 * self.mss;
    }

    /// Counts another duplicate ACK in recovery: a segment has left the network (step 4).
    pub(super) const fn on_duplicate_in_recovery(&mut self) {
        self.cwnd += self.mss;
    }

    /// Handles an ACK in recovery that does not cover everything (RFC 6582, section 3.2, step 3).
    pub(super) fn on_partial_ack(&mut self, acked: u64) {
        self.cwnd = self.cwnd.saturating_sub(acked).max(self.mss) + self.mss;
    }

    /// Leaves recovery: all data sent before the loss is acknowledged (step 6; RFC 6582, step 3,
    /// option 1).
    pub(super) fn leave_recovery(&mut self, flight: u64) {
        self.cwnd = self.ssthresh.min(flight.max(self.mss) + self.mss);
    }

    /// Handles an expired retransmission timer (section 3.1, equation 4, and the loss window).
    pub(super) fn on_timeout(&mut self, flight: u64) {
        self.ssthresh = self.half_of(flight);
        self.cwnd = self.mss;
    }

    fn half_of(&self, flight: u64) -> u64 {
        (flight / 2).max(2 * self.mss)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1_000;

    fn after(acks: usize) -> CongestionWindow {
        let mut window = CongestionWindow::new(MSS, 10);
        (0..acks).for_each(|_| window.on_advancing_ack());
        window
    }

    #[test]
    fn slow_start_grows_by_a_segment_an_ack() {
        assert_eq!(after(7).bytes(), 17 * MSS);
    }

    #[test]
    fn congestion_avoidance_grows_by_a_segment_a_window_of_acks() {
        let mut window = after(0);
        window.on_timeout(20 * MSS);
        (0..9).for_each(|_| window.on_advancing_ack());
        assert_eq!(window.bytes(), 10 * MSS);
        (0..10).for_each(|_| window.on_advancing_ack());
        // A little less than a segment, because the window grows while it is counted.
        assert!((10_900..11_000).contains(&window.bytes()), "{window:?}");
    }

    #[test]
    fn recovery_halves_inflates_and_deflates() {
        let mut window = after(10);
        window.enter_recovery(20 * MSS);
        assert_eq!(window.bytes(), 13 * MSS);
        window.on_duplicate_in_recovery();
        assert_eq!(window.bytes(), 14 * MSS);
        window.on_partial_ack(5 * MSS);
        assert_eq!(window.bytes(), 10 * MSS);
        window.leave_recovery(20 * MSS);
        assert_eq!(window.bytes(), 10 * MSS);
        // A window that is hardly used is reduced (RFC 6582), so that no burst follows recovery.
        window.leave_recovery(2 * MSS);
        assert_eq!(window.bytes(), 3 * MSS);
    }

    #[test]
    fn a_timeout_leaves_one_segment() {
        let mut window = after(0);
        window.on_timeout(3 * MSS);
        assert_eq!(window.bytes(), MSS);
        (0..2).for_each(|_| window.on_advancing_ack());
        assert_eq!(window, CongestionWindow { cwnd: 2_500, ssthresh: 2_000, mss: MSS });
    }
}
