//! Records the last ACK of each flow.
//!
//! If only the last of several ACKs is delivered, the earlier ones are dropped. An ACK may be dropped only if it
//! is no duplicate of an ACK that was delivered before, perhaps many polls ago. So the last ACK of each flow is
//! kept after its delivery. After data, SACK blocks or a fragment, a pure ACK may repeat an ACK number that is
//! not recorded. An ACK with a lower number than the recorded ACK was overtaken, and is not recorded.
//!
//! A flow is represented by its 64-bit seeded hash: two flows share a hash by chance once in 2⁶⁴, and a sender
//! without the seed cannot cause that. Memory is bounded: if there are more flows than entries, a new flow
//! replaces one that was added earlier. The next ACK of a flow without an entry is delivered alone.

use alloc::boxed::Box;

use rxo_wire::{FlowHash, SeqNumber};

use super::invalidations::{FIRST_EPOCH, Invalidations, KEPT, age, next};
use crate::ack_point::AckPoint;
use crate::held::HeldAcks;

/// Entries per set. The hash of a flow selects its set; four entries fill one cache line.
const WAYS: usize = 4;
const MIN_SETS: usize = 256;

#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Entry {
    flow: FlowHash,
    /// The ACK number of the flow's last ACK. `ack` and `window` together are an [`AckPoint`]; they are two
    /// fields because a field of that type would be padded.
    ack: SeqNumber,
    window: u16,
    /// The epoch in which this ACK was recorded. Each invalidation begins an epoch.
    epoch: u16,
}

/// The value of an entry that is not in use: its epoch is 0.
const BLANK: Entry = Entry { flow: FlowHash(0), ack: SeqNumber(0), window: 0, epoch: 0 };
/// The epoch before all others. In an entry with this epoch, `ack` is only a lower bound of the flow's last ACK
/// number.
const LOWER_BOUND: u16 = 1;

#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Set([Entry; WAYS]);

/// The recorded state of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlowRecord {
    /// The flow has no entry: nothing is recorded about its ACKs.
    Nothing,
    /// The flow's last ACK number is this number or a later one. The next ACK may be a duplicate, unless its
    /// number is lower.
    AtLeast(SeqNumber),
    /// The ACK number and the window of the flow's last ACK.
    Last(AckPoint),
}

#[derive(Debug)]
pub(crate) struct Memory {
    /// Sets of entries. Their number is a power of two, or 0 if the memory is off.
    sets: Box<[Set]>,
    /// The invalidations of recorded ACKs; `None` if the memory is off.
    invalidations: Option<Invalidations>,
    epoch: u16,
    /// The index of the set that was swept last. When the next invalidation is recorded, the set after it is
    /// searched for entries that are too old.
    swept: usize,
}

impl Memory {
    /// Creates a memory that is off: it has no entries and records nothing.
    pub(crate) fn off() -> Self {
        Self { sets: Box::default(), invalidations: None, epoch: FIRST_EPOCH, swept: 0 }
    }

    /// Creates a memory for at least four times `flows` flows.
    pub(crate) fn new(flows: u16) -> Self {
        let sets = usize::from(flows).next_power_of_two().max(MIN_SETS);
        Self {
            sets: core::iter::repeat_n(Set([BLANK; WAYS]), sets).collect(),
            invalidations: Some(Invalidations::new()),
            epoch: FIRST_EPOCH,
            swept: 0,
        }
    }

    /// Returns `true` if the memory has no entries.
    #[inline]
    pub(crate) fn is_off(&self) -> bool {
        self.sets.is_empty()
    }

    /// Returns the recorded state of the flow. `pair` computes the hash of its two hosts; it is called only if a
    /// invalidation was recorded since the flow's last ACK.
    #[inline(always)]
    pub(crate) fn recall(&self, flow: FlowHash, pair: impl FnOnce() -> FlowHash) -> FlowRecord {
        match self.entry(flow) {
            None => FlowRecord::Nothing,
            Some(entry) if entry.epoch == self.epoch || !self.is_invalidated(entry, pair) => {
                FlowRecord::Last(AckPoint { ack: entry.ack, window: entry.window })
            }
            Some(entry) => FlowRecord::AtLeast(entry.ack),
        }
    }

    #[cold]
    fn is_invalidated(&self, entry: &Entry, pair: impl FnOnce() -> FlowHash) -> bool {
        let is_any =
            |invalidations: &Invalidations| invalidations.contains(pair(), entry.epoch, self.epoch);
        entry.epoch == LOWER_BOUND || self.invalidations.as_ref().is_some_and(is_any)
    }

    /// Returns the flow's entry, or `None` if there is none.
    #[inline(always)]
    fn entry(&self, flow: FlowHash) -> Option<&Entry> {
        let entries = &self.sets.get(self.set_of(flow))?.0;
        entries.iter().find(|entry| entry.flow == flow && entry.epoch != BLANK.epoch)
    }

    /// Records the flow's last ACK.
    #[inline]
    pub(crate) fn remember(&mut self, flow: FlowHash, point: AckPoint) {
        let epoch = self.epoch;
        self.put(Entry { flow, ack: point.ack, window: point.window, epoch });
    }

    /// Records an ACK that was held and is now delivered.
    #[inline]
    pub(crate) fn note(&mut self, acks: &HeldAcks) {
        match acks.has_other_content {
            false => self.remember(acks.flow, acks.point),
            true => self.raise(acks.flow, acks.point.ack),
        }
    }

    /// Records that a segment other than a pure ACK had the ACK number `ack`. A later pure ACK with this number
    /// may be a duplicate.
    #[inline]
    pub(crate) fn raise(&mut self, flow: FlowHash, ack: SeqNumber) {
        let known = self.entry(flow).map(|entry| entry.ack);
        let ack = known.filter(|known| ack.is_before(*known)).unwrap_or(ack);
        self.put(Entry { flow, ack, window: 0, epoch: LOWER_BOUND });
    }

    /// Removes the flow's entry, because a new connection may begin (SYN or RST).
    pub(crate) fn forget(&mut self, flow: FlowHash) {
        if let Some(known) = self.find(flow) {
            *known = BLANK;
        }
    }

    /// Records an invalidation of a pair of hosts. The recorded ACK numbers of the flows between them remain
    /// only as lower bounds.
    pub(crate) fn invalidate(&mut self, pair: FlowHash) {
        let Some(invalidations) = &mut self.invalidations else { return };
        self.epoch = next(self.epoch);
        invalidations.note(pair, self.epoch);
        self.sweep();
    }

    /// Marks entries of one set as lower bounds: the entries that are older than all kept invalidations. Each
    /// new invalidation sweeps one set, so every set is swept long before the epochs of its entries repeat.
    fn sweep(&mut self) {
        self.swept = (self.swept + 1) % self.sets.len().max(1);
        let (epoch, Some(Set(entries))) = (self.epoch, self.sets.get_mut(self.swept)) else {
            return;
        };
        let known = entries.iter_mut().filter(|entry| entry.epoch >= FIRST_EPOCH);
        let old = known.filter(|entry| age(entry.epoch, epoch) > KEPT);
        old.for_each(|entry| entry.epoch = LOWER_BOUND);
    }

    /// Stores `entry`: replaces the flow's own entry; if there is none, an entry that is only a lower bound;
    /// otherwise the entry that was added first.
    #[inline]
    fn put(&mut self, entry: Entry) {
        if let Some(known) = self.find(entry.flow) {
            *known = entry;
            return;
        }
        let set = self.set_of(entry.flow);
        let Some(Set(entries)) = self.sets.get_mut(set) else { return };
        // New entries are put in front, so the last one of a kind was added first.
        let stale = entries.iter().rposition(|entry| entry.epoch < FIRST_EPOCH);
        entries.copy_within(..stale.unwrap_or(WAYS - 1), 1);
        entries[0] = entry;
    }

    #[inline]
    fn find(&mut self, flow: FlowHash) -> Option<&mut Entry> {
        let set = self.set_of(flow);
        self.sets.get_mut(set)?.0.iter_mut().find(|entry| entry.flow == flow)
    }

    /// Selects the set by the upper half of the hash, because the flow table uses the low bits.
    #[inline]
    fn set_of(&self, flow: FlowHash) -> usize {
        (flow.0 >> 32) as usize & self.sets.len().wrapping_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(ack: u32) -> AckPoint {
        AckPoint { ack: SeqNumber(ack), window: 1 }
    }

    #[test]
    fn a_set_fills_a_cache_line() {
        assert_eq!(size_of::<Set>(), 64);
    }

    /// The pair of hosts between which all flows of these tests run.
    const HOSTS: FlowHash = FlowHash(1_000);

    fn recall(memory: &Memory, flow: u64) -> FlowRecord {
        memory.recall(FlowHash(flow), || HOSTS)
    }

    fn recorded(ack: u32) -> FlowRecord {
        FlowRecord::Last(point(ack))
    }

    #[test]
    fn what_was_said_last_is_known() {
        let mut memory = Memory::new(8);
        assert_eq!(recall(&memory, 7), FlowRecord::Nothing);
        memory.remember(FlowHash(7), point(1));
        memory.remember(FlowHash(7), point(2));
        memory.remember(FlowHash(8), point(9));
        assert_eq!(recall(&memory, 7), recorded(2));
        memory.forget(FlowHash(7));
        assert_eq!(recall(&memory, 7), FlowRecord::Nothing);
        assert_eq!(recall(&memory, 8), recorded(9));
    }

    #[test]
    fn what_others_acknowledge_is_a_bound_that_only_rises() {
        let mut memory = Memory::new(8);
        for (ack, bound) in [(5, 5), (9, 9), (7, 9)] {
            memory.raise(FlowHash(7), SeqNumber(ack));
            assert_eq!(recall(&memory, 7), FlowRecord::AtLeast(SeqNumber(bound)));
        }
        memory.remember(FlowHash(7), point(20));
        memory.raise(FlowHash(7), SeqNumber(8));
        assert_eq!(recall(&memory, 7), FlowRecord::AtLeast(SeqNumber(20)));
    }

    #[test]
    fn of_five_flows_in_one_set_the_first_is_forgotten() {
        let mut memory = Memory::new(8);
        for flow in 1..=5 {
            memory.remember(FlowHash(flow), point(flow as u32));
        }
        assert_eq!(recall(&memory, 1), FlowRecord::Nothing);
        for flow in 2..=5 {
            assert_eq!(recall(&memory, flow), recorded(flow as u32));
        }
    }

    #[test]
    fn what_says_less_makes_room() {
        let mut memory = Memory::new(8);
        for flow in 1..=4 {
            memory.remember(FlowHash(flow), point(0));
        }
        memory.raise(FlowHash(3), SeqNumber(0));
        memory.remember(FlowHash(5), point(0));
        for flow in [1, 2, 4, 5] {
            assert_eq!(recall(&memory, flow), recorded(0), "flow {flow}");
        }
    }

    #[test]
    fn a_doubt_is_about_what_was_said_before_it_however_often() {
        let mut memory = Memory::new(8);
        for round in 0..70_000 {
            memory.remember(FlowHash(7), point(round));
            assert_eq!(recall(&memory, 7), recorded(round));
            memory.invalidate(HOSTS);
            assert_eq!(recall(&memory, 7), FlowRecord::AtLeast(SeqNumber(round)));
        }
        assert_eq!(recall(&memory, 8), FlowRecord::Nothing);
    }

    #[test]
    fn what_was_said_long_ago_stays_in_doubt_when_epochs_come_again() {
        let mut memory = Memory::new(4_096);
        memory.remember(FlowHash(7), point(1));
        for stranger in 0..200_000 {
            memory.invalidate(FlowHash(HOSTS.0 + 1 + stranger));
            if stranger >= u64::from(KEPT) {
                assert_eq!(recall(&memory, 7), FlowRecord::AtLeast(SeqNumber(1)), "{stranger}");
            }
        }
    }

    #[test]
    fn a_doubt_about_strangers_changes_nothing() {
        let mut memory = Memory::new(8);
        memory.remember(FlowHash(7), point(1));
        for stranger in 0..u64::from(KEPT) {
            memory.invalidate(FlowHash(HOSTS.0 + 1 + stranger));
            assert_eq!(recall(&memory, 7), recorded(1));
        }
        memory.invalidate(FlowHash(0));
        assert_eq!(recall(&memory, 7), FlowRecord::AtLeast(SeqNumber(1)), "too many to know all");
    }

    #[test]
    fn off_knows_nothing() {
        let mut memory = Memory::off();
        memory.remember(FlowHash(7), point(1));
        memory.forget(FlowHash(7));
        assert_eq!(recall(&memory, 7), FlowRecord::Nothing);
        assert!(memory.is_off());
    }
}
