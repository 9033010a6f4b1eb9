//! Records of pure ACKs, in order, and the loop that takes samples from them.
//!
//! Separate because records that lie side by side are read by a loop of their own: a function that calls nothing, whose
//! state is in registers.

use core::slice;

use rxo_wire::SeqNumber;
use rxo_wire::tcp::AckRecord;

use crate::recovery::Samples;

/// Records of pure ACKs.
pub(super) trait AckRecords: Iterator<Item = AckRecord> {
    /// What is known of the next one before samples are taken.
    fn look_ahead(&mut self) -> Ahead;

    /// Takes records for as long as each is a sample and nothing else, from what [`AckRecords::look_ahead`] has taken on.
    /// Returns the first that is not.
    fn take_samples<const IS_RECORDED: bool>(
        &mut self,
        taken: Option<AckRecord>,
        run: &mut SampleRun,
    ) -> Option<AckRecord>;
}

/// What comes next.
pub(super) enum Ahead {
    Nothing,
    /// There is a record, which is still to be taken.
    Some,
    /// This one, which was taken: whether there is one was not known before.
    Taken(AckRecord),
}

/// A run of expected ACKs that acknowledge parts of one range. Each gives a sample of the round trip, and nothing else
/// changes before the last.
#[derive(Clone, Copy, Debug)]
pub(super) struct SampleRun {
    pub(super) samples: Samples,
    /// RCV.NXT: what each has as its sequence number.
    pub(super) seq: SeqNumber,
    /// What [`shape`] says of each.
    pub(super) shape: u32,
    /// TS.Recent, if timestamps are recorded.
    pub(super) recent: u32,
    /// The largest SEG.WND.
    pub(super) largest_window: u16,
    /// Of the last one: SEG.WND, TSecr, and when its frame arrived.
    pub(super) window: u16,
    pub(super) echo: u32,
    pub(super) arrived_at_ns: u64,
}

impl SampleRun {
    /// Takes `record` if it is a sample and nothing else, but for what only the last decides: [`SampleRun::note_last`].
    /// `IS_RECORDED`: whether its timestamp is; otherwise it is not looked at.
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

    /// Takes note of the last one.
    #[inline(always)]
    fn note_last(&mut self, record: &AckRecord) {
        (self.window, self.echo) = (record.window, record.ts_echo);
        self.arrived_at_ns = record.arrived_at_ns;
    }
}

/// What ACKs of a connection are alike in, but for their numbers: the flags, the congestion mark, and whether there is a
/// timestamp.
#[inline(always)]
pub(super) fn shape(record: &AckRecord) -> u32 {
    let AckRecord { flags, ecn, has_timestamp, .. } = *record;
    u32::from(flags.bits()) | u32::from(ecn) << 16 | u32::from(has_timestamp) << 24
}

/// Records that come one by one.
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

/// Records that lie side by side.
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

/// Takes all that are samples at the start of `records`. Returns the rest.
#[inline(never)]
fn rest_behind_samples<'a, const IS_RECORDED: bool>(
    records: &'a [AckRecord],
    run: &mut SampleRun,
) -> &'a [AckRecord] {
    // By value, so that it stays in registers.
    let mut state = *run;
    let taken = records.iter().position(|record| !state.takes::<IS_RECORDED>(record));
    let (taken, rest) = records.split_at(taken.unwrap_or(records.len()));
    if let Some(last) = taken.last() {
        state.note_last(last);
        *run = state;
    }
    rest
}
