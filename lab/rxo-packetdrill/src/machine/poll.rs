//! poll(2).

use rxo_frame::Instant;

use super::call::{Answer, Outcome};
use super::endpoint::Endpoint;
use super::socket::Kind;
use super::{Fd, VirtualHost};
use crate::abi::{POLLERR, POLLHUP, POLLIN, POLLNVAL, POLLOUT, POLLRDHUP};

impl VirtualHost {
    /// `None` if nothing is ready and the deadline has not passed.
    pub(super) fn poll(
        &mut self,
        descriptors: &[(Fd, i16)],
        deadline: Option<Instant>,
    ) -> Option<Outcome> {
        let always = POLLERR | POLLHUP | POLLNVAL;
        let ready: Vec<i16> = descriptors
            .iter()
            .map(|(fd, wanted)| self.readiness(*fd) & (wanted | always))
            .collect();
        let count = ready.iter().filter(|events| **events != 0).count();
        let is_over = count > 0 || deadline.is_some_and(|deadline| deadline <= self.now);
        is_over.then(|| Ok(Answer { value: count as i64, ready, ..Answer::default() }))
    }

    /// The events that are ready on `fd`. If there is no room to write, a notification follows when
    /// there is.
    pub(super) fn readiness(&mut self, fd: Fd) -> i16 {
        let limits = self.write_limits(fd);
        let Some(socket) = self.sockets.get(&fd) else { return POLLNVAL };
        match &socket.kind {
            Kind::Fresh { .. } => POLLOUT | POLLHUP,
            Kind::Listener(listener) if listener.ready.is_empty() => 0,
            Kind::Listener(_) => POLLIN,
            Kind::Stream(number) => {
                let endpoint = self.endpoints.get_mut(number);
                endpoint.zip(limits.ok()).map_or(POLLNVAL, |(endpoint, limits)| {
                    let has_room = endpoint.has_enough_room(&limits);
                    endpoint.wants_room |= !has_room;
                    endpoint.readiness(has_room)
                })
            }
        }
    }
}

impl Endpoint {
    fn readiness(&self, has_room: bool) -> i16 {
        let is_closed = self.tcp.is_closed();
        let may_not_read = self.is_read_shut || self.tcp.is_peer_done() || is_closed;
        let mut events = 0;
        let mut add = |applies: bool, event: i16| events |= if applies { event } else { 0 };
        add(self.error.is_some(), POLLERR);
        add(is_closed, POLLHUP);
        add(may_not_read, POLLRDHUP);
        add(may_not_read || self.tcp.readable_bytes() > 0, POLLIN);
        add(is_closed || self.was_open && has_room, POLLOUT);
        events
    }
}
