//! Serves cells: timers that are due, then everything that they have to send.

use std::sync::Arc;

use rxo_device::{DeviceError, FrameSink};
use rxo_frame::{Duration, Instant};
use rxo_tcp::{Connection, Events, State, TimeWait};

use super::beside::{Alone, Beside};
use super::cast::Member;
use super::connections::Connections;
use super::core::{Core, is_over};
use super::give_back::{Keeps, copy_kept};
use super::last_acks::Closer;
use super::neighbours::{Reach, reach};
use super::network::Network;
use super::out::Out;
use super::paths::Paths;
use super::slots::{Slot, Slots};
use crate::buffer::Buffer;
use crate::cell::{AckTerms, Cell, Reader};

/// The state of a cell after it was served.
struct Served {
    events: Events,
    poll_at: Option<Instant>,
    is_over: bool,
    /// The numbers that TIME-WAIT needs, if the connection is in that state.
    left: Option<Left>,
    is_new_orphan: bool,
    keeps: Keeps,
    acks: AckTerms,
    /// The reader of a connection that is over. Dropped without the lock: it may own streams.
    _spent: Option<Reader>,
}

/// The reason why a cell is served.
#[derive(Clone, Copy, Debug)]
enum By {
    /// Something has happened to it.
    Touch,
    /// It is next in the line for the device.
    Line,
}

/// The remains of a connection that closed first.
struct Left {
    time_wait: TimeWait,
    until: Instant,
    /// The retransmission timeout.
    timeout: Duration,
    closer: Closer,
}

impl Left {
    /// `None` in any other state than TIME-WAIT, and while something is to be sent.
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

/// The service of one cell.
#[derive(Clone, Copy, Debug)]
struct Service {
    place: u32,
    now: Instant,
    by: By,
    /// `true` if the device lends frames that it needs back.
    lends: bool,
}

impl<B: AsRef<[u8]> + Default + Send + Sync + 'static> Core<B> {
    /// Serves at most `most` of the cells that were touched, the first that was touched first, and sends the rest
    /// of the batch. Returns how many it has served.
    pub(super) fn serve_some<O: FrameSink>(
        &mut self,
        most: usize,
        now: Instant,
        sink: &mut O,
    ) -> Result<usize, DeviceError> {
        let mut served = 0;
        self.network.look_at_device(now, sink);
        // A new orphan may cause another cell to be served, which causes no further ones.
        while served < most
            && let Some(place) = self.connections.dirty.pop_front()
        {
            served += 1;
            self.serve(place, now, sink, By::Touch)?;
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

    /// Serves the cells that wait for the device as far as it has room. Returns how many it has served.
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
                self.serve(place, now, sink, By::Line)?;
            }
        }
        Ok(served)
    }

    fn serve<O: FrameSink>(
        &mut self,
        place: u32,
        now: Instant,
        sink: &mut O,
        by: By,
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
        upkeep.rests.look_at(place, now);
        clock.timers.set(place, served.poll_at);
        if served.events.contains(Events::CONNECTED) {
            self.hand_over(place, now);
        }
        let Self { connections, clock, network, .. } = self;
        if served.is_over {
            network.leave_group(place, now);
            if let Some(Left { timeout, closer, .. }) = served.left {
                clock.last_acks.sent(now, timeout, closer);
            }
            let left = served.left.as_ref().map(|left| (left.time_wait, left.until));
            connections.remove(place, left, clock);
        } else if served.is_new_orphan {
            connections.add_orphan(place, now);
        }
    }

    /// Gives a connection that is open to its listener.
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
    /// Bytes of text that the cell at `place` may send before it is another's turn.
    #[inline(always)]
    fn share(&mut self, connections: &mut Connections<B>, place: u32, by: By) -> u64 {
        if !self.drain.limits() || self.line.is_empty() && connections.dirty.is_empty() {
            return u64::MAX;
        }
        self.share_of_room(&mut connections.slots, place, by)
    }

    #[cold]
    fn share_of_room(&mut self, slots: &mut Slots<B>, place: u32, by: By) -> u64 {
        self.line.set_quantum(self.drain.largest_send().into());
        match by {
            By::Touch if !self.line.is_empty() => 0,
            By::Touch | By::Line => {
                slots.get_mut(place).map_or(0, |slot| self.line.share(&mut slot.turn))
            }
        }
    }

    /// [`Network::serve`] for the member of a group. Out of line: few hosts have any.
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

    /// Lets timers fire that are due, then sends what there is to send. `None` if there is no cell, or an application
    /// holds the lock: then it marks the cell when it unlocks.
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
        if reach != Reach::Known && !std::mem::replace(&mut slot.is_unresolved, true) {
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
            pass_time(connection, now);
            // Before anything is sent, so that what is sent says how far the window is open.
            Cell::read_out(inner);
            cell.grow(inner, now);
            let connection = &mut inner.connection;
            let sent = out.send_if_reached(reach, connection, &mut beside, now);
            beside.after(connection, now);
            let left = Left::take(connection, S::CLOSER, now);
            let events = connection.take_events();
            if events.contains(Events::PATH_CHANGED) {
                paths.hear(connection, now);
            }
            let (poll_at, is_over) = (connection.poll_at(), is_over(connection.state()));
            if is_over {
                cell.take_back_all(inner);
            }
            // A closed connection is served no more, but its text may still be read.
            let keeps =
                if is_over && lends { copy_kept(inner) } else { Keeps::of(inner, owned_until) };
            cell.tell(inner, events);
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
            // It has text that waits for the device: it has a turn later.
            match by {
                By::Touch => line.join(place, turn),
                By::Line => line.rejoin(place, turn),
            }
        }
        Ok(Some(served))
    }
}

/// The facts that the fast path must know of the connection until it is served again.
#[inline]
fn terms_of<B: AsRef<[u8]>>(connection: &Connection<Buffer<B>>) -> AckTerms {
    AckTerms {
        is_synchronized: connection.state().is_synchronized(),
        may_miss: connection.may_miss_acks(),
        sent_to: connection.sent_to(),
    }
}

/// Opens the connection if an application has asked for it.
#[inline]
fn open<B: AsRef<[u8]>>(connection: &mut Connection<Buffer<B>>, paths: &Paths, now: Instant) {
    if connection.state() == State::Listen {
        paths.tell(connection, now);
        connection.connect(now);
    }
}

/// Fires the timers that are due.
fn pass_time<B: AsRef<[u8]>>(connection: &mut Connection<Buffer<B>>, now: Instant) {
    if connection.poll_at().is_some_and(|at| at <= now) {
        connection.on_timeout(now);
    }
}
