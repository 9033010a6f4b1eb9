//! Proportional rate reduction (RFC 9937): during recovery the window shrinks evenly, one ACK at
//! a time.

/// The byte counters of one recovery.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Prr {
    /// RecoverFS: the number of bytes in flight at the start of recovery, including those that the first
    /// ACK reports as delivered.
    flight_at_start: u32,
    delivered: u32,
    out: u32,
}

impl Prr {
    /// Begins a recovery with `flight` bytes in flight. `delivered` is the number of further bytes that were
    /// reported by ACKs which arrived together with the first one. Nothing was sent in response to these ACKs
    /// yet.
    pub(crate) fn start(flight: u32, delivered: u32) -> Self {
        Self { flight_at_start: flight.saturating_add(delivered).max(1), delivered, out: 0 }
    }

    /// Records that `bytes` bytes were sent, new or retransmitted.
    pub(crate) fn sent(&mut self, bytes: u32) {
        self.out = self.out.saturating_add(bytes);
    }

    /// Processes an ACK that reports `more` while `pipe` bytes are in flight. Returns the number
    /// of bytes that may be in flight now (RFC 9937, section 6.2).
    pub(crate) fn window(&mut self, more: Arrived, pipe: u32, ssthresh: u32, mss: u32) -> u32 {
        self.delivered = self.delivered.saturating_add(more.bytes);
        let allowed = if pipe > ssthresh {
            let share = u64::from(self.delivered) * u64::from(ssthresh);
            let due = share.div_ceil(u64::from(self.flight_at_start));
            u32::try_from(due).unwrap_or(u32::MAX).saturating_sub(self.out)
        } else {
            // As many bytes are sent as arrive, and one segment more, as in slow start, only if no further
            // loss is seen.
            let conserving = self.delivered.saturating_sub(self.out).max(more.bytes);
            let growth = if more.is_safe { mss } else { 0 };
            conserving.saturating_add(growth).min(ssthresh - pipe)
        };
        // The first retransmission is never held back.
        let least = if self.out == 0 { mss } else { 0 };
        pipe.saturating_add(allowed.max(least))
    }
}

/// The data that an ACK reports during recovery.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Arrived {
    /// DeliveredData: the number of bytes delivered for the first time.
    pub(crate) bytes: u32,
    /// SafeACK: `true` if the ACK acknowledges in-order data and shows no further loss.
    pub(crate) is_safe: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn safe(bytes: u32) -> Arrived {
        Arrived { bytes, is_safe: true }
    }

    fn unsafe_ack(bytes: u32) -> Arrived {
        Arrived { bytes, is_safe: false }
    }

    const MSS: u32 = 1000;

    /// With 20 segments in flight, the first lost and half of them to stay, one segment leaves for every two
    /// that arrive (RFC 9937, section 6.2 (a), and the example of RFC 6937, appendix A, figure 1).
    #[test]
    fn half_leaves_for_what_arrives() {
        let mut prr = Prr::start(20 * MSS, 0);
        let mut pipe = 19 * MSS;
        let mut sent = 0;
        for _ in 0..19 {
            pipe -= MSS;
            let window = prr.window(unsafe_ack(MSS), pipe, 10 * MSS, MSS);
            while pipe + MSS <= window {
                pipe += MSS;
                prr.sent(MSS);
                sent += 1;
            }
        }
        assert_eq!(sent, 10);
        assert_eq!(pipe, 10 * MSS);
    }

    /// With many losses and a pipe far below the threshold, one segment leaves for each that arrives, and two
    /// only while no further loss shows (RFC 9937, section 6.2 (b)).
    #[test]
    fn a_pipe_that_ran_empty_grows_only_when_that_is_safe() {
        let mut prr = Prr::start(20 * MSS, 0);
        assert_eq!(prr.window(unsafe_ack(MSS), 4 * MSS, 10 * MSS, MSS), 5 * MSS);
        prr.sent(MSS);
        assert_eq!(prr.window(unsafe_ack(MSS), 4 * MSS, 10 * MSS, MSS), 5 * MSS);
        prr.sent(MSS);
        assert_eq!(prr.window(safe(MSS), 4 * MSS, 10 * MSS, MSS), 6 * MSS);
        prr.sent(2 * MSS);
        assert_eq!(prr.window(safe(MSS), 5 * MSS, 10 * MSS, MSS), 7 * MSS);
    }

    /// The first retransmission leaves at once, alone (RFC 9937, section 6.2 (c)).
    #[test]
    fn the_first_retransmission_is_one() {
        for pipe in [4, 15] {
            let mut prr = Prr::start(20 * MSS, 0);
            assert_eq!(prr.window(unsafe_ack(MSS), pipe * MSS, 10 * MSS, MSS), (pipe + 1) * MSS);
        }
        let mut prr = Prr::start(20 * MSS, 0);
        assert_eq!(prr.window(unsafe_ack(0), 4 * MSS, 10 * MSS, MSS), 5 * MSS);
    }
}
