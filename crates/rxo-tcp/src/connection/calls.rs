//! The application's calls (RFC 9293, section 3.9.1).

use alloc::sync::Arc;
use core::{fmt, mem};

use rxo_frame::{ConfigError, Duration, Instant, SharedBytes};
use rxo_wire::SeqNumber;

use super::Connection;
use crate::send::{Fin, Text};
use crate::state::{Closed, Failure};
use crate::timer::Timer;
use crate::{Config, Events, KeepAlive, Reset, State};

/// The reason why a call of the application had no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallError {
    /// The call would have to wait: no data has arrived yet, or the send buffer is full.
    NotYet,
    /// The connection was not opened, or is closed.
    NotOpen,
    /// The application has closed its direction.
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
    /// SEND: copies as much of `data` as fits into the send buffer, and returns the number of bytes. While
    /// the connection opens, the data waits. Allocates only up to the granted buffers.
    ///
    /// # Errors
    /// [`CallError::NotYet`] if the buffer is full, or holds as much unsent data as
    /// [`most_unsent_bytes`](Config::most_unsent_bytes) permits; otherwise the reason why nothing can be sent
    /// any more.
    pub fn send(&mut self, data: &[u8]) -> Result<usize, CallError> {
        self.check_sending()?;
        let room = data.len().min(self.snd.room() as usize);
        match self.snd.buffer.write(&data[..room]) {
            0 if !data.is_empty() => Err(CallError::NotYet),
            taken => Ok(taken),
        }
    }

    /// SEND without a copy: removes as much from the front of `text` as fits into the send buffer, and returns
    /// the number of bytes. The connection keeps these bytes until the peer has acknowledged them or the
    /// connection ends. They count against the send buffer like written data, and both kinds of data are sent
    /// in the order of the calls. Less than 2 KiB is copied. May allocate a few bytes of bookkeeping.
    ///
    /// # Errors
    /// The errors of [`Connection::send`]; `text` is then unchanged.
    pub fn send_shared(&mut self, text: &mut SharedBytes) -> Result<usize, CallError> {
        self.check_sending()?;
        let is_empty = text.is_empty();
        match self.snd.buffer.append_shared_at_most(text, self.snd.room()) {
            0 if !is_empty => Err(CallError::NotYet),
            taken => Ok(taken),
        }
    }

    /// Returns the number of bytes that [`Connection::send`] would accept now; 0 if nothing can be sent any more.
    #[must_use]
    pub fn send_room(&self) -> usize {
        self.check_sending().map_or(0, |()| self.snd.room() as usize)
    }

    /// Returns `true` if an application that waits for send space should be woken: at least a quarter of the
    /// send buffer is free, and at most half of the permitted unsent data is still unsent.
    #[must_use]
    pub fn has_much_send_room(&self) -> bool {
        self.snd.has_much_room()
    }

    /// Returns `true` if [`Connection::poll_transmit`] would return a segment now.
    #[must_use]
    pub fn has_to_send(&self) -> bool {
        self.plan().is_ok()
    }

    /// Returns `true` if the owner must poll the connection after [`Connection::send`]: a segment can be
    /// sent, or no timer runs that would send it later.
    #[must_use]
    pub fn wants_attention(&self) -> bool {
        self.has_to_send() || self.poll_at().is_none()
    }

    /// Returns the data of an earlier [`crate::Transmit`], for owners that send several transmits at once:
    /// `bytes` bytes starting at the sequence number `seq`, without the part that has been acknowledged.
    #[must_use]
    pub fn sent_text(&self, seq: SeqNumber, bytes: u32) -> Text<'_> {
        self.snd.text(seq, seq + bytes)
    }

    /// Returns the number of bytes given to [`Connection::send`] that the peer has not acknowledged.
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

    /// RECEIVE: copies data that has arrived in order into `to`, and returns the number of bytes; 0 if the
    /// peer has closed its direction and everything is read. Data that arrived before a failure is read
    /// first.
    ///
    /// # Errors
    /// [`CallError::NotYet`] if no data is available; otherwise the reason why none will arrive. A failure is
    /// returned once, then 0, as in Linux; [`Connection::state`] still reports it.
    pub fn receive(&mut self, to: &mut [u8]) -> Result<usize, CallError> {
        if self.readable_bytes() == 0 {
            return self.nothing_to_read();
        }
        let copied = self.rcv.read(to);
        self.has_consumed(copied);
        Ok(copied)
    }

    /// Returns the result of a read for which there is no data. After the peer's FIN the application has read
    /// all data, so the result is 0, even if the connection failed later. After an abort, which drops data, the
    /// result is an error.
    fn nothing_to_read(&mut self) -> Result<usize, CallError> {
        match self.state {
            State::Closed(Closed { failure: Some(failure) })
                if !self.is_peer_done() || failure == Failure::Aborted =>
            {
                let is_known = mem::replace(&mut self.is_failure_read, true);
                if is_known { Ok(0) } else { Err(CallError::Failed(failure)) }
            }
            _ if self.is_peer_done() => Ok(0),
            State::Closed(_) => Err(CallError::NotOpen),
            _ => Err(CallError::NotYet),
        }
    }

    /// Returns the data that has arrived in order and is not consumed, in its original buffers: reading
    /// without a copy.
    pub fn readable(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.rcv.slices()
    }

    /// Returns the number of bytes that can be read now without blocking: the length of all slices of
    /// [`Connection::readable`].
    #[must_use]
    pub fn readable_bytes(&self) -> usize {
        self.rcv.ready_bytes()
    }

    /// Returns `true` if the connection holds received data: in order and not consumed, or out of order.
    #[must_use]
    pub fn holds_received_text(&self) -> bool {
        self.readable_bytes() > 0 || self.rcv.has_gap()
    }

    /// Consumes the first `bytes` of the readable data, drops buffers that are fully consumed, and returns
    /// the number of bytes consumed. If this opens the window, [`Connection::poll_transmit`] returns an
    /// ACK.
    pub fn consume(&mut self, bytes: usize) -> usize {
        let consumed = self.rcv.consume(bytes);
        self.has_consumed(consumed);
        consumed
    }

    fn has_consumed(&mut self, bytes: usize) {
        if bytes == 0 {
            return;
        }
        self.free_receiving();
        if self.takes_text() && self.rcv.wants_update() {
            self.queue_window_update();
        }
    }

    /// Returns RCV.NXT, the next sequence number expected from the peer: everything before it has arrived.
    #[must_use]
    pub fn received_to(&self) -> SeqNumber {
        self.rcv.nxt
    }

    /// Returns `true` if a gap in the received data precedes data that has arrived: a segment was lost, or is
    /// late.
    #[inline]
    #[must_use]
    pub fn lacks_text(&self) -> bool {
        self.rcv.has_gap()
    }

    /// Returns `true` if the connection keeps an in-order buffer that arrived before
    /// [`Connection::received_to`] was `seq`.
    #[must_use]
    pub fn keeps_buffers_before(&self, seq: SeqNumber) -> bool {
        self.rcv.keeps_buffers_before(seq)
    }

    /// Returns `true` if the connection keeps out-of-order buffers.
    #[must_use]
    pub fn keeps_buffers_out_of_order(&self) -> bool {
        self.rcv.keeps_buffers_out_of_order()
    }

    /// Moves data that is not consumed into other buffers, for an owner that must free the memory of the old
    /// buffers. `exchange` gets a buffer and its data, and returns the new buffer. The old buffer stays if
    /// `exchange` returns `None` or a buffer whose length differs from the data's.
    pub fn exchange_buffers(&mut self, exchange: impl FnMut(&B, &[u8]) -> Option<B>) {
        self.rcv.exchange(exchange);
    }

    /// Returns `true` if the peer has closed its direction. Data may still be readable.
    #[must_use]
    pub fn is_peer_done(&self) -> bool {
        self.rcv.fin_at().is_some_and(|at| self.rcv.nxt == at + 1)
    }

    /// CLOSE: closes this side's direction. Data given to [`Connection::send`] is still delivered, then a
    /// FIN. Data can still be received (a half-closed connection).
    ///
    /// # Errors
    /// Returns an error if there is no connection or this direction is closed already.
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

    /// ABORT: drops all data and resets the peer (RFC 9293, section 3.10.5). The peer is not reset if both
    /// directions are closed and it has all data.
    pub fn abort(&mut self) {
        match self.state {
            State::Closed(_) => return,
            State::Listen | State::SynSent(_) | State::TimeWait => {}
            // The peer has closed: it is reset only if it does not have all data.
            State::Closing | State::LastAck if self.unacknowledged_bytes() == 0 => {}
            _ => self.reset = Some(Reset::of_connection(self.reset_seq(), self.rcv.nxt)),
        }
        self.fail(Failure::Aborted);
    }

    /// Switches the Nagle algorithm on or off (RFC 9293, section 3.7.4, MUST-17).
    pub fn set_nagle(&mut self, is_on: bool) {
        Arc::make_mut(&mut self.config).nagle = is_on;
    }

    /// Sets [`Config::most_unsent_bytes`] of this connection. Data that already waits is kept. The owner should
    /// wake an application that waits for space, because a higher limit permits more data. Allocates.
    ///
    /// # Errors
    /// Returns an error, and changes nothing, if the number is invalid.
    pub fn set_most_unsent(&mut self, bytes: Option<u32>) -> Result<(), ConfigError> {
        let changed = Config { most_unsent_bytes: bytes, ..Config::clone(&self.config) };
        changed.check()?;
        self.config = Arc::new(changed);
        if self.snd.limit_unsent(bytes) {
            self.events |= Events::WRITABLE;
        }
        Ok(())
    }

    /// Sets the longest time that data may stay unacknowledged (RFC 9293, section 3.9.1; RFC 5482). For
    /// outstanding data the time begins at `now`. The handshake keeps its own timeout.
    pub fn set_user_timeout(&mut self, now: Instant, timeout: Duration) {
        Arc::make_mut(&mut self.config).user_timeout = timeout;
        if self.state.is_synchronized() {
            self.timers.stop(Timer::GiveUp);
            self.update_timers(now);
        }
    }

    /// Sets or disables keep-alive (RFC 9293, section 3.8.4, MUST-24). The idle time begins at `now`.
    ///
    /// # Errors
    /// Returns an error, and changes nothing, if a setting is invalid.
    pub fn set_keep_alive(
        &mut self,
        now: Instant,
        settings: Option<KeepAlive>,
    ) -> Result<(), ConfigError> {
        let changed = Config { keep_alive: settings, ..Config::clone(&self.config) };
        changed.check()?;
        self.config = Arc::new(changed);
        self.timers.stop(Timer::KeepAlive);
        if self.state.is_synchronized() {
            self.restart_keep_alive(now);
        }
        Ok(())
    }
}
