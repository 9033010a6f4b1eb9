//! Buffer autotuning: the connection requests the buffer sizes that its path needs, and its owner grants memory or
//! takes memory back.
//!
//! Separate because this code runs once per round trip, not per segment. The requested size follows from the
//! rate at which the application reads and from the congestion window. The owner decides on the granted size,
//! because it knows how much memory there is. Space inside an offered window is never taken back (RFC 9293,
//! section 3.8.6; RFC 7323, section 2.4).

use rxo_frame::{Duration, Instant};

use super::Connection;
use crate::arrives::least_receive_bytes;
use crate::receive::{Progress, ReadRate};
use crate::send::Fin;
use crate::{Buffers, Events};

impl<B: AsRef<[u8]>> Connection<B> {
    /// Returns the buffers that the path needs, within
    /// [`Config::largest_buffers`](crate::Config::largest_buffers), if they exceed the current ones or if
    /// [`Connection::buffers`] has shrunk by itself. Otherwise returns `None`. Decides once per round trip and
    /// repeats a request until it is granted; within a round trip, a call costs one comparison.
    ///
    /// The receive buffer follows the largest amount that the application has read in one round trip, so an
    /// application that reads little keeps a small buffer. An application that pauses and then reads
    /// everything counts as fast. The send buffer follows the congestion window.
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

    /// Returns the memory that the buffers may use, in bytes. The result exceeds the set sizes while a larger
    /// window is offered or more data waits to be acknowledged. The result is less once a direction is closed
    /// and all its data was processed.
    #[must_use]
    pub fn buffers(&self) -> Buffers {
        Buffers { send_bytes: self.snd.buffer.size(), receive_bytes: self.rcv.held_bytes() }
    }

    /// Returns the minimum round-trip time since the connection opened; `None` before the first sample.
    #[must_use]
    pub fn least_round_trip(&self) -> Option<Duration> {
        self.recovery.rtt.smoothed().map(|_| self.recovery.rtt.least())
    }

    /// Changes the sizes of the buffers and returns the memory that they still use: a buffer keeps its data and
    /// the space inside an offered window. The buffer of a direction that is done does not change. The receive
    /// buffer does not change before the handshake is over, because a SYN has offered it. Allocates if a size
    /// changes.
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

    /// Returns the round-trip time as a receiver measures it, from timestamp echoes. Without timestamps,
    /// returns the smoothed estimate of the sending half, but only if this side has sent data: a sample from
    /// the handshake alone may be too old. `None` if neither time is known.
    pub(super) fn receiving_round_trip(&self) -> Option<Duration> {
        let has_sent = self.snd.una != self.snd.iss + 1;
        let by_sending = || self.recovery.rtt.smoothed().filter(|_| has_sent);
        self.timestamps.round_trip().or_else(by_sending)
    }

    /// Returns the send buffer that the congestion window needs, in bytes. While slow start doubles the
    /// window in each round trip, the buffer holds the next window as well.
    fn send_buffer_for_window(&self) -> u32 {
        if self.snd.fin != Fin::None {
            return 0;
        }
        // No more than the peer's largest window is ever in flight, whatever the congestion window is.
        let window = self.congestion.cwnd().min(self.snd.max_wnd);
        window.saturating_mul(if self.congestion.is_starting() { 4 } else { 2 })
    }

    /// Returns the largest receive buffer, in bytes, that a window can offer: without window scaling at most
    /// 65,535.
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
            // The rate at which the application reads from the smaller window shows what it needs.
            self.read_rate = None;
        }
        if !self.rcv.resize(bytes, self.config.receive_pieces) {
            return;
        }
        if self.takes_text() && self.rcv.wants_update() {
            self.queue_window_update();
        }
    }
}

/// The number of segments that a peer may send in its first round trip (RFC 6928).
const INITIAL_SEGMENTS: u32 = 10;
/// The number of bytes of the send buffer for which one range of sent sequence numbers is tracked. A segment
/// of usual size needs one range; half of the ranges are spare, for cuts by SACK.
pub(super) const BYTES_FOR_A_RANGE: u32 = 512;
