//! Frees the memory of a connection that is idle or nearly over.
//!
//! Each direction frees its memory as soon as the memory cannot be needed again. A server may have thousands of
//! connections in TIME-WAIT: each keeps only its sequence numbers, its timer and space for the ACKs of a
//! repeated FIN.

use super::Connection;
use crate::send::SendBuffer;
use crate::timer::Timer;

impl<B: AsRef<[u8]>> Connection<B> {
    /// Frees all memory of the connection that is not in use. The memory is allocated again when needed, so
    /// call this only for a connection without recent activity. Returns `true` if no data is held in either
    /// direction.
    pub fn free_unused(&mut self) -> bool {
        self.snd.buffer.free_unused();
        self.recovery.free_unused();
        self.rcv.free_unused();
        self.acks.free_unused();
        if self.snd.outstanding() == 0 {
            self.congestion.free();
        }
        let is_sent = self.snd.una == self.snd.nxt && self.snd.buffer.len() == 0;
        is_sent && self.rcv.ready_bytes() == 0 && !self.rcv.has_gap()
    }

    /// Frees the memory of the sending direction. Call it when the peer has acknowledged our FIN or the
    /// connection is closed, so that nothing will be sent or retransmitted.
    pub(crate) fn free_sending(&mut self) {
        self.snd.buffer = SendBuffer::with_capacity(0);
        self.recovery.free_memory();
        self.congestion.free();
        self.timers.stop(Timer::Pace);
    }

    /// Frees the memory of the receiving direction if no more data will be accepted. Data that has arrived in
    /// order stays until it is read.
    pub(crate) fn free_receiving(&mut self) {
        if self.is_peer_done() || self.is_closed() {
            self.rcv.free_memory();
            self.acks.free_unused();
        }
    }
}
