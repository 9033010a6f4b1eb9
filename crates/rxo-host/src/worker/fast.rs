//! The worker's side of the fast path: receives past it, and gives what it gathered to the cells.

use rxo_coalesce::Engine;
use rxo_device::{DeviceError, FrameSource, Verdict};
use rxo_frame::{Frame, FrameBuffer, Instant};
use rxo_wire::FlowKey;

use super::Host;
use super::core::Core;
use super::slots::Slots;
use crate::cell::{Given, GivenAcks};
use crate::demux::Demux;
use crate::fast::{AckState, Connections};

/// The connections of a worker, as the fast path sees them.
struct Cells<'a, B> {
    demux: &'a mut Demux,
    slots: &'a mut Slots<B>,
}

impl<B: AsRef<[u8]>> Connections for Cells<'_, B> {
    #[inline]
    fn find(&mut self, key: &FlowKey) -> Option<u32> {
        self.demux.find(key)
    }

    #[inline]
    fn is_at(&self, place: u32, key: &FlowKey) -> bool {
        self.slots.get(place).is_some_and(|slot| slot.cell.pair.reversed() == *key)
    }

    #[inline]
    fn state(&mut self, place: u32) -> Option<&mut AckState> {
        self.slots.get_mut(place).map(|slot| &mut slot.acks)
    }

    #[inline]
    fn has_backlog(&self, place: u32) -> bool {
        self.slots.get(place).is_some_and(|slot| slot.cell.has_backlog())
    }
}

impl<I, O> Host<I, O>
where
    I: FrameSource,
    I::Buffer: Default + Send + Sync + 'static,
{
    /// Receives a batch, without what the fast path consumes. Returns how many frames there were.
    pub(super) fn receive_past(&mut self, now: Instant) -> Result<usize, DeviceError> {
        let Self { source, engine, core, received, .. } = self;
        let mut look = |frame: Frame<&[u8]>| match core.fast.takes_expected(&frame) {
            true => Verdict::Consumed,
            false => core.look(engine, now, &frame),
        };
        let looked = source.receive_past(received, self.budget_frames, &mut look);
        // Also if the device has failed: what was consumed is nowhere else.
        core.give_acks(now);
        let looked = looked?;
        core.fast.counters.unseen += looked.in_place as u64;
        Ok(looked.frames())
    }
}

impl<B: AsRef<[u8]> + Default + Send + Sync + 'static> Core<B> {
    /// Out of line, so that an expected ACK needs few registers.
    #[inline(never)]
    fn look(&mut self, engine: &Engine<B>, now: Instant, frame: &Frame<&[u8]>) -> Verdict
    where
        B: FrameBuffer,
    {
        let Self { demux, slots, fast, .. } = self;
        fast.look(&mut Cells { demux, slots }, |key| engine.holds(key), now, frame)
    }

    /// Gives each connection its ACKs of this batch.
    fn give_acks(&mut self, now: Instant) {
        for number in 0..self.fast.gathered.runs() {
            self.give_run(now, number);
        }
        self.fast.gathered.clear();
    }

    #[inline]
    fn give_run(&mut self, now: Instant, number: usize) {
        let Self { fast, slots, cast, .. } = self;
        let Some(run) = fast.gathered.run(number) else { return };
        let Some(slot) = slots.get_mut(run.place) else { return };
        slot.is_heard = true;
        if let Some(last) = fast.gathered.last(run) {
            slot.acks.remember(&last);
        }
        let mut is_to_be_served = true;
        let records = fast.gathered.records(run);
        let given = match cast.as_deref_mut().and_then(|cast| cast.with_member_at(run.place)) {
            // Never by the ring: the group must tell the connection what it has sent.
            Some((cast, id)) => {
                slot.cell.prepare(|connection| {
                    is_to_be_served = cast.on_acks(id, connection, records, now);
                });
                GivenAcks::TAKEN
            }
            None => slot.cell.on_acks(now, records, slot.acks.terms),
        };
        fast.counters.calls += 1;
        match given.given {
            Given::Taken if !is_to_be_served => {}
            Given::Taken => self.touch(run.place),
            // The thread that holds the lock marks the cell.
            Given::Waits => {}
            Given::Dropped => {
                self.counters.backlog_drops += 1;
                self.touch(run.place);
            }
        }
        if given.pushed + given.refused > 0 {
            self.note_ring(given);
        }
    }

    #[cold]
    fn note_ring(&mut self, given: GivenAcks) {
        let counters = &mut self.fast.counters;
        counters.ring_pushed += given.pushed;
        counters.ring_overwritten += given.overwritten;
        counters.ring_refused += given.refused;
        counters.ring_most = counters.ring_most.max(given.most);
    }
}
