//! The segment boundaries of one flow, between the last acknowledged byte and the last received one.
//!
//! Boundaries are stored as runs of segments of equal size. An aggregate is one run, and consecutive aggregates often
//! form one run. The runs of a flow are in a small ring. When a run is added to a full ring, the oldest run is removed;
//! the boundaries are then incomplete until the host has acknowledged all data of the removed run.

use rxo_wire::SeqNumber;

/// A run: consecutive segments of equal size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Run {
    /// The sequence number at which the first segment of the run begins.
    pub(super) seq: SeqNumber,
    pub(super) segment_bytes: u16,
    /// The number of segments in the run; never 0 for a stored run.
    pub(super) count: u16,
    /// `true` if the segments of the run are full-sized.
    pub(super) is_full: bool,
    pub(super) tsval: Option<u32>,
}

impl Run {
    pub(super) const fn bytes(&self) -> u32 {
        self.segment_bytes as u32 * self.count as u32
    }

    pub(super) fn end(&self) -> SeqNumber {
        self.seq + self.bytes()
    }

    /// Returns the number of segments of the run that end at or before `seq`, and `true` if a segment ends
    /// exactly at `seq`.
    fn until(&self, seq: SeqNumber) -> (u16, bool) {
        let bytes = seq - self.seq;
        if bytes <= 0 {
            return (0, bytes == 0);
        }
        let bytes = bytes.unsigned_abs().min(self.bytes());
        let segment_bytes = u32::from(self.segment_bytes).max(1);
        ((bytes / segment_bytes) as u16, bytes.is_multiple_of(segment_bytes))
    }

    /// Returns the segments of the run that end at or before `seq`, as a run.
    pub(super) fn before(&self, seq: SeqNumber) -> Self {
        Self { count: self.until(seq).0, ..*self }
    }
}

/// The length in bytes at which a run is no longer extended. No TCP window is larger, and the sequence numbers of a
/// much longer run could not be compared.
const MAX_RUN_BYTES: u32 = 1 << 30;
/// The maximum number of runs per flow.
pub(super) const MAX_RUNS: usize = 32;

/// The runs of a flow in order, without a gap between them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Runs {
    ring: [Run; MAX_RUNS],
    first: usize,
    len: usize,
}

impl Runs {
    pub(super) const fn clear(&mut self) {
        self.len = 0;
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Run> {
        (0..self.len).map(|index| &self.ring[(self.first + index) % MAX_RUNS])
    }

    /// Returns the sequence number at which the first segment of the flow's runs begins; `None` if there are
    /// no runs.
    pub(super) fn start(&self) -> Option<SeqNumber> {
        self.iter().next().map(|run| run.seq)
    }

    /// Returns the sequence number at which the last segment of the flow's runs ends; `None` if there are no
    /// runs.
    pub(super) fn end(&self) -> Option<SeqNumber> {
        let last = self.len.checked_sub(1)?;
        Some(self.ring[(self.first + last) % MAX_RUNS].end())
    }

    /// Adds a run at the end. If it does not begin where the last run ended (because of a gap, or a retransmission), it
    /// replaces all runs.
    pub(super) fn push(&mut self, run: Run) {
        if run.bytes() == 0 {
            return;
        }
        if self.end() != Some(run.seq) {
            self.clear();
        } else if self.extend_last(&run) {
            return;
        }
        if self.len == MAX_RUNS {
            self.first = (self.first + 1) % MAX_RUNS;
            self.len -= 1;
        }
        self.ring[(self.first + self.len) % MAX_RUNS] = run;
        self.len += 1;
    }

    fn extend_last(&mut self, run: &Run) -> bool {
        let Some(last) = self.len.checked_sub(1) else { return false };
        let last = &mut self.ring[(self.first + last) % MAX_RUNS];
        let are_alike = last.segment_bytes == run.segment_bytes
            && last.is_full == run.is_full
            && last.tsval == run.tsval;
        match last.count.checked_add(run.count) {
            Some(count) if are_alike && last.bytes() < MAX_RUN_BYTES => {
                last.count = count;
                true
            }
            _ => false,
        }
    }

    /// Removes all segments that end at or before `seq`, because the host has acknowledged them.
    pub(super) fn forget_until(&mut self, seq: SeqNumber) {
        while self.len > 0 {
            let run = &mut self.ring[self.first];
            let (done, _) = run.until(seq);
            if done < run.count {
                run.seq = run.seq + u32::from(done) * u32::from(run.segment_bytes);
                run.count -= done;
                return;
            }
            self.first = (self.first + 1) % MAX_RUNS;
            self.len -= 1;
        }
    }

    /// Returns `true` if a segment ends at `seq`, or the first segment begins at `seq`.
    pub(super) fn has_boundary(&self, seq: SeqNumber) -> bool {
        self.iter()
            .any(|run| !seq.is_before(run.seq) && !run.end().is_before(seq) && run.until(seq).1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(seq: u32, count: u16) -> Run {
        let (segment_bytes, is_full, tsval) = (100, true, Some(seq));
        Run { seq: SeqNumber(seq), segment_bytes, count, is_full, tsval }
    }

    #[test]
    fn what_follows_is_kept_and_a_gap_starts_anew() {
        let mut runs = Runs::default();
        runs.push(run(0, 3));
        runs.push(run(300, 2));
        assert_eq!((runs.start(), runs.end()), (Some(SeqNumber(0)), Some(SeqNumber(500))));
        runs.push(run(600, 1));
        assert_eq!((runs.start(), runs.end()), (Some(SeqNumber(600)), Some(SeqNumber(700))));
    }

    #[test]
    fn equal_runs_are_one() {
        let mut runs = Runs::default();
        let second = Run { tsval: Some(0), ..run(300, 2) };
        runs.push(run(0, 3));
        runs.push(second);
        assert_eq!(runs.iter().count(), 1);
        runs.push(Run { count: u16::MAX, tsval: Some(0), ..run(500, 0) });
        assert_eq!(runs.iter().count(), 2, "a count has an end");
    }

    #[test]
    fn a_full_ring_forgets_the_oldest() {
        let mut runs = Runs::default();
        (0..=MAX_RUNS as u32).for_each(|index| runs.push(run(index * 100, 1)));
        assert_eq!(runs.iter().count(), MAX_RUNS);
        assert_eq!(runs.start(), Some(SeqNumber(100)));
    }

    #[test]
    fn forgetting_stops_inside_a_run() {
        let mut runs = Runs::default();
        runs.push(run(u32::MAX - 149, 3));
        runs.push(run(150, 2));
        runs.forget_until(SeqNumber(60));
        assert_eq!(runs.start(), Some(SeqNumber(50)), "the segment that is not whole stays");
        runs.forget_until(SeqNumber(150));
        assert_eq!(runs.start(), Some(SeqNumber(150)));
        runs.forget_until(SeqNumber(1_000));
        assert_eq!(runs.start(), None);
    }

    #[test]
    fn boundaries_are_where_segments_meet() {
        let mut runs = Runs::default();
        runs.push(run(0, 3));
        for (seq, is_one) in [(0, true), (100, true), (300, true), (50, false), (400, false)] {
            assert_eq!(runs.has_boundary(SeqNumber(seq)), is_one, "{seq}");
        }
        assert!(!runs.has_boundary(SeqNumber(u32::MAX - 99)));
    }
}
