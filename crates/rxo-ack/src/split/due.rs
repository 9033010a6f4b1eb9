//! Computes the ACKs that a host without coalescing would have sent before its stretch ACK. Pure functions.

use rxo_wire::SeqNumber;

use super::runs::{Run, Runs};

/// The maximum number of ACKs sent for one stretch ACK, including the host's own. If more ACKs are due, fewer
/// are sent at equal distances: one per 2N, 3N, … segments instead of one per N.
pub const MAX_ACKS_PER_STRETCH: usize = 32;
/// The maximum number of ACKs inserted before one stretch ACK.
pub(super) const MAX_INSERTED: usize = MAX_ACKS_PER_STRETCH - 1;

/// An ACK that the host would have sent without coalescing: its number, and the timestamp that it echoes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Due {
    pub(super) ack: SeqNumber,
    /// The TSecr of this ACK: the TSval of the first segment that the previous ACK did not cover (RFC 7323, section
    /// 4.3). `None` if that segment had no timestamp.
    pub(super) echo: Option<u32>,
}

/// Calls `show` for each ACK that was due, in order: one per `every` full-sized segments, from the first
/// segment of `runs` up to, but not at, `ack`. If these would be more than [`MAX_INSERTED`] ACKs, a multiple of
/// `every` is used instead.
pub(super) fn due(runs: &Runs, every: u16, ack: SeqNumber, mut show: impl FnMut(Due)) {
    // Counts full-sized segments that end before `ack`; the host's own ACK covers the one that ends at `ack`.
    let (mut full, mut last) = (0, 0);
    for run in parts(runs, ack) {
        last = u32::from(run.is_full);
        full += last * u32::from(run.count);
    }
    let every = u32::from(every.max(1));
    let inserted = (full - last) / every;
    // Keeps every `spread`-th ACK if more were due than may be sent.
    let spread = (inserted + 1).div_ceil(MAX_ACKS_PER_STRETCH as u32).max(1);
    let mut walk = Walk { every: every * spread, since: 0, echo: None };
    for run in parts(runs, ack) {
        walk.pass(&run, ack, &mut show);
    }
}

/// Returns the runs of segments up to `ack`, in order.
fn parts(runs: &Runs, ack: SeqNumber) -> impl Iterator<Item = Run> {
    runs.iter().map(move |run| run.before(ack)).take_while(|run| run.count > 0)
}

/// The state of a simulated receiver that does not coalesce.
struct Walk {
    every: u32,
    /// The number of full-sized segments since the last ACK of the simulated receiver.
    since: u32,
    /// The timestamp that the next ACK of the simulated receiver echoes: `Some(None)` if the echoed segment has
    /// no timestamp, `None` if no segment arrived since the last ACK.
    echo: Option<Option<u32>>,
}

impl Walk {
    fn pass(&mut self, run: &Run, ack: SeqNumber, show: &mut impl FnMut(Due)) {
        let mut left = if run.is_full { u32::from(run.count) } else { 0 };
        let mut at = run.seq;
        while self.since + left >= self.every {
            let taken = self.every - self.since;
            at = at + taken * u32::from(run.segment_bytes);
            left -= taken;
            let echo = self.echo.take().unwrap_or(run.tsval);
            self.since = 0;
            if at == ack {
                return;
            }
            show(Due { ack: at, echo });
        }
        self.since += left;
        if at != run.end() {
            self.echo.get_or_insert(run.tsval);
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use super::*;

    fn runs(parts: &[(u16, u16)]) -> Runs {
        let mut runs = Runs::default();
        let mut seq = SeqNumber(0);
        for (index, (segment_bytes, count)) in parts.iter().enumerate() {
            let (tsval, is_full) = (Some(index as u32), *segment_bytes == 100);
            let run = Run { seq, segment_bytes: *segment_bytes, count: *count, is_full, tsval };
            runs.push(run);
            seq = run.end();
        }
        runs
    }

    fn acks(parts: &[(u16, u16)], every: u16, ack: u32) -> Vec<(u32, Option<u32>)> {
        let mut found = Vec::new();
        due(&runs(parts), every, SeqNumber(ack), |due| found.push((due.ack.0, due.echo)));
        found
    }

    #[test]
    fn every_second_segment_is_due_and_the_last_is_the_hosts() {
        assert_eq!(acks(&[(100, 6)], 2, 600), [(200, Some(0)), (400, Some(0))]);
        assert_eq!(acks(&[(100, 5)], 2, 500), [(200, Some(0)), (400, Some(0))]);
        assert_eq!(acks(&[(100, 2)], 2, 200), []);
        assert_eq!(acks(&[(100, 6)], 3, 600), [(300, Some(0))]);
        assert_eq!(acks(&[(100, 3)], 1, 300), [(100, Some(0)), (200, Some(0))]);
    }

    #[test]
    fn a_pair_may_straddle_two_runs_and_echoes_its_first_segment() {
        let found = acks(&[(100, 3), (100, 3)], 2, 600);
        assert_eq!(found, [(200, Some(0)), (400, Some(0))]);
        let found = acks(&[(100, 2), (100, 4)], 2, 600);
        assert_eq!(found, [(200, Some(0)), (400, Some(1))]);
    }

    #[test]
    fn small_segments_do_not_count_and_are_acknowledged_with_the_next() {
        assert_eq!(acks(&[(100, 2), (30, 1), (100, 3)], 2, 530), [(200, Some(0)), (430, Some(1))]);
        assert_eq!(acks(&[(30, 9)], 2, 270), []);
        assert_eq!(acks(&[(100, 2), (30, 1)], 2, 230), [(200, Some(0))]);
        assert_eq!(acks(&[(100, 3), (30, 1)], 2, 330), [(200, Some(0))]);
    }

    #[test]
    fn nothing_is_due_beyond_what_the_host_acknowledged() {
        assert_eq!(acks(&[(100, 9)], 2, 400), [(200, Some(0))]);
    }

    #[test]
    fn more_than_thirty_two_are_spread() {
        assert_eq!(acks(&[(100, 64)], 2, 6_400).len(), 31);
        assert_eq!(acks(&[(100, 64), (30, 1)], 2, 6_430).len(), 16, "the 33rd was one too many");
        let found = acks(&[(100, 146)], 2, 14_600);
        assert_eq!(found.len(), 24);
        assert!(found.iter().zip(1..).all(|(due, index)| due.0 == index * 600));
        for count in 65..2_000 {
            let found = acks(&[(100, count)], 1, u32::from(count) * 100);
            assert!((15..=MAX_INSERTED).contains(&found.len()), "{count}: {}", found.len());
        }
    }
}
