//! Checks the ring of pure ACKs with `loom`, in every order that two threads can have with at most two
//! preemptions. Without this bound a model does not finish in a day; nearly all faults in such code need
//! fewer preemptions.
//!
//! The ring is compiled here again, with the atomics of `loom` instead of the standard library's. In the
//! models the worker pushes and overwrites while the owner of the lock drains.

use std::collections::VecDeque;

use loom::sync::{Arc, Mutex};
use loom::thread;
use rxo_frame::Instant;
use rxo_wire::tcp::AckRecord;
use rxo_wire::{SeqNumber, TcpFlags};

use self::ack_ring::{AckRing, AckTerms, ENTRIES, Pushed};

#[path = "../../src/cell/ack_ring.rs"]
mod ack_ring;

mod atomics {
    pub(super) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};
}

const NOW: Instant = Instant::from_micros(1_000);
const TERMS: AckTerms =
    AckTerms { is_synchronized: true, may_miss: true, sent_to: SeqNumber(1_000_000) };

/// Returns the ACK number `n`. Every word of it depends on `n`, so that a torn record is detected.
fn ack(n: u32) -> AckRecord {
    AckRecord {
        arrived_at_ns: u64::from(n),
        seq: SeqNumber(7),
        ack: SeqNumber(n),
        ts_value: n,
        ts_echo: n,
        window: n as u16,
        flags: TcpFlags::ACK,
        ecn: 0,
        has_timestamp: true,
    }
}

/// Removes all records, and checks that none is torn.
fn drain(ring: &AckRing) -> Vec<u32> {
    drain_some(ring, usize::MAX)
}

/// Removes at most `most` records.
fn drain_some(ring: &AckRing, most: usize) -> Vec<u32> {
    let taken = std::iter::from_fn(|| ring.pop()).take(most);
    taken
        .map(|(now, record)| {
            assert_eq!((now, record), (NOW, ack(record.ack.0)), "torn");
            record.ack.0
        })
        .collect()
}

fn is_rising(numbers: &[u32]) -> bool {
    numbers.is_sorted_by(|a, b| a < b)
}

/// The worker overwrites while the owner of the lock drains: no record is torn, duplicated or out of order;
/// missing records were overwritten, and the newest is never missing.
#[test]
fn what_is_overwritten_while_it_is_read_is_read_again() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| {
        let ring = Arc::new(AckRing::new());
        for n in 1..=ENTRIES {
            assert_eq!(ring.push(NOW, ack(n), TERMS), Pushed::Waits(n));
        }
        let worker = thread::spawn({
            let ring = Arc::clone(&ring);
            move || {
                let push = |n| ring.push(NOW, ack(n), TERMS);
                let pushed = [push(ENTRIES + 1), push(ENTRIES + 2)];
                assert!(!pushed.contains(&Pushed::Refused), "{pushed:?}");
                pushed.into_iter().filter(|pushed| *pushed == Pushed::Overwrote).count()
            }
        });
        let mut taken = drain_some(&ring, 2);
        let overwritten = worker.join().unwrap();
        taken.extend(drain(&ring));
        assert!(is_rising(&taken), "{taken:?}");
        assert_eq!(taken.last(), Some(&(ENTRIES + 2)));
        assert_eq!(taken.len() + overwritten, ENTRIES as usize + 2);
    });
}

/// A model of the cell's lock, ring and backlog, without a connection. Each function names the function of
/// `src/cell` that it models; change both together.
struct Cell {
    terms: AckTerms,
    /// The numbers that the connection has processed, in order.
    lock: Mutex<Vec<u32>>,
    ring: AckRing,
    /// The queue of segments.
    backlog: Mutex<VecDeque<u32>>,
    /// Number of segments that wait or are being processed.
    count: atomics::AtomicU32,
}

impl Cell {
    fn new(terms: AckTerms) -> Self {
        let count = atomics::AtomicU32::new(0);
        let backlog = Mutex::new(VecDeque::new());
        Self { terms, lock: Mutex::new(Vec::new()), ring: AckRing::new(), backlog, count }
    }

    fn is_nothing_put_off(&self) -> bool {
        self.ring.is_empty() && self.count.load(atomics::Ordering::SeqCst) == 0
    }

    /// Models `Cell::run_put_off`.
    fn run_put_off(&self, taken: &mut Vec<u32>) {
        taken.extend(drain(&self.ring));
        loop {
            let Some(first) = self.backlog.lock().expect("no thread has panicked").pop_front()
            else {
                return;
            };
            taken.extend(drain(&self.ring));
            taken.push(first);
            self.count.fetch_sub(1, atomics::Ordering::SeqCst);
        }
    }

    /// Models `Cell::on_acks`, or `Cell::on_arrival` for a segment.
    fn arrive(&self, n: u32, is_ack: bool) {
        if let Ok(mut taken) = self.lock.try_lock() {
            self.run_put_off(&mut taken);
            taken.push(n);
            return;
        }
        let is_empty = self.count.load(atomics::Ordering::SeqCst) == 0;
        if !(is_ack && is_empty && self.ring.push(NOW, ack(n), self.terms) != Pushed::Refused) {
            self.backlog.lock().expect("no thread has panicked").push_back(n);
            self.count.fetch_add(1, atomics::Ordering::SeqCst);
        }
        loom::sync::atomic::fence(atomics::Ordering::SeqCst);
        if let Ok(mut taken) = self.lock.try_lock() {
            self.run_put_off(&mut taken);
        }
    }

    /// Models `Cell::with` and `Cell::leave`.
    fn with(&self) {
        let mut inner = self.lock.lock().expect("no thread has panicked");
        self.run_put_off(&mut inner);
        loop {
            drop(inner);
            loom::sync::atomic::fence(atomics::Ordering::SeqCst);
            if self.is_nothing_put_off() {
                return;
            }
            let Ok(locked) = self.lock.try_lock() else { return };
            inner = locked;
            self.run_put_off(&mut inner);
        }
    }
}

/// ACKs and segments of one flow arrive while an application uses the connection: all are processed, in
/// order, and none is left in ring or backlog.
#[test]
fn acks_and_segments_stay_in_order_between_threads() {
    for is_ack in
        [[true, true, true], [true, false, true], [false, true, true], [true, true, false]]
    {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(2);
        model.check(move || {
            let cell = Arc::new(Cell::new(TERMS));
            let application = thread::spawn({
                let cell = Arc::clone(&cell);
                move || cell.with()
            });
            is_ack.iter().zip(1..).for_each(|(is_ack, n)| cell.arrive(n, *is_ack));
            application.join().unwrap();
            assert!(cell.is_nothing_put_off(), "left lying");
            assert_eq!(*cell.lock.lock().expect("no thread has panicked"), [1, 2, 3]);
        });
    }
}

/// The ring is full and nothing in it may be overwritten while an application drains it: further ACKs wait in
/// the backlog, none is lost, and none overtakes another.
#[test]
fn what_a_full_ring_refuses_stays_in_order_between_threads() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| {
        let cell = Arc::new(Cell::new(AckTerms { may_miss: false, ..TERMS }));
        for n in 1..=ENTRIES {
            assert_eq!(cell.ring.push(NOW, ack(n), cell.terms), Pushed::Waits(n));
        }
        assert_eq!(cell.ring.push(NOW, ack(ENTRIES + 1), cell.terms), Pushed::Refused);
        let application = thread::spawn({
            let cell = Arc::clone(&cell);
            move || cell.with()
        });
        [ENTRIES + 1, ENTRIES + 2].into_iter().for_each(|n| cell.arrive(n, true));
        application.join().unwrap();
        assert!(cell.is_nothing_put_off(), "left lying");
        let taken = cell.lock.lock().expect("no thread has panicked");
        assert!(taken.iter().copied().eq(1..=ENTRIES + 2), "{taken:?}");
    });
}
