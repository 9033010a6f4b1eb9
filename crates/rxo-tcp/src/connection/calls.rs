//! What the application calls (RFC 9293, section 3.9.1).

use core::fmt;

use rxo_frame::{Duration, Instant};
use rxo_wire::SeqNumber;

use super::Connection;
use crate::send::Fin;
use crate::state::{Closed, Failure};
use crate::timer::Timer;
use crate::{Config, ConfigError, KeepAlive, Reset, State};

/// Why a call did nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallError {
    /// Nothing has come yet, or there is no room yet.
    NotYet,
    /// There is no connection: none was opened, or it is closed.
    NotOpen,
    /// The application has said that it is done sending.
    Closing,
    /// The connection has failed.
    Failed(Failure),
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotYet => f.write_str("nothing can be sent or read now; try again later"),
            Self::NotOpen => f.write_str("connection does not exist; open one"),
            Self::Closing => f.write_str("connection closing; nothing more can be sent"),
            Self::Failed(failure) => failure.fmt(f),
        }
    }
}

impl core::error::Error for CallError {}

impl<B: AsRef<[u8]>> Connection<B> {
    /// SEND: takes as much of `data` as there is room for, and says how much. While the connection
    /// opens, data waits. Copies; does not allocate.
    ///
    /// # Errors
    /// [`CallError::NotYet`] when there is no room, or why nothing can be sent any more.
    pub fn send(&mut self, data: &[u8]) -> Result<usize, CallError> {
        self.check_sending()?;
        match self.snd.buffer.write(data) {
            0 if !data.is_empty() => Err(CallError::NotYet),
            taken => Ok(taken),
        }
    }

    /// How many bytes [`Connection::send`] would take now.
    #[must_use]
    pub fn send_room(&self) -> usize {
        self.check_sending().map_or(0, |()| self.snd.buffer.room() as usize)
    }

    /// Whether there is room for so much that a sender who waits for room should be told: a quarter of
    /// the buffer.
    #[must_use]
    pub fn has_much_send_room(&self) -> bool {
        self.snd.buffer.room() >= self.config.send_buffer_bytes / 4
    }

    /// Whether [`Connection::poll_transmit`] has something now.
    #[must_use]
    pub fn has_to_send(&self) -> bool {
        self.plan().is_ok()
    }

    /// Whether the owner must look at it after [`Connection::send`]: something is to be sent, or no
    /// timer runs that would see to it later.
    #[must_use]
    pub fn wants_attention(&self) -> bool {
        self.has_to_send() || self.poll_at().is_none()
    }

    /// `bytes` of what was sent from `seq` on and is not acknowledged, in two pieces where the buffer's
    /// end lies between them: the text of a [`crate::Transmit`] that was given out before, for who
    /// sends several at once. What is no longer there is left out.
    #[must_use]
    pub fn sent_text(&self, seq: SeqNumber, bytes: u32) -> [&[u8]; 2] {
        self.snd.text(seq, seq + bytes)
    }

    /// Bytes that were given to [`Connection::send`] and that the peer has not acknowledged.
    #[must_use]
    pub fn unacknowledged_bytes(&self) -> usize {
        self.snd.buffer.len() as usize
    }

    fn check_sending(&self) -> Result<(), CallError> {
        match self.state {
            State::Closed(Closed { failure: Some(failure) }) => Err(CallError::Failed(failure)),
            State::Closed(_) | State::Listen => Err(CallError::NotOpen),
            _ if self.snd.fin != Fin::None => Err(CallError::Closing),
            _ => Ok(()),
        }
    }

    /// RECEIVE: copies what has come in order into `to`, and says how much; 0 when the peer is done
    /// and all is read.
    ///
    /// # Errors
    /// [`CallError::NotYet`] when nothing has come, or why nothing will.
    pub fn receive(&mut self, to: &mut [u8]) -> Result<usize, CallError> {
        if self.readable_bytes() == 0 {
            return self.nothing_to_read();
        }
        let copied = self.rcv.read(to);
        self.has_consumed();
        Ok(copied)
    }

    fn nothing_to_read(&self) -> Result<usize, CallError> {
        match self.state {
            State::Closed(Closed { failure: Some(failure) }) => Err(CallError::Failed(failure)),
            _ if self.is_peer_done() => Ok(0),
            State::Closed(_) => Err(CallError::NotOpen),
            _ => Err(CallError::NotYet),
        }
    }

    /// What has come in order and is not consumed, piece by piece where it lies: reading without a
    /// copy.
    pub fn readable(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.rcv.slices()
    }

    /// How much that is.
    #[must_use]
    pub fn readable_bytes(&self) -> usize {
        self.rcv.ready_bytes()
    }

    /// Drops the first `bytes` of it, and the buffers that are used up; says how many there were.
    /// The window may open: [`Connection::poll_transmit`] then has an acknowledgement.
    pub fn consume(&mut self, bytes: usize) -> usize {
        let consumed = self.rcv.consume(bytes);
        self.has_consumed();
        consumed
    }

    fn has_consumed(&mut self) {
        self.give_back_receiving();
        if self.takes_text() && self.rcv.wants_update() {
            self.owe_update();
        }
    }

    /// RCV.NXT: everything before it has come.
    #[must_use]
    pub fn received_to(&self) -> SeqNumber {
        self.rcv.nxt
    }

    /// Whether it keeps a buffer that came before [`Connection::received_to`] was `seq`; those out of
    /// order left out.
    #[must_use]
    pub fn keeps_buffers_before(&self, seq: SeqNumber) -> bool {
        self.rcv.keeps_buffers_before(seq)
    }

    /// Whether it keeps buffers out of order.
    #[must_use]
    pub fn keeps_buffers_out_of_order(&self) -> bool {
        self.rcv.keeps_buffers_out_of_order()
    }

    /// Puts text that is not consumed into buffers that `exchange` makes of it, and drops those it was
    /// in: for an owner who has to give their memory back. It is shown buffer and text; `None`, or a
    /// buffer that is not as long as the text, leaves things as they are.
    pub fn exchange_buffers(&mut self, exchange: impl FnMut(&B, &[u8]) -> Option<B>) {
        self.rcv.exchange(exchange);
    }

    /// Whether the peer is done sending; what it sent may still be readable.
    #[must_use]
    pub fn is_peer_done(&self) -> bool {
        self.rcv.fin_at.is_some_and(|at| self.rcv.nxt == at + 1)
    }

    /// CLOSE: this side is done sending; what was given to [`Connection::send`] is still delivered,
    /// then a FIN. Text can be received as before (a half-closed connection).
    ///
    /// # Errors
    /// When there is no connection, or it was called before.
    pub fn shutdown(&mut self) -> Result<(), CallError> {
        match self.state {
            State::Listen | State::SynSent(_) => {
                self.close(Closed { failure: None });
                return Ok(());
            }
            _ => self.check_sending()?,
        }
        self.snd.fin = Fin::Queued;
        self.state = self.state.after_shutdown();
        Ok(())
    }

    /// ABORT: drops everything and resets the peer (RFC 9293, section 3.10.5), unless both sides are done
    /// and the peer has all text.
    pub fn abort(&mut self) {
        match self.state {
            State::Closed(_) => return,
            State::Listen | State::SynSent(_) | State::TimeWait => {}
            // The peer has closed; it must hear only of what it does not get.
            State::Closing | State::LastAck if self.unacknowledged_bytes() == 0 => {}
            _ => self.reset = Some(Reset::of_connection(self.snd.acceptable(), self.rcv.nxt)),
        }
        self.fail(Failure::Aborted);
    }

    /// Switches Nagle's rule (RFC 9293, section 3.7.4, MUST-17).
    pub fn set_nagle(&mut self, is_on: bool) {
        self.config.nagle = is_on;
    }

    /// Changes how long data may stay unacknowledged (RFC 9293, section 3.9.1; RFC 5482): what is
    /// outstanding has that long from `now`. The handshake keeps its own timeout.
    pub fn set_user_timeout(&mut self, now: Instant, timeout: Duration) {
        self.config.user_timeout = timeout;
        if self.state.is_synchronized() {
            self.timers.stop(Timer::GiveUp);
            self.settle(now);
        }
    }

    /// Switches keep-alive, or changes it (RFC 9293, section 3.8.4, MUST-24): the idle time begins
    /// `now`.
    ///
    /// # Errors
    /// When a setting cannot be; then all stays as it was.
    pub fn set_keep_alive(
        &mut self,
        now: Instant,
        settings: Option<KeepAlive>,
    ) -> Result<(), ConfigError> {
        let changed = Config { keep_alive: settings, ..self.config.clone() };
        changed.check()?;
        self.config = changed;
        self.timers.stop(Timer::KeepAlive);
        if self.state.is_synchronized() {
            self.heard_of_peer(now);
        }
        Ok(())
    }
}
