//! Hub of several guests: the nic, the switch, and for each guest the hub's ends of two lanes, the queues to
//! and from the guest's thread.
//!
//! The guests share the hub. There may be several, each with a queue of the nic, a switch that knows what the others
//! know ([`Switch::for_threads`]), and lanes of its own to each guest. In place of a nic, a guest's worker has a
//! [`PortSource`](super::port::PortSource) and a [`PortSink`](super::port::PortSink), perhaps on another
//! thread.
//!
//! Contract: the hub never waits for a guest, and never calls code of a guest's device. A frame is copied
//! once for a guest, or once for all guests that receive it. A guest without free space loses frames, which
//! are counted, and delays no other guest. Guests send in fair turns, each within its budget. While the nic
//! has no free space, frames for it wait in [`Departures`], and guests can still send to each other.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use rxo_device::{DeviceError, FrameSink, FrameSource};
use rxo_frame::{Frame, FrameBuffer, Instant};

use super::departures::Departures;
use super::fair::FairTurns;
use super::hub_turns::HubWakeUp;
use super::lane::Copied;
use super::port::HubEnds;
use super::side::Side;
use super::wake_up::WakeUp;
use super::watch::LATE;
use crate::switch::{Forward, Port, PortSet, Switch};
use crate::worker::account::{Account, Sendings};
use crate::worker::balance::{Snapshot, Stage};
use crate::worker::outlet::Outlet;
use crate::worker::overload::FairCoDel;
use crate::worker::ring::Ring;
use crate::worker::work_clock::WorkClock;
use crate::worker::{Imbalance, Reading, Readings, WorkerConfig};

/// The nic's port. Guest `n`, counted from 0, has port `n + 1`.
pub(super) const NIC: Port = Port::new(0);

pub(super) struct Hub<I: FrameSource, O> {
    /// The hub's number, counted from 0.
    number: usize,
    pub(super) source: I,
    pub(super) outlet: Outlet<O>,
    pub(super) switch: Switch,
    /// The state that the hub keeps of each guest: the ends of its lanes, and its budget.
    pub(super) sides: Vec<Side>,
    /// The hub's wake-up: guests knock on it when they have queued a frame.
    pub(super) wake_up: HubWakeUp,
    /// `true` after the hub has announced that it may wait, so that a guest wakes it after queuing a frame.
    pub(super) is_armed: Cell<bool>,
    /// The number of frames dropped because more arrived than the hub could process.
    pub(super) overload_drops: u64,
    pub(super) ring: Ring,
    pub(super) account: Account,
    pub(super) sendings: Sendings,
    /// The number of frames from guests for the nic.
    for_nic: u64,
    codel: Option<FairCoDel>,
    batch: Vec<Frame<I::Buffer>>,
    budget: usize,
    fair: FairTurns,
    /// The frames for the nic that wait for free space.
    departures: Departures,
    /// The frames that are sent to the nic in this turn.
    leaving: Vec<Frame<Copied>>,
    /// Maximum number of frames from guests that the hub passes on in a turn.
    guests_budget: usize,
    now: Instant,
    /// The time at which the guests' threads are checked next.
    next_check: Instant,
}

/// Time between two checks of the guests' threads while frames wait for them.
const CHECK_INTERVAL: Duration = LATE;

/// Returns the ports for a frame to several others that exceeds its guest's budget. A broadcast goes to none.
/// A frame to an unknown address may belong to a stream without answers, so it leaves only by the nic, where
/// it costs other guests nothing.
fn beyond_budget<B: AsRef<[u8]>>(ports: PortSet, frame: &Frame<B>) -> PortSet {
    let is_group = frame.bytes().first().is_some_and(|first| first & 1 != 0);
    if is_group || !ports.contains(NIC) { PortSet::default() } else { PortSet::only(NIC) }
}

impl<I: FrameSource, O: FrameSink> Hub<I, O> {
    pub(super) fn new(
        (number, (source, sink)): (usize, (I, O)),
        switch: Switch,
        (wake_up, ends): (Arc<WakeUp>, Vec<HubEnds>),
        config: &WorkerConfig,
    ) -> Self {
        let link = source.capabilities().link;
        let codel = config.overload.map(|overload| FairCoDel::new(overload, link));
        Self {
            number,
            source,
            outlet: Outlet::new(sink),
            switch,
            fair: FairTurns::new(ends.len()),
            departures: Departures::new(ends.len()),
            sides: ends.into_iter().map(Side::new).collect(),
            wake_up: HubWakeUp(wake_up),
            is_armed: Cell::new(false),
            overload_drops: 0,
            ring: Ring::new(),
            account: Account::default(),
            sendings: Sendings::default(),
            for_nic: 0,
            codel,
            batch: Vec::with_capacity(config.budget_frames),
            budget: config.budget_frames,
            leaving: Vec::with_capacity(config.host_budget_frames),
            guests_budget: config.host_budget_frames,
            now: Instant::ZERO,
            next_check: Instant::ZERO,
        }
    }

    /// Receives a batch from the nic and puts each frame into the queues (lanes) to the guests that receive it.
    /// Returns the number of frames in the batch. If `may_have_frames` is `false`, only receives frames that
    /// the source has delayed.
    ///
    /// # Errors
    /// If the nic failed. Frames received before that are in the lanes.
    pub(super) fn receive(
        &mut self,
        may_have_frames: bool,
        clock: impl FnOnce(&mut WorkClock) -> Instant,
    ) -> Result<usize, DeviceError> {
        let resumed = self.outlet.resume();
        let may_have_frames = may_have_frames || self.source.poll_at().is_some();
        let received =
            if may_have_frames { self.source.receive(&mut self.batch, self.budget) } else { Ok(0) };
        self.now = clock(&mut self.ring.work);
        let is_all = self.batch.len() < self.budget;
        self.ring.attribute_losses(is_all, &mut self.source);
        if may_have_frames && is_all && !self.source.is_starved() {
            self.account.compare_arrivals(&mut self.source);
        }
        if let Some(codel) = &mut self.codel {
            let work = &self.ring.work;
            self.overload_drops += codel.drop_from(&mut self.batch, is_all, self.now, work);
        }
        let mut batch = std::mem::take(&mut self.batch);
        for frame in &batch {
            let frame = frame.borrowed();
            if let Forward::To(ports) = self.switch.forward(NIC, &frame, self.now) {
                self.copy_to(ports, NIC, &frame);
            }
        }
        I::Buffer::drop_all(batch.drain(..).map(|frame| frame.bytes));
        self.batch = batch;
        self.wake();
        resumed.and(received)
    }

    /// Copies a frame into the lanes of the guests at `ports`; several guests share one copy.
    fn copy_to(&mut self, ports: PortSet, from: Port, frame: &Frame<&[u8]>) {
        // One copy with the tag in its bytes, and one without.
        let mut copies: [Option<Arc<[u8]>>; 2] = [None, None];
        for port in ports {
            let tagging = self.switch.tagging(from, port, frame);
            let (tagged, side) = (tagging.apply(frame), &mut self.sides[port.index() - 1]);
            if side.is_cut_off {
                side.record_loss();
            } else if ports.len() == 1 {
                let is_put = side.to_guest.push(&tagged);
                side.note(is_put, tagged.byte_len());
            } else if side.to_guest.has_room_for(tagged.byte_len()) {
                let copy = &mut copies[usize::from(tagging.strips)];
                let copied_bytes = if copy.is_none() { tagged.byte_len() } else { 0 };
                let bytes = copy.get_or_insert_with(|| tagged.pieces.concat().into());
                let is_put = side.to_guest.push_shared(tagged.facts.with_bytes(Arc::clone(bytes)));
                side.note(is_put, copied_bytes);
            } else {
                side.record_loss();
            }
        }
    }

    /// Makes the switch forget the addresses of machines that have left their device. One of several hubs does it for
    /// all; another one later would forget the machines that have come since.
    fn forget_gone(&mut self) {
        if self.number > 0 {
            return;
        }
        for (n, side) in self.sides.iter_mut().enumerate() {
            let gone = side.state.gone();
            if std::mem::replace(&mut side.forgotten, gone) != gone {
                self.switch.forget(Port::new(n + 1));
            }
        }
    }

    /// Passes on frames of guests: as copies to other guests, and to the nic as far as it has free space.
    /// Returns the number of frames.
    ///
    /// # Errors
    /// If the nic failed.
    pub(super) fn serve(&mut self, now: Instant) -> Result<usize, DeviceError> {
        self.now = now;
        self.forget_gone();
        let mut served = self.depart();
        for _ in 0..self.guests_budget {
            let Self { fair, sides, departures, .. } = self;
            let cost = |n: usize| departures.reads(n).then(|| sides[n].cost(now)).flatten();
            let Some(n) = fair.next(cost) else { break };
            let Some(frame) = sides[n].take() else { break };
            self.forward(n, frame);
            served += 1;
        }
        self.wake();
        if self.leaving.is_empty() {
            return Ok(served);
        }
        let sent = self.outlet.sink.transmit(self.leaving.iter().map(Frame::borrowed));
        self.leaving.clear();
        sent.map(|()| served)
    }

    /// Moves frames that have waited for the nic to the frames that are sent in this turn, if the nic has
    /// free space. Returns their number.
    fn depart(&mut self) -> usize {
        let has_room = !self.outlet.is_blocked();
        let sent = || self.outlet.sink.counters().frames;
        self.departures.observe((!has_room).then(sent), self.now);
        if has_room && !self.departures.is_empty() {
            let departing = std::iter::from_fn(|| self.departures.pop());
            self.leaving.extend(departing.take(self.guests_budget));
        }
        self.leaving.len()
    }

    /// Sends a frame of the guest with index `n` to the nic in this turn, or queues it after the frames that
    /// wait.
    fn leave(&mut self, n: usize, frame: Frame<Copied>) {
        self.for_nic += 1;
        let is_free = !self.outlet.is_blocked() && self.departures.is_empty();
        let bytes = frame.bytes().len();
        if is_free && self.leaving.len() < self.guests_budget {
            self.leaving.push(frame);
        } else if !self.departures.push(n, frame) {
            self.sides[n].refuse(bytes);
        }
    }

    /// Passes on a frame of the `n`-th guest.
    fn forward(&mut self, n: usize, frame: Frame<Copied>) {
        let from = Port::new(n + 1);
        let Forward::To(ports) = self.switch.forward(from, &frame, self.now) else {
            return self.sides[n].refuse(frame.bytes().len());
        };
        let is_within = ports.len() <= 1 || self.sides[n].may_flood(&frame, self.now);
        let ports = if is_within { ports } else { beyond_budget(ports, &frame) };
        if ports.is_empty() {
            return self.sides[n].refuse(frame.bytes().len());
        }
        let borrowed = frame.borrowed();
        self.copy_to(ports.without(NIC), from, &borrowed);
        if ports.contains(NIC) {
            let tagging = self.switch.tagging(from, NIC, &borrowed);
            let leaving = if tagging.strips {
                let tagged = tagging.apply(&borrowed);
                tagged.facts.with_bytes(Copied::Shared(tagged.pieces.concat().into()))
            } else {
                Frame { vlan: tagging.tag, ..frame }
            };
            self.leave(n, leaving);
        }
    }

    /// Returns `true` if no frame from a guest can be passed on: the queues from the guests (lanes) are
    /// empty, or the nic's sink is blocked.
    pub(super) fn is_drained(&self) -> bool {
        let mut sides = self.sides.iter().enumerate();
        (self.outlet.is_blocked() || self.departures.is_empty())
            && sides.all(|(n, side)| side.from_guest.is_empty() || !self.departures.reads(n))
    }

    /// Drops and counts the frames from guests for which the nic has no space, at the end of a run.
    pub(super) fn abandon(&mut self) {
        for (n, bytes) in self.departures.abandon() {
            self.sides[n].refuse(bytes);
        }
        for side in &mut self.sides {
            while let Some(frame) = side.from_guest.pop() {
                side.from_guest.dropped += 1;
                side.refuse(frame.bytes().len());
            }
        }
    }

    fn wake(&mut self) {
        self.sides.iter_mut().for_each(Side::wake);
    }

    /// Returns the time at which a turn is due even if nothing arrives: at once, if a frame from a guest may
    /// be passed on. `None` if no turn is due until something arrives.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let departs = !self.outlet.is_blocked() && !self.departures.is_empty();
        let waiting =
            |(n, side): (usize, &Side)| match side.is_cut_off || side.from_guest.is_empty() {
                true => None,
                false if self.departures.reads(n) => Some(side.due_at.unwrap_or(Instant::ZERO)),
                false => self.departures.stuck_at(),
            };
        let guests = self.sides.iter().enumerate().filter_map(waiting);
        guests.chain(departs.then_some(Instant::ZERO)).chain(self.source.poll_at()).min()
    }

    /// Returns the time at which the last batch from the nic was received.
    pub(super) const fn now(&self) -> Instant {
        self.now
    }

    /// Reads from the system how many frames have arrived at the nic and left by it, to compare them with the
    /// hub's counters.
    pub(super) fn read_counts(&mut self, now: Instant) {
        self.account.open(&mut self.source);
        self.sendings.compare_departures(now, &mut self.outlet.sink);
    }

    /// Checks whether the guests' threads take the frames that wait for them. Returns lines for the user; `None` if it is
    /// not yet time for a check.
    pub(super) fn watch(&mut self) -> Option<Vec<String>> {
        let (now, count) = (self.now, self.sides.len());
        if now < self.next_check {
            return None;
        }
        self.next_check = now + CHECK_INTERVAL;
        let lines = self.sides.iter_mut().enumerate().filter_map(|(n, side)| {
            let said = side.watch_guest(now)?;
            Some(format!("guest {} of {count} {said}", n + 1))
        });
        Some(lines.collect())
    }

    /// Returns the time of the next check of the guests' threads; `None` if no frame waits for one.
    pub(super) fn looks_at(&self) -> Option<Instant> {
        let mut sides = self.sides.iter();
        let is_awaited = sides.any(|side| !side.is_cut_off && !side.to_guest.is_empty());
        is_awaited.then_some(self.next_check)
    }

    /// Returns the counters of the nic's queue and of the switch, and the numbers of frames that were passed on to and
    /// from guests. `elapsed` is the time since the start, and `cpu` the hub's processor time.
    pub(super) fn readings(
        &mut self,
        (elapsed, cpu): (Duration, Duration),
        imbalance: Imbalance,
    ) -> Readings {
        let (nic_in, not_scheduled) = self.ring.counters(&mut self.source);
        let mut all = Reading {
            elapsed,
            cpu,
            nic_in,
            nic_out: self.outlet.sink.counters(),
            overload: self.overload_drops,
            not_scheduled,
            unaccounted: self.account.unaccounted,
            unsent: self.sendings.unsent,
            imbalance,
            ..Reading::default()
        };
        all.host_out.packets = self.sides.iter().map(|side| side.to_guest.put).sum();
        all.host_in.frames = self.sides.iter().map(|side| side.from_guest.taken).sum();
        Readings { switch: Some(*self.switch.counters()), ..all.into() }
    }

    /// Adds to the readings of guests the numbers that hubs count for them. `elapsed` is the time since the start.
    pub(super) fn complete(&self, guests: &mut [Reading], elapsed: Duration) {
        for (reading, side) in guests.iter_mut().zip(&self.sides) {
            reading.over_budget = side.state.sum(|lane| &lane.over_budget);
            reading.stalls = side.state.stalls();
            reading.elapsed = elapsed;
        }
    }

    /// Returns the counts of the switch and of the nic's sink, between two turns.
    pub(super) fn snapshot(&mut self) -> Snapshot {
        let received = self.source.counters().frames;
        let passed = |side: &Side| side.from_guest.taken - side.from_guest.dropped;
        let sent: u64 = self.sides.iter().map(passed).sum();
        let entered = received.saturating_sub(self.overload_drops) + sent;
        let accounted = self.switch.counters().frames();
        let switch = Stage { entered, accounted };
        let mut nic_out = self.outlet.stage(self.for_nic);
        nic_out.accounted += self.departures.len() as u64 + self.departures.dropped;
        Snapshot { switch, nic_out, ..Snapshot::default() }
    }
}
