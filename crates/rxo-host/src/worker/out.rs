//! Moves the segments of a connection to the outbox, as far as the device's queue has free space.

use rxo_device::{DeviceError, FrameSink};
use rxo_frame::Instant;
use rxo_tcp::Connection;

use super::beside::Beside;
use super::drain::{Drain, Reading};
use super::neighbours::NeighbourState;
use crate::buffer::Buffer;
use crate::transmit::{Outbox, Path};

/// The destination of a connection's segments, and its share of the device's queue.
pub(super) struct Out<'a, O> {
    pub(super) outbox: &'a mut Outbox,
    pub(super) sink: &'a mut O,
    pub(super) path: &'a mut Path,
    pub(super) ids: &'a mut u16,
    pub(super) drain: &'a mut Drain,
    /// Maximum number of data bytes that the connection may send before other connections, which wait for the
    /// device, get their turn.
    pub(super) share: u64,
    /// Number of data bytes that the connection has sent since its turn began.
    pub(super) sent: u64,
}

impl<O: FrameSink> Out<'_, O> {
    /// Sends the pending segments of the connection, if the Ethernet address of its next hop is known. Returns
    /// `true` if the connection still has data that waits for the device.
    #[inline(always)]
    pub(super) fn send_if_reached<B: AsRef<[u8]>>(
        &mut self,
        reach: NeighbourState,
        connection: &mut Connection<Buffer<B>>,
        beside: &mut impl Beside<B>,
        now: Instant,
    ) -> Result<bool, DeviceError> {
        match reach {
            NeighbourState::Known => self.send_all(connection, beside, now),
            NeighbourState::Waits => Ok(false),
            NeighbourState::Unreachable => {
                connection.on_no_neighbour();
                Ok(false)
            }
        }
    }

    fn send_all<B: AsRef<[u8]>, S: Beside<B>>(
        &mut self,
        connection: &mut Connection<Buffer<B>>,
        beside: &mut S,
        now: Instant,
    ) -> Result<bool, DeviceError> {
        let mut is_held = false;
        if self.drain.limits() {
            connection.limit_large_sends(self.drain.largest_send());
        }
        loop {
            if !self.may_send(connection, now)? && S::WAITS_FOR_DEVICE && connection.is_text_next()
            {
                connection.hold_back(now);
                is_held = true;
                break;
            }
            let Some(transmit) = connection.poll_transmit(now) else { break };
            if beside.takes(&transmit) {
                continue;
            }
            let bytes = transmit.payload_bytes() as u64;
            self.drain.sent(bytes);
            self.sent += bytes;
            self.outbox.push(self.path, &transmit, self.ids);
            if self.outbox.is_full() {
                self.outbox.send(self.sink, Some(connection))?;
            }
        }
        if self.outbox.has_borrowed() {
            self.outbox.send(self.sink, Some(connection))?;
        }
        Ok(is_held)
    }

    /// Returns `true` if the device's queue has free space and the connection has not used its share. Reads
    /// the queue if its free space is used up.
    #[inline(always)]
    fn may_send<B: AsRef<[u8]>>(
        &mut self,
        connection: &mut Connection<Buffer<B>>,
        now: Instant,
    ) -> Result<bool, DeviceError> {
        if self.drain.room() == 0 {
            self.ask(connection, now)?;
        }
        Ok(!self.drain.limits() || self.drain.room() > 0 && self.sent < self.share)
    }

    #[cold]
    fn ask<B: AsRef<[u8]>>(
        &mut self,
        connection: &mut Connection<Buffer<B>>,
        now: Instant,
    ) -> Result<(), DeviceError> {
        if self.drain.is_due(now) {
            self.outbox.send(self.sink, Some(connection))?;
            self.drain.read(now, reading(self.sink));
        }
        Ok(())
    }
}

/// Reads the length of the device's queue.
pub(super) fn reading<O: FrameSink>(sink: &O) -> Reading {
    if sink.is_blocked() {
        return Reading::Blocked;
    }
    sink.queued_bytes().map_or(Reading::Unknown, Reading::Queued)
}
