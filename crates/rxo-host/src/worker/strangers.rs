//! Strangers: segments without a connection. They open one, or are answered by a reset.
//!
//! A SYN opens a connection while its listener has room. It is answered by a cookie while too many are opening
//! (RFC 4987), and dropped while too many wait to be accepted.

use std::sync::Arc;

use rxo_frame::{Duration, Instant};
use rxo_tcp::{Connection, InTimeWait, Reset, Reuse, Segment, Transmit};
use rxo_wire::{FlowKey, TcpFlags};

use super::core::Core;
use crate::buffer::Buffer;
use crate::cell::Cell;
use crate::link::Resolve;
use crate::memory::{Memory, Share};
use crate::receive::Delivered;
use crate::socket::Listening;
use crate::transmit::Path;

impl<B: AsRef<[u8]> + Default + Send + Sync + 'static> Core<B> {
    /// Takes an arrival without a connection. Once a segment opens one, the others are for that connection. If
    /// none does, the last is answered by a reset: the peer expects its number.
    pub(super) fn strangers(&mut self, now: Instant, key: &FlowKey, mut arrival: Delivered<'_, B>) {
        if !self.post.shard.owns(key) {
            // It is another shard's: a reset would end a connection there.
            self.counters.misplaced += 1;
            return;
        }
        let mut refused = None;
        while let Some(segment) = arrival.next() {
            refused = self.stranger(now, key, segment);
            if let Some(place) = self.demux.find(key) {
                return self.give(now, place, |cell| cell.on_arrival(now, arrival));
            }
        }
        if let Some(reset) = refused.and_then(|segment| Reset::answer(&segment)) {
            self.reset(now, key, reset);
        }
    }

    /// Takes one segment. Returns it if it is to be answered by a reset.
    fn stranger(
        &mut self,
        now: Instant,
        key: &FlowKey,
        segment: Segment<Buffer<B>>,
    ) -> Option<Segment<Buffer<B>>> {
        let mut reuse = None;
        if let Some(waiting) = self.time_waits.get_mut(key) {
            match waiting.on_segment(now, &segment) {
                InTimeWait::Reused(next) if self.listener(key).is_some_and(|it| it.has_room()) => {
                    reuse = Some(next);
                }
                heard => {
                    self.hear_in_time_wait(now, key, heard);
                    return None;
                }
            }
            self.forget_time_wait(key);
        }
        let opens = segment.has(TcpFlags::SYN) && !segment.has(TcpFlags::ACK | TcpFlags::RST);
        if opens && self.listens(key) {
            self.open_passively(now, key, segment, reuse);
            return None;
        }
        let says_nothing = !segment.has(TcpFlags::SYN | TcpFlags::ACK | TcpFlags::RST);
        if says_nothing && self.listens(key) {
            // RFC 9293, section 3.10.7.2: a listener drops it.
            self.counters.strangers += 1;
            return None;
        }
        self.open_by_cookie(now, key, segment)
    }

    fn hear_in_time_wait(&mut self, now: Instant, key: &FlowKey, heard: InTimeWait) {
        match heard {
            // There is no listener any more, or it has no room: the peer retransmits its SYN.
            InTimeWait::Ignored | InTimeWait::Reused(_) => {}
            InTimeWait::Over => self.forget_time_wait(key),
            InTimeWait::Answered { ack, restarts } => {
                self.send_to_stranger(now, key, &ack);
                if restarts {
                    self.last_acks.repeated(now);
                    self.restart_time_wait(key, now + self.post.settings.time_wait);
                }
            }
        }
    }

    /// Whether there is a listener, also a new one since the turn began: the peer may know of it already.
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
        let is_cast = self.cast.as_ref().is_some_and(|cast| cast.is_of(&listener));
        if !listener.has_room() && is_cast {
            // A cookie would be another ISS than the group's.
            self.counters.syns_dropped += 1;
            return;
        }
        if !listener.has_room() {
            self.answer_by_cookie(now, key, &listener, &syn);
            return;
        }
        let Some((mut connection, share)) = self.connection(key) else {
            self.counters.syns_dropped += 1;
            return;
        };
        if let Some(reuse) = reuse {
            connection.follow(reuse);
        }
        if let Some(cast) = self.cast.as_ref().filter(|_| is_cast) {
            cast.prepare(&mut connection);
        }
        self.paths.tell(&mut connection, now);
        connection.on_arrival(now, syn.into());
        listener.one_opens();
        self.add_cell(Cell::new(connection, share, Arc::clone(&self.post)), Some(listener));
    }

    /// A new connection, if there may be one more.
    fn connection(&mut self, key: &FlowKey) -> Option<(Connection<Buffer<B>>, Share)> {
        let (pair, post) = (key.reversed(), Arc::clone(&self.post));
        let share = self.take_place(|memory| memory.reserve(post.settings.tcp(&pair)))?;
        let connection = self.post.settings.connection(pair, share).ok();
        if connection.is_none() {
            self.give_back_place(share);
        }
        connection.zip(Some(share))
    }

    /// Takes a socket and reserves its memory; both or none.
    fn take_place(&mut self, reserve: impl FnOnce(&Memory) -> Option<Share>) -> Option<Share> {
        if !self.post.take_socket() {
            return None;
        }
        let share = reserve(self.post.memory());
        if share.is_none() {
            self.counters.syns_without_memory += 1;
            self.post.give_back_socket();
        }
        share
    }

    fn give_back_place(&self, share: Share) {
        self.post.memory().give_back(share);
        self.post.give_back_socket();
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

    /// Opens a connection if `segment` returns a cookie. Returns the segment if it is to be answered by a reset;
    /// `None` also if it is to be dropped.
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
        let config = post.settings.tcp(&pair);
        match cookies.open(pair, segment, now) {
            // The segment that returns the cookie may have been lost; the peer retransmits.
            Err(segment) if segment.text_bytes() > 0 || segment.has(TcpFlags::FIN) => {
                self.counters.strangers += 1;
            }
            Err(segment) => return Some(segment),
            // The peer takes the connection for open, and retransmits.
            Ok(_) if !listener.accepts() => self.counters.syns_dropped += 1,
            Ok(mut connection) => {
                let Some(share) = self.take_place(|memory| memory.reserve_all(config)) else {
                    self.counters.syns_dropped += 1;
                    return None;
                };
                self.paths.tell(&mut connection, now);
                self.counters.cookies_taken += 1;
                listener.one_opens();
                self.add_cell(Cell::new(connection, share, Arc::clone(&post)), Some(listener));
            }
        }
        None
    }

    /// Answers a stranger's segment, which arrived as `key`, by a reset.
    pub(super) fn reset(&mut self, now: Instant, key: &FlowKey, reset: Reset) {
        self.counters.strangers += 1;
        if self.may_reset.take(now) {
            self.counters.resets += 1;
            self.send_to_stranger(now, key, &reset.transmit());
        }
    }

    /// Sends `transmit` to the source of `key`. It is lost while the neighbour is not known; strangers
    /// retransmit.
    fn send_to_stranger(&mut self, now: Instant, key: &FlowKey, transmit: &Transmit<'_>) {
        if let Resolve::Resolved(neighbour) = self.link.resolve(key.source(), now) {
            let mut path = Path::new(key.reversed(), &self.shape);
            path.lead_to(neighbour);
            self.outbox.push(&path, transmit, &mut 0);
        }
    }
}

/// How long a cookie is valid.
const COOKIES_COME_WITHIN: Duration = Duration::from_secs(128);
