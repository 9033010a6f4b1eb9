//! The ACKs of a batch, gathered by connection.
//!
//! A run is the ACKs of one connection, in order; they lie in one list and are chained. A connection has several
//! runs only if another flow shares its spot ([`super::order`]) or ACKs are not to be gathered; they are given to it
//! in order. Nothing allocates once a batch has been as large as it gets.

use rxo_wire::SeqNumber;
use rxo_wire::tcp::AckRecord;

/// The ACKs of a batch.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    runs: Vec<Run>,
    acks: Vec<Chained>,
}

/// ACKs of one connection, in order of arrival.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    /// The place of the connection's cell.
    pub(crate) place: u32,
    first: u32,
    last: u32,
}

#[derive(Clone, Copy, Debug)]
struct Chained {
    record: AckRecord,
    next: u32,
}

impl Gathered {
    /// The number of runs.
    pub(crate) fn runs(&self) -> usize {
        self.runs.len()
    }

    /// The number of ACKs.
    pub(super) fn acks(&self) -> usize {
        self.acks.len()
    }

    /// A run.
    #[inline]
    pub(crate) fn run(&self, number: usize) -> Option<Run> {
        self.runs.get(number).copied()
    }

    /// Begins a run with one ACK. Returns its number.
    #[inline]
    pub(super) fn begin(&mut self, place: u32, record: AckRecord) -> u32 {
        let ack = self.push(record);
        self.runs.push(Run { place, first: ack, last: ack });
        (self.runs.len() - 1) as u32
    }

    /// Appends an ACK to the run `number`. Returns whether it tells what the one before it told.
    #[inline]
    pub(super) fn append(&mut self, number: u32, record: AckRecord) -> bool {
        let ack = self.push(record);
        self.link(number, ack).is_some_and(|before| told(before) == told(&record))
    }

    /// [`Gathered::append`], if that needs no more memory. `None` if it does, and nothing has changed.
    #[inline(always)]
    pub(super) fn append_within_capacity(
        &mut self,
        number: u32,
        record: AckRecord,
    ) -> Option<bool> {
        let has_room = self.acks.len() < self.acks.capacity();
        has_room.then(|| self.append(number, record))
    }

    /// Makes the ACK `ack` the last of the run `number`. Returns the one before it.
    #[inline]
    fn link(&mut self, number: u32, ack: u32) -> Option<&AckRecord> {
        let run = self.runs.get_mut(number as usize)?;
        let before = self.acks.get_mut(std::mem::replace(&mut run.last, ack) as usize)?;
        before.next = ack;
        Some(&before.record)
    }

    /// Whether the ACK gathered last is of the run `number`.
    #[inline]
    pub(super) fn is_last(&self, number: u32) -> bool {
        let run = self.runs.get(number as usize);
        run.is_some_and(|run| run.last as usize + 1 == self.acks.len())
    }

    /// What the last ACK of `run` tells.
    #[inline]
    pub(crate) fn last_told(&self, run: Run) -> Option<(SeqNumber, u16)> {
        self.acks.get(run.last as usize).map(|ack| told(&ack.record))
    }

    #[inline]
    fn push(&mut self, record: AckRecord) -> u32 {
        self.acks.push(Chained { record, next: END });
        (self.acks.len() - 1) as u32
    }

    /// The ACKs of `run`.
    #[inline]
    pub(crate) fn records(&self, run: Run) -> Records<'_> {
        Records { acks: &self.acks, next: run.first }
    }

    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        self.runs.clear();
        self.acks.clear();
    }
}

/// The ACKs of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Records<'a> {
    acks: &'a [Chained],
    next: u32,
}

impl Iterator for Records<'_> {
    type Item = AckRecord;

    #[inline]
    fn next(&mut self) -> Option<AckRecord> {
        let Chained { record, next } = self.acks.get(self.next as usize)?;
        self.next = *next;
        // The flag by itself, which shows the compiler that this is no `None`.
        Some(AckRecord { has_timestamp: record.has_timestamp, ..*record })
    }
}

/// What makes an ACK a duplicate if the next one tells it again: its number and its window.
#[inline]
pub(super) fn told(record: &AckRecord) -> (SeqNumber, u16) {
    (record.ack, record.window)
}

/// No ACK has this number: a batch has at most 32,768 frames.
const END: u32 = u32::MAX;
