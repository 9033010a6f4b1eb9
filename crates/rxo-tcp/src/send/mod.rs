//! The send sequence variables (RFC 9293, section 3.3.1) and what is sent when.

mod buffer;
mod chunks;
mod lent;
mod sizing;

use rxo_frame::Instant;
use rxo_wire::SeqNumber;

pub use self::buffer::{SendBuffer, Slices, Text};
pub(crate) use self::sizing::{Held, Sizing};
use crate::sequence::{after_rounds, before, comes_round, distance, earlier, later};

/// The sending half.
#[derive(Debug)]
pub(crate) struct Send {
    /// ISS.
    pub(crate) iss: SeqNumber,
    /// SND.UNA: the oldest unacknowledged sequence number.
    pub(crate) una: SeqNumber,
    /// SND.NXT: the next to be sent for the first time.
    pub(crate) nxt: SeqNumber,
    /// SND.WND, scaled: how far after SND.UNA the peer allows.
    pub(crate) wnd: u32,
    /// SND.WL1: SEG.SEQ of the last window update.
    pub(crate) wl1: SeqNumber,
    /// SND.WL2: SEG.ACK of the last window update.
    pub(crate) wl2: SeqNumber,
    /// Max(SND.WND): the largest window ever seen.
    pub(crate) max_wnd: u32,
    /// By how many bits the peer's windows are shifted.
    pub(crate) scale: u8,
    /// Eff.snd.MSS: payload of a full segment, in bytes (RFC 9293, section 3.7.1).
    pub(crate) mss: u32,
    /// Data from SND.UNA on.
    pub(crate) buffer: SendBuffer,
    /// Our FIN.
    pub(crate) fin: Fin,
    /// When data was last sent, new or again.
    pub(crate) last_sent_at: Instant,
    /// How often the sequence numbers that were acknowledged have come round. With SND.UNA it says how many bytes
    /// were, in a quarter of the memory that the number takes.
    acked_rounds: u16,
}

/// Where our FIN is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Fin {
    /// The application may send more.
    #[default]
    None,
    /// It stands after the last byte of the buffer.
    Queued,
    /// The peer has it.
    Acknowledged,
}

impl Send {
    pub(crate) fn new(buffer: SendBuffer, mss: u32) -> Self {
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
            fin: Fin::None,
            last_sent_at: Instant::ZERO,
            acked_rounds: 0,
        }
    }

    /// Chooses ISS; the SYN is to be sent. What the application has written stays.
    pub(crate) fn start(&mut self, iss: SeqNumber) {
        (self.iss, self.una, self.nxt) = (iss, iss, iss + 1);
    }

    /// The peer has our SYN.
    pub(crate) fn syn_acknowledged(&mut self) {
        self.una = self.iss + 1;
    }

    /// Bytes (and FIN) that are sent and not acknowledged.
    pub(crate) fn outstanding(&self) -> u32 {
        distance(self.una, self.nxt)
    }

    /// The sequence number after all that is to be sent, FIN included.
    pub(crate) fn end(&self) -> SeqNumber {
        self.una + self.buffer.len() + u32::from(self.fin == Fin::Queued)
    }

    /// What has not been sent yet, FIN included: the RFC's D.
    pub(crate) fn unsent(&self) -> u32 {
        distance(self.nxt, self.end())
    }

    /// The usable window: the RFC's U = SND.UNA + SND.WND - SND.NXT.
    pub(crate) fn usable(&self) -> u32 {
        distance(self.nxt, self.una + self.wnd)
    }

    /// SEG.SEQ of a segment without text that the peer takes: SND.NXT, unless probes of a closed window have
    /// gone beyond what it takes. A reset there it would not believe (RFC 5961, section 3).
    pub(crate) fn acceptable(&self) -> SeqNumber {
        earlier(self.nxt, self.una + self.wnd)
    }

    /// Whether our FIN has left, at least once.
    pub(crate) fn has_sent_fin(&self) -> bool {
        self.fin == Fin::Acknowledged || self.fin == Fin::Queued && self.nxt == self.end()
    }

    /// Whether a segment that ends at `end` carries the FIN.
    pub(crate) fn carries_fin(&self, end: SeqNumber) -> bool {
        self.fin == Fin::Queued && end == self.end()
    }

    /// The bytes of a segment from `start` to `end`, without the FIN.
    pub(crate) fn text(&self, start: SeqNumber, end: SeqNumber) -> Text<'_> {
        self.buffer.text(distance(self.una, start), distance(self.una, end))
    }

    /// Advances SND.UNA to `ack`, which lies in the window; says whether the FIN is acknowledged.
    pub(crate) fn acknowledge(&mut self, ack: SeqNumber) {
        if self.fin == Fin::Queued && ack == self.end() {
            self.fin = Fin::Acknowledged;
        }
        self.free(self.una, ack);
        self.una = ack;
    }

    /// Frees the text of the buffer from `from`, which SND.UNA was, to `to`, which it is now.
    #[inline]
    pub(crate) fn free(&mut self, from: SeqNumber, to: SeqNumber) {
        if comes_round(self.iss + 1, from, to) {
            self.acked_rounds = self.acked_rounds.wrapping_add(1);
        }
        self.buffer.advance(distance(from, to));
    }

    /// Bytes of text that are acknowledged. There is a SYN that the peer has.
    pub(crate) fn acked_bytes(&self) -> u64 {
        let fin = u64::from(self.fin == Fin::Acknowledged);
        after_rounds(self.acked_rounds, self.iss + 1, self.una).saturating_sub(fin)
    }

    /// Whether `ack` is one that this side may get: at most one largest window old, and of
    /// something that was sent (RFC 5961, section 5.2).
    pub(crate) fn may_be_acknowledged(&self, ack: SeqNumber) -> bool {
        let oldest = before(self.una, self.max_wnd);
        ack.is_at_or_after(oldest) && self.nxt.is_at_or_after(ack)
    }

    /// Takes SEG.WND from a segment unless one that is newer has been seen; `window` is scaled. Beside
    /// the RFC's rule (RFC 9293, section 3.10.7.4, fifth step) one that acknowledges more than any before
    /// is newer, though it repeats old text: the window that was would else seem to begin at its ACK.
    #[inline]
    pub(crate) fn update_window(&mut self, seq: SeqNumber, ack: SeqNumber, window: u32) {
        let is_newer = self.wl1.is_before(seq)
            || self.wl2.is_before(ack)
            || (self.wl1 == seq && ack.is_at_or_after(self.wl2));
        if is_newer {
            self.set_window(later(self.wl1, seq), later(self.wl2, ack), window);
        }
    }

    /// Takes SEG.WND whatever was before.
    #[inline]
    pub(crate) fn set_window(&mut self, seq: SeqNumber, ack: SeqNumber, window: u32) {
        (self.wl1, self.wl2, self.wnd) = (seq, ack, window);
        self.max_wnd = self.max_wnd.max(window);
    }

    /// `bytes` more have been sent for the first time.
    pub(crate) fn sent_until(&mut self, end: SeqNumber, now: Instant) {
        self.nxt = later(self.nxt, end);
        self.last_sent_at = now;
    }
}
