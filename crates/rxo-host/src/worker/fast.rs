//! The worker's part of the fast path: receives a batch through the fast path's inspection, and passes the
//! gathered ACKs to the cells (the locked connections).

use rxo_coalesce::Engine;
use rxo_device::{DeviceError, FrameSource, Verdict};
use rxo_frame::{Frame, FrameBuffer, Instant};
use rxo_tcp::Arrival;
use rxo_wire::FlowKey;

use super::Host;
use super::beside::Beside;
use super::cast::Casting;
use super::connections::Connections;
use super::core::Core;
use super::slots::Slots;
use crate::cell::{ArrivalOutcome, WaitingAcks};
use crate::demux::Demux;
use crate::fast::{AckState, ConnectionSnapshot, Fast, Lookup};

/// The tables of a worker that the fast path queries.
struct Cells<'a, B> {
    demux: &'a mut Demux,
    slots: &'a mut Slots<B>,
    engine: &'a Engine<B>,
}

impl<B: FrameBuffer> Lookup for Cells<'_, B> {
    #[inline]
    fn find(&mut self, key: &FlowKey) -> Option<u32> {
        self.demux.find(key)
    }

    #[inline(always)]
    fn at(&self, place: u32, key: &FlowKey) -> Option<ConnectionSnapshot> {
        let slot = self.slots.get(place).filter(|slot| slot.cell.pair.reversed() == *key)?;
        Some(ConnectionSnapshot { place, state: slot.acks, has_backlog: slot.cell.has_backlog() })
    }

    #[inline]
    fn state(&mut self, place: u32) -> Option<&mut AckState> {
        self.slots.get_mut(place).map(|slot| &mut slot.acks)
    }

    #[inline(always)]
    fn is_held(&self, key: &FlowKey) -> bool {
        // The key is copied only if the engine holds frames, so that it can stay in registers.
        !self.engine.is_idle() && is_held(self.engine, *key)
    }
}

impl<I, O> Host<I, O>
where
    I: FrameSource,
    I::Buffer: Default + Send + Sync + 'static,
{
    /// Receives a batch of at most `most` frames; frames that the fast path does not consume are appended to
    /// `received`. Returns the total number of frames.
    pub(super) fn receive_past(&mut self, most: usize, now: Instant) -> Result<usize, DeviceError> {
        let Self { source, engine, core, received, .. } = self;
        let looked = match core.fast.has_observers() {
            true => {
                source.receive_past(received, most, &mut |frame| core.inspect(engine, now, &frame))
            }
            false => source.receive_past(received, most, &mut |frame| match core
                .fast
                .takes_expected(&frame)
            {
                true => Verdict::Consumed,
                false => core.inspect(engine, now, &frame),
            }),
        };
        // Done even if the device has failed: the consumed ACKs are stored nowhere else.
        core.give_acks(now);
        let looked = looked?;
        core.fast.counters.unseen += looked.in_place as u64;
        Ok(looked.frames())
    }
}

impl<B: AsRef<[u8]> + Default + Send + Sync + 'static> Core<B> {
    /// Begins a batch. Returns `true` if any module of the fast path is on.
    #[inline]
    pub(super) fn begin_fast(&mut self) -> bool {
        let on = self.post().fast_path();
        self.fast.begin(on)
    }

    /// Returns the verdict of the fast path on `frame`. Not inlined, so that the code for an expected ACK needs
    /// few registers.
    #[inline(never)]
    fn inspect(&mut self, engine: &Engine<B>, now: Instant, frame: &Frame<&[u8]>) -> Verdict
    where
        B: FrameBuffer,
    {
        let Connections { demux, slots, .. } = &mut self.connections;
        self.fast.inspect(&mut Cells { demux, slots, engine }, now, frame)
    }

    /// Passes the gathered ACKs of this batch to their connections.
    fn give_acks(&mut self, now: Instant) {
        let Self { fast, connections, cast, .. } = self;
        for number in 0..fast.gathered.numbers() {
            fast.give_run(connections, cast, now, number);
        }
        fast.end();
    }
}

impl Fast {
    #[inline]
    fn give_run<B: AsRef<[u8]> + Default + Send + Sync + 'static>(
        &mut self,
        connections: &mut Connections<B>,
        cast: &mut Casting<B>,
        now: Instant,
        number: usize,
    ) {
        let Some((place, records)) = self.gathered.run(number) else { return };
        let Some(slot) = connections.slots.get_mut(place) else { return };
        slot.has_received = true;
        if let Some(last) = records.last_ack_of() {
            slot.acks.remember(last);
        }
        if let Some(mut member) = cast.member_at(place) {
            let (mut is_to_be_served, wakes) = (true, self.wakes_members());
            // The ACKs do not go through the ring: the group must first update the connection with what was
            // sent.
            slot.cell.prepare(|connection| {
                let acks = records.flatten().copied();
                if wakes {
                    member.before(connection, now);
                    connection.on_arrival(now, Arrival::acks(acks));
                } else {
                    is_to_be_served = member.on_acks(connection, acks, now);
                }
            });
            if is_to_be_served {
                connections.touch(place);
            }
            return;
        }
        match slot.cell.on_acks(now, records, slot.acks.terms) {
            None => slot.touch(place, &mut connections.dirty),
            Some(waiting) => self.note_waiting(connections, place, waiting),
        }
    }

    #[cold]
    fn note_waiting<B>(
        &mut self,
        connections: &mut Connections<B>,
        place: u32,
        given: WaitingAcks,
    ) {
        match given.given {
            ArrivalOutcome::Taken => connections.touch(place),
            // The thread that holds the lock queues the connection when it unlocks it.
            ArrivalOutcome::Waits => {}
            ArrivalOutcome::Dropped => {
                connections.counters.tcp.backlog_drops += 1;
                connections.touch(place);
            }
        }
        let counters = &mut self.counters;
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
