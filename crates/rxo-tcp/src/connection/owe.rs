//! What an acknowledgement says, fixed when it becomes owed.
//!
//! An aggregate's acknowledgements leave together, and each must say what it would have said had it
//! left alone, at once: its window, the timestamp that it echoes, its SACK blocks, its mark of congestion.

use rxo_wire::SeqNumber;

use super::Connection;
use crate::AckOwed;
use crate::receive::AckKind;

impl<B: AsRef<[u8]>> Connection<B> {
    /// A segment has been processed; fixes what its acknowledgement says, if it owes one.
    pub(crate) fn end_segment(&mut self) {
        if let Some(is_alone) = self.acks.end_segment() {
            self.owe_all(is_alone);
        }
    }

    /// Owes an acknowledgement of all there is. It leaves as a segment of its own if it has SACK blocks, or
    /// if `is_alone` and it repeats a number: the peer counts duplicates, as long as they have the same
    /// window (RFC 5681, section 2).
    #[inline]
    pub(crate) fn owe_all(&mut self, is_alone: bool) {
        if is_alone || self.rcv.has_gap() || self.rcv.sack.has_duplicate() {
            self.owe_apart(is_alone);
        } else {
            self.owe_next();
        }
    }

    #[inline(never)]
    fn owe_apart(&mut self, is_alone: bool) {
        let ack = self.rcv.nxt;
        let is_duplicate = is_alone && ack == self.timestamps.last_ack;
        if !is_duplicate {
            self.rcv.move_edge(ack);
        }
        if self.uses_sack && (self.rcv.has_gap() || self.rcv.sack.has_duplicate()) {
            let owed = self.ack_owed(ack, AckKind::Alone);
            self.acks.owe_with(owed, self.rcv.sack_blocks());
        } else {
            let kind = if is_duplicate { AckKind::Alone } else { AckKind::Plain };
            let owed = self.ack_owed(ack, kind);
            self.acks.owe(owed);
        }
    }

    /// Owes a window update, or makes the last acknowledgement one, if that has not left and is no
    /// duplicate: another window would make it none.
    pub(crate) fn owe_update(&mut self) {
        let ack = self.rcv.nxt;
        if self.acks.may_update(ack) {
            self.rcv.move_edge(ack);
            self.acks.update(self.rcv.window_field_at(ack));
        } else {
            self.owe_all(false);
        }
    }

    /// Owes a plain one of all there is.
    #[inline]
    pub(crate) fn owe_next(&mut self) {
        self.rcv.move_edge(self.rcv.nxt);
        self.owe(self.rcv.nxt);
    }

    /// Owes a plain one of all before `ack`, which was RCV.NXT when it became owed; the window's edge is where
    /// it was then.
    #[inline]
    pub(crate) fn owe(&mut self, ack: SeqNumber) {
        let owed = self.ack_owed(ack, AckKind::Plain);
        self.acks.owe(owed);
    }

    /// It counts as sent (RFC 7323, section 4.3), so that the echoes do not depend on how segments were
    /// aggregated.
    #[inline]
    fn ack_owed(&mut self, ack: SeqNumber, kind: AckKind) -> AckOwed {
        self.timestamps.last_ack = ack;
        let (echo, window) = (self.timestamps.recent(), self.rcv.window_field_at(ack));
        AckOwed { ack, echo, window, has_mark: self.ecn.echoes(), kind }
    }
}
