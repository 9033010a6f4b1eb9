//! Connection: one front end, with its session, its memory, and its usable queues.

mod put;

use std::fmt::Display;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use rxo_frame::{Instant, Load};
use rxo_virtqueue::Taken;

use super::announcement::announcement;
use super::areas::{Areas, inflight_file};
use super::moderator::Moderator;
use super::options::{GuestMemory, GuestOptions};
use super::places::PayloadPlaces;
use super::queue::{Queue, is_in, layout};
use super::shared::Shared;
use crate::clock;
use crate::vhost_user::features::RING_PACKED;
use crate::vhost_user::foreign::Discards;
use crate::vhost_user::{Change, Channel, Done, Message, Session};
use crate::virtio_net::{
    Accepts, Buffers, Events, Link, Notifier, RingRead, Token, Watched, header_bytes,
};
use crate::wait::has_hung_up;

/// The maximum number of pairs of queues that a device has.
pub(super) const MOST_PAIRS: usize = 8;

/// The maximum number of messages that one call processes.
const MOST_MESSAGES: usize = 64;

/// A connected front end and its guest's queues.
#[derive(Debug)]
pub(crate) struct Connection {
    channel: Channel,
    session: Session,
    /// The queues by the index of their ring; `None` for a ring that cannot be used.
    queues: Vec<Option<Queue>>,
    /// The guest's memory that the queues use. The field is declared after the queues, so that the memory is
    /// dropped after the queues.
    shared: Shared,
    /// The areas that the queues use. The field is declared after the queues, so that the areas are dropped after
    /// the queues.
    areas: Areas,
    /// The limits of the memory that the front end may share.
    allowed: GuestMemory,
    /// The indices of the receive rings in use.
    receivers: Vec<usize>,
    /// `true` if at least one transmit ring in use must be polled, because the guest sends no notifications for
    /// it.
    is_polled: bool,
    events: Arc<Events>,
    _watched: Watched,
    /// The index of the transmit ring from which the next frame is taken first.
    next: usize,
    /// The number of invalid chains in queues that no longer exist.
    invalid: u64,
    moderator: Moderator,
    /// The number of notifications sent since this number was last read.
    notified: u64,
    /// `true` if packets were written to the queues and are not yet published to the guest.
    has_put: bool,
    places: Option<&'static PayloadPlaces>,
    /// The Ethernet address of a guest that is to be announced; `None` if there is no such guest.
    announced: Option<[u8; 6]>,
    /// The memory that further files for chains in flight may occupy, in bytes.
    inflight_left: u64,
}

impl Connection {
    /// Creates a connection over `stream`; refused descriptors are counted in `discards`. New files for
    /// chains in flight may occupy `inflight_left` bytes of memory.
    pub(super) fn new(
        stream: UnixStream,
        discards: &Discards,
        events: &Arc<Events>,
        options: GuestOptions,
        inflight_left: u64,
    ) -> io::Result<Self> {
        let _watched = events.watch(stream.as_fd(), Token::Channel)?;
        let mut session = Session::offering(options.features(), 2 * MOST_PAIRS);
        if inflight_left == 0 {
            session.offer_no_inflight();
        }
        Ok(Self {
            channel: Channel::discarding_to(stream, discards.clone())?,
            session,
            shared: Shared::default(),
            areas: Areas::default(),
            allowed: options.memory,
            queues: (0..2 * MOST_PAIRS).map(|_| None).collect(),
            receivers: Vec::with_capacity(MOST_PAIRS),
            is_polled: false,
            events: Arc::clone(events),
            _watched,
            next: 0,
            invalid: 0,
            moderator: Moderator::new(options.moderation),
            notified: 0,
            has_put: false,
            places: options.places,
            announced: None,
            inflight_left,
        })
    }

    /// Creates a connection that takes over `stream`, another process's connection to its front end. From
    /// `settings`, requests can be read that repeat the front end's settings, up to the end of the stream.
    pub(super) fn succeeding(
        (stream, settings): (UnixStream, UnixStream),
        discards: &Discards,
        events: &Arc<Events>,
        options: GuestOptions,
        inflight_left: u64,
    ) -> io::Result<Self> {
        let mut connection = Self::new(settings, discards, events, options, inflight_left)?;
        loop {
            match connection.channel.receive() {
                // The reply is dropped, because the front end has already received one from the other
                // process.
                Ok(Some(message)) => _ = connection.follow(message)?,
                // All requests are in the socket's buffer already, so nothing more can arrive.
                Ok(None) => return Err(io::ErrorKind::TimedOut.into()),
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => break,
                Err(error) => return Err(error),
            }
        }
        connection._watched = events.watch(stream.as_fd(), Token::Channel)?;
        connection.channel = Channel::discarding_to(stream, discards.clone())?;
        Ok(connection)
    }

    /// Returns the sockets with which another process can continue: the socket of the connection, and a
    /// socket that contains requests for [`succeeding`](Self::succeeding). Do not use this connection
    /// meanwhile.
    pub(super) fn hand_over(&mut self) -> io::Result<[OwnedFd; 2]> {
        let socket = self.channel.socket()?;
        self.note_bases();
        let (here, there) = UnixStream::pair()?;
        let mut settings = Channel::new(here)?;
        for request in self.session.requests() {
            settings.request(&request, false)?;
        }
        Ok([socket, there.into()])
    }

    /// Stores the positions of all queues in the session.
    fn note_bases(&mut self) {
        for (n, queue) in self.queues.iter_mut().enumerate() {
            if let Some(queue) = queue {
                // Published first, because a chain that is used but not published is missing in the stored
                // position.
                queue.queue.publish();
                self.session.set_base(n, queue.queue.base());
            }
        }
    }

    /// Returns `true` if the guest has started the first pair of queues.
    pub(super) fn is_started(&self) -> bool {
        self.queues[..2].iter().all(Option::is_some)
    }

    /// Returns `true` if the guest sends no notifications on at least one transmit ring.
    pub(super) const fn is_polled(&self) -> bool {
        self.is_polled
    }

    /// Returns the MTU that the front end has set, in bytes; `None` if it has set none.
    pub(super) const fn mtu(&self) -> Option<u16> {
        self.session.mtu()
    }

    /// Returns the number of invalid chains so far, and of writes that the log of dirty pages did not cover.
    pub(super) fn invalid(&self) -> u64 {
        let of = |queue: &Queue| queue.queue.invalid().total();
        self.invalid + self.unlogged() + self.queues.iter().flatten().map(of).sum::<u64>()
    }

    /// Returns the number of writes that the front end's log of dirty pages did not cover.
    pub(super) fn unlogged(&self) -> u64 {
        self.areas.outside()
    }

    /// Returns the memory that further files for chains in flight may occupy, in bytes.
    pub(super) const fn inflight_left(&self) -> u64 {
        self.inflight_left
    }

    /// Returns `true` if the front end has disconnected. Its last messages then need no answer.
    pub(super) fn has_ended(&self) -> bool {
        has_hung_up(self.channel.as_fd())
    }

    /// Processes received messages, and stops after a message that changes the memory, because mapping takes
    /// long and delays the worker's frames. Returns `true` if the queues have changed.
    ///
    /// # Errors
    /// `UnexpectedEof` if the front end has disconnected; otherwise an error that describes its invalid
    /// message. The caller must close the connection.
    pub(super) fn serve(&mut self) -> io::Result<bool> {
        let mut has_changed = false;
        for _ in 0..MOST_MESSAGES {
            let Some(message) = self.channel.receive()? else { break };
            let done = self.follow(message)?;
            has_changed |= done.change != Change::None;
            if let Some(reply) = done.reply {
                self.channel.reply(reply)?;
            }
            if done.change == Change::Memory {
                break;
            }
        }
        Ok(has_changed)
    }

    /// Processes a message of the front end. Returns the reply to send.
    fn follow(&mut self, message: Message) -> io::Result<Done> {
        self.note_bases();
        let done = self.session.take(message).map_err(invalid)?;
        self.apply(done.change)?;
        Ok(done)
    }

    /// Applies the change that a request has made to the session.
    fn apply(&mut self, change: Change) -> io::Result<()> {
        match change {
            Change::None => {}
            Change::Ring(ring) => self.make_queue(ring)?,
            Change::Rings => self.make_queues()?,
            Change::Memory => {
                // The previous memory and areas are kept until the queues, which use them, are created again.
                let _before = self.shared.follow(&self.session, self.allowed)?;
                self.make_queues()?;
            }
            Change::Log => {
                let _before = self.areas.map_log(&self.session, self.allowed)?;
                for (ring, queue) in self.session.rings().iter().zip(&mut self.queues) {
                    if let Some(queue) = queue {
                        self.areas.log(&self.session, ring, &mut queue.queue);
                    }
                }
            }
            Change::LogCall => self.areas.set_log_call(self.session.log_call())?,
            Change::Inflight => {
                let _before = self.areas.map_inflight(&self.session, self.allowed)?;
                self.make_queues()?;
            }
            Change::InflightFile(shape) => {
                let is_packed = self.session.features() & RING_PACKED != 0;
                let (file, bytes) = inflight_file(shape, is_packed, self.inflight_left)?;
                self.inflight_left -= bytes;
                self.channel.reply_inflight(shape, bytes, file.as_fd())?;
            }
            Change::Announcement(address) => self.announced = Some(address),
        }
        Ok(())
    }

    /// Writes the frame that announces a migrated guest, behind its header.
    #[cold]
    fn announce(&self, buffer: &mut [u8], address: [u8; 6]) -> RingRead {
        let (header_bytes, frame) = (self.header_bytes(), announcement(address));
        let bytes = header_bytes + frame.len();
        let Some(into) = buffer.get_mut(..bytes) else { return RingRead::Discarded };
        into[..header_bytes].fill(0);
        into[header_bytes..].copy_from_slice(&frame);
        RingRead::Frame(bytes)
    }

    /// Returns the reason why the connection can no longer be used; `None` if it can.
    pub(super) fn fault(&self) -> Option<String> {
        if self.shared.is_lost() || self.areas.is_lost() {
            return Some("a file of its memory has shrunk, has holes, or no huge pages".to_owned());
        }
        let is_broken =
            |queue: &Option<Queue>| queue.as_ref().is_some_and(|it| it.queue.is_broken());
        let ring = self.queues.iter().position(is_broken)?;
        Some(format!("its guest broke ring {ring}"))
    }

    /// Returns the instant at which a notification is due; `None` if none is waiting.
    pub(super) const fn notify_at(&self) -> Option<Instant> {
        self.moderator.poll_at()
    }

    /// Notifies the guest of its packets if a notification is due at `now`.
    fn notify_if_due(&mut self, now: Instant) {
        if self.moderator.take_due(now) {
            let notified: u64 = self.receive_queues().map(|queue| u64::from(queue.notify())).sum();
            self.notified += notified;
        }
    }

    fn receive_queues(&mut self) -> impl Iterator<Item = &mut Queue> {
        self.queues.iter_mut().step_by(2).flatten()
    }

    fn transmit_queues(&mut self) -> impl Iterator<Item = &mut Queue> {
        self.queues.iter_mut().skip(1).step_by(2).flatten()
    }

    /// Creates all queues again whose memory is mapped. A ring whose memory is not mapped stops: a front end that
    /// changes a region first removes the region and then adds it again.
    fn make_queues(&mut self) -> io::Result<()> {
        for n in 0..self.queues.len() {
            if is_in(self.shared.memory(), &self.session.rings()[n]) {
                self.make_queue(n)?;
            } else {
                self.end_queue(n);
            }
        }
        self.note_queues();
        Ok(())
    }

    /// Creates the queue of ring `n` again, if it can be used now.
    fn make_queue(&mut self, n: usize) -> io::Result<()> {
        self.end_queue(n);
        let usable = self.session.usable(n).filter(|_| !self.shared.memory().regions().is_empty());
        if let Some(ring) = usable {
            let made =
                Queue::new(self.shared.memory(), self.session.features(), ring, &self.events);
            let wrong = |why: String| invalid(format!("ring {n}: {why}"));
            let mut queue = made.map_err(wrong)?;
            let layout = layout(self.session.features());
            self.areas.log(&self.session, ring, &mut queue.queue);
            self.areas.track(&self.session, (n, layout), &mut queue.queue).map_err(wrong)?;
            // Notifications are enabled only when needed: for frames when the source waits, for buffers when
            // there are too few.
            queue.queue.disable_notifications();
            // A guest that was waiting for the former queue may have missed a notification.
            queue.call.iter().for_each(Notifier::notify);
            self.queues[n] = Some(queue);
        }
        self.note_queues();
        Ok(())
    }

    fn end_queue(&mut self, n: usize) {
        if let Some(mut before) = self.queues[n].take() {
            before.queue.publish();
            self.invalid += before.queue.invalid().total();
        }
    }

    /// Updates the list of receive rings, and whether a transmit ring must be polled.
    fn note_queues(&mut self) {
        self.receivers.clear();
        let receive_rings = (0..self.queues.len()).step_by(2);
        self.receivers.extend(receive_rings.filter(|ring| self.queues[*ring].is_some()));
        let is_polled = self.transmit_queues().any(|queue| queue.kick.is_none());
        self.is_polled = is_polled;
    }
}

impl Link for Connection {
    fn accepts(&self) -> Accepts {
        Accepts::driver(self.session.features())
    }

    fn gives(&self) -> Accepts {
        Accepts::device(self.session.features())
    }

    fn header_bytes(&self) -> usize {
        header_bytes(self.session.features())
    }

    fn take(&mut self, buffers: &mut Buffers) -> RingRead {
        let Some(buffer) = buffers.room() else { return RingRead::Nothing };
        if let Some(address) = self.announced.take() {
            return self.announce(buffer, address);
        }
        for _ in 0..MOST_PAIRS {
            let ring = 2 * self.next + 1;
            let queue = self.queues[ring].as_mut();
            match queue.map(|queue| queue.queue.take(self.shared.memory(), buffer)) {
                Some(Taken::Frame(bytes)) => return RingRead::Frame(bytes),
                Some(Taken::Invalid(_)) => return RingRead::Discarded,
                Some(Taken::Empty) | None => self.next = (self.next + 1) % MOST_PAIRS,
            }
        }
        RingRead::Nothing
    }

    fn finish_taking(&mut self) {
        self.transmit_queues().for_each(|queue| _ = queue.finish());
        if self.areas.reports() {
            self.areas.report(&self.session);
        }
    }

    fn ask_for_notifications(&mut self) -> bool {
        self.transmit_queues()
            .fold(false, |is_any, queue| queue.queue.enable_notifications() | is_any)
    }

    fn finish_putting(&mut self) -> u64 {
        self.receive_queues().for_each(|queue| queue.queue.publish());
        if self.areas.reports() {
            self.areas.report(&self.session);
        }
        if std::mem::take(&mut self.has_put) {
            let now = clock::now();
            self.moderator.record(now);
            self.notify_if_due(now);
        } else {
            self.notify_when_due();
        }
        std::mem::take(&mut self.notified)
    }

    fn notify_when_due(&mut self) {
        if self.moderator.poll_at().is_some() {
            self.notify_if_due(clock::now());
        }
    }

    fn load(&mut self) -> Option<Load> {
        let backlog = |ring: &usize| self.queues[*ring].as_ref()?.queue.backlog().map(u32::from);
        Some(Load { unread: self.receivers.iter().map(backlog).sum::<Option<u32>>()? })
    }
}

pub(super) fn invalid(why: impl Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.to_string())
}
