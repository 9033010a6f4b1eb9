//! The ring of pure ACKs that arrived while an application held the lock of the cell.
//!
//! Eight records that are allocated with the cell (Chan and Cheriton 2013, section 3.1). The worker pushes; the
//! owner of the lock pops. Neither waits for the other. If the ring is full, the worker overwrites the oldest
//! record, but only where that loses nothing but samples: the records behind it must say all that it says.
//! Separate from the backlog of segments because a record needs no memory and may be overwritten.
//!
//! Contract: one thread pushes, and one thread at a time pops. A record is read before `head` is moved past it, by
//! compare and exchange; the worker moves `head` in the same way before it overwrites. Only one of them can
//! succeed, so a record that was overwritten while it was read is read again. `tests/ring` checks this with `loom`, which
//! replaces [`super::atomics`], in every order with at most two preemptions.

use rxo_frame::Instant;
use rxo_wire::tcp::AckRecord;
use rxo_wire::{SeqNumber, TcpFlags};

use super::atomics::{AtomicU32, AtomicU64, Ordering};

/// What the worker knows of a connection since it last served it, and what decides whether an ACK may be
/// overwritten.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AckTerms {
    /// Whether the connection is synchronized.
    pub(crate) is_synchronized: bool,
    /// Both sides use SACK and nothing is being recovered, so that ACKs may be missing
    /// ([`rxo_tcp::Connection::may_miss_acks`]).
    pub(crate) may_miss: bool,
    /// SND.NXT: an ACK beyond it is invalid, and says nothing about older ones.
    pub(crate) sent_to: SeqNumber,
}

/// What became of a record that was pushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pushed {
    /// It waits; so many do now.
    Waits(u32),
    /// It waits in a full ring; the oldest record was overwritten.
    Overwrote,
    /// There is no room, and no record may be overwritten.
    Refused,
}

/// The ring.
#[derive(Debug)]
pub(crate) struct AckRing {
    /// The number of the oldest record. Moved by the owner of the lock, and by the worker when it overwrites.
    head: AtomicU32,
    /// The number of the next record. The worker's.
    tail: AtomicU32,
    /// From this number on each record says all that the one before it says. The worker's.
    covered_from: AtomicU32,
    entries: [Entry; ENTRIES as usize],
}

/// The words of a record, 32 bytes.
type Entry = [AtomicU64; 4];

impl AckRing {
    pub(crate) fn new() -> Self {
        Self {
            head: AtomicU32::new(0),
            tail: AtomicU32::new(0),
            covered_from: AtomicU32::new(0),
            entries: std::array::from_fn(|_| std::array::from_fn(|_| AtomicU64::new(0))),
        }
    }

    /// Whether no record waits.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.head.load(Ordering::SeqCst) == self.tail.load(Ordering::SeqCst)
    }

    /// Appends the record of an ACK that is taken at `now`. Only the worker calls it.
    pub(crate) fn push(&self, now: Instant, record: AckRecord, terms: AckTerms) -> Pushed {
        let Some(words) = to_words(now, record) else { return Pushed::Refused };
        let tail = self.tail.load(Ordering::Relaxed);
        let mut waiting = tail.wrapping_sub(self.head.load(Ordering::Acquire));
        let covers = waiting > 0 && covers(self.newest(tail), record);
        let mut overwrote = false;
        if waiting == ENTRIES {
            let head = tail.wrapping_sub(ENTRIES);
            let is_covered =
                self.covered_from.load(Ordering::Relaxed).wrapping_sub(head) as i32 <= 0;
            let is_valid = terms.sent_to.is_at_or_after(record.ack);
            if !(terms.may_miss && covers && is_covered && is_valid) {
                return Pushed::Refused;
            }
            // If it fails, the owner of the lock has just taken the oldest record, so there is room.
            overwrote = self.move_head(head);
            waiting -= 1;
        }
        if !covers {
            self.covered_from.store(tail, Ordering::Relaxed);
        }
        let entry = self.entry(tail);
        entry.iter().zip(words).for_each(|(to, word)| to.store(word, Ordering::Relaxed));
        self.tail.store(tail.wrapping_add(1), Ordering::SeqCst);
        if overwrote { Pushed::Overwrote } else { Pushed::Waits(waiting + 1) }
    }

    /// Takes the oldest record, and the time at which the worker took its ACK. Only the owner of the cell's lock
    /// calls it.
    pub(crate) fn pop(&self) -> Option<(Instant, AckRecord)> {
        loop {
            let head = self.head.load(Ordering::Acquire);
            if head == self.tail.load(Ordering::Acquire) {
                return None;
            }
            let entry = self.entry(head);
            let words = [0, 1, 2, 3].map(|word: usize| entry[word].load(Ordering::Relaxed));
            if self.move_head(head) {
                return Some(from_words(words));
            }
        }
    }

    /// Moves `head` past the record `from`, unless the other side has done so.
    fn move_head(&self, from: u32) -> bool {
        let to = from.wrapping_add(1);
        self.head.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// The record before `tail`, which the worker itself has written.
    fn newest(&self, tail: u32) -> AckRecord {
        let entry = self.entry(tail.wrapping_sub(1));
        from_words([0, 1, 2, 3].map(|word: usize| entry[word].load(Ordering::Relaxed))).1
    }

    fn entry(&self, number: u32) -> &Entry {
        &self.entries[(number % ENTRIES) as usize]
    }
}

/// Whether `later` says all that `earlier` says, if both are valid: it acknowledges no less, and its window and
/// timestamp are the newer ones. If `earlier` is acceptable, so is `later`.
fn covers(earlier: AckRecord, later: AckRecord) -> bool {
    later.seq == earlier.seq
        && later.ack.is_at_or_after(earlier.ack)
        && later.has_timestamp == earlier.has_timestamp
        && SeqNumber(later.ts_value).is_at_or_after(SeqNumber(earlier.ts_value))
        && later.ecn == earlier.ecn
}

/// A record and the time at which its ACK was taken. `None` if its flags are not those of a pure ACK, or if the
/// ACK waited for more than two minutes.
fn to_words(now: Instant, record: AckRecord) -> Option<[u64; 4]> {
    let waited_ns = now.as_nanos().saturating_sub(record.arrived_at_ns);
    if record.flags != TcpFlags::ACK || waited_ns >> WAITED_BITS != 0 {
        return None;
    }
    let pair = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
    let marks = u64::from(record.has_timestamp) << 2 | u64::from(record.ecn & 3);
    Some([
        record.arrived_at_ns.min(now.as_nanos()),
        pair(record.seq.0, record.ack.0),
        pair(record.ts_value, record.ts_echo),
        waited_ns << 19 | marks << 16 | u64::from(record.window),
    ])
}

fn from_words([arrived_at_ns, numbers, timestamp, rest]: [u64; 4]) -> (Instant, AckRecord) {
    let record = AckRecord {
        arrived_at_ns,
        seq: SeqNumber((numbers >> 32) as u32),
        ack: SeqNumber(numbers as u32),
        ts_value: (timestamp >> 32) as u32,
        ts_echo: timestamp as u32,
        window: rest as u16,
        flags: TcpFlags::ACK,
        ecn: (rest >> 16) as u8 & 3,
        has_timestamp: rest >> 18 & 1 == 1,
    };
    (Instant::from_nanos(arrived_at_ns + (rest >> 19)), record)
}

/// Chan and Cheriton found eight to be enough.
pub(crate) const ENTRIES: u32 = 8;
/// Bits for the time between arrival and the worker's turn, in nanoseconds.
const WAITED_BITS: u32 = 37;
