//! The offered window: its right edge, the steps in which the edge moves, and the value in a header (RFC
//! 9293, section 3.8.6.2.2; RFC 7323, section 2).

use rxo_wire::SeqNumber;

use super::Receive;
use crate::sequence::{distance, later};

impl<B: AsRef<[u8]>> Receive<B> {
    /// Returns SEG.WND of a segment that is sent now and acknowledges everything received.
    pub(crate) fn window_field(&mut self) -> u16 {
        self.move_edge(self.nxt);
        let field = self.window_field_at(self.nxt);
        self.record_sent_edge();
        field
    }

    /// Records that the furthest offered edge of the window is sent to the peer now.
    pub(crate) fn record_sent_edge(&mut self) {
        self.advertised_edge = self.offered_edge;
    }

    /// Moves the right edge of the window if the step is large enough (RFC 9293, section 3.8.6.2.2). The new
    /// edge follows from the free space when RCV.NXT was `ack`.
    #[inline]
    pub(crate) fn move_edge(&mut self, ack: SeqNumber) {
        if self.gain_at(ack) >= self.least_step() {
            self.edge = ack + self.free_at(ack);
        }
    }

    /// Returns `true` if [`Receive::move_edge`] can move the edge for an ACK up to RCV.NXT, as
    /// long as the application consumes nothing.
    #[inline]
    pub(crate) fn may_move_edge(&self) -> bool {
        let room = self.capacity.saturating_sub(self.ready_bytes() as u32);
        distance(self.edge, self.nxt + room) >= self.least_step()
    }

    /// Returns the smallest step of the window edge that justifies a window update, in bytes. Never 0, because
    /// a step of 0 could move the edge back.
    fn least_step(&self) -> u32 {
        (self.capacity / 2).min(self.mss).max(1)
    }

    /// Returns SEG.WND for SEG.ACK = `ack`, and records it as offered.
    #[inline]
    pub(crate) fn window_field_at(&mut self, ack: SeqNumber) -> u16 {
        self.window_fields(|offer| offer.field_at(ack))
    }

    /// Returns SEG.WND for SEG.ACK = `ack` without recording it as offered; see [`Offer::field_for`].
    #[inline]
    pub(crate) fn window_field_for(&self, ack: SeqNumber) -> u16 {
        self.offer().field_for(ack)
    }

    /// Calls `offering` to compute SEG.WND of several ACKs, and records these windows as offered.
    #[inline]
    pub(crate) fn window_fields<R>(&mut self, offering: impl FnOnce(&mut Offer) -> R) -> R {
        let mut offer = self.offer();
        let result = offering(&mut offer);
        self.offered_edge = offer.offered_edge;
        result
    }

    #[inline]
    fn offer(&self) -> Offer {
        Offer { edge: self.edge, offered_edge: self.offered_edge, scale: self.scale }
    }

    /// Returns `true` if enough space has become free for a window update.
    pub(crate) fn wants_update(&self) -> bool {
        let is_nearly_closed = self.wnd() < 2 * self.mss;
        let worth = if is_nearly_closed { 0 } else { self.capacity / 4 };
        self.gain_at(self.nxt) >= worth.max(self.least_step())
    }

    /// Returns the distance in bytes by which the window edge could have moved when RCV.NXT was `ack`.
    fn gain_at(&self, ack: SeqNumber) -> u32 {
        distance(self.edge, ack + self.free_at(ack))
    }

    /// Returns the free space when RCV.NXT was `ack`, in bytes, rounded down to whole units of the window. The
    /// application must not have consumed data since then.
    fn free_at(&self, ack: SeqNumber) -> u32 {
        let ready = (self.ready_bytes() as u32).saturating_sub(distance(ack, self.nxt));
        let free = self.capacity.saturating_sub(ready);
        (free >> self.scale) << self.scale
    }
}

/// The window that a run of ACKs offers. Copies two fields of [`Receive`], so that the compiler keeps them in
/// registers.
pub(crate) struct Offer {
    /// The right edge of the window: the field `edge` of [`Receive`].
    edge: SeqNumber,
    /// The furthest offered edge: the field `offered_edge` of [`Receive`].
    offered_edge: SeqNumber,
    scale: u8,
}

impl Offer {
    /// Returns SEG.WND for SEG.ACK = `ack`, and records it as offered.
    #[inline]
    pub(crate) fn field_at(&mut self, ack: SeqNumber) -> u16 {
        let field = self.field_for(ack);
        self.offered_edge = later(self.offered_edge, ack + (u32::from(field) << self.scale));
        field
    }

    /// Returns `true` if the window for `ack`, and for every later ACK number, fits the header field.
    #[inline]
    pub(crate) fn fits_from(&self, ack: SeqNumber) -> bool {
        self.units_at(ack) <= u32::from(u16::MAX)
    }

    /// Returns SEG.WND for SEG.ACK = `ack` and records it as offered, like [`Offer::field_at`], for an offer
    /// that [fits](Offer::fits_from) the header field.
    #[inline]
    pub(crate) fn fitting_field_at(&mut self, ack: SeqNumber) -> u16 {
        let units = self.units_at(ack);
        self.offered_edge = later(self.offered_edge, ack + (units << self.scale));
        units as u16
    }

    /// Returns SEG.WND for SEG.ACK = `ack`. The window is rounded up, so that the edge moves back by at most a
    /// unit of the scale (RFC 7323, section 2.4). Data up to the furthest offered edge is accepted.
    #[inline]
    fn field_for(&self, ack: SeqNumber) -> u16 {
        u16::try_from(self.units_at(ack)).unwrap_or(u16::MAX)
    }

    #[inline]
    fn units_at(&self, ack: SeqNumber) -> u32 {
        (distance(ack, self.edge) + (1 << self.scale) - 1) >> self.scale
    }
}
