//! The sending direction: the send sequence variables (RFC 9293, section 3.3.1), the data, and the size of
//! each send.

mod buffer;
mod chunks;
mod lent;
mod sizing;

use rxo_frame::Instant;
use rxo_wire::SeqNumber;

pub use self::buffer::{SendBuffer, Slices, Text};
pub(crate) use self::sizing::{Held, Sizing};
use crate::sequence::{after_rounds, before, distance, earlier, later, wraps_between};

/// The sending direction of a connection.
#[derive(Debug)]
pub(crate) struct Send {
    /// ISS: our initial sequence number.
    pub(crate) iss: SeqNumber,
    /// SND.UNA: the oldest unacknowledged sequence number.
    pub(crate) una: SeqNumber,
    /// SND.NXT: the next sequence number to be sent for the first time.
    pub(crate) nxt: SeqNumber,
    /// SND.WND, scaled: the number of bytes after SND.UNA that the peer's window allows.
    pub(crate) wnd: u32,
    /// SND.WL1: SEG.SEQ of the last window update.
    pub(crate) wl1: SeqNumber,
    /// SND.WL2: SEG.ACK of the last window update.
    pub(crate) wl2: SeqNumber,
    /// Max(SND.WND): the largest window of the peer so far, in bytes.
    pub(crate) max_wnd: u32,
    /// The shift of the peer's windows, in bits.
    pub(crate) scale: u8,
    /// Eff.snd.MSS: the payload of a full segment, in bytes (RFC 9293, section 3.7.1).
    pub(crate) mss: u32,
    /// The data to be sent, starting at SND.UNA.
    pub(crate) buffer: SendBuffer,
    /// Maximum number of unsent bytes that the application may write into the buffer.
    most_unsent: u32,
    /// The state of our FIN.
    pub(crate) fin: Fin,
    /// The time of the last send of data, new or retransmitted.
    pub(crate) last_sent_at: Instant,
    /// The number of times that acknowledged sequence numbers have wrapped. This counter and SND.UNA together
    /// give the number of acknowledged bytes, in a quarter of the memory of a 64-bit counter.
    acked_rounds: u16,
}

/// The state of our FIN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Fin {
    /// The FIN is not requested: the application may send more.
    #[default]
    None,
    /// The FIN waits to be sent after the last byte of the buffer, or was sent and is not acknowledged.
    Queued,
    /// The FIN was acknowledged by the peer.
    Acknowledged,
}

impl Send {
    /// Creates the sending direction. At most `most_unsent` bytes of data wait in `buffer` to be sent; `None`
    /// sets no limit beside the buffer's size.
    pub(crate) fn new(buffer: SendBuffer, most_unsent: Option<u32>, mss: u32) -> Self {
        let zero = SeqNumber::default();
        Self {
            iss: zero,
            una: zero,
            nxt: zero,
            wnd: 0,
            wl1: zero,
            wl2: zero,
            max_wnd: 0,
            scale: 0,
            mss,
            buffer,
            most_unsent: most_unsent.unwrap_or(u32::MAX),
            fin: Fin::None,
            last_sent_at: Instant::ZERO,
            acked_rounds: 0,
        }
    }

    /// Sets the ISS, before the SYN is sent. Data of the application stays in the buffer.
    pub(crate) fn start(&mut self, iss: SeqNumber) {
        (self.iss, self.una, self.nxt) = (iss, iss, iss + 1);
    }

    /// Records that the peer has acknowledged our SYN.
    pub(crate) fn syn_acknowledged(&mut self) {
        self.una = self.iss + 1;
    }

    /// Returns the number of bytes that are sent and not acknowledged, including a FIN.
    pub(crate) fn outstanding(&self) -> u32 {
        distance(self.una, self.nxt)
    }

    /// Returns the sequence number after everything to send, including the FIN.
    pub(crate) fn end(&self) -> SeqNumber {
        self.una + self.buffer.len() + u32::from(self.fin == Fin::Queued)
    }

    /// Returns the number of bytes that are not sent yet, including the FIN (D in RFC 9293).
    pub(crate) fn unsent(&self) -> u32 {
        distance(self.nxt, self.end())
    }

    /// Returns the number of bytes of data that are not sent yet, without SYN and FIN.
    fn unsent_text(&self) -> u32 {
        self.buffer.len().saturating_sub(self.outstanding())
    }

    /// Returns the number of bytes that the application may write into the send buffer now.
    pub(crate) fn room(&self) -> u32 {
        let unsent = self.most_unsent.saturating_sub(self.unsent_text());
        self.buffer.room().min(unsent)
    }

    /// Returns `true` if a quarter of the send buffer is free, and at most half of the permitted unsent data is
    /// still unsent.
    pub(crate) fn has_much_room(&self) -> bool {
        self.buffer.room() >= self.buffer.size() / 4 && self.unsent_text() <= self.most_unsent / 2
    }

    /// Returns `true` if the amount of unsent data is limited, so that sending data makes space for more.
    pub(crate) fn limits_unsent(&self) -> bool {
        self.most_unsent < u32::MAX
    }

    /// Limits unsent data to `bytes` from now on; `None` removes the limit. Returns `true` if the limit has risen.
    pub(crate) fn limit_unsent(&mut self, bytes: Option<u32>) -> bool {
        let bytes = bytes.unwrap_or(u32::MAX);
        core::mem::replace(&mut self.most_unsent, bytes) < bytes
    }

    /// Returns the usable window in bytes: U = SND.UNA + SND.WND - SND.NXT (RFC 9293).
    pub(crate) fn usable(&self) -> u32 {
        distance(self.nxt, self.una + self.wnd)
    }

    /// Returns SEG.SEQ for a segment without data: SND.NXT, or the right edge of the peer's window if window
    /// probes were sent beyond the edge. The peer would ignore a reset beyond the edge (RFC 5961, section 3).
    pub(crate) fn acceptable(&self) -> SeqNumber {
        earlier(self.nxt, self.una + self.wnd)
    }

    /// Returns `true` if our FIN has been sent at least once.
    pub(crate) fn has_sent_fin(&self) -> bool {
        self.fin == Fin::Acknowledged || self.fin == Fin::Queued && self.nxt == self.end()
    }

    /// Returns `true` if a segment that ends at `end` carries the FIN.
    pub(crate) fn carries_fin(&self, end: SeqNumber) -> bool {
        self.fin == Fin::Queued && end == self.end()
    }

    /// Returns the data of a segment from `start` to `end`, without the FIN.
    pub(crate) fn text(&self, start: SeqNumber, end: SeqNumber) -> Text<'_> {
        self.buffer.text(distance(self.una, start), distance(self.una, end))
    }

    /// Advances SND.UNA to `ack`, which must be valid, and frees the acknowledged data. Records the
    /// ACK of the FIN if `ack` covers it.
    pub(crate) fn acknowledge(&mut self, ack: SeqNumber) {
        if self.fin == Fin::Queued && ack == self.end() {
            self.fin = Fin::Acknowledged;
        }
        self.free(self.una, ack);
        self.una = ack;
    }

    /// Frees the data between `from`, the old SND.UNA, and `to`, the new one.
    #[inline]
    pub(crate) fn free(&mut self, from: SeqNumber, to: SeqNumber) {
        if wraps_between(self.iss + 1, from, to) {
            self.acked_rounds = self.acked_rounds.wrapping_add(1);
        }
        self.buffer.advance(distance(from, to));
    }

    /// Returns the number of acknowledged bytes of data. Our SYN must be acknowledged.
    pub(crate) fn acked_bytes(&self) -> u64 {
        let fin = u64::from(self.fin == Fin::Acknowledged);
        after_rounds(self.acked_rounds, self.iss + 1, self.una).saturating_sub(fin)
    }

    /// Returns `true` if `ack` is valid: at most one largest window before SND.UNA, and not after SND.NXT
    /// (RFC 5961, section 5.2).
    pub(crate) fn may_be_acknowledged(&self, ack: SeqNumber) -> bool {
        let oldest = before(self.una, self.max_wnd);
        ack.is_at_or_after(oldest) && self.nxt.is_at_or_after(ack)
    }

    /// Applies the scaled `window` of a segment unless a newer one was seen (RFC 9293, section 3.10.7.4, fifth
    /// step). In addition to the RFC's rule, a segment with a higher ACK number than any before counts as newer
    /// even if it repeats old data. Otherwise the old window would be added to the new ACK number.
    #[inline]
    pub(crate) fn update_window(&mut self, seq: SeqNumber, ack: SeqNumber, window: u32) {
        let is_newer = self.wl1.is_before(seq)
            || self.wl2.is_before(ack)
            || (self.wl1 == seq && ack.is_at_or_after(self.wl2));
        if is_newer {
            self.set_window(later(self.wl1, seq), later(self.wl2, ack), window);
        }
    }

    /// Sets the peer's window without regard to its previous value.
    #[inline]
    pub(crate) fn set_window(&mut self, seq: SeqNumber, ack: SeqNumber, window: u32) {
        (self.wl1, self.wl2, self.wnd) = (seq, ack, window);
        self.max_wnd = self.max_wnd.max(window);
    }

    /// Records that everything before `end` has been sent.
    pub(crate) fn sent_until(&mut self, end: SeqNumber, now: Instant) {
        self.nxt = later(self.nxt, end);
        self.last_sent_at = now;
    }
}
