//! What each flow acknowledged last.
//!
//! Where only the last of several ACKs is shown, the first of them may be swallowed only if it is
//! known to be no duplicate of one delivered before, perhaps polls ago. So the last word of each flow
//! outlives what is held of it. After data, SACK blocks or a fragment it is in doubt whether a pure ACK
//! repeats something; but one that acknowledges less than is known to be acknowledged was overtaken, and
//! must not be taken for the flow's last word.
//!
//! Flows are named by their 64-bit seeded hash alone: two of them meet by chance once in 2⁶⁴, and nobody
//! can bring it about. Bounded: of more flows than fit, those that spoke last are known; the others' next
//! ACK is delivered as it comes.

use alloc::boxed::Box;

use rxo_wire::{FlowHash, SeqNumber};

use super::AckPoint;
use crate::held::HeldAcks;

/// Flows whose hashes agree in the bits that choose a set; with four a set fills a cache line.
const WAYS: usize = 4;
const MIN_SETS: usize = 256;

#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Entry {
    flow: FlowHash,
    /// What it said, as the two fields of [`AckPoint`]: as one they would be padded.
    ack: SeqNumber,
    window: u16,
    /// Entries of other epochs than the present one say only what was acknowledged at least.
    epoch: u16,
}

/// Nothing is known.
const BLANK: Entry = Entry { flow: FlowHash(0), ack: SeqNumber(0), window: 0, epoch: 0 };
/// Never the present epoch.
const DOUBTED: u16 = 1;
const FIRST_EPOCH: u16 = 2;

#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Set([Entry; WAYS]);

/// What is known of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// Nothing.
    Nothing,
    /// That it acknowledged this, but not whether it said something since: of the next ACK nobody can
    /// tell whether it is a duplicate, unless it acknowledges less.
    AtLeast(SeqNumber),
    /// What it said last.
    Said(AckPoint),
}

#[derive(Debug)]
pub(crate) struct Memory {
    /// A power of two of them, or none.
    sets: Box<[Set]>,
    epoch: u16,
}

impl Memory {
    /// A memory that knows nothing and takes no room.
    pub(crate) fn off() -> Self {
        Self { sets: Box::default(), epoch: FIRST_EPOCH }
    }

    /// A memory with room for at least four times `flows` flows.
    pub(crate) fn new(flows: u16) -> Self {
        let sets = usize::from(flows).next_power_of_two().max(MIN_SETS);
        Self { sets: core::iter::repeat_n(Set([BLANK; WAYS]), sets).collect(), epoch: FIRST_EPOCH }
    }

    /// Whether nothing is to be remembered.
    #[inline(always)]
    pub(crate) fn is_off(&self) -> bool {
        self.sets.is_empty()
    }

    /// What is known of the flow.
    #[inline(always)]
    pub(crate) fn recall(&self, flow: FlowHash) -> Known {
        let set = self.sets.get(self.set_of(flow));
        match set.and_then(|set| set.0.iter().find(|entry| entry.flow == flow)) {
            None => Known::Nothing,
            Some(entry) if entry.epoch == self.epoch => {
                Known::Said(AckPoint { ack: entry.ack, window: entry.window })
            }
            Some(entry) if entry.epoch == BLANK.epoch => Known::Nothing,
            Some(entry) => Known::AtLeast(entry.ack),
        }
    }

    /// The flow says this now.
    #[inline(always)]
    pub(crate) fn remember(&mut self, flow: FlowHash, said: AckPoint) {
        let epoch = self.epoch;
        self.put(Entry { flow, ack: said.ack, window: said.window, epoch });
    }

    /// What was held is delivered now.
    #[inline(always)]
    pub(crate) fn note(&mut self, acks: &HeldAcks) {
        match acks.says_more {
            false => self.remember(acks.flow, acks.said),
            true => self.raise(acks.flow, acks.said.ack),
        }
    }

    /// A segment that is no pure ACK acknowledges `ack`: a pure ACK that says so too may repeat it.
    #[inline(always)]
    pub(crate) fn raise(&mut self, flow: FlowHash, ack: SeqNumber) {
        let ack = match self.recall(flow) {
            Known::Said(AckPoint { ack: known, .. }) | Known::AtLeast(known)
                if ack.is_before(known) =>
            {
                known
            }
            _ => ack,
        };
        self.put(Entry { flow, ack, window: 0, epoch: DOUBTED });
    }

    /// Nothing is known of the flow any more, as it may begin anew.
    pub(crate) fn forget(&mut self, flow: FlowHash) {
        if let Some(known) = self.find(flow) {
            *known = BLANK;
        }
    }

    /// Of no flow it is known any more what it said last; what it acknowledged, it did.
    pub(crate) fn doubt_all(&mut self) {
        self.epoch = self.epoch.wrapping_add(1);
        if self.epoch == BLANK.epoch {
            let entries = self.sets.iter_mut().flat_map(|set| &mut set.0);
            entries
                .filter(|entry| entry.epoch != BLANK.epoch)
                .for_each(|entry| entry.epoch = DOUBTED);
            self.epoch = FIRST_EPOCH;
        }
    }

    /// Puts an entry in the place of its flow's, or of one that says less than others, or of the oldest.
    #[inline(always)]
    fn put(&mut self, entry: Entry) {
        if let Some(known) = self.find(entry.flow) {
            *known = entry;
            return;
        }
        let (epoch, set) = (self.epoch, self.set_of(entry.flow));
        let Some(Set(entries)) = self.sets.get_mut(set) else { return };
        let stale = entries.iter().rposition(|entry| entry.epoch != epoch);
        entries.copy_within(..stale.unwrap_or(WAYS - 1), 1);
        entries[0] = entry;
    }

    #[inline(always)]
    fn find(&mut self, flow: FlowHash) -> Option<&mut Entry> {
        let set = self.set_of(flow);
        self.sets.get_mut(set)?.0.iter_mut().find(|entry| entry.flow == flow)
    }

    /// The flow table uses the low bits of the hash.
    #[inline(always)]
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

    fn said(ack: u32) -> Known {
        Known::Said(point(ack))
    }

    #[test]
    fn what_was_said_last_is_known() {
        let mut memory = Memory::new(8);
        assert_eq!(memory.recall(FlowHash(7)), Known::Nothing);
        memory.remember(FlowHash(7), point(1));
        memory.remember(FlowHash(7), point(2));
        memory.remember(FlowHash(8), point(9));
        assert_eq!(memory.recall(FlowHash(7)), said(2));
        memory.forget(FlowHash(7));
        assert_eq!(memory.recall(FlowHash(7)), Known::Nothing);
        assert_eq!(memory.recall(FlowHash(8)), said(9));
    }

    #[test]
    fn what_others_acknowledge_is_a_bound_that_only_rises() {
        let mut memory = Memory::new(8);
        for (ack, bound) in [(5, 5), (9, 9), (7, 9)] {
            memory.raise(FlowHash(7), SeqNumber(ack));
            assert_eq!(memory.recall(FlowHash(7)), Known::AtLeast(SeqNumber(bound)));
        }
        memory.remember(FlowHash(7), point(20));
        memory.raise(FlowHash(7), SeqNumber(8));
        assert_eq!(memory.recall(FlowHash(7)), Known::AtLeast(SeqNumber(20)));
    }

    #[test]
    fn of_five_flows_in_one_set_the_first_is_forgotten() {
        let mut memory = Memory::new(8);
        for flow in 1..=5 {
            memory.remember(FlowHash(flow), point(flow as u32));
        }
        assert_eq!(memory.recall(FlowHash(1)), Known::Nothing);
        for flow in 2..=5 {
            assert_eq!(memory.recall(FlowHash(flow)), said(flow as u32));
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
            assert_eq!(memory.recall(FlowHash(flow)), said(0), "flow {flow}");
        }
    }

    #[test]
    fn all_are_doubted_however_often() {
        let mut memory = Memory::new(8);
        for round in 0..70_000 {
            memory.remember(FlowHash(7), point(round));
            memory.doubt_all();
            assert_eq!(memory.recall(FlowHash(7)), Known::AtLeast(SeqNumber(round)));
        }
        assert_eq!(memory.recall(FlowHash(8)), Known::Nothing);
    }

    #[test]
    fn off_knows_nothing() {
        let mut memory = Memory::off();
        memory.remember(FlowHash(7), point(1));
        memory.forget(FlowHash(7));
        assert_eq!(memory.recall(FlowHash(7)), Known::Nothing);
        assert!(memory.is_off());
    }
}
