//! The worker's side of the fast path: receives past it, and gives what it gathered to the cells.

use rxo_coalesce::Engine;
use rxo_device::{DeviceError, FrameSource, Verdict};
use rxo_frame::{Frame, FrameBuffer, Instant};
use rxo_wire::FlowKey;

use super::Host;
use super::core::Core;
use super::slots::Slots;
use crate::cell::{Given, WaitingAcks};
use crate::demux::Demux;
use crate::fast::{AckState, Connections, Seen};

/// The connections of a worker, as the fast path sees them.
struct Cells<'a, B> {
    demux: &'a mut Demux,
    slots: &'a mut Slots<B>,
    engine: &'a Engine<B>,
}

impl<B: FrameBuffer> Connections for Cells<'_, B> {
    #[inline]
    fn find(&mut self, key: &FlowKey) -> Option<u32> {
        self.demux.find(key)
    }

    #[inline(always)]
    fn at(&self, place: u32, key: &FlowKey) -> Option<Seen> {
        let slot = self.slots.get(place).filter(|slot| slot.cell.pair.reversed() == *key)?;
        Some(Seen { place, state: slot.acks, has_backlog: slot.cell.has_backlog() })
    }

    #[inline]
    fn state(&mut self, place: u32) -> Option<&mut AckState> {
        self.slots.get_mut(place).map(|slot| &mut slot.acks)
    }

    #[inline(always)]
    fn is_held(&self, key: &FlowKey) -> bool {
        // The key is copied, so that it need not be in memory where nothing is held.
        !self.engine.is_idle() && is_held(self.engine, *key)
    }
}

impl<I, O> Host<I, O>
where
    I: FrameSource,
    I::Buffer: Default + Send + Sync + 'static,
{
    /// Receives a batch of at most `most` frames, without what the fast path consumes. Returns how many there were.
    pub(super) fn receive_past(&mut self, most: usize, now: Instant) -> Result<usize, DeviceError> {
        let Self { source, engine, core, received, .. } = self;
        let looked = match core.fast.has_observers() {
            true => {
                source.receive_past(received, most, &mut |frame| core.look(engine, now, &frame))
            }
            false => source.receive_past(received, most, &mut |frame| match core
                .fast
                .takes_expected(&frame)
            {
                true => Verdict::Consumed,
                false => core.look(engine, now, &frame),
            }),
        };
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
        fast.look(&mut Cells { demux, slots, engine }, now, frame)
    }

    /// Gives each connection its ACKs of this batch.
    fn give_acks(&mut self, now: Instant) {
        for number in 0..self.fast.gathered.numbers() {
            self.give_run(now, number);
        }
        self.fast.end();
    }

    #[inline]
    fn give_run(&mut self, now: Instant, number: usize) {
        let Self { fast, slots, cast, .. } = self;
        let Some((place, records)) = fast.gathered.run(number) else { return };
        let Some(slot) = slots.get_mut(place) else { return };
        slot.is_heard = true;
        if let Some(last) = records.last_told() {
            slot.acks.remember(last);
        }
        if let Some((cast, id)) = cast.as_deref_mut().and_then(|it| it.with_member_at(place)) {
            let mut is_to_be_served = true;
            // Never by the ring: the group must tell the connection what it has sent.
            slot.cell.prepare(|connection| {
                is_to_be_served = cast.on_acks(id, connection, records.flatten().copied(), now);
            });
            if is_to_be_served {
                self.touch(place);
            }
            return;
        }
        match slot.cell.on_acks(now, records, slot.acks.terms) {
            None => slot.touch(place, &mut self.dirty),
            Some(waiting) => self.note_waiting(place, waiting),
        }
    }

    #[cold]
    fn note_waiting(&mut self, place: u32, given: WaitingAcks) {
        match given.given {
            Given::Taken => self.touch(place),
            // The thread that holds the lock marks the cell.
            Given::Waits => {}
            Given::Dropped => {
                self.counters.backlog_drops += 1;
                self.touch(place);
            }
        }
        let counters = &mut self.fast.counters;
        counters.ring_pushed += given.pushed;
        counters.ring_overwritten += given.overwritten;
        counters.ring_refused += given.refused;
        counters.ring_most = counters.ring_most.max(given.most);
    }
}

#[cold]
fn is_held<B: FrameBuffer>(engine: &Engine<B>, key: FlowKey) -> bool {
    engine.holds(&key)
}
