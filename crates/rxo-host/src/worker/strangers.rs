//! Segments for which there is no connection: they open one, or are answered by a reset.
//!
//! A SYN gets a connection while its listener has room, and a cookie when too many are opening; then
//! nothing is kept of it (RFC 4987). While too many open ones wait to be accepted, it is dropped.

use std::iter::once;
use std::sync::Arc;

use rxo_frame::{Duration, Instant};
use rxo_tcp::{Connection, Reset, Reuse, Segment, Transmit};
use rxo_wire::{FlowKey, TcpFlags};

use super::core::Core;
use crate::buffer::Buffer;
use crate::cell::Cell;
use crate::link::Resolve;
use crate::socket::Listening;
use crate::transmit::Path;

impl<B: AsRef<[u8]> + Send + Sync + 'static> Core<B> {
    /// A SYN for a connection there is: one in TIME-WAIT may give way (RFC 6191).
    pub(super) fn syn_again(&mut self, now: Instant, place: u32, segment: Segment<Buffer<B>>) {
        let Some(slot) = self.slots.get(place) else { return };
        let reuse = slot.cell.serve(|inner| inner.connection.reuse_by(&segment)).flatten();
        let key = slot.cell.pair.reversed();
        match reuse {
            Some(reuse) if self.listener(&key).is_some_and(|listener| listener.has_room()) => {
                self.forget(place);
                self.open_passively(now, &key, segment, Some(reuse));
            }
            _ => self.give(place, |cell| cell.arrive(now, once(segment))),
        }
    }

    /// A segment for which there is no connection.
    pub(super) fn stranger(&mut self, now: Instant, key: &FlowKey, segment: Segment<Buffer<B>>) {
        if !self.link.may_hear(key.source(), key.destination()) {
            self.counters.not_ours += 1;
            return;
        }
        let opens = segment.has(TcpFlags::SYN) && !segment.has(TcpFlags::ACK | TcpFlags::RST);
        let refused = if opens && self.listens(key) {
            self.open_passively(now, key, segment, None);
            return;
        } else {
            self.open_by_cookie(now, key, segment)
        };
        if let Some(reset) = refused.and_then(|segment| Reset::answer(&segment)) {
            self.reset(now, key, reset);
        }
    }

    /// Whether somebody listens for it, also since the turn began: who listens may have told the peer.
    fn listens(&mut self, key: &FlowKey) -> bool {
        self.listener(key).is_some() || self.obey() > 0 && self.listener(key).is_some()
    }

    fn open_passively(
        &mut self,
        now: Instant,
        key: &FlowKey,
        syn: Segment<Buffer<B>>,
        reuse: Option<Reuse>,
    ) {
        let Some(listener) = self.listener(key) else { return };
        if !listener.has_room() {
            self.answer_by_cookie(now, key, &listener, &syn);
            return;
        }
        let Some(mut connection) = self.connection(key) else { return };
        if let Some(reuse) = reuse {
            connection.follow(reuse);
        }
        self.paths.tell(&mut connection, now);
        connection.on_segment(now, syn);
        listener.one_opens();
        self.settle(Cell::new(connection, Arc::clone(&self.post)), Some(listener));
    }

    /// One more connection, if there may be one.
    fn connection(&mut self, key: &FlowKey) -> Option<Connection<Buffer<B>>> {
        if !self.post.take_socket() {
            self.counters.syns_dropped += 1;
            return None;
        }
        let connection = self.post.settings.connection(key.reversed()).ok();
        if connection.is_none() {
            self.post.give_back_socket();
        }
        connection
    }

    fn answer_by_cookie(
        &mut self,
        now: Instant,
        key: &FlowKey,
        listener: &Listening<B>,
        syn: &Segment<Buffer<B>>,
    ) {
        let pair = key.reversed();
        let cookies = self.post.settings.cookies(&pair).filter(|_| listener.accepts());
        let Some(answer) = cookies.map(|cookies| cookies.answer(&pair, syn, now)) else {
            self.counters.syns_dropped += 1;
            return;
        };
        listener.expect_cookies(now + COOKIES_COME_WITHIN);
        self.counters.cookies_sent += 1;
        self.send_to_stranger(now, key, &answer);
    }

    /// Opens a connection whose SYN was answered by a cookie; else the segment comes back, unless it is
    /// to be dropped without an answer.
    fn open_by_cookie(
        &mut self,
        now: Instant,
        key: &FlowKey,
        segment: Segment<Buffer<B>>,
    ) -> Option<Segment<Buffer<B>>> {
        let pair = key.reversed();
        let listener = self.listener(key).filter(|listener| listener.expects_cookies(now));
        let post = Arc::clone(&self.post);
        let Some((listener, cookies)) = listener.zip(post.settings.cookies(&pair)) else {
            return Some(segment);
        };
        match cookies.open(pair, segment, now) {
            // It may be a later one of a peer whose first was dropped, and comes again.
            Err(segment) if segment.text_bytes() > 0 || segment.has(TcpFlags::FIN) => {
                self.counters.strangers += 1;
            }
            Err(segment) => return Some(segment),
            // Its peer takes it for open and sends again.
            Ok(_) if !listener.accepts() || !post.take_socket() => self.counters.syns_dropped += 1,
            Ok(mut connection) => {
                self.paths.tell(&mut connection, now);
                self.counters.cookies_taken += 1;
                listener.one_opens();
                self.settle(Cell::new(connection, post), Some(listener));
            }
        }
        None
    }

    /// Answers a stranger's segment, which came as `key`.
    pub(super) fn reset(&mut self, now: Instant, key: &FlowKey, reset: Reset) {
        self.counters.strangers += 1;
        if self.may_reset.take(now) {
            self.counters.resets += 1;
            self.send_to_stranger(now, key, &reset.transmit());
        }
    }

    /// While the neighbour is not known the answer is lost: strangers ask again.
    fn send_to_stranger(&mut self, now: Instant, key: &FlowKey, transmit: &Transmit<'_>) {
        if let Resolve::Resolved(neighbour) = self.link.resolve(key.source(), now) {
            let mut path = Path::new(key.reversed(), &self.shape);
            path.lead_to(neighbour);
            self.outbox.push(&path, transmit, &mut 0);
        }
    }
}

/// As long as a cookie is taken for one.
const COOKIES_COME_WITHIN: Duration = Duration::from_secs(128);
