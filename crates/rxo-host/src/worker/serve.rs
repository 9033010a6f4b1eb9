//! Serves cells: timers that are due, then everything that they have to send.

use std::sync::Arc;

use rxo_device::{DeviceError, FrameSink};
use rxo_frame::{Duration, Instant};
use rxo_tcp::{Connection, Events, State, TimeWait};

use super::core::{Core, is_over};
use super::give_back::{Keeps, copy_kept};
use super::last_acks::Closer;
use super::neighbours::{Reach, reach};
use super::out::{Out, reading};
use super::paths::Paths;
use super::slots::Slot;
use crate::buffer::Buffer;
use crate::cell::{AckTerms, Cell, Reader};

/// The state of a cell after it was served.
struct Served {
    events: Events,
    poll_at: Option<Instant>,
    is_over: bool,
    /// What TIME-WAIT needs, if the connection is in that state.
    left: Option<Left>,
    is_new_orphan: bool,
    keeps: Keeps,
    acks: AckTerms,
    /// The reader of a connection that is over. Dropped without the lock: it may own streams.
    _spent: Option<Reader>,
}

/// Why a cell is served.
#[derive(Clone, Copy, Debug)]
enum By {
    /// Something has happened to it.
    Touch,
    /// It is next in the line for the device.
    Line,
}

/// What is left of a connection that closed first.
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
        self.look_at_device(now, sink);
        // A new orphan may cause another cell to be served, which causes no further ones.
        while served < most
            && let Some(place) = self.dirty.pop_front()
        {
            served += 1;
            self.serve(place, now, sink, By::Touch)?;
        }
        if most > 0 && !self.line.is_empty() {
            served += self.serve_line(now, sink)?;
        }
        self.send_link(sink)?;
        self.serve_cast(now, sink)?;
        self.outbox.send::<O, B>(sink, None)?;
        Ok(served)
    }

    /// Looks whether cells that wait for the device may send, or must.
    #[inline]
    fn look_at_device<O: FrameSink>(&mut self, now: Instant, sink: &O) {
        let is_due = self.drain.read_at().map_or(sink.is_blocked(), |at| at <= now);
        if is_due {
            self.drain.read(now, reading(sink));
        }
    }

    /// Serves the cells that wait for the device as far as it has room. Returns how many it has served.
    fn serve_line<O: FrameSink>(
        &mut self,
        now: Instant,
        sink: &mut O,
    ) -> Result<usize, DeviceError> {
        let mut served = 0;
        while self.drain.room() > 0
            && let Some((place, is_first)) = self.line.next()
        {
            let turn = self.slots.get_mut(place).map(|slot| &mut slot.turn);
            if turn.is_some_and(|turn| self.line.leave(turn, is_first)) {
                served += 1;
                self.serve(place, now, sink, By::Line)?;
            }
        }
        Ok(served)
    }

    /// Bytes of text that the cell at `place` may send before it is another's turn.
    #[inline(always)]
    fn share(&mut self, place: u32, by: By) -> u64 {
        if !self.drain.limits() || self.line.is_empty() && self.dirty.is_empty() {
            return u64::MAX;
        }
        self.share_of_room(place, by)
    }

    #[cold]
    fn share_of_room(&mut self, place: u32, by: By) -> u64 {
        self.line.set_quantum(self.drain.largest_send().into());
        match by {
            By::Touch if !self.line.is_empty() => 0,
            By::Touch | By::Line => {
                self.slots.get_mut(place).map_or(0, |slot| self.line.share(&mut slot.turn))
            }
        }
    }

    fn serve<O: FrameSink>(
        &mut self,
        place: u32,
        now: Instant,
        sink: &mut O,
        by: By,
    ) -> Result<(), DeviceError> {
        let share = self.share(place, by);
        let Some(slot) = self.slots.get_mut(place) else { return Ok(()) };
        slot.is_dirty = false;
        let is_active = slot.is_active;
        let reach = reach(slot, &mut self.link, now);
        if reach != Reach::Known && !std::mem::replace(&mut slot.is_unresolved, true) {
            self.unresolved.push(place);
        }
        let lends = self.kept.matters();
        let Slot { cell, path, ids, owned_until, turn, .. } = slot;
        let owned_until = *owned_until;
        let mut member = self.cast.as_deref_mut().and_then(|cast| cast.with_member_at(place));
        let (outbox, drain) = (&mut self.outbox, &mut self.drain);
        let mut out = Out { outbox, sink, path, ids, drain, share, sent: 0 };
        let paths = &mut self.paths;
        let served = cell.serve(|inner| {
            let is_new_orphan = cell.follow_application(inner, now);
            out.path.mark(inner.marks);
            let connection = &mut inner.connection;
            if is_active {
                open(connection, paths, now);
            }
            if let Some((cast, id)) = &mut member {
                cast.wake(*id, connection, now);
            }
            pass_time(connection, now);
            // Before anything is sent, so that what is sent says how far the window is open.
            Cell::read_out(inner);
            cell.grow(inner, now);
            let connection = &mut inner.connection;
            let sent = out.send_if_reached(reach, connection, member.as_mut(), now);
            if let Some((cast, id)) = &mut member {
                cast.after(*id, connection, now);
            }
            let closer = if member.is_some() { Closer::Member } else { Closer::Peer };
            let left = Left::take(connection, closer, now);
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
        self.line.sent(turn, out.sent);
        // An application that holds the lock marks the cell when it unlocks.
        let Some(served) = served else { return Ok(()) };
        let (served, is_held) = served?;
        if is_held {
            self.put_in_line(place, by);
        }
        self.record_served(place, now, &served);
        Ok(())
    }

    /// Lets the cell at `place`, which has text that waits for the device, have a turn later.
    fn put_in_line(&mut self, place: u32, by: By) {
        let Some(slot) = self.slots.get_mut(place) else { return };
        match by {
            By::Touch => self.line.join(place, &mut slot.turn),
            By::Line => self.line.rejoin(place, &mut slot.turn),
        }
    }

    fn record_served(&mut self, place: u32, now: Instant, served: &Served) {
        if let Some(slot) = self.slots.get_mut(place) {
            slot.served_at = now;
            slot.acks.terms = served.acks;
        }
        self.rests.look_at(place, now);
        self.timers.set(place, served.poll_at);
        self.note_kept(place, served.keeps);
        if served.events.contains(Events::CONNECTED) {
            self.hand_over(place, now);
        }
        if served.is_over {
            self.leave_group(place, now);
            if let Some(Left { timeout, closer, .. }) = served.left {
                self.last_acks.sent(now, timeout, closer);
            }
            self.forget(place, served.left.as_ref().map(|left| (left.time_wait, left.until)));
        } else if served.is_new_orphan {
            self.note_orphan(place);
        }
    }

    /// Gives a connection that is open to its listener.
    fn hand_over(&mut self, place: u32, now: Instant) {
        let Some(slot) = self.slots.get_mut(place) else { return };
        if let Some(listener) = slot.listener.take() {
            listener.one_opens_no_more();
            if self.cast.as_ref().is_some_and(|cast| cast.is_of(&listener)) {
                self.join_cast(place, now);
                return;
            }
            listener.push(Arc::clone(&slot.cell));
        }
    }
}

/// What the fast path must know of the connection until it is served again.
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
