//! The ACKs of a batch, gathered by connection.
//!
//! A run is the ACKs of one connection, in order. All ACKs lie in one list, and those of a run that came without another's
//! in between are a stretch of it, so the next of a burst is appended without a link, and TCP reads a slice. A connection has several runs only if
//! another flow shares its spot ([`super::order`]) or ACKs are not to be gathered; they are given to it in order. Nothing
//! allocates once a batch has been as large as it gets.

use rxo_wire::SeqNumber;
use rxo_wire::tcp::AckRecord;

/// The ACKs of a batch.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    /// Each ends where the next begins. A run has the number of its first.
    stretches: Vec<Stretch>,
    /// Those that are used, and room for more. It is not cut when a batch ends, so a record is written in place.
    acks: Vec<AckRecord>,
    /// How many are used.
    used: usize,
    /// What the ACK gathered last tells.
    last: Told,
    /// The number of stretches that continue a run.
    continued: usize,
}

/// What makes an ACK a duplicate if the next one tells it again: its number and its window.
pub(crate) type Told = (SeqNumber, u16);

/// ACKs of one connection that came without another's in between.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    /// The place of the connection's cell; [`CONTINUES`] if this is not the first stretch of a run.
    place: u32,
    /// Its first ACK.
    start: u32,
    /// The next stretch of its run, or [`END`].
    next: u32,
    /// The last stretch of the run that begins with this one.
    last: u32,
}

impl Gathered {
    /// The numbers of runs are below this. Not each of them is one.
    pub(crate) fn numbers(&self) -> usize {
        self.stretches.len()
    }

    /// How many runs there are.
    pub(super) fn runs(&self) -> usize {
        self.stretches.len() - self.continued
    }

    /// The number of ACKs.
    pub(super) fn acks(&self) -> usize {
        self.used
    }

    /// The run with this number: the place of the connection's cell, and the ACKs.
    #[inline]
    pub(crate) fn run(&self, number: usize) -> Option<(u32, Records<'_>)> {
        let Stretch { place, start, next, .. } = *self.stretches.get(number)?;
        let stretch = self.acks.get(start as usize..self.end(number))?;
        (place != CONTINUES).then_some((place, Records { gathered: self, stretch, next }))
    }

    /// The place of the cell whose ACKs are in the run `number`.
    #[inline]
    pub(super) fn place(&self, number: u32) -> Option<u32> {
        self.stretches.get(number as usize).map(|first| first.place)
    }

    /// Begins a run with one ACK. Returns its number.
    #[inline]
    pub(super) fn begin(&mut self, place: u32, record: AckRecord) -> u32 {
        let (number, start) = (self.stretches.len() as u32, self.used as u32);
        self.stretches.push(Stretch { place, start, next: END, last: number });
        self.push(record);
        number
    }

    /// Appends an ACK to the run `number`. Returns whether it tells what the one before it told.
    #[inline]
    pub(super) fn append(&mut self, number: u32, record: AckRecord) -> bool {
        let before = self.last_told(number);
        if !self.is_last(number) {
            self.continue_run(number);
        }
        self.push(record);
        before == Some(told(&record))
    }

    /// Room for the next ACK of the run of the ACK gathered last; `None` if that needs more memory. Whoever has written it
    /// calls [`Gathered::append_written`].
    #[inline(always)]
    pub(super) fn room(&mut self) -> Option<&mut AckRecord> {
        self.acks.get_mut(self.used)
    }

    /// Appends what was written into the room, which tells `told`. Returns whether the ACK before it told that too.
    #[inline(always)]
    pub(super) fn append_written(&mut self, told: Told) -> bool {
        self.used += 1;
        std::mem::replace(&mut self.last, told) == told
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
        self.last = told(&record);
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

    /// Whether the ACK gathered last is of the run `number`.
    #[inline]
    pub(super) fn is_last(&self, number: u32) -> bool {
        let run = self.stretches.get(number as usize);
        run.is_some_and(|run| run.last as usize + 1 == self.stretches.len())
    }

    /// What the last ACK of the run `number` tells.
    #[inline]
    pub(super) fn last_told(&self, number: u32) -> Option<Told> {
        let last = self.stretches.get(number as usize)?.last;
        self.acks.get(self.end(last as usize).checked_sub(1)?).map(told)
    }

    /// The ACKs of a stretch that continues a run, and the next stretch of that.
    #[cold]
    fn stretch(&self, number: u32) -> (&[AckRecord], u32) {
        let stretch = self.stretches.get(number as usize);
        let end = self.end(number as usize);
        let acks = stretch.and_then(|it| self.acks.get(it.start as usize..end));
        (acks.unwrap_or_default(), stretch.map_or(END, |it| it.next))
    }

    /// Where a stretch ends.
    #[inline]
    fn end(&self, number: usize) -> usize {
        self.stretches.get(number + 1).map_or(self.used, |it| it.start as usize)
    }

    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        self.stretches.clear();
        (self.used, self.continued) = (0, 0);
    }
}

/// The ACKs of a run, by stretches. None is empty.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Records<'a> {
    gathered: &'a Gathered,
    stretch: &'a [AckRecord],
    next: u32,
}

impl Records<'_> {
    /// What the last of them tells.
    #[inline]
    pub(crate) fn last_told(&self) -> Option<Told> {
        let last = if self.next == END { self.stretch } else { (*self).last()? };
        last.last().map(told)
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

/// What `record` tells.
#[inline]
pub(super) fn told(record: &AckRecord) -> Told {
    (record.ack, record.window)
}

/// No stretch has this number: a batch has at most 32,768 frames.
const END: u32 = u32::MAX;
/// ACKs for which there is room at first.
const LEAST_ROOM: usize = 8;
/// No cell has this place.
const CONTINUES: u32 = u32::MAX;
