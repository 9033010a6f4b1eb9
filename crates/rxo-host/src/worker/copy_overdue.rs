//! Returns buffers to a device that needs them, after copying the received data that connections keep in these
//! buffers.

use rxo_wire::SeqNumber;

use super::kept::{Entry, Kept};
use super::slots::{Slot, Slots};
use super::upkeep::Upkeep;
use crate::buffer::Buffer;
use crate::cell::Inner;

/// The part of a connection's received data that may be in buffers of the device.
#[derive(Clone, Copy)]
pub(super) struct Keeps {
    /// The sequence number before which no data is in the device's buffers.
    pub(super) owned_until: SeqNumber,
    /// RCV.NXT: the end of the data that was received in order.
    pub(super) until: SeqNumber,
    has_kept: bool,
}

impl Upkeep {
    /// Copies data that has been kept in the device's buffers for too long; if `is_urgent` is `true`, copies
    /// all data.
    pub(super) fn copy_overdue<B: AsRef<[u8]>>(&mut self, slots: &mut Slots<B>, is_urgent: bool) {
        // A connection with newer frames is queued again, but not visited in this round.
        for _ in 0..self.kept.len() {
            let Some(entry) = self.kept.pop(is_urgent) else { return };
            if !self.copy_entry(slots, entry, is_urgent) {
                self.kept.push_front(entry);
                return;
            }
        }
    }

    /// Processes one entry of the queue. Returns `false` if an application holds the lock.
    fn copy_entry<B: AsRef<[u8]>>(
        &mut self,
        slots: &mut Slots<B>,
        entry: Entry,
        is_urgent: bool,
    ) -> bool {
        let slot = slots.get_mut(entry.place);
        let Some(slot) = slot.filter(|slot| slot.kept == Some(entry.ticket)) else { return true };
        let owned_until = slot.owned_until;
        let keeps = slot.cell.serve(|inner| {
            let connection = &inner.connection;
            let is_old = connection.keeps_buffers_before(entry.until)
                || connection.keeps_buffers_out_of_order();
            if is_urgent || is_old { copy_kept(inner) } else { Keeps::of(inner, owned_until) }
        });
        let Some(keeps) = keeps else { return false };
        (slot.kept, slot.owned_until) = (None, keeps.owned_until);
        self.copied_out += u64::from(keeps.owned_until != owned_until);
        self.kept.note(slot, entry.place, keeps);
        true
    }
}

impl Kept {
    /// Queues the connection in `slot`, with index `place`, if it may keep frames and is not queued.
    #[inline]
    pub(super) fn note<B>(&mut self, slot: &mut Slot<B>, place: u32, keeps: Keeps) {
        if keeps.has_kept && self.matters() && slot.kept.is_none() {
            slot.kept = Some(self.push(place, keeps.until));
        }
    }
}

impl Keeps {
    /// Returns the frames that `inner` keeps; its data before `owned_until` is in the host's own memory.
    #[inline]
    pub(super) fn of<B: AsRef<[u8]>>(inner: &Inner<B>, owned_until: SeqNumber) -> Self {
        let connection = &inner.connection;
        let until = connection.received_to();
        let is_new = owned_until != until;
        let has_kept = connection.keeps_buffers_out_of_order()
            || is_new && connection.keeps_buffers_before(until);
        Self { owned_until, until, has_kept }
    }
}

/// Copies all data that `inner` keeps in the device's buffers into the host's own memory.
pub(super) fn copy_kept<B: AsRef<[u8]>>(inner: &mut Inner<B>) -> Keeps {
    inner.connection.exchange_buffers(Buffer::copy);
    let until = inner.connection.received_to();
    Keeps { owned_until: until, until, has_kept: false }
}
