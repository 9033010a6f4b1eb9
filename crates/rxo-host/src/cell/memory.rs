//! The memory of a connection: reserved when data arrives or is written, and released afterwards.
//!
//! `crate::memory` manages the totals of the host; this module reserves and releases memory for one connection.

use std::sync::atomic::Ordering;

use rxo_frame::Instant;
use rxo_tcp::{Connection, Segment};

use super::{Cell, Inner};
use crate::buffer::Buffer;
use crate::memory::{Directions, MEAGER_BYTES, Memory, Share};

impl<B: AsRef<[u8]>> Cell<B> {
    /// Grows the connection's buffers to the size that its path needs, as far as memory is available. Releases
    /// memory that the connection no longer uses. If received data has a gap, first records a loss.
    pub(crate) fn grow(&self, inner: &mut Inner<B>, now: Instant) {
        if inner.connection.lacks_text() {
            self.post.memory().queue().lost(inner.connection.least_round_trip());
        }
        let Some(wanted) = inner.connection.wants_buffers(now) else { return };
        let round_trip = inner.connection.least_round_trip();
        if let Some(granted) = self.post.memory().grow(&mut inner.share, wanted, round_trip) {
            inner.connection.set_buffers(granted);
        }
        self.take_back(inner);
    }

    /// Returns the maximum number of bytes that an application may pass to the send buffer now, as far as
    /// memory limits it; the send buffer has its own limit. 0 means that the application must wait. Reserves
    /// memory for the send buffer if enough is free.
    pub(super) fn most_to_send(&self, inner: &mut Inner<B>) -> usize {
        let Inner { connection, share, .. } = inner;
        if share.sends() || connection.send_room() == 0 || self.post.memory().wake_sending(share) {
            return usize::MAX;
        }
        if connection.unacknowledged_bytes() == 0 {
            return MEAGER_BYTES;
        }
        // Registers for memory, unless the connection cannot send any more.
        if connection.send(&[]).is_ok() && !std::mem::replace(&mut inner.lacks_memory, true) {
            self.wait_for_memory(inner);
        }
        0
    }

    /// If an application waits for memory to send and enough memory is free, reserves the memory and wakes the
    /// application. Returns `true` if the application still waits.
    pub(crate) fn offer_memory(&self, inner: &mut Inner<B>) -> bool {
        if inner.lacks_memory && self.post.memory().wake_sending(&mut inner.share) {
            inner.lacks_memory = false;
            self.signal.notify();
        }
        inner.lacks_memory
    }

    /// Registers the connection with the worker, which offers memory to the connection as soon as enough is
    /// free.
    pub(crate) fn wait_for_memory(&self, inner: &Inner<B>) {
        let place = self.place.load(Ordering::Relaxed);
        self.post.memory().wait_to_send(place, &inner.share);
    }

    /// Frees empty buffers and releases the memory reserved for them. Returns `true` if the connection is at
    /// rest: it holds no data, and its application does not wait for memory.
    pub(crate) fn rest(&self, inner: &mut Inner<B>) -> bool {
        let is_free = inner.connection.free_unused();
        let in_use = Directions {
            sending: inner.connection.unacknowledged_bytes() > 0,
            receiving: inner.connection.holds_received_text(),
        };
        self.post.memory().rest(&mut inner.share, in_use);
        is_free && inner.share.has_only_fixed() && !inner.lacks_memory
    }

    /// Releases the memory of a closed connection, except for data that can still be read.
    pub(crate) fn take_back_all(&self, inner: &mut Inner<B>) {
        self.take_back(inner);
        self.rest(inner);
    }

    /// Releases the memory by which the reservation exceeds the connection's buffers.
    fn take_back(&self, inner: &mut Inner<B>) {
        self.post.memory().shrink(&mut inner.share, inner.connection.buffers());
    }

    /// Halves the buffers of the connection, but not below their initial sizes, and releases the memory. Space
    /// that is in use stays reserved.
    pub(crate) fn shrink(&self, inner: &mut Inner<B>) {
        if let Some(half) = inner.share.halved() {
            inner.connection.set_buffers(half);
            self.take_back(inner);
        }
    }
}

/// Returns the function that decides which segments a connection accepts; `share` is the connection's memory.
/// Segments without data always pass. Segments with data pass if memory can be reserved for them; without
/// memory, only [`MEAGER_BYTES`] of in-order data pass, so that data after a gap cannot take the space of the
/// data that fills the gap.
pub(super) fn admission<'a, B: AsRef<[u8]>>(
    memory: &'a Memory,
    share: &'a mut Share,
    connection: &Connection<Buffer<B>>,
) -> impl FnMut(&Segment<Buffer<B>>) -> bool + use<'a, B> {
    let mut room_bytes = if connection.holds_received_text() { 0 } else { MEAGER_BYTES as u32 };
    let mut next = connection.received_to();
    move |segment| {
        let text_bytes = segment.text_bytes();
        let fits = text_bytes <= room_bytes && !next.is_before(segment.seq);
        let is_admitted = text_bytes == 0 || memory.admits(share, fits);
        if is_admitted && fits {
            let end = segment.seq + text_bytes;
            next = if next.is_before(end) { end } else { next };
            room_bytes -= text_bytes;
        }
        is_admitted
    }
}
