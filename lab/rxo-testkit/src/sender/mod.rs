//! A model of a TCP sender, restricted to acknowledgements.
//!
//! Its state is everything that a pure ACK can change. The original ACKs and the deliveries must
//! lead to the same state: all of it in record form, and [`Lasting`] in single form. It sends
//! nothing, and assumes that everything acknowledged was sent.
//!
//! Contract: a pure state machine; the same ACKs give the same state.

mod agree;
mod incoming;
mod marks;
mod scoreboard;

use rxo_frame::Instant;

pub use agree::senders_agree;
pub use incoming::Incoming;
pub use marks::{Mark, Marks};
pub use scoreboard::Scoreboard;

/// The state of a sender.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sender {
    /// The part that single form preserves.
    pub lasting: Lasting,
    /// Number of ACKs (RFC 5681 lets the window grow with each).
    pub acks: u64,
    /// RTT samples: the arrival time and TSecr of ACKs for new data (RFC 7323 section 4.1).
    pub round_trips: Vec<(Instant, u32)>,
    /// Number of ACKs with ECE.
    pub echoes: u64,
}

/// The state that is the same whether a sender receives every ACK of a run or only the last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lasting {
    /// SND.UNA; `None` before the first ACK.
    pub una: Option<u32>,
    /// SND.WND in bytes, scaled.
    pub window_bytes: u64,
    /// SND.WL1 and SND.WL2: SEQ and ACK of the segment that set the window.
    pub window_from: Option<(u32, u32)>,
    /// The window of the last ACK that was not outdated, unscaled.
    last_window: u16,
    /// Number of duplicate ACKs (RFC 5681 section 2) without SACK.
    pub duplicates: u64,
    /// Number of ACKs with SACK.
    pub selective: u64,
    /// Ranges of data beyond SND.UNA, and reports of duplicates.
    pub scoreboard: Scoreboard,
    /// ECN marks of the ACKs.
    pub marks: Marks,
    /// The latest TSval: TS.Recent of the other direction (RFC 7323 section 4.3).
    pub recent: Option<u32>,
}

/// The window scale of every [`Sender`] (RFC 7323 section 2).
pub const WINDOW_SHIFT: u8 = 7;

impl Sender {
    /// Sets SND.UNA to `una`, unless it is set already.
    pub fn begin(&mut self, una: u32) {
        self.lasting.una.get_or_insert(una);
    }

    /// Processes an ACK in the order of RFC 9293 section 3.10.7.4. A segment without ACK is
    /// ignored. SYN and RST reset the state, because a connection begins or ends.
    pub fn take(&mut self, ack: &Incoming) {
        if ack.begins_anew() {
            *self = Self { acks: self.acks, ..Self::default() };
        }
        if !ack.counts() {
            return;
        }
        self.acks += 1;
        self.echoes += u64::from(ack.has_echo());
        self.lasting.take_time(ack);
        let una = *self.lasting.una.get_or_insert(ack.ack);
        let advance = ack.ack.wrapping_sub(una) as i32;
        self.lasting.marks.take(ack, advance.max(0) as u32);
        if advance < 0 {
            return self.lasting.take_list(ack);
        }
        if let (1.., Some((_, echo))) = (advance, ack.timestamp) {
            self.round_trips.push((ack.arrived_at, echo));
        }
        self.lasting.take_number(ack, advance == 0);
        self.lasting.take_list(ack);
        self.lasting.take_window(ack);
    }
}

impl Lasting {
    fn take_time(&mut self, ack: &Incoming) {
        let Some((value, _)) = ack.timestamp else { return };
        if self.recent.is_none_or(|recent| !is_before(value, recent)) {
            self.recent = Some(value);
        }
    }

    /// Processes the ACK number. A duplicate repeats SND.UNA and the window of the ACK before it,
    /// without data, SYN or FIN. Whether data is outstanding is not checked.
    fn take_number(&mut self, ack: &Incoming, same: bool) {
        let is_first = self.window_from.is_none();
        let repeats = same && !is_first && ack.window == self.last_window && ack.is_empty();
        let selective = !ack.blocks.is_empty();
        self.duplicates += u64::from(repeats && !selective);
        self.selective += u64::from(selective);
        self.una = Some(ack.ack);
        self.last_window = ack.window;
    }

    fn take_list(&mut self, ack: &Incoming) {
        if let Some(una) = self.una {
            self.scoreboard.take(&ack.blocks, ack.ack);
            self.scoreboard.advance(una);
        }
    }

    /// Updates the window from the newest segment: by SEQ, then by ACK.
    fn take_window(&mut self, ack: &Incoming) {
        let is_newer = self.window_from.is_none_or(|(seq, number)| {
            is_before(seq, ack.seq) || (seq == ack.seq && !is_before(ack.ack, number))
        });
        if is_newer {
            self.window_bytes = u64::from(ack.window) << WINDOW_SHIFT;
            self.window_from = Some((ack.seq, ack.ack));
        }
    }
}

const fn is_before(this: u32, that: u32) -> bool {
    (this.wrapping_sub(that) as i32) < 0
}

#[cfg(test)]
mod tests;
