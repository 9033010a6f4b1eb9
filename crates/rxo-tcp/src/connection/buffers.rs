//! Buffers that follow the path: the connection asks for memory, its owner grants it or takes it back.
//!
//! Separate because it happens once in a round trip, apart from every segment. What is wanted is decided from
//! the rate at which the application reads and from the congestion window. What is granted is the owner's
//! decision, which knows how much memory there is. Room inside an offered window is never taken back (RFC 9293,
//! section 3.8.6; RFC 7323, section 2.4).

use rxo_frame::{Duration, Instant};

use super::Connection;
use crate::arrives::least_receive_bytes;
use crate::receive::{Progress, ReadRate};
use crate::send::Fin;
use crate::{Buffers, Events};

impl<B: AsRef<[u8]>> Connection<B> {
    /// The buffers that the path needs, within [`Config::largest_buffers`](crate::Config::largest_buffers), if
    /// that is more than there is, or if [`Connection::buffers`] has become less by itself. Decides once in a
    /// round trip, and asks again until it is granted; in between it costs a comparison and returns `None`.
    ///
    /// The receive buffer follows the most that the application has read in a round trip: an application that
    /// takes little in each keeps a small one. One that pauses and then reads everything counts as fast.
    /// The send buffer follows the congestion window.
    pub fn wants_buffers(&mut self, now: Instant) -> Option<Buffers> {
        self.config.largest_buffers?;
        if !self.state.is_synchronized() || self.terms.iss().is_some() {
            return None;
        }
        let progress = Progress {
            now,
            read_at: self.rcv.read_at(),
            edge: self.rcv.offered_edge(),
            round_trip: self.receiving_round_trip(),
        };
        let initial = INITIAL_SEGMENTS * self.rcv.full_segment();
        let rate = self.read_rate.get_or_insert_with(|| ReadRate::new(&progress, initial));
        let received = rate.end_round(&progress)?;
        let is_done = self.is_peer_done();
        let has_freed = !is_done && self.rcv.free_used_window(self.config.receive_pieces);
        let largest = self.config.largest_buffers();
        let has = Buffers {
            send_bytes: self.snd.buffer.size(),
            receive_bytes: self.rcv.capacity().min(self.rcv.held_bytes()),
        };
        let received = if is_done { 0 } else { received.min(self.largest_window(largest)) };
        let sent = self.send_buffer_for_window().min(largest.send_bytes);
        let wanted = has.larger(Buffers { send_bytes: sent, receive_bytes: received });
        (has_freed || wanted != has).then_some(wanted)
    }

    /// The memory that the buffers may take, in bytes. More than what was set while a larger window is
    /// offered, or while more data waits to be acknowledged; less if a direction is done.
    #[must_use]
    pub fn buffers(&self) -> Buffers {
        Buffers { send_bytes: self.snd.buffer.size(), receive_bytes: self.rcv.held_bytes() }
    }

    /// The minimum round-trip time since the connection opened; `None` before the first sample.
    #[must_use]
    pub fn least_round_trip(&self) -> Option<Duration> {
        self.recovery.rtt.smoothed().map(|_| self.recovery.rtt.least())
    }

    /// Changes the sizes of the buffers, and returns what they still take: data stays, and so does room inside
    /// an offered window. A direction that is done stays as it is, and so does the receive buffer before the
    /// handshake is over, because a SYN has offered it. Allocates if a size changes.
    pub fn set_buffers(&mut self, granted: Buffers) -> Buffers {
        let largest = self.config.largest_buffers();
        if self.snd.fin != Fin::Acknowledged && !self.is_closed() {
            self.resize_sending(granted.send_bytes.clamp(1, largest.send_bytes));
        }
        if self.state.is_synchronized() && !self.is_peer_done() && !self.is_closed() {
            let least = least_receive_bytes(&self.config);
            self.resize_receiving(granted.receive_bytes.clamp(least, largest.receive_bytes));
        }
        self.buffers()
    }

    /// The round-trip time for a side that may only receive: by the echoes of its acknowledgements. The estimate for
    /// retransmissions serves if this side has sent something, because that of the handshake may be of long ago.
    pub(super) fn receiving_round_trip(&self) -> Option<Duration> {
        let has_sent = self.snd.una != self.snd.iss + 1;
        let by_sending = || self.recovery.rtt.smoothed().filter(|_| has_sent);
        self.timestamps.round_trip().or_else(by_sending)
    }

    /// While slow start doubles the window each round trip, there must be data for the next one beside what is
    /// in flight.
    fn send_buffer_for_window(&self) -> u32 {
        if self.snd.fin != Fin::None {
            return 0;
        }
        // More than the peer has ever allowed is not in flight, whatever the congestion window is.
        let window = self.congestion.cwnd().min(self.snd.max_wnd);
        window.saturating_mul(if self.congestion.is_starting() { 4 } else { 2 })
    }

    /// Without the window scale option a larger buffer could not be offered.
    fn largest_window(&self, largest: Buffers) -> u32 {
        let most = if self.agreed_on_scaling { u32::MAX } else { u16::MAX.into() };
        largest.receive_bytes.min(most)
    }

    fn resize_sending(&mut self, bytes: u32) {
        let bytes = bytes.max(self.snd.buffer.len());
        if bytes == self.snd.buffer.size() || self.terms.iss().is_some() {
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
        if bytes < self.rcv.capacity() {
            // What it reads from the smaller window tells what it needs.
            self.read_rate = None;
        }
        if !self.rcv.resize(bytes, self.config.receive_pieces) {
            return;
        }
        if self.takes_text() && self.rcv.wants_update() {
            self.owe_update();
        }
    }
}

/// What a peer may send in its first round trip (RFC 6928), in segments.
const INITIAL_SEGMENTS: u32 = 10;
/// A range of sent numbers for so many bytes of the send buffer: half of them are for cuts by SACK, and a
/// segment of a usual size takes one.
pub(super) const BYTES_FOR_A_RANGE: u32 = 512;
