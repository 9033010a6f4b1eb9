//! Backend: the device as a whole, with its socket and at most one connected front end.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use rxo_device::DeviceError;
use rxo_frame::Instant;

use super::connection::Connection;
use super::options::GuestOptions;
use crate::fault;
use crate::listener::Listener;
use crate::vhost_user::Channel;
use crate::vhost_user::foreign::Discards;
use crate::virtio_net::holes;
use crate::virtio_net::{Attended, Copying, Events, Notices, PendingEvents, Side, Token, Watched};

/// The state that the source and the sink of the device share.
#[derive(Debug)]
pub(crate) struct Backend {
    listener: Listener,
    _watched: Watched,
    events: Arc<Events>,
    connection: Option<Connection>,
    /// `true` once the user has been notified that the guest has started.
    has_reported_start: bool,
    /// `true` if front ends may be waiting to be accepted although no event will report them.
    is_accept_due: bool,
    /// The obstacles to the acceptance of front ends that were already reported to the user.
    reported_obstacles: Vec<Obstacle>,
    /// The MTU of the source and the sink, in bytes.
    mtu: u32,
    options: GuestOptions,
    notices: Notices,
    /// Descriptors of front ends that were refused and are being closed.
    discards: Discards,
    /// The number of invalid chains of previous front ends.
    invalid: u64,
    /// The number of front ends that were connected and have disconnected.
    gone: u64,
    /// The memory that further files for chains in flight may occupy, in bytes. The memory of these files is
    /// charged to this process, which cannot know how long front ends keep the files.
    inflight_left: u64,
    /// `true` once the user has been notified that a log of dirty pages does not cover all writes.
    has_reported_unlogged: bool,
}

/// A reason why no front end can be accepted now. Each reason is reported to the user once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Obstacle {
    /// Files of earlier front ends are still open, because closing them blocks.
    UnclosedFiles,
    /// The system refuses to accept a connection.
    System,
}

/// The maximum memory for the chain-in-flight files of all front ends, in bytes: enough for some hundred
/// starts of a machine.
const MOST_INFLIGHT_BYTES: u64 = 32 << 20;

/// The maximum number of front ends that one call accepts, so that the call ends; further front ends wait for
/// the next call.
const MOST_ACCEPTS: usize = 8;

impl Side for Backend {
    type Link = Connection;

    fn events(&self) -> Arc<Events> {
        Arc::clone(&self.events)
    }

    fn attend(&mut self) -> Attended {
        let PendingEvents { on_listener, on_channel, is_notified } = self.events.take();
        let has_changed = on_channel && self.serve();
        if let Some(why) = self.connection.as_ref().and_then(Connection::fault) {
            self.close(&io::Error::other(why));
        }
        self.report_unlogged();
        if on_listener || self.is_accept_due {
            self.accept();
        }
        Attended { has_changed, is_notified }
    }

    /// Returns the connection if its guest has started; otherwise `None`.
    fn link(&mut self) -> Option<&mut Connection> {
        self.connection.as_mut().filter(|connection| connection.is_started())
    }

    /// Returns the instant at which the guest must be notified; `None` if no notification is waiting.
    fn next_check(&self) -> Option<Instant> {
        self.connection.as_ref().filter(|connection| connection.is_started())?.notify_at()
    }

    fn is_polled(&self) -> bool {
        let started = self.connection.as_ref().filter(|connection| connection.is_started());
        started.is_some_and(Connection::is_polled)
    }

    fn gone(&self) -> u64 {
        self.gone
    }

    fn invalid(&self) -> u64 {
        self.invalid + self.connection.as_ref().map_or(0, Connection::invalid)
    }

    fn notices(&mut self) -> &mut Notices {
        &mut self.notices
    }
}

impl Backend {
    pub(crate) fn new(
        label: &str,
        listener: Listener,
        mtu: u32,
        options: GuestOptions,
    ) -> Result<Self, DeviceError> {
        let cannot = |error| fault::opening(label, error);
        let mut notices = Notices::default();
        if !options.memory.may_be_sparse && !holes::prepare() {
            notices.add(
                "this kernel has no userfaultfd: memory that the guest gives back and takes again may be \
                 charged to rxo",
            );
        }
        let events = Arc::new(Events::new().map_err(cannot)?);
        let fd = std::os::fd::AsFd::as_fd(&listener);
        let _watched = events.watch(fd, Token::Listener).map_err(cannot)?;
        Ok(Self {
            listener,
            _watched,
            events,
            connection: None,
            has_reported_start: false,
            is_accept_due: false,
            reported_obstacles: Vec::new(),
            mtu,
            options,
            notices,
            discards: Discards::default(),
            invalid: 0,
            gone: 0,
            inflight_left: MOST_INFLIGHT_BYTES,
            has_reported_unlogged: false,
        })
    }

    /// Takes over another process's connection to its front end; see [`Connection::succeeding`].
    pub(super) fn succeed(&mut self, stream: UnixStream, settings: UnixStream) -> io::Result<()> {
        let sockets = (stream, settings);
        let left = self.inflight_left;
        let (discards, events) = (&self.discards, &self.events);
        let connection = Connection::succeeding(sockets, discards, events, self.options, left)?;
        // The user was notified of the guest before.
        self.has_reported_start = connection.is_started();
        self.connection = Some(connection);
        Ok(())
    }

    /// Returns a second descriptor of the listening socket.
    pub(super) fn listener(&self) -> io::Result<OwnedFd> {
        Ok(self.listener.socket()?.into())
    }

    /// Returns the descriptors by which another process continues with the front end: the sockets of
    /// [`Connection::hand_over`]; empty if there is no front end.
    pub(super) fn hand_over(&mut self) -> io::Result<Vec<OwnedFd>> {
        match self.connection.as_mut().filter(|it| !it.has_ended()) {
            Some(connection) => Ok(connection.hand_over()?.into()),
            None => Ok(Vec::new()),
        }
    }

    /// Returns the method by which packets are copied into the guest's memory.
    pub(super) const fn copying(&self) -> Copying {
        let GuestOptions { path, layout, .. } = self.options;
        Copying { path, layout }
    }

    fn serve(&mut self) -> bool {
        let Some(connection) = &mut self.connection else { return false };
        match connection.serve() {
            Ok(has_changed) => {
                if has_changed {
                    self.report_start();
                }
                has_changed
            }
            Err(error) => {
                self.close(&error);
                true
            }
        }
    }

    fn report_unlogged(&mut self) {
        let unlogged = self.connection.as_ref().map_or(0, Connection::unlogged);
        if unlogged > 0 && !self.has_reported_unlogged {
            self.has_reported_unlogged = true;
            self.notices.add(
                "the log of dirty pages does not cover the memory of the guest: do not rely on its migration",
            );
        }
    }

    fn report_start(&mut self) {
        let Some(connection) = &self.connection else { return };
        if self.has_reported_start || !connection.is_started() {
            return;
        }
        self.has_reported_start = true;
        self.notices.add("a guest has started");
        if let Some(mtu) = connection.mtu().filter(|mtu| u32::from(*mtu) != self.mtu) {
            let own = self.mtu;
            self.notices
                .add(format!("the guest has an MTU of {mtu} and rxo of {own}; make them equal"));
        }
    }

    fn close(&mut self, why: &io::Error) {
        self.invalid = self.invalid();
        if let Some(connection) = &self.connection {
            self.inflight_left = connection.inflight_left();
        }
        self.has_reported_unlogged = false;
        self.connection = None;
        self.gone += 1;
        let was_started = std::mem::take(&mut self.has_reported_start);
        if why.kind() != io::ErrorKind::UnexpectedEof {
            self.notices.add(format!("closed the connection of a front end: {why}"));
        } else if was_started {
            self.notices.add("the guest has gone; waiting for another");
        }
    }

    /// Accepts waiting front ends. One front end is served at a time: if the connected front end has already
    /// ended, it is closed and replaced; otherwise the new front end is refused. Accepts at most
    /// [`MOST_ACCEPTS`] per call.
    fn accept(&mut self) {
        self.is_accept_due = false;
        for _ in 0..MOST_ACCEPTS {
            if self.discards.are_too_many() {
                let why = "files of an earlier one cannot be closed; end it";
                return self.accept_later(Obstacle::UnclosedFiles, why);
            }
            let stream = match self.listener.accept() {
                Ok(Some(stream)) => stream,
                Ok(None) => return,
                Err(error) => {
                    let why = format!("{error}; raise `ulimit -n`");
                    return self.accept_later(Obstacle::System, &why);
                }
            };
            if self.connection.as_ref().is_some_and(Connection::has_ended) {
                self.close(&io::ErrorKind::UnexpectedEof.into());
            }
            if self.connection.is_some() {
                self.notices.add("refused a second front end; it has one");
                self.refuse(stream);
                continue;
            }
            let left = self.inflight_left;
            match Connection::new(stream, &self.discards, &self.events, self.options, left) {
                Ok(connection) => self.connection = Some(connection),
                Err(error) => self.notices.add(format!("cannot serve a front end: {error}")),
            }
        }
        self.is_accept_due = true;
    }

    /// Closes the connection of a front end that is not accepted, and the descriptors that it has sent.
    fn refuse(&self, stream: UnixStream) {
        drop(Channel::discarding_to(stream, self.discards.clone()));
    }

    /// Makes each later call try to accept again, because no event reports that descriptors have become free or
    /// were closed.
    fn accept_later(&mut self, obstacle: Obstacle, why: &str) {
        self.is_accept_due = true;
        if !self.reported_obstacles.contains(&obstacle) {
            self.reported_obstacles.push(obstacle);
            self.notices.add(format!("cannot accept a front end: {why}"));
        }
    }
}

/// Refuses waiting front ends one by one, because closing the listener would block on the files that they
/// have sent.
impl Drop for Backend {
    fn drop(&mut self) {
        let waiting = std::iter::from_fn(|| self.listener.accept().ok().flatten());
        waiting.take(usize::from(Listener::MOST_WAITING)).for_each(|stream| self.refuse(stream));
    }
}
