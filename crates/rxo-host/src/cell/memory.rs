//! What a connection may hold: its memory is reserved when text comes or is written, and given back afterwards.
//!
//! The sums are `crate::memory`'s; here they meet the connection.

use std::sync::atomic::Ordering;

use rxo_frame::Instant;
use rxo_tcp::{Connection, Segment};

use super::{Cell, Inner};
use crate::buffer::Buffer;
use crate::memory::{Directions, MEAGER_BYTES, Memory, Share};

impl<B: AsRef<[u8]>> Cell<B> {
    /// Gives the connection the memory that its path needs, as far as there is some, and takes back what it
    /// holds no more.
    pub(crate) fn grow(&self, inner: &mut Inner<B>, now: Instant) {
        let Some(wanted) = inner.connection.wants_buffers(now) else { return };
        let round_trip = inner.connection.least_round_trip();
        if let Some(granted) = self.post.memory().grow(&mut inner.share, wanted, round_trip) {
            inner.connection.set_buffers(granted);
        }
        self.take_back(inner);
    }

    /// How many bytes an application may write or lend to be sent, beside the limit of the send buffer. Reserves the memory,
    /// if there is some.
    pub(super) fn most_to_send(&self, inner: &mut Inner<B>) -> usize {
        let Inner { connection, share, .. } = inner;
        if share.sends() || connection.send_room() == 0 || self.post.memory().wake_sending(share) {
            return usize::MAX;
        }
        if connection.unacknowledged_bytes() == 0 {
            return MEAGER_BYTES;
        }
        // A connection that sends no more waits for nothing.
        if connection.send(&[]).is_ok() && !std::mem::replace(&mut inner.lacks_memory, true) {
            self.wait_for_memory(inner);
        }
        0
    }

    /// Tells an application that waits for memory to send, if there is some now. Returns whether it waits on.
    pub(crate) fn offer_memory(&self, inner: &mut Inner<B>) -> bool {
        if inner.lacks_memory && self.post.memory().wake_sending(&mut inner.share) {
            inner.lacks_memory = false;
            self.signal.notify();
        }
        inner.lacks_memory
    }

    /// Has the worker offer memory as soon as there is some.
    pub(crate) fn wait_for_memory(&self, inner: &Inner<B>) {
        let place = self.place.load(Ordering::Relaxed);
        self.post.memory().wait_to_send(place, &inner.share);
    }

    /// Frees what holds nothing, and gives back what was reserved for it. Returns whether the connection is at rest.
    pub(crate) fn rest(&self, inner: &mut Inner<B>) -> bool {
        let is_free = inner.connection.free_unused();
        let in_use = Directions {
            sending: inner.connection.unacknowledged_bytes() > 0,
            receiving: inner.connection.holds_received_text(),
        };
        self.post.memory().rest(&mut inner.share, in_use);
        is_free && inner.share.is_at_rest() && !inner.lacks_memory
    }

    /// Takes back the memory of a connection that is over, but for text that can still be read.
    pub(crate) fn take_back_all(&self, inner: &mut Inner<B>) {
        self.take_back(inner);
        self.rest(inner);
    }

    /// Takes back the memory that the connection holds no more.
    fn take_back(&self, inner: &mut Inner<B>) {
        self.post.memory().shrink(&mut inner.share, inner.connection.buffers());
    }

    /// Takes back half of the memory by which the connection has grown, as far as it is free.
    pub(crate) fn shrink(&self, inner: &mut Inner<B>) {
        if let Some(half) = inner.share.halved() {
            inner.connection.set_buffers(half);
            self.take_back(inner);
        }
    }
}

/// Which segments a connection takes, whose memory is `share`: those without text, and those whose text finds room. Without
/// memory that is a little of what follows, so that no text behind a gap takes the room of the text that fills it.
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
