//! Frees memory towards the end of a connection.
//!
//! Each direction frees its memory as soon as it cannot need it again. So a connection in TIME-WAIT, of
//! which a server may have thousands, keeps only its numbers, its timer and room for the acknowledgements
//! of a repeated FIN.

use super::Connection;
use crate::send::SendBuffer;
use crate::timer::Timer;

impl<B: AsRef<[u8]>> Connection<B> {
    /// Frees the sending direction: the peer has our FIN, or there is no connection, so nothing will be
    /// sent or retransmitted.
    pub(crate) fn give_back_sending(&mut self) {
        self.snd.buffer = SendBuffer::with_capacity(0);
        self.recovery.give_back();
        self.timers.stop(Timer::Pace);
    }

    /// Frees the receiving direction if no more text will be taken. Text that has arrived in order stays
    /// until it is read.
    pub(crate) fn give_back_receiving(&mut self) {
        if self.is_peer_done() || self.is_closed() {
            self.rcv.give_back();
            self.acks.give_back();
        }
    }
}
