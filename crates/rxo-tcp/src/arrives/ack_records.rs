//! Iterators over records of pure ACKs, and the loop that takes round-trip samples from the records.
//!
//! Separate because contiguous records have a loop of their own, which makes no calls and keeps its state in
//! registers.

use core::slice;

use rxo_wire::SeqNumber;
use rxo_wire::tcp::AckRecord;

use crate::recovery::Samples;

/// An iterator over records of pure ACKs that can consume a run of round-trip samples in one call.
pub(super) trait AckRecords: Iterator<Item = AckRecord> {
    /// Determines whether another ACK record follows. Called before round-trip samples are taken.
    fn look_ahead(&mut self) -> Ahead;

    /// Consumes records while each one is a round-trip sample and changes nothing else. `taken` is the record
    /// that [`AckRecords::look_ahead`] has already consumed. Returns the first record that is not such a
    /// sample; `None` if there is none.
    fn take_samples<const IS_RECORDED: bool>(
        &mut self,
        taken: Option<AckRecord>,
        run: &mut SampleRun,
    ) -> Option<AckRecord>;
}

/// The result of [`AckRecords::look_ahead`].
pub(super) enum Ahead {
    /// No further ACK record follows.
    Nothing,
    /// An ACK record follows; it is still in the iterator.
    Some,
    /// The ACK record that follows, already removed from the iterator, which has no other way to look ahead.
    Taken(AckRecord),
}

/// A run of expected ACKs that acknowledge parts of one sent range. Each ACK gives a round-trip sample; all
/// other effects depend only on the last ACK.
#[derive(Clone, Copy, Debug)]
pub(super) struct SampleRun {
    pub(super) samples: Samples,
    /// RCV.NXT: the sequence number that every ACK of the run must have.
    pub(super) seq: SeqNumber,
    /// The result of [`shape`] that every ACK of the run must have.
    pub(super) shape: u32,
    /// TS.Recent, the peer's timestamp to echo; unused unless timestamps are recorded.
    pub(super) recent: u32,
    /// The largest window field (SEG.WND) of the run so far, unscaled.
    pub(super) largest_window: u16,
    /// The window field (SEG.WND) of the last ACK processed, unscaled.
    pub(super) window: u16,
    /// TSecr of the last ACK processed.
    pub(super) echo: u32,
    /// The arrival time of the last ACK processed, in nanoseconds.
    pub(super) arrived_at_ns: u64,
}

impl SampleRun {
    /// Processes `record` and returns `true` if the only effect of the record is a round-trip sample. Otherwise
    /// does nothing and returns `false`. The window and times matter only for the last record of the run: see
    /// [`SampleRun::note_last`]. `IS_RECORDED` is `true` if the timestamp updates TS.Recent; otherwise the
    /// timestamp is ignored.
    #[inline(always)]
    fn takes<const IS_RECORDED: bool>(&mut self, record: &AckRecord) -> bool {
        let is_timely = !IS_RECORDED || record.ts_value.wrapping_sub(self.recent) as i32 >= 0;
        let is_like = shape(record) == self.shape && record.seq == self.seq;
        let is_sample = is_like && self.samples.expects(record.ack) && is_timely;
        if !is_sample || record.window == 0 {
            return false;
        }
        self.samples.take(record.arrived_at_ns, record.ack);
        self.recent = record.ts_value;
        self.largest_window = self.largest_window.max(record.window);
        true
    }

    /// Records the window, TSecr and arrival time of the last ACK of the run.
    #[inline(always)]
    fn note_last(&mut self, record: &AckRecord) {
        (self.window, self.echo) = (record.window, record.ts_echo);
        self.arrived_at_ns = record.arrived_at_ns;
    }
}

/// Packs the fields of an ACK in which all ACKs of a run must be equal: the flags, the ECN bits, and whether
/// there is a timestamp.
#[inline(always)]
pub(super) fn shape(record: &AckRecord) -> u32 {
    let AckRecord { flags, ecn, has_timestamp, .. } = *record;
    u32::from(flags.bits()) | u32::from(ecn) << 16 | u32::from(has_timestamp) << 24
}

/// An iterator over ACK records that yields them one at a time.
pub(super) struct OneByOne<I>(pub(super) I);

impl<I: Iterator<Item = AckRecord>> Iterator for OneByOne<I> {
    type Item = AckRecord;

    #[inline(always)]
    fn next(&mut self) -> Option<AckRecord> {
        self.0.next()
    }
}

impl<I: Iterator<Item = AckRecord>> AckRecords for OneByOne<I> {
    #[inline(always)]
    fn look_ahead(&mut self) -> Ahead {
        self.0.next().map_or(Ahead::Nothing, Ahead::Taken)
    }

    #[inline(always)]
    fn take_samples<const IS_RECORDED: bool>(
        &mut self,
        taken: Option<AckRecord>,
        run: &mut SampleRun,
    ) -> Option<AckRecord> {
        let mut next = taken;
        loop {
            let record = next?;
            if !run.takes::<IS_RECORDED>(&record) {
                return Some(record);
            }
            run.note_last(&record);
            next = self.0.next();
        }
    }
}

/// An iterator over ACK records in one contiguous slice.
pub(super) struct SideBySide<'a>(pub(super) slice::Iter<'a, AckRecord>);

impl Iterator for SideBySide<'_> {
    type Item = AckRecord;

    #[inline(always)]
    fn next(&mut self) -> Option<AckRecord> {
        self.0.next().copied()
    }
}

impl AckRecords for SideBySide<'_> {
    #[inline(always)]
    fn look_ahead(&mut self) -> Ahead {
        if self.0.as_slice().is_empty() { Ahead::Nothing } else { Ahead::Some }
    }

    #[inline(always)]
    fn take_samples<const IS_RECORDED: bool>(
        &mut self,
        _taken: Option<AckRecord>,
        run: &mut SampleRun,
    ) -> Option<AckRecord> {
        self.0 = rest_behind_samples::<IS_RECORDED>(self.0.as_slice(), run).iter();
        self.next()
    }
}

/// Processes the records at the start of `records` as long as their only effect is a round-trip sample. Returns
/// the remaining records.
#[inline(never)]
fn rest_behind_samples<'a, const IS_RECORDED: bool>(
    records: &'a [AckRecord],
    run: &mut SampleRun,
) -> &'a [AckRecord] {
    // A copy on the stack, so that it stays in registers.
    let mut state = *run;
    let taken = records.iter().position(|record| !state.takes::<IS_RECORDED>(record));
    let (taken, rest) = records.split_at(taken.unwrap_or(records.len()));
    if let Some(last) = taken.last() {
        state.note_last(last);
        *run = state;
    }
    rest
}
