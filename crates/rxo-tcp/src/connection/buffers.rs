//! Buffers that follow the path: the connection asks for memory, its owner grants it or takes it back.
//!
//! Separate because it happens once in a round trip, apart from every segment. What is wanted is decided from
//! the rate at which the application reads and from the congestion window. What is granted is the owner's
//! decision, which knows how much memory there is. Room inside an offered window is never taken back (RFC 9293,
//! section 3.8.6; RFC 7323, section 2.4).

use rxo_frame::Instant;

use super::Connection;
use crate::receive::{Progress, ReadRate};
use crate::send::Fin;
use crate::{Buffers, Events};

impl<B: AsRef<[u8]>> Connection<B> {
    /// The buffers that the path needs, if that is more than there is, within
    /// [`Config::largest_buffers`](crate::Config::largest_buffers). Decides once in a round trip; in between it
    /// costs a comparison and returns `None`.
    ///
    /// The receive buffer follows the rate at which the application reads, so that a slow reader has a small
    /// one. The send buffer follows the congestion window.
    pub fn wants_buffers(&mut self, now: Instant) -> Option<Buffers> {
        let largest = self.config.largest_buffers?;
        if !self.state.is_synchronized() {
            return None;
        }
        let progress = Progress {
            now,
            read_at: self.rcv.read_at(),
            edge: self.rcv.offered_edge(),
            round_trip: self.recovery.rtt.smoothed(),
        };
        let initial = INITIAL_SEGMENTS * self.rcv.full_segment();
        let rate = self.read_rate.get_or_insert_with(|| ReadRate::new(&progress, initial));
        let received = rate.end_round(&progress)?;
        let has = self.buffers();
        let wanted = Buffers {
            send_bytes: self.send_buffer_for_window().min(largest.send_bytes).max(has.send_bytes),
            receive_bytes: received.min(self.largest_window(largest)).max(has.receive_bytes),
        };
        (wanted != has).then_some(wanted)
    }

    /// The memory that the buffers may take, in bytes. More than what was set while a larger window was
    /// offered, or while more data waits to be acknowledged.
    #[must_use]
    pub fn buffers(&self) -> Buffers {
        Buffers { send_bytes: self.snd.buffer.size(), receive_bytes: self.rcv.held_bytes() }
    }

    /// Changes the sizes of the buffers, and returns what they still take: data stays, and so does room inside
    /// an offered window. A direction that is done stays as it is. Allocates.
    pub fn set_buffers(&mut self, granted: Buffers) -> Buffers {
        let largest = self.config.largest_buffers();
        if self.snd.fin != Fin::Acknowledged && !self.is_closed() {
            self.resize_sending(granted.send_bytes.clamp(1, largest.send_bytes));
        }
        if !self.is_peer_done() && !self.is_closed() {
            self.resize_receiving(granted.receive_bytes.clamp(1, largest.receive_bytes));
        }
        self.buffers()
    }

    /// While slow start doubles the window each round trip, there must be data for the next one beside what is
    /// in flight.
    fn send_buffer_for_window(&self) -> u32 {
        if self.snd.fin != Fin::None {
            return 0;
        }
        let (window, threshold) = (self.congestion.cwnd(), self.congestion.ssthresh());
        window.saturating_mul(if window < threshold { 4 } else { 2 })
    }

    /// Without the window scale option a larger buffer could not be offered.
    fn largest_window(&self, largest: Buffers) -> u32 {
        let most = if self.agreed_on_scaling { u32::MAX } else { u16::MAX.into() };
        largest.receive_bytes.min(most)
    }

    fn resize_sending(&mut self, bytes: u32) {
        if bytes == self.snd.buffer.size() {
            return;
        }
        let grows = bytes > self.snd.buffer.size();
        self.snd.buffer.resize(bytes);
        let ranges = self.snd.buffer.size() / BYTES_FOR_A_RANGE;
        self.recovery.set_limit(self.config.sent_ranges.max(ranges as usize));
        if grows {
            self.events |= Events::WRITABLE;
        }
    }

    fn resize_receiving(&mut self, bytes: u32) {
        self.rcv.resize(bytes, self.config.receive_pieces);
        if self.takes_text() && self.rcv.wants_update() {
            self.owe_update();
        }
    }
}

/// What a peer may send in its first round trip (RFC 6928), in segments.
const INITIAL_SEGMENTS: u32 = 10;
/// A range of sent numbers for so many bytes of the send buffer: half of them are for cuts by SACK, and a
/// segment of a usual size takes one.
const BYTES_FOR_A_RANGE: u32 = 512;
