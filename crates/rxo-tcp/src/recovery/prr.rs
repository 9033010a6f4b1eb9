//! Proportional rate reduction (RFC 9937): during recovery the window comes down evenly, one
//! acknowledgement at a time.

/// The account of one recovery, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Prr {
    /// RecoverFS: in flight when it began, what the first acknowledgement delivered included.
    flight_at_start: u32,
    delivered: u32,
    out: u32,
}

impl Prr {
    /// Begins a recovery with `flight` bytes in flight. `delivered` more bytes arrived before it by acknowledgements that
    /// came together with the one that begins it, so that nothing has left for them yet.
    pub(crate) fn start(flight: u32, delivered: u32) -> Self {
        Self { flight_at_start: flight.saturating_add(delivered).max(1), delivered, out: 0 }
    }

    /// `bytes` were sent, new or again.
    pub(crate) fn sent(&mut self, bytes: u32) {
        self.out = self.out.saturating_add(bytes);
    }

    /// An acknowledgement says that more arrived while `pipe` is in flight; how much may be in flight now
    /// (section 6.2).
    pub(crate) fn window(&mut self, more: Arrived, pipe: u32, ssthresh: u32, mss: u32) -> u32 {
        self.delivered = self.delivered.saturating_add(more.bytes);
        let allowed = if pipe > ssthresh {
            let share = u64::from(self.delivered) * u64::from(ssthresh);
            let due = share.div_ceil(u64::from(self.flight_at_start));
            u32::try_from(due).unwrap_or(u32::MAX).saturating_sub(self.out)
        } else {
            // As many as arrive; one more, as in slow start, only when nothing else seems lost.
            let conserving = self.delivered.saturating_sub(self.out).max(more.bytes);
            let growth = if more.is_safe { mss } else { 0 };
            conserving.saturating_add(growth).min(ssthresh - pipe)
        };
        // The first retransmission is not held back.
        let least = if self.out == 0 { mss } else { 0 };
        pipe.saturating_add(allowed.max(least))
    }
}

/// What an acknowledgement says during recovery.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Arrived {
    /// DeliveredData: bytes that arrived for the first time.
    pub(crate) bytes: u32,
    /// SafeACK: it acknowledges something in order, and nothing more is found lost.
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

    /// RFC 9937, section 6.2 (a), as the example of RFC 6937, appendix A, figure 1 has it: 20 segments in flight, the first lost, half
    /// of them to stay. One segment leaves for every two that arrive.
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

    /// RFC 9937, section 6.2 (b): many lost, the pipe far below the threshold. One leaves for each that
    /// arrives; two only while nothing more is lost.
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

    /// RFC 9937, section 6.2 (c): the first retransmission leaves at once, alone.
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
