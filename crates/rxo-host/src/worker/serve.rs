//! Serves connections: runs their expired timers, then sends their pending segments.

use std::sync::Arc;

use rxo_device::{DeviceError, FrameSink};
use rxo_frame::{Duration, Instant};
use rxo_tcp::{Connection, Events, State, TimeWait};

use super::beside::{Alone, Beside};
use super::cast::Member;
use super::connections::Connections;
use super::copy_overdue::{Keeps, copy_kept};
use super::core::{Core, is_closed};
use super::last_acks::Closer;
use super::neighbours::{NeighbourState, reach};
use super::network::Network;
use super::out::Out;
use super::paths::Paths;
use super::slots::{Slot, Slots};
use crate::buffer::Buffer;
use crate::cell::{AckTerms, Cell, Reader};

/// The result of serving a connection.
struct Served {
    events: Events,
    poll_at: Option<Instant>,
    is_over: bool,
    /// The state of the connection to keep in TIME-WAIT; `None` if the connection has not entered that state.
    left: Option<EnteredTimeWait>,
    is_new_orphan: bool,
    keeps: Keeps,
    acks: AckTerms,
    /// The reader of a closed connection, if it had one. The reader is dropped after the lock is released,
    /// because a reader may own streams.
    _spent: Option<Reader>,
}

/// The reason for serving a connection.
#[derive(Clone, Copy, Debug)]
enum ServeReason {
    /// A segment, a timer or a call of the application has marked the connection to be served.
    Touch,
    /// The connection is the next in the line of connections that wait for the device.
    Line,
}

/// The state of a connection that has just entered TIME-WAIT.
struct EnteredTimeWait {
    time_wait: TimeWait,
    until: Instant,
    /// The retransmission timeout of the connection.
    timeout: Duration,
    closer: Closer,
}

impl EnteredTimeWait {
    /// Returns the state of a connection in TIME-WAIT, which is then stored without the connection. `None` in
    /// any other state, and while the connection has a segment to send.
    #[inline]
    fn take<B: AsRef<[u8]>>(
        connection: &mut Connection<Buffer<B>>,
        closer: Closer,
        now: Instant,
    ) -> Option<Self> {
        let (time_wait, until) = connection.take_time_wait(now)?;
        Some(Self { time_wait, until, timeout: connection.statistics().rto, closer })
    }
}

/// The parameters of serving one connection.
#[derive(Clone, Copy, Debug)]
struct Service {
    place: u32,
    now: Instant,
    by: ServeReason,
    /// `true` if the device lends its frames and needs them back.
    lends: bool,
}

impl<B: AsRef<[u8]> + Default + Send + Sync + 'static> Core<B> {
    /// Serves at most `most` of the connections that need service, in the order in which they were marked,
    /// and then sends the rest of the batch. Returns the number of connections served.
    pub(super) fn serve_some<O: FrameSink>(
        &mut self,
        most: usize,
        now: Instant,
        sink: &mut O,
    ) -> Result<usize, DeviceError> {
        let mut served = 0;
        self.network.read_device_queue(now, sink);
        // A new orphan may cause another connection to be reset and served, but that one causes no others.
        while served < most
            && let Some(place) = self.connections.next_dirty()
        {
            served += 1;
            self.serve(place, now, sink, ServeReason::Touch)?;
        }
        if most > 0 && !self.network.line.is_empty() {
            served += self.serve_line(now, sink)?;
        }
        let Self { connections, network, cast, .. } = self;
        network.send_link(sink)?;
        cast.serve(connections, &mut network.outbox, now, sink)?;
        network.outbox.send::<O, B>(sink, None)?;
        Ok(served)
    }

    /// Serves the connections that wait for the device while its queue has free space. Returns the number of
    /// connections served.
    fn serve_line<O: FrameSink>(
        &mut self,
        now: Instant,
        sink: &mut O,
    ) -> Result<usize, DeviceError> {
        let mut served = 0;
        while self.network.drain.room() > 0
            && let Some((place, is_first)) = self.network.line.next()
        {
            let turn = self.connections.slots.get_mut(place).map(|slot| &mut slot.turn);
            if turn.is_some_and(|turn| self.network.line.leave(turn, is_first)) {
                served += 1;
                self.serve(place, now, sink, ServeReason::Line)?;
            }
        }
        Ok(served)
    }

    fn serve<O: FrameSink>(
        &mut self,
        place: u32,
        now: Instant,
        sink: &mut O,
        by: ServeReason,
    ) -> Result<(), DeviceError> {
        let Self { connections, network, upkeep, cast, .. } = self;
        let service = Service { place, now, by, lends: upkeep.kept.matters() };
        let served = match cast.member_at(place) {
            None => network.serve(connections, sink, service, Alone),
            Some(member) => network.serve_member(connections, sink, service, member),
        };
        if let Some(served) = served? {
            self.record_served(place, now, &served);
        }
        Ok(())
    }

    fn record_served(&mut self, place: u32, now: Instant, served: &Served) {
        let Self { connections, clock, upkeep, .. } = self;
        if let Some(slot) = connections.slots.get_mut(place) {
            slot.served_at = now;
            slot.acks.terms = served.acks;
            upkeep.kept.note(slot, place, served.keeps);
        }
        upkeep.rests.schedule_check(place, now);
        clock.timers.set(place, served.poll_at);
        if served.events.contains(Events::CONNECTED) {
            self.hand_over(place, now);
        }
        let Self { connections, clock, network, .. } = self;
        if served.is_over {
            network.leave_group(place, now);
            if let Some(EnteredTimeWait { timeout, closer, .. }) = served.left {
                clock.last_acks.sent(now, timeout, closer);
            }
            let left = served.left.as_ref().map(|left| (left.time_wait, left.until));
            connections.remove(place, left, clock);
        } else if served.is_new_orphan {
            connections.add_orphan(place, now);
        }
    }

    /// Passes an established connection to its listener, or to the cast that owns the listener.
    fn hand_over(&mut self, place: u32, now: Instant) {
        let Self { connections, cast, .. } = self;
        let Some(slot) = connections.slots.get_mut(place) else { return };
        let Some(listener) = slot.listener.take() else { return };
        listener.one_opens_no_more();
        if cast.is_of(&listener) {
            cast.join(connections, place, now);
        } else {
            listener.push(Arc::clone(&slot.cell));
        }
    }
}

impl<B: AsRef<[u8]> + Default + Send + Sync + 'static> Network<B> {
    /// Returns the number of data bytes that the connection at index `place` may send before other connections
    /// get their turn.
    #[inline(always)]
    fn share(&mut self, connections: &mut Connections<B>, place: u32, by: ServeReason) -> u64 {
        if !self.drain.limits() || self.line.is_empty() && connections.dirty.is_empty() {
            return u64::MAX;
        }
        self.share_of_room(&mut connections.slots, place, by)
    }

    #[cold]
    fn share_of_room(&mut self, slots: &mut Slots<B>, place: u32, by: ServeReason) -> u64 {
        self.line.set_quantum(self.drain.largest_send().into());
        match by {
            // Cells that already wait in the line go first.
            ServeReason::Touch if !self.line.is_empty() => 0,
            ServeReason::Touch | ServeReason::Line => {
                slots.get_mut(place).map_or(0, |slot| self.line.share(&mut slot.turn))
            }
        }
    }

    /// Serves a connection that is a member of a cast, as [`Network::serve`] does for other connections. Not
    /// inlined, because few hosts have a cast.
    #[inline(never)]
    fn serve_member<O: FrameSink>(
        &mut self,
        connections: &mut Connections<B>,
        sink: &mut O,
        service: Service,
        member: Member<'_, B>,
    ) -> Result<Option<Served>, DeviceError> {
        self.serve(connections, sink, service, member)
    }

    /// Runs the connection's expired timers, then sends its pending segments. `None` if there is no such
    /// connection, or if an application holds its lock; the thread that unlocks the connection then queues it.
    #[inline(always)]
    fn serve<O: FrameSink, S: Beside<B>>(
        &mut self,
        connections: &mut Connections<B>,
        sink: &mut O,
        service: Service,
        mut beside: S,
    ) -> Result<Option<Served>, DeviceError> {
        let Service { place, now, by, lends } = service;
        let share = self.share(connections, place, by);
        let Some(slot) = connections.slots.get_mut(place) else { return Ok(None) };
        slot.is_dirty = false;
        let is_active = slot.is_active;
        let reach = reach(slot, &mut self.link, now);
        if reach != NeighbourState::Known && !std::mem::replace(&mut slot.is_unresolved, true) {
            self.unresolved.push(place);
        }
        let Self { outbox, drain, paths, line, .. } = self;
        let Slot { cell, path, ids, owned_until, turn, .. } = slot;
        let owned_until = *owned_until;
        let mut out = Out { outbox, sink, path, ids, drain, share, sent: 0 };
        let served = cell.serve(|inner| {
            let is_new_orphan = cell.follow_application(inner, now);
            out.path.mark(inner.marks);
            let connection = &mut inner.connection;
            if is_active {
                open(connection, paths, now);
            }
            beside.before(connection, now);
            run_timers(connection, now);
            // Readers run before anything is sent, so that the segments announce the open window.
            Cell::read_out(inner);
            cell.grow(inner, now);
            let connection = &mut inner.connection;
            let sent = out.send_if_reached(reach, connection, &mut beside, now);
            beside.after(connection, now);
            let left = EnteredTimeWait::take(connection, S::CLOSER, now);
            let events = connection.take_events();
            if events.contains(Events::PATH_CHANGED) {
                paths.store(connection, now);
            }
            let (poll_at, is_over) = (connection.poll_at(), is_closed(connection.state()));
            if is_over {
                cell.take_back_all(inner);
            }
            // A closed connection is not served again, but its data may still be read, so the device's frames
            // are copied.
            let keeps =
                if is_over && lends { copy_kept(inner) } else { Keeps::of(inner, owned_until) };
            cell.wake_waiting(inner, events);
            let acks = terms_of(&inner.connection);
            let _spent = inner.reader.take_if(|_| is_over);
            let served =
                Served { events, poll_at, is_over, left, is_new_orphan, keeps, acks, _spent };
            sent.map(|is_held| (served, is_held))
        });
        line.sent(turn, out.sent);
        let Some(served) = served else { return Ok(None) };
        let (served, is_held) = served?;
        if is_held {
            // Some data waits for the device: the connection is served again.
            match by {
                ServeReason::Touch => line.join(place, turn),
                ServeReason::Line => line.rejoin(place, turn),
            }
        }
        Ok(Some(served))
    }
}

/// Returns the state of the connection that the fast path uses until the connection is served again.
#[inline]
fn terms_of<B: AsRef<[u8]>>(connection: &Connection<Buffer<B>>) -> AckTerms {
    AckTerms {
        is_synchronized: connection.state().is_synchronized(),
        may_miss: connection.may_miss_acks(),
        sent_to: connection.sent_to(),
    }
}

/// Opens the connection if an application has requested it, with the stored path MTU of its destination.
#[inline]
fn open<B: AsRef<[u8]>>(connection: &mut Connection<Buffer<B>>, paths: &Paths, now: Instant) {
    if connection.state() == State::Listen {
        paths.apply(connection, now);
        connection.connect(now);
    }
}

/// Runs the connection's timers if they have expired.
fn run_timers<B: AsRef<[u8]>>(connection: &mut Connection<Buffer<B>>, now: Instant) {
    if connection.poll_at().is_some_and(|at| at <= now) {
        connection.on_timeout(now);
    }
}
