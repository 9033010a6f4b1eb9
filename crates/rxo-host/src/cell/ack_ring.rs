//! The ring of pure ACKs that arrived while an application held the lock of the cell.
//!
//! The ring has eight records, allocated with the cell (Chan and Cheriton 2013, section 3.1). The worker pushes
//! records and the owner of the lock pops them; neither waits for the other. When the ring is full, the worker
//! overwrites the oldest record, but only if every later record supersedes the record before it. Overwriting
//! then loses only RTT samples. The ring is separate from the backlog of segments because a record needs no
//! allocation and may be overwritten.
//!
//! Contract: one thread pushes, and one thread at a time pops. The consumer reads a record, then moves `head`
//! past the record by compare-and-exchange. The worker also moves `head` by compare-and-exchange, before it
//! overwrites a record. Only one of the two threads succeeds, so a consumer whose record was overwritten during
//! the read fails, and reads the next record. `tests/ring` checks this with `loom`, which replaces
//! [`super::atomics`], in every order with at most two preemptions.

use rxo_frame::Instant;
use rxo_wire::tcp::AckRecord;
use rxo_wire::{SeqNumber, TcpFlags};

use super::atomics::{AtomicU32, AtomicU64, Ordering};

/// The state of a connection when the worker last served it. Determines whether a record in the ring may be
/// overwritten.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AckTerms {
    /// `true` once the handshake is complete (a synchronized state of RFC 9293).
    pub(crate) is_synchronized: bool,
    /// `true` if both sides use SACK and no loss recovery is in progress, so that ACKs may be skipped
    /// ([`rxo_tcp::Connection::may_miss_acks`]).
    pub(crate) may_miss: bool,
    /// SND.NXT, the next sequence number to be sent. An ACK beyond this number is invalid, so it must not
    /// supersede older ACKs.
    pub(crate) sent_to: SeqNumber,
}

/// The outcome of appending a record to the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pushed {
    /// The record was appended; the ring now holds this many records.
    Waits(u32),
    /// The record was appended to a full ring, and overwrote the oldest one.
    Overwrote,
    /// The ring is full and no record may be overwritten, or the record does not fit the format.
    Refused,
}

/// A ring of [`ENTRIES`] records with one producer, the worker, and one consumer, the owner of the cell's
/// lock.
#[derive(Debug)]
pub(crate) struct AckRing {
    /// The number of the oldest record. The owner of the lock advances this number when it pops a record, and
    /// the worker when it overwrites a record.
    head: AtomicU32,
    /// The number of the next record to be written. Only the worker writes it.
    tail: AtomicU32,
    /// The number of the last record that did not supersede the record before it. Each later record supersedes
    /// the record before it. Only the worker uses this field.
    covered_from: AtomicU32,
    entries: [Entry; ENTRIES as usize],
}

/// An encoded record: four words, 32 bytes.
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

    /// Returns `true` if the ring holds no record.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.head.load(Ordering::SeqCst) == self.tail.load(Ordering::SeqCst)
    }

    /// Appends the record of an ACK that the worker processes at `now`. Only the worker may call this function.
    pub(crate) fn push(&self, now: Instant, record: AckRecord, terms: AckTerms) -> Pushed {
        // The record is not that of a pure ACK, or is too old for the format.
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
            // If this fails, the owner of the lock has just popped the oldest record, so there is free space.
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

    /// Removes the oldest record and returns it with the time at which the worker processed its ACK. `None`
    /// if the ring is empty. Only the owner of the cell's lock may call it.
    pub(crate) fn pop(&self) -> Option<(Instant, AckRecord)> {
        loop {
            let head = self.head.load(Ordering::Acquire);
            if head == self.tail.load(Ordering::Acquire) {
                return None;
            }
            let entry = self.entry(head);
            let words = [0, 1, 2, 3].map(|word: usize| entry[word].load(Ordering::Relaxed));
            // Failure means that the worker overwrote the record while it was read: read the next one.
            if self.move_head(head) {
                return Some(from_words(words));
            }
        }
    }

    /// Moves `head` past the record `from`. Returns `false` if another thread has already moved `head`.
    fn move_head(&self, from: u32) -> bool {
        let to = from.wrapping_add(1);
        self.head.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Returns the newest record, at index `tail - 1`, which the worker itself wrote.
    fn newest(&self, tail: u32) -> AckRecord {
        let entry = self.entry(tail.wrapping_sub(1));
        from_words([0, 1, 2, 3].map(|word: usize| entry[word].load(Ordering::Relaxed))).1
    }

    fn entry(&self, number: u32) -> &Entry {
        &self.entries[(number % ENTRIES) as usize]
    }
}

/// Returns `true` if `later` supersedes `earlier`: the ACK number and the timestamp of `later` are not older,
/// and sequence number and ECN marks are equal. If `earlier` is acceptable, `later` is acceptable too.
fn covers(earlier: AckRecord, later: AckRecord) -> bool {
    later.seq == earlier.seq
        && later.ack.is_at_or_after(earlier.ack)
        && later.has_timestamp == earlier.has_timestamp
        && SeqNumber(later.ts_value).is_at_or_after(SeqNumber(earlier.ts_value))
        && later.ecn == earlier.ecn
}

/// Encodes a record and the time `now` at which it is processed. `None` if the record has flags other than ACK,
/// or if the ACK waited for more than two minutes.
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

/// Number of records in the ring; Chan and Cheriton (2013) found eight to be enough.
pub(crate) const ENTRIES: u32 = 8;
/// Number of bits in a record for the time in nanoseconds between arrival and processing: enough for about two
/// minutes.
const WAITED_BITS: u32 = 37;
