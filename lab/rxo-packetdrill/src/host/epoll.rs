//! epoll(7): level- and edge-triggered.
//!
//! Like Linux: an event on a socket puts it on the ready list, if the waiter asked for such events.
//! Waiting checks each socket on the list once, and keeps it on the list only if it is
//! level-triggered and still ready.

use std::collections::BTreeMap;

use rxo_frame::Instant;

use super::call::{Answer, Outcome};
use super::socket::Kind;
use super::{Fd, VirtualHost};
use crate::abi::{
    EPOLL_CTL_ADD, EPOLL_CTL_DEL, EPOLL_CTL_MOD, EPOLLET, EPOLLONESHOT, Errno, POLLERR, POLLHUP,
};

/// One epoll descriptor, with the descriptors that it watches.
#[derive(Clone, Debug, Default)]
pub(super) struct Epoll {
    items: BTreeMap<Fd, Item>,
    /// Descriptors that may be ready, in order of their events.
    may_be_ready: Vec<Fd>,
}

#[derive(Clone, Copy, Debug)]
struct Item {
    /// Events to wait for, with EPOLLET and EPOLLONESHOT; 0 after a one-shot event was reported.
    events: u32,
    /// The data that the application wants with the event.
    data: u64,
}

impl Item {
    /// The part of `ready` that is reported.
    fn wanted(&self, ready: i16) -> u32 {
        let always = if self.events & WAITED_FOR == 0 { 0 } else { ALWAYS };
        u32::from(ready as u16) & (self.events | always)
    }
}

impl Epoll {
    fn put(&mut self, fd: Fd) {
        if !self.may_be_ready.contains(&fd) {
            self.may_be_ready.push(fd);
        }
    }

    /// Records `events` of `fd`.
    pub(super) fn signal(&mut self, fd: Fd, events: i16) {
        if self.items.get(&fd).is_some_and(|item| item.wanted(events) != 0) {
            self.put(fd);
        }
    }

    fn forget(&mut self, fd: Fd) {
        self.may_be_ready.retain(|ready| *ready != fd);
        self.items.remove(&fd);
    }
}

impl VirtualHost {
    pub(super) fn epoll_create(&mut self) -> i64 {
        let fd = self.free_descriptor();
        self.epolls.insert(fd, Epoll::default());
        fd.into()
    }

    /// epoll_ctl(2). `wanted` is events and data.
    pub(super) fn epoll_control(
        &mut self,
        epoll: Fd,
        operation: i32,
        fd: Fd,
        wanted: (u32, u64),
    ) -> Result<i64, Errno> {
        self.socket(fd)?;
        let ready = self.readiness(fd);
        let item = Item { events: wanted.0, data: wanted.1 };
        let epoll = self.epolls.get_mut(&epoll).ok_or(Errno::EINVAL)?;
        let is_known = epoll.items.contains_key(&fd);
        match operation {
            EPOLL_CTL_ADD if is_known => return Err(Errno::EEXIST),
            EPOLL_CTL_MOD | EPOLL_CTL_DEL if !is_known => return Err(Errno::ENOENT),
            EPOLL_CTL_DEL => epoll.forget(fd),
            EPOLL_CTL_ADD | EPOLL_CTL_MOD => {
                epoll.items.insert(fd, item);
                epoll.signal(fd, ready);
            }
            _ => return Err(Errno::EINVAL),
        }
        Ok(0)
    }

    /// `None` if nothing is ready and the deadline has not passed.
    pub(super) fn epoll_wait(
        &mut self,
        fd: Fd,
        most: usize,
        deadline: Option<Instant>,
    ) -> Option<Outcome> {
        let Some(epoll) = self.epolls.get_mut(&fd) else { return Some(Err(Errno::EBADF)) };
        if most == 0 {
            return Some(Err(Errno::EINVAL));
        }
        let candidates = core::mem::take(&mut epoll.may_be_ready);
        let mut events = Vec::new();
        for candidate in candidates {
            if events.len() == most {
                self.epolls.get_mut(&fd)?.put(candidate);
                continue;
            }
            let ready = self.readiness(candidate);
            events.extend(self.epolls.get_mut(&fd)?.report(candidate, ready));
        }
        let is_over = !events.is_empty() || deadline.is_some_and(|deadline| deadline <= self.now);
        let value = events.len() as i64;
        is_over.then(|| Ok(Answer { value, events, ..Answer::default() }))
    }

    /// Notifies every epoll descriptor of new events.
    pub(super) fn signal_waiters(&mut self) {
        let Self { endpoints, sockets, epolls, .. } = self;
        for (fd, socket) in sockets {
            let signals = match &mut socket.kind {
                Kind::Stream(number) => endpoints
                    .get_mut(number)
                    .map_or(0, |endpoint| core::mem::take(&mut endpoint.signals)),
                Kind::Listener(listener) => core::mem::take(&mut listener.signals),
                Kind::Fresh { .. } => 0,
            };
            if signals != 0 {
                epolls.values_mut().for_each(|epoll| epoll.signal(*fd, signals));
            }
        }
    }

    /// Stops watching `fd`, which is closed.
    pub(super) fn forget_in_epolls(&mut self, fd: Fd) {
        self.epolls.values_mut().for_each(|epoll| epoll.forget(fd));
    }
}

impl Epoll {
    /// The event to report for `fd` when `ready` is ready; `None` for no event.
    fn report(&mut self, fd: Fd, ready: i16) -> Option<(u32, u64)> {
        let item = self.items.get_mut(&fd)?;
        let (events, data) = (item.wanted(ready), item.data);
        if events == 0 {
            return None;
        }
        if item.events & EPOLLONESHOT != 0 {
            item.events = 0;
        } else if item.events & EPOLLET == 0 {
            self.put(fd);
        }
        Some((events, data))
    }
}

/// Reported whether asked for or not.
const ALWAYS: u32 = (POLLERR | POLLHUP) as u32;
/// The events, without the flags for how to report them.
const WAITED_FOR: u32 = !(EPOLLET | EPOLLONESHOT);
