//! Unmatched: segments that belong to no connection. Such a segment opens a connection, or is answered with a
//! reset.
//!
//! A SYN opens a connection while its listener's backlog has space. While too many connections are half-open,
//! the SYN is answered with a SYN cookie (RFC 4987); while too many connections wait to be accepted, the SYN
//! is dropped.

use std::sync::Arc;

use rxo_frame::{Duration, Instant};
use rxo_tcp::{Connection, InTimeWait, Reset, Reuse, Segment, Transmit};
use rxo_wire::{FlowKey, TcpFlags};

use super::cast::Casting;
use super::clock::Clock;
use super::connections::Connections;
use super::core::apply_commands;
use super::network::Network;
use crate::buffer::Buffer;
use crate::cell::Cell;
use crate::link::Resolve;
use crate::memory::{Memory, Share};
use crate::receive::Delivered;
use crate::socket::Listening;
use crate::transmit::Path;

/// The parts of the worker that a segment without a connection may change.
pub(super) struct Unmatched<'a, B> {
    pub(super) connections: &'a mut Connections<B>,
    pub(super) clock: &'a mut Clock,
    pub(super) network: &'a mut Network<B>,
    pub(super) cast: &'a mut Casting<B>,
    pub(super) now: Instant,
}

impl<B: AsRef<[u8]> + Default + Send + Sync + 'static> Unmatched<'_, B> {
    /// Processes an arrival without a connection. Once a segment has opened a connection, the remaining
    /// segments are passed to that connection. If no segment opens a connection, the last segment is answered
    /// with a reset, which must carry the sequence number that the peer expects.
    pub(super) fn take(mut self, key: &FlowKey, mut arrival: Delivered<'_, B>) {
        if !self.connections.post.shard.owns(key) {
            // The segment belongs to another shard: a reset would end a connection there.
            self.connections.counters.tcp.misplaced += 1;
            return;
        }
        let mut refused = None;
        while let Some(segment) = arrival.next() {
            refused = self.process_segment(key, segment);
            if let Some(place) = self.connections.demux.find(key) {
                let Self { connections, cast, now, .. } = self;
                cast.before_arrival(&connections.slots, place, now);
                return connections.give(place, |cell| cell.on_arrival(now, arrival));
            }
        }
        if let Some(reset) = refused.and_then(|segment| Reset::answer(&segment)) {
            self.reset(key, reset);
        }
    }

    /// Processes one segment. Returns the segment if it must be answered with a reset.
    fn process_segment(
        &mut self,
        key: &FlowKey,
        segment: Segment<Buffer<B>>,
    ) -> Option<Segment<Buffer<B>>> {
        let mut reuse = None;
        if let Some(waiting) = self.clock.time_waits.get_mut(key) {
            match waiting.on_segment(self.now, &segment) {
                InTimeWait::Reused(next)
                    if self.connections.listener(key).is_some_and(|it| it.has_room()) =>
                {
                    reuse = Some(next);
                }
                outcome => {
                    self.answer_in_time_wait(key, outcome);
                    return None;
                }
            }
            self.connections.remove_time_wait(key, self.clock);
        }
        let opens = segment.has(TcpFlags::SYN) && !segment.has(TcpFlags::ACK | TcpFlags::RST);
        if opens && self.listens(key) {
            self.open_passively(key, segment, reuse);
            return None;
        }
        let says_nothing = !segment.has(TcpFlags::SYN | TcpFlags::ACK | TcpFlags::RST);
        if says_nothing && self.listens(key) {
            // The listener drops the segment (RFC 9293, section 3.10.7.2).
            self.connections.counters.tcp.strangers += 1;
            return None;
        }
        self.open_by_cookie(key, segment)
    }

    fn answer_in_time_wait(&mut self, key: &FlowKey, outcome: InTimeWait) {
        match outcome {
            // There is no listener any more, or its backlog is full: the peer retransmits its SYN.
            InTimeWait::Ignored | InTimeWait::Reused(_) => {}
            InTimeWait::Over => self.connections.remove_time_wait(key, self.clock),
            InTimeWait::Answered { ack, restarts } => {
                self.send_reply(key, &ack);
                if restarts {
                    self.clock.last_acks.repeated(self.now);
                    let until = self.now + self.connections.post.settings.time_wait;
                    self.connections.restart_time_wait(key, until, self.clock);
                }
            }
        }
    }

    /// Returns `true` if there is a listener for `key`. Also checks pending commands, because an application
    /// may just have opened the listener.
    fn listens(&mut self, key: &FlowKey) -> bool {
        let Self { connections, clock, network, cast, .. } = self;
        connections.listener(key).is_some()
            || apply_commands(connections, clock, network, cast) > 0
                && connections.listener(key).is_some()
    }

    fn open_passively(&mut self, key: &FlowKey, syn: Segment<Buffer<B>>, reuse: Option<Reuse>) {
        let Some(listener) = self.connections.listener(key) else { return };
        let is_cast = self.cast.is_of(&listener);
        if !listener.has_room() {
            return match is_cast {
                // A cookie would impose another ISS than the group's.
                true => self.connections.counters.tcp.syns_dropped += 1,
                false => self.answer_by_cookie(key, &listener, &syn),
            };
        }
        let Some((mut connection, share)) = self.connection(key) else {
            self.connections.counters.tcp.syns_dropped += 1;
            return;
        };
        if let Some(reuse) = reuse {
            connection.follow(reuse);
        }
        if is_cast {
            self.cast.prepare(&mut connection);
        }
        self.network.paths.apply(&mut connection, self.now);
        connection.on_arrival(self.now, syn.into());
        listener.one_opens();
        self.connections.add(
            Cell::new(connection, share, Arc::clone(&self.connections.post)),
            Some(listener),
            self.network,
        );
    }

    /// Creates a connection; `None` if the limit of connections or memory is reached.
    fn connection(&mut self, key: &FlowKey) -> Option<(Connection<Buffer<B>>, Share)> {
        let (pair, post) = (key.reversed(), Arc::clone(&self.connections.post));
        let share = self.take_place(|memory| memory.reserve(post.settings.tcp(&pair)))?;
        let connection = self.connections.post.settings.connection(pair, share).ok();
        if connection.is_none() {
            self.release_place(share);
        }
        connection.zip(Some(share))
    }

    /// Counts a new connection and reserves its memory. Returns `None`, without any change, if the limit of
    /// connections is reached or there is too little memory.
    fn take_place(&mut self, reserve: impl FnOnce(&Memory) -> Option<Share>) -> Option<Share> {
        if !self.connections.post.take_socket() {
            return None;
        }
        let share = reserve(self.connections.post.memory());
        if share.is_none() {
            self.connections.counters.tcp.syns_without_memory += 1;
            self.connections.post.release_socket();
        }
        share
    }

    fn release_place(&self, share: Share) {
        self.connections.post.memory().release(share);
        self.connections.post.release_socket();
    }

    fn answer_by_cookie(
        &mut self,
        key: &FlowKey,
        listener: &Listening<B>,
        syn: &Segment<Buffer<B>>,
    ) {
        let pair = key.reversed();
        let cookies = self.connections.post.settings.cookies(&pair).filter(|_| listener.accepts());
        let Some(answer) = cookies.map(|cookies| cookies.answer(&pair, syn, self.now)) else {
            self.connections.counters.tcp.syns_dropped += 1;
            return;
        };
        listener.expect_cookies(self.now + COOKIES_COME_WITHIN);
        self.connections.counters.tcp.cookies_sent += 1;
        self.send_reply(key, &answer);
    }

    /// Opens a connection if `segment` returns a valid SYN cookie. Returns the segment if it must be answered
    /// with a reset; `None` if a connection was opened or the segment is dropped.
    fn open_by_cookie(
        &mut self,
        key: &FlowKey,
        segment: Segment<Buffer<B>>,
    ) -> Option<Segment<Buffer<B>>> {
        let pair = key.reversed();
        let listener =
            self.connections.listener(key).filter(|listener| listener.expects_cookies(self.now));
        let post = Arc::clone(&self.connections.post);
        let Some((listener, cookies)) = listener.zip(post.settings.cookies(&pair)) else {
            return Some(segment);
        };
        let config = post.settings.tcp(&pair);
        match cookies.open(pair, segment, self.now) {
            // The segment that returns the cookie may have been lost; the peer retransmits it.
            Err(segment) if segment.text_bytes() > 0 || segment.has(TcpFlags::FIN) => {
                self.connections.counters.tcp.strangers += 1;
            }
            Err(segment) => return Some(segment),
            // The peer considers the connection open, and retransmits.
            Ok(_) if !listener.accepts() => self.connections.counters.tcp.syns_dropped += 1,
            Ok(mut connection) => {
                let Some(share) = self.take_place(|memory| memory.reserve_all(config)) else {
                    self.connections.counters.tcp.syns_dropped += 1;
                    return None;
                };
                self.network.paths.apply(&mut connection, self.now);
                self.connections.counters.tcp.cookies_taken += 1;
                listener.one_opens();
                self.connections.add(
                    Cell::new(connection, share, Arc::clone(&post)),
                    Some(listener),
                    self.network,
                );
            }
        }
        None
    }

    /// Counts a segment that belongs to no connection, and sends `reset` to the source of `key` unless the
    /// rate limit of resets is exceeded.
    fn reset(&mut self, key: &FlowKey, reset: Reset) {
        self.connections.counters.tcp.strangers += 1;
        if self.network.may_reset.take(self.now) {
            self.connections.counters.tcp.resets += 1;
            self.send_reply(key, &reset.transmit());
        }
    }

    /// Sends `transmit` to the source of `key`. If the neighbour's link-layer address is unknown, the packet is
    /// dropped; the peer then retransmits its segment.
    fn send_reply(&mut self, key: &FlowKey, transmit: &Transmit<'_>) {
        if let Resolve::Resolved(neighbour) = self.network.link.resolve(key.source(), self.now) {
            let mut path = Path::new(key.reversed(), &self.network.shape);
            path.set_destination(neighbour);
            self.network.outbox.push(&path, transmit, &mut 0);
        }
    }
}

/// The time for which a SYN cookie is valid.
const COOKIES_COME_WITHIN: Duration = Duration::from_secs(128);
