//! Gathers the ACKs of a batch by connection.
//!
//! A run consists of the ACKs of one connection, in order. All ACKs are in one list. Consecutive ACKs of a run
//! in this list form a stretch, so the next ACK of a burst is appended without a link, and TCP receives a
//! slice. A connection has several runs only if another flow shares its slot ([`super::order`]) or if gathering
//! is off; its runs are processed in order. Memory is allocated only if a batch is larger than all earlier
//! batches.

use rxo_wire::SeqNumber;
use rxo_wire::tcp::AckRecord;

/// The ACKs of a batch, gathered by connection.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    /// The stretches, in order; each ends where the next begins. The number of a run is the index of its
    /// first stretch.
    stretches: Vec<Stretch>,
    /// The ACKs in use, followed by free records. The list is not shortened when a batch ends, so new records
    /// are written in place.
    acks: Vec<AckRecord>,
    /// Number of ACKs in `acks` that are in use.
    used: usize,
    /// The ACK number and the window of the ACK gathered last.
    last: AckAndWindow,
    /// Number of stretches that continue a run instead of beginning a new run.
    continued: usize,
}

/// The ACK number and the window of an ACK. An ACK is a duplicate if both are equal to those of the previous
/// ACK.
pub(crate) type AckAndWindow = (SeqNumber, u16);

/// A stretch: consecutive ACKs of one connection.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    /// The index of the connection to which the stretch belongs, or [`CONTINUES`] if this is not the first
    /// stretch of a run.
    place: u32,
    /// The index of the stretch's first ACK.
    start: u32,
    /// The index of the next stretch of the run, or [`END`].
    next: u32,
    /// The index of the run's last stretch; kept only in the first stretch of a run.
    last: u32,
}

impl Gathered {
    /// Returns an upper bound of the run numbers, exclusive. Not every number below the bound is a run: some
    /// are stretches that continue a run.
    pub(crate) fn numbers(&self) -> usize {
        self.stretches.len()
    }

    /// Returns the number of runs in this batch.
    pub(super) fn runs(&self) -> usize {
        self.stretches.len() - self.continued
    }

    /// Returns the number of ACKs gathered in this batch.
    pub(super) fn acks(&self) -> usize {
        self.used
    }

    /// Returns the run with this number: the index of its connection, and its ACKs. `None` if no run has this
    /// number.
    #[inline]
    pub(crate) fn run(&self, number: usize) -> Option<(u32, Records<'_>)> {
        let Stretch { place, start, next, .. } = *self.stretches.get(number)?;
        let stretch = self.acks.get(start as usize..self.end(number))?;
        (place != CONTINUES).then_some((place, Records { gathered: self, stretch, next }))
    }

    /// Returns the index of the connection whose ACKs are in the run `number`; `None` if no run has this
    /// number.
    #[inline]
    pub(super) fn place(&self, number: u32) -> Option<u32> {
        self.stretches.get(number as usize).map(|first| first.place)
    }

    /// Begins a run with one ACK. Returns the number of the run.
    #[inline]
    pub(super) fn begin(&mut self, place: u32, record: AckRecord) -> u32 {
        let (number, start) = (self.stretches.len() as u32, self.used as u32);
        self.stretches.push(Stretch { place, start, next: END, last: number });
        self.push(record);
        number
    }

    /// Appends an ACK to the run `number`. Returns `true` if it is a duplicate of the run's last ACK.
    #[inline]
    pub(super) fn append(&mut self, number: u32, record: AckRecord) -> bool {
        let before = self.last_ack_of(number);
        if !self.is_last(number) {
            self.continue_run(number);
        }
        self.push(record);
        before == Some(ack_and_window(&record))
    }

    /// Returns a free record for the next ACK of the run gathered last; `None` if the list is full. After
    /// writing the record, the caller must call [`Gathered::append_written`].
    #[inline(always)]
    pub(super) fn room(&mut self) -> Option<&mut AckRecord> {
        self.acks.get_mut(self.used)
    }

    /// Appends the record that the caller has written into [`Gathered::room`]. Returns `true` if the record is
    /// a duplicate of the previous ACK.
    #[inline(always)]
    pub(super) fn append_written(&mut self, ack: AckAndWindow) -> bool {
        self.used += 1;
        std::mem::replace(&mut self.last, ack) == ack
    }

    #[inline(always)]
    fn push(&mut self, record: AckRecord) {
        if self.used == self.acks.len() {
            self.grow();
        }
        if let Some(room) = self.acks.get_mut(self.used) {
            *room = record;
        }
        self.used += 1;
        self.last = ack_and_window(&record);
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        self.acks.resize((2 * self.used).max(LEAST_ROOM), AckRecord::default());
    }

    /// Begins another stretch of the run `number`.
    #[cold]
    fn continue_run(&mut self, number: u32) {
        let next = self.stretches.len() as u32;
        let Some(first) = self.stretches.get_mut(number as usize) else { return };
        let last = std::mem::replace(&mut first.last, next);
        if let Some(last) = self.stretches.get_mut(last as usize) {
            last.next = next;
        }
        let start = self.used as u32;
        self.stretches.push(Stretch { place: CONTINUES, start, next: END, last: next });
        self.continued += 1;
    }

    /// Returns `true` if the ACK gathered last belongs to the run `number`.
    #[inline]
    pub(super) fn is_last(&self, number: u32) -> bool {
        let run = self.stretches.get(number as usize);
        run.is_some_and(|run| run.last as usize + 1 == self.stretches.len())
    }

    /// Returns the ACK number and the window of the last ACK of the run `number`; `None` if no run has this
    /// number.
    #[inline]
    pub(super) fn last_ack_of(&self, number: u32) -> Option<AckAndWindow> {
        let last = self.stretches.get(number as usize)?.last;
        self.acks.get(self.end(last as usize).checked_sub(1)?).map(ack_and_window)
    }

    /// Returns the ACKs of a stretch that continues a run, and the number of the run's next stretch.
    #[cold]
    fn stretch(&self, number: u32) -> (&[AckRecord], u32) {
        let stretch = self.stretches.get(number as usize);
        let end = self.end(number as usize);
        let acks = stretch.and_then(|it| self.acks.get(it.start as usize..end));
        (acks.unwrap_or_default(), stretch.map_or(END, |it| it.next))
    }

    /// Returns the index after the last ACK of a stretch.
    #[inline]
    fn end(&self, number: usize) -> usize {
        self.stretches.get(number + 1).map_or(self.used, |it| it.start as usize)
    }

    /// Removes all runs, and keeps their memory.
    pub(crate) fn clear(&mut self) {
        self.stretches.clear();
        (self.used, self.continued) = (0, 0);
    }
}

/// The ACKs of a run, as an iterator over its stretches: parts that are contiguous in memory. No part is empty.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Records<'a> {
    gathered: &'a Gathered,
    stretch: &'a [AckRecord],
    next: u32,
}

impl Records<'_> {
    /// Returns the ACK number and the window of the run's last ACK; `None` if the run is empty.
    #[inline]
    pub(crate) fn last_ack_of(&self) -> Option<AckAndWindow> {
        let last = if self.next == END { self.stretch } else { (*self).last()? };
        last.last().map(ack_and_window)
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = &'a [AckRecord];

    #[inline]
    fn next(&mut self) -> Option<&'a [AckRecord]> {
        let stretch = std::mem::take(&mut self.stretch);
        if self.next != END {
            (self.stretch, self.next) = self.gathered.stretch(self.next);
        }
        (!stretch.is_empty()).then_some(stretch)
    }
}

/// Returns the ACK number and window of `record`.
#[inline]
pub(super) fn ack_and_window(record: &AckRecord) -> AckAndWindow {
    (record.ack, record.window)
}

/// The value of [`Stretch::next`] for the last stretch of a run. No stretch has this index: a batch has at
/// most 32,768 frames.
const END: u32 = u32::MAX;
/// Number of records in the first allocation.
const LEAST_ROOM: usize = 8;
/// The value of [`Stretch::place`] for a stretch that continues a run. No connection has this index.
const CONTINUES: u32 = u32::MAX;
