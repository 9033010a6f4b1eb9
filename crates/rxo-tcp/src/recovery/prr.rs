//! Proportional rate reduction (RFC 6937): during recovery the window comes down evenly, one
//! acknowledgement at a time.

/// The account of one recovery, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Prr {
    /// RecoverFS: in flight when it began.
    flight_at_start: u32,
    delivered: u32,
    out: u32,
}

impl Prr {
    pub(crate) fn start(flight: u32) -> Self {
        Self { flight_at_start: flight.max(1), delivered: 0, out: 0 }
    }

    /// `bytes` were sent, new or again.
    pub(crate) fn sent(&mut self, bytes: u32) {
        self.out = self.out.saturating_add(bytes);
    }

    /// An acknowledgement says that `bytes` more arrived while `pipe` is in flight; how much may be
    /// in flight now (section 3, with the slow-start reduction bound).
    pub(crate) fn window(&mut self, bytes: u32, pipe: u32, ssthresh: u32, mss: u32) -> u32 {
        self.delivered = self.delivered.saturating_add(bytes);
        let allowed = if pipe > ssthresh {
            let share = u64::from(self.delivered) * u64::from(ssthresh);
            let due = share.div_ceil(u64::from(self.flight_at_start));
            u32::try_from(due).unwrap_or(u32::MAX).saturating_sub(self.out)
        } else {
            let limit = self.delivered.saturating_sub(self.out).max(bytes).saturating_add(mss);
            limit.min(ssthresh - pipe)
        };
        // The first retransmission is not held back (section 3, at its start).
        let least = if self.out == 0 { mss } else { 0 };
        pipe.saturating_add(allowed.max(least))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1000;

    /// The example of RFC 6937, appendix A, figure 1: 20 segments in flight, the first lost, half
    /// of them to stay. One segment leaves for every two that arrive.
    #[test]
    fn half_leaves_for_what_arrives() {
        let mut prr = Prr::start(20 * MSS);
        let mut pipe = 19 * MSS;
        let mut sent = 0;
        for _ in 0..19 {
            pipe -= MSS;
            let window = prr.window(MSS, pipe, 10 * MSS, MSS);
            while pipe + MSS <= window {
                pipe += MSS;
                prr.sent(MSS);
                sent += 1;
            }
        }
        assert_eq!(sent, 10);
        assert_eq!(pipe, 10 * MSS);
    }

    /// RFC 6937, section 3 (b), and figure 2 there: many lost, the pipe far below the threshold; it
    /// is not filled at once.
    #[test]
    fn a_pipe_that_ran_empty_grows_as_in_slow_start() {
        let mut prr = Prr::start(20 * MSS);
        assert_eq!(prr.window(MSS, 4 * MSS, 10 * MSS, MSS), 6 * MSS);
        prr.sent(2 * MSS);
        assert_eq!(prr.window(MSS, 5 * MSS, 10 * MSS, MSS), 7 * MSS);
    }
}
