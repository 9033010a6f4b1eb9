//! The window that is offered: where it ends, when that moves, and how it stands in a header
//! (RFC 9293, section 3.8.6.2.2; RFC 7323, section 2).

use rxo_wire::SeqNumber;

use super::Receive;
use crate::sequence::{distance, later};

impl<B: AsRef<[u8]>> Receive<B> {
    /// SEG.WND of a segment that leaves now and acknowledges all there is.
    pub(crate) fn window_field(&mut self) -> u16 {
        self.move_edge(self.nxt);
        let field = self.window_field_at(self.nxt);
        self.tell();
        field
    }

    /// What is said leaves now.
    pub(crate) fn tell(&mut self) {
        self.told = self.said;
    }

    /// Moves the window's edge when that is worth it, as it was when RCV.NXT was `ack` (RFC 9293, section
    /// 3.8.6.2.2).
    #[inline]
    pub(crate) fn move_edge(&mut self, ack: SeqNumber) {
        if self.gain_at(ack) >= self.worth_moving() {
            self.edge = ack + self.free_at(ack);
        }
    }

    /// Whether [`Receive::move_edge`] can do anything for an acknowledgement up to RCV.NXT, as long as nothing
    /// is consumed: that fixes where the room ends.
    #[inline]
    pub(crate) fn may_move_edge(&self) -> bool {
        let room = self.capacity.saturating_sub(self.ready_bytes() as u32);
        distance(self.edge, self.nxt + room) >= self.worth_moving()
    }

    /// A move of the edge that is worth telling.
    fn worth_moving(&self) -> u32 {
        (self.capacity / 2).min(self.mss)
    }

    /// SEG.WND beside SEG.ACK = `ack`, to be said.
    #[inline]
    pub(crate) fn window_field_at(&mut self, ack: SeqNumber) -> u16 {
        let field = self.window_field_for(ack);
        self.said = later(self.said, ack + (u32::from(field) << self.scale));
        field
    }

    /// SEG.WND beside SEG.ACK = `ack`. Rounded up, so that the edge does not seem to move back by more than a
    /// unit of the scale (RFC 7323, section 2.4); what the peer was ever told is taken when it comes.
    #[inline]
    pub(crate) fn window_field_for(&self, ack: SeqNumber) -> u16 {
        let units = (distance(ack, self.edge) + (1 << self.scale) - 1) >> self.scale;
        u16::try_from(units).unwrap_or(u16::MAX)
    }

    /// Whether so much room has come free that the peer should hear of it without being asked.
    pub(crate) fn wants_update(&self) -> bool {
        let is_nearly_closed = self.wnd() < 2 * self.mss;
        let worth = if is_nearly_closed { self.mss } else { self.capacity / 4 };
        self.gain_at(self.nxt) >= worth.min(self.capacity / 2)
    }

    /// How far the edge could move when RCV.NXT was `ack`.
    fn gain_at(&self, ack: SeqNumber) -> u32 {
        distance(self.edge, ack + self.free_at(ack))
    }

    /// Room for text when RCV.NXT was `ack`, in whole units of the window. Nothing was consumed since.
    fn free_at(&self, ack: SeqNumber) -> u32 {
        let ready = (self.ready_bytes() as u32).saturating_sub(distance(ack, self.nxt));
        let free = self.capacity.saturating_sub(ready);
        (free >> self.scale) << self.scale
    }
}
