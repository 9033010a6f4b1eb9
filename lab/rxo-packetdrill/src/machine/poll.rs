//! Implements poll(2): readable if a read would return, writable if enough buffer is free.

use rxo_frame::Instant;
use rxo_tcp::State;

use super::socket::Kind;
use super::{Answer, Fd, Machine, Outcome};
use crate::abi::{POLLERR, POLLHUP, POLLIN, POLLNVAL, POLLOUT, POLLRDHUP};

impl Machine {
    /// Implements poll(2) for descriptors with their events. It ends without events at `deadline`; `None` for
    /// never.
    pub fn poll(&mut self, descriptors: &[(Fd, i16)], deadline: Option<Instant>) -> Outcome {
        let always = POLLERR | POLLHUP | POLLNVAL;
        let ready: Vec<i16> = descriptors
            .iter()
            .map(|(fd, wanted)| self.readiness(*fd) & (wanted | always))
            .collect();
        let count = ready.iter().filter(|events| **events != 0).count();
        let is_over = count > 0 || deadline.is_some_and(|deadline| deadline <= self.now);
        is_over.then(|| Ok(Answer { value: count as i64, ready, ..Answer::default() }))
    }

    fn readiness(&mut self, fd: Fd) -> i16 {
        let Some(socket) = self.sockets.get_mut(&fd) else { return POLLNVAL };
        let stream = match &mut socket.kind {
            Kind::Fresh { .. } => return POLLOUT | POLLHUP,
            Kind::Listener(listener) => return if listener.is_ready() { POLLIN } else { 0 },
            Kind::Stream(stream) => stream,
        };
        let is_open = stream.was_open();
        let is_closed = stream.end().is_some();
        let view = self.running.as_ref().and_then(|running| running.view(&stream.tcp));
        let is_peer_done = view.as_ref().is_some_and(|view| {
            use State::{CloseWait, Closing, LastAck, TimeWait};
            matches!(view.state, CloseWait | Closing | LastAck | TimeWait)
        });
        let may_not_read = stream.is_read_shut || is_peer_done || is_closed;
        // As in Linux, a socket is writable if a third of its buffer is free.
        let has_room = view.is_some_and(|view| {
            let seen = view.statistics;
            let queued = seen.unsent + (seen.snd_nxt - seen.snd_una).max(0) as u32;
            view.buffers.send_bytes.saturating_sub(queued) >= (queued / 2).max(1)
        });
        let mut events = 0;
        let mut add = |applies: bool, event: i16| events |= if applies { event } else { 0 };
        add(stream.has_error(), POLLERR);
        add(is_closed, POLLHUP);
        add(may_not_read, POLLRDHUP);
        add(may_not_read || is_open && stream.unread(1) > 0, POLLIN);
        add(is_closed || is_open && has_room, POLLOUT);
        events
    }
}
