//! What each flow acknowledged last.
//!
//! Where only the last of several ACKs is shown, the first of them may be swallowed only if it is
//! known to be no duplicate of one delivered before, perhaps polls ago. So the last word of each flow
//! outlives what is held of it. Flows are named by their 64-bit seeded hash alone: two of them meet by
//! chance once in 2⁶⁴, and nobody can bring it about. Bounded: of more flows than fit, those that spoke
//! last are known; the others' next ACK is delivered as it comes.

use alloc::boxed::Box;

use rxo_wire::{FlowHash, SeqNumber};

use super::AckPoint;
use crate::held::HeldAcks;

/// Flows whose hashes agree in the bits that choose a set; with four a set fills a cache line.
const WAYS: usize = 4;
const MIN_SETS: usize = 256;
/// No entry has this epoch, so what is blank is not known.
const NEVER: u16 = 0;

#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Entry {
    flow: FlowHash,
    /// What it said, as the two fields of [`AckPoint`]: as one they would be padded.
    ack: SeqNumber,
    window: u16,
    /// Entries of other epochs than the present one are forgotten.
    epoch: u16,
}

const BLANK: Entry = Entry { flow: FlowHash(0), ack: SeqNumber(0), window: 0, epoch: NEVER };

#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Set([Entry; WAYS]);

#[derive(Debug)]
pub(crate) struct Memory {
    /// A power of two of them, or none.
    sets: Box<[Set]>,
    epoch: u16,
}

impl Memory {
    /// A memory that knows nothing and takes no room.
    pub(crate) fn off() -> Self {
        Self { sets: Box::default(), epoch: NEVER + 1 }
    }

    /// A memory with room for at least four times `flows` flows.
    pub(crate) fn new(flows: u16) -> Self {
        let sets = usize::from(flows).next_power_of_two().max(MIN_SETS);
        Self { sets: core::iter::repeat_n(Set([BLANK; WAYS]), sets).collect(), epoch: NEVER + 1 }
    }

    /// Whether nothing is to be remembered.
    #[inline(always)]
    pub(crate) fn is_off(&self) -> bool {
        self.sets.is_empty()
    }

    /// What the flow said last, if it is known.
    #[inline(always)]
    pub(crate) fn recall(&self, flow: FlowHash) -> Option<AckPoint> {
        let set = self.sets.get(self.set_of(flow))?;
        let known = set.0.iter().find(|entry| entry.is_of(flow, self.epoch))?;
        Some(AckPoint { ack: known.ack, window: known.window })
    }

    /// The flow says this now.
    #[inline(always)]
    pub(crate) fn remember(&mut self, flow: FlowHash, said: AckPoint) {
        let (epoch, set) = (self.epoch, self.set_of(flow));
        let entry = Entry { flow, ack: said.ack, window: said.window, epoch };
        let Some(Set(entries)) = self.sets.get_mut(set) else { return };
        if let Some(known) = entries.iter_mut().find(|entry| entry.is_of(flow, epoch)) {
            *known = entry;
        } else {
            let stale = entries.iter().position(|entry| entry.epoch != epoch);
            entries.copy_within(..stale.unwrap_or(WAYS - 1), 1);
            entries[0] = entry;
        }
    }

    /// These ACKs are delivered now. A call, so that the flushing of data does not carry it.
    #[inline(never)]
    pub(crate) fn note(&mut self, acks: &HeldAcks) {
        match acks.said {
            Some(said) => self.remember(acks.flow, said),
            None => self.forget(acks.flow),
        }
    }

    /// What the flow said last is not known any more.
    #[inline(never)]
    pub(crate) fn forget(&mut self, flow: FlowHash) {
        let (epoch, set) = (self.epoch, self.set_of(flow));
        let Some(Set(entries)) = self.sets.get_mut(set) else { return };
        if let Some(known) = entries.iter_mut().find(|entry| entry.is_of(flow, epoch)) {
            known.epoch = NEVER;
        }
    }

    /// Of no flow it is known any more.
    pub(crate) fn forget_all(&mut self) {
        self.epoch = self.epoch.wrapping_add(1);
        if self.epoch == NEVER {
            self.sets.fill(Set([BLANK; WAYS]));
            self.epoch = NEVER + 1;
        }
    }

    /// The flow table uses the low bits of the hash.
    #[inline(always)]
    fn set_of(&self, flow: FlowHash) -> usize {
        (flow.0 >> 32) as usize & self.sets.len().wrapping_sub(1)
    }
}

impl Entry {
    #[inline(always)]
    fn is_of(&self, flow: FlowHash, epoch: u16) -> bool {
        self.flow == flow && self.epoch == epoch
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

    #[test]
    fn what_was_said_last_is_known() {
        let mut memory = Memory::new(8);
        assert_eq!(memory.recall(FlowHash(7)), None);
        memory.remember(FlowHash(7), point(1));
        memory.remember(FlowHash(7), point(2));
        memory.remember(FlowHash(8), point(9));
        assert_eq!(memory.recall(FlowHash(7)), Some(point(2)));
        memory.forget(FlowHash(7));
        assert_eq!(memory.recall(FlowHash(7)), None);
        assert_eq!(memory.recall(FlowHash(8)), Some(point(9)));
    }

    #[test]
    fn of_five_flows_in_one_set_the_first_is_forgotten() {
        let mut memory = Memory::new(8);
        for flow in 1..=5 {
            memory.remember(FlowHash(flow), point(flow as u32));
        }
        assert_eq!(memory.recall(FlowHash(1)), None);
        for flow in 2..=5 {
            assert_eq!(memory.recall(FlowHash(flow)), Some(point(flow as u32)));
        }
    }

    #[test]
    fn what_is_forgotten_makes_room() {
        let mut memory = Memory::new(8);
        for flow in 1..=4 {
            memory.remember(FlowHash(flow), point(0));
        }
        memory.forget(FlowHash(3));
        memory.remember(FlowHash(5), point(0));
        for flow in [1, 2, 4, 5] {
            assert_eq!(memory.recall(FlowHash(flow)), Some(point(0)), "flow {flow}");
        }
    }

    #[test]
    fn all_are_forgotten_however_often() {
        let mut memory = Memory::new(8);
        for round in 0..70_000 {
            assert_eq!(memory.recall(FlowHash(7)), None, "round {round}");
            memory.remember(FlowHash(7), point(round));
            memory.forget_all();
        }
    }

    #[test]
    fn off_knows_nothing() {
        let mut memory = Memory::off();
        memory.remember(FlowHash(7), point(1));
        memory.forget(FlowHash(7));
        assert_eq!(memory.recall(FlowHash(7)), None);
        assert!(memory.is_off());
    }
}
