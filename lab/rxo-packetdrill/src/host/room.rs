//! How much an application may write, and when waiting data goes to the connection.

use rxo_frame::Instant;

use super::endpoint::Endpoint;
use super::settings::RING_BYTES;
use super::{Fd, VirtualHost};
use crate::abi::{Errno, POLLOUT};

/// The limits of a write, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct WriteLimits {
    /// Limit of unacknowledged data: SO_SNDBUF, or what the congestion window needs if it was not
    /// set.
    pub(super) queued: u32,
    /// Limit of unsent data: TCP_NOTSENT_LOWAT.
    pub(super) unsent: u32,
}

impl VirtualHost {
    pub(super) fn write_limits(&mut self, fd: Fd) -> Result<WriteLimits, Errno> {
        let default = (self.settings.send_limit_bytes, self.settings.unsent_limit_bytes);
        let options = &self.socket(fd)?.options;
        let (set, lowat) = (options.send_limit, options.unsent_limit);
        // Like Linux's automatic buffer size: two congestion windows.
        let needed = 2 * self.stream(fd).map_or(0, |endpoint| endpoint.tcp.statistics().cwnd);
        let grown = default.0.max(needed).min(RING_BYTES);
        Ok(WriteLimits {
            queued: set.unwrap_or(grown),
            unsent: if lowat == 0 { default.1 } else { lowat },
        })
    }
}

impl Endpoint {
    /// Number of bytes that a write may take now.
    pub(super) fn room(&self, limits: &WriteLimits) -> usize {
        let queued = limits.queued.saturating_sub(self.unacknowledged());
        queued.min(limits.unsent.saturating_sub(self.unsent())) as usize
    }

    /// Whether to notify a writer of room: a third of the buffer is free, and less than half of the
    /// allowed unsent data is waiting. Like Linux, so that a writer is not woken by every
    /// acknowledgement.
    pub(super) fn has_enough_room(&self, limits: &WriteLimits) -> bool {
        let queued = self.unacknowledged();
        let is_free = limits.queued.saturating_sub(queued) >= queued / 2;
        is_free && queued < limits.queued && self.unsent().saturating_mul(2) < limits.unsent
    }

    /// Notifies a waiting writer of free room.
    pub(super) fn notify_of_room(&mut self, limits: &WriteLimits) {
        if self.wants_room && self.has_enough_room(limits) {
            self.wants_room = false;
            self.signals |= POLLOUT;
        }
    }

    /// Data that was never sent, in the connection or in the outbox.
    fn unsent(&self) -> u32 {
        self.unacknowledged() - self.sent_and_unacknowledged()
    }

    fn sent_and_unacknowledged(&self) -> u32 {
        let seen = self.tcp.statistics();
        let sent = (seen.snd_nxt - seen.snd_una).max(0) as u32;
        sent.min(self.tcp.unacknowledged_bytes() as u32)
    }

    /// Gives the connection what it may have now. Returns whether that was anything.
    pub(super) fn hand_on(&mut self, now: Instant) -> bool {
        let seen = self.tcp.statistics();
        let segment = seen.mss as usize;
        let Some(piece) = self.outbox.next(seen.unsent, segment, self.is_corked) else {
            self.release_at = self.release_at.filter(|_| !self.outbox.is_empty());
            let is_quiet = seen.unsent == 0 && seen.snd_nxt == seen.snd_una;
            if !self.outbox.is_empty() && is_quiet && self.release_at.is_none() {
                self.release_at = Some(now + seen.rto);
            }
            return false;
        };
        self.give(piece.bytes, piece.is_followed)
    }

    /// Sends a segment of data that was held back long enough.
    pub(super) fn release(&mut self) {
        let segment = self.tcp.statistics().mss as usize;
        self.release_at = None;
        self.give(segment.min(self.outbox.len()), false);
    }

    /// Stops holding data back.
    pub(super) fn uncork(&mut self) {
        self.release_at = None;
        self.outbox.forget_more();
        self.give(self.outbox.len(), false);
    }

    fn give(&mut self, bytes: usize, is_followed: bool) -> bool {
        self.tcp.set_nagle(!self.is_nagle_off && !is_followed);
        let text = self.outbox.text(bytes);
        let taken = self.tcp.send(text).unwrap_or(0);
        self.outbox.taken(taken);
        taken > 0
    }
}
