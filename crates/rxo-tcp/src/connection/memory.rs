//! Giving memory back towards the end of a connection.
//!
//! Each half gives back what it was opened with as soon as it cannot need it again, so that a
//! connection in TIME-WAIT, of which a server may have thousands, keeps its numbers, its timer and room
//! for the acknowledgements that a repeated FIN asks for.

use super::Connection;
use crate::send::SendBuffer;

impl<B: AsRef<[u8]>> Connection<B> {
    /// Nothing will be sent any more, new or again: the peer has our FIN, or there is no connection.
    pub(crate) fn give_back_sending(&mut self) {
        self.snd.buffer = SendBuffer::with_capacity(0);
        self.recovery.give_back();
    }

    /// No text will be taken any more, where that is so; what has come in order stays until it is read.
    pub(crate) fn give_back_receiving(&mut self) {
        if self.is_peer_done() || self.is_closed() {
            self.rcv.give_back();
            self.acks.give_back();
        }
    }
}
