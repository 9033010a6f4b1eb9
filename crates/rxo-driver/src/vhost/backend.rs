//! The device: a socket, and at most one front end at a time.

use std::io;
use std::rc::Rc;

use rxo_device::DeviceError;

use super::connection::Connection;
use super::listener::Listener;
use super::options::GuestOptions;
use crate::fault;
use crate::virtio_net::{Events, Notices, Token, Watched};

/// What both ends share.
#[derive(Debug)]
pub(super) struct Backend {
    listener: Listener,
    _watched: Watched,
    events: Rc<Events>,
    connection: Option<Connection>,
    /// Whether the guest's start was said.
    has_said_start: bool,
    /// The MTU that the ends have, in bytes.
    mtu: u32,
    options: GuestOptions,
    pub(super) notices: Notices,
    /// Invalid chains of front ends before.
    invalid: u64,
}

/// How many front ends one look accepts at most, so that it ends; the rest wait for the next.
const MOST_ACCEPTS: usize = 8;

impl Backend {
    pub(super) fn new(
        label: &str,
        listener: Listener,
        mtu: u32,
        options: GuestOptions,
    ) -> Result<Self, DeviceError> {
        let cannot = |error| fault::opening(label, error);
        let events = Rc::new(Events::new().map_err(cannot)?);
        let fd = std::os::fd::AsFd::as_fd(&listener);
        let _watched = events.watch(fd, Token::Listener).map_err(cannot)?;
        Ok(Self {
            listener,
            _watched,
            events,
            connection: None,
            has_said_start: false,
            mtu,
            options,
            notices: Notices::default(),
            invalid: 0,
        })
    }

    /// What to wait for.
    pub(super) fn events(&self) -> Rc<Events> {
        Rc::clone(&self.events)
    }

    /// The front end whose guest has started.
    pub(super) fn started(&mut self) -> Option<&mut Connection> {
        self.connection.as_mut().filter(|connection| connection.is_started())
    }

    /// Invalid chains of all front ends.
    pub(super) fn invalid(&self) -> u64 {
        self.invalid + self.connection.as_ref().map_or(0, Connection::invalid)
    }

    /// Looks at the sockets, and forgets notifications. Returns whether queues have changed.
    pub(super) fn attend(&mut self) -> bool {
        let (has_connection, has_message) = self.events.take();
        let mut has_changed = false;
        if has_message {
            has_changed |= self.serve();
        }
        if let Some(ring) = self.connection.as_ref().and_then(Connection::broken_ring) {
            self.close(&io::Error::other(format!("its guest broke ring {ring}")));
        }
        if has_connection {
            self.accept();
        }
        has_changed
    }

    fn serve(&mut self) -> bool {
        let Some(connection) = &mut self.connection else { return false };
        match connection.serve() {
            Ok(has_changed) => {
                if has_changed {
                    self.say_start();
                }
                has_changed
            }
            Err(error) => {
                self.close(&error);
                true
            }
        }
    }

    fn say_start(&mut self) {
        let Some(connection) = &self.connection else { return };
        if self.has_said_start || !connection.is_started() {
            return;
        }
        self.has_said_start = true;
        self.notices.add("a guest has started");
        if let Some(mtu) = connection.mtu().filter(|mtu| u32::from(*mtu) != self.mtu) {
            let own = self.mtu;
            self.notices
                .add(format!("the guest has an MTU of {mtu} and rxo of {own}; make them equal"));
        }
    }

    fn close(&mut self, why: &io::Error) {
        self.invalid = self.invalid();
        self.connection = None;
        let was_started = std::mem::take(&mut self.has_said_start);
        if why.kind() != io::ErrorKind::UnexpectedEof {
            self.notices.add(format!("closed the connection of a front end: {why}"));
        } else if was_started {
            self.notices.add("the guest has gone; waiting for another");
        }
    }

    fn accept(&mut self) {
        for _ in 0..MOST_ACCEPTS {
            let Some(stream) = self.listener.accept() else { return };
            if self.connection.is_some() {
                self.notices.add("refused a second front end; it has one");
                continue;
            }
            match Connection::new(stream, &self.events, self.options) {
                Ok(connection) => self.connection = Some(connection),
                Err(error) => self.notices.add(format!("cannot serve a front end: {error}")),
            }
        }
    }
}
