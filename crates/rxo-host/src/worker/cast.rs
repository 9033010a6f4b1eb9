//! The worker's side of a cast: the group, its members' places, and what leaves for all of them.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;

use rxo_device::{DeviceError, FrameSink};
use rxo_frame::{Duration, Instant, SharedBytes};
use rxo_tcp::{Connection, Group, GroupConfig, GroupEvent, GroupSeed, MemberId, Repair, Transmit};
use rxo_wire::tcp::AckRecord;

use super::core::Core;
use crate::buffer::Buffer;
use crate::cast::{CastAct, CastCommand, CastEvent, CastProgress, Opened, group_mac};
use crate::cell::peer;
use crate::settings::pair;
use crate::socket::Listening;
use crate::transmit::{Outbox, Path};

/// A cast of this host.
#[derive(Debug)]
pub(super) struct Cast<B> {
    listening: Arc<Listening<B>>,
    group: Group,
    path: Path,
    ids: u16,
    /// The place of each member, and its address.
    places: Vec<(u32, SocketAddr)>,
    /// The member at each place; [`NOBODY`] if there is none.
    members: Vec<MemberId>,
    /// Text for which the group has no room yet.
    waiting: VecDeque<SharedBytes>,
    is_finished: bool,
    events: Sender<CastEvent>,
    /// The position up to which text may be written.
    room: Arc<AtomicU64>,
    taken: u64,
    counts: CastProgress,
    told_at: Instant,
}

impl<B: AsRef<[u8]>> Cast<B> {
    /// Whether connections of `listening` belong to it.
    pub(super) fn is_of(&self, listening: &Arc<Listening<B>>) -> bool {
        Arc::ptr_eq(&self.listening, listening)
    }

    /// Prepares the connection of a receiver that asks to join. One that comes too late is refused when it is open, and
    /// until then has numbers of its own: its SYN-ACK would tell the group's to a forger.
    pub(super) fn prepare(&self, connection: &mut Connection<Buffer<B>>) {
        if !self.group.is_too_late() {
            connection.join_group(self.group.seed(), self.group.config().buffer_bytes);
        }
    }

    /// As [`Group::on_acks`].
    #[inline]
    pub(super) fn on_acks(
        &mut self,
        id: MemberId,
        connection: &mut Connection<Buffer<B>>,
        records: impl Iterator<Item = AckRecord>,
        now: Instant,
    ) -> bool {
        self.group.on_acks(id, connection, records, now)
    }

    /// As [`Group::wake`].
    #[inline]
    pub(super) fn wake(
        &mut self,
        id: MemberId,
        connection: &mut Connection<Buffer<B>>,
        now: Instant,
    ) {
        self.group.wake(id, connection, now);
    }

    /// As [`Group::after`].
    #[inline]
    pub(super) fn after(
        &mut self,
        id: MemberId,
        connection: &mut Connection<Buffer<B>>,
        now: Instant,
    ) {
        self.group.after(id, connection, now);
    }

    /// Takes `transmit` of a member if it goes another way, or later; counts it if it is a repair.
    pub(super) fn defer(&mut self, id: MemberId, transmit: &Transmit<'_>) -> bool {
        if self.group.defer(id, transmit) {
            return true;
        }
        if transmit.payload_bytes() > 0 {
            self.count_own(id, transmit.payload_bytes());
        }
        false
    }

    fn count_own(&mut self, id: MemberId, bytes: usize) {
        self.group.count_repair(id, bytes);
        self.counts.own_repairs += 1;
    }

    /// Gives the group the text for which it has room, and tells the application how much it may write.
    fn feed(&mut self) {
        while let Some(text) = self.waiting.front_mut() {
            self.taken += self.group.write(text) as u64;
            if !text.is_empty() {
                break;
            }
            self.waiting.pop_front();
        }
        if self.is_finished && self.waiting.is_empty() {
            self.group.finish();
        }
        self.room.store(self.taken + u64::from(self.group.room()), Ordering::Relaxed);
    }

    /// When something is due.
    pub(super) fn poll_at(&self) -> Option<Instant> {
        self.group.poll_at()
    }

    /// The member whose connection is at `place`.
    #[inline]
    fn member_at(&self, place: u32) -> Option<MemberId> {
        self.members.get(place as usize).copied().filter(|id| *id != NOBODY)
    }

    /// This with the member whose connection is at `place`, if there is one.
    pub(super) fn with_member_at(&mut self, place: u32) -> Option<(&mut Self, MemberId)> {
        let id = self.member_at(place)?;
        Some((self, id))
    }

    fn set_member(&mut self, id: MemberId, place: u32, peer: SocketAddr) {
        let (ids, places) = (id as usize + 1, place as usize + 1);
        self.places.resize(self.places.len().max(ids), (u32::MAX, peer));
        self.places[id as usize] = (place, peer);
        self.members.resize(self.members.len().max(places), NOBODY);
        self.members[place as usize] = id;
    }

    /// The address of a member that has ended.
    fn end_member(&mut self, id: MemberId) -> Option<SocketAddr> {
        let (place, peer) = self.places.get(id as usize).copied()?;
        *self.members.get_mut(place as usize)? = NOBODY;
        Some(peer)
    }

    fn place(&self, id: MemberId) -> u32 {
        self.places.get(id as usize).map_or(u32::MAX, |(place, _)| *place)
    }

    fn tell(&self, event: CastEvent) {
        // The application has dropped the cast: then its end is on the way.
        let _sent = self.events.send(event);
    }

    fn send_new<O: FrameSink>(
        &mut self,
        now: Instant,
        outbox: &mut Outbox,
        sink: &mut O,
    ) -> Result<(), DeviceError> {
        // What the device keeps for later is bounded, and a group may send more than that at once.
        while !sink.is_blocked()
            && let Some(transmit) = self.group.poll_transmit(now)
        {
            self.counts.group_packets += 1;
            outbox.push(&self.path, &transmit, &mut self.ids);
            if outbox.is_full() {
                self.send_out(outbox, sink)?;
            }
        }
        self.send_out(outbox, sink)
    }

    fn send_out<O: FrameSink>(&self, outbox: &mut Outbox, sink: &mut O) -> Result<(), DeviceError> {
        outbox.send_from(sink, |seq, bytes| self.group.sent_text(seq, bytes))
    }
}

impl<B: AsRef<[u8]> + Default + Send + Sync + 'static> Core<B> {
    /// Carries out a command of an application about its cast.
    pub(super) fn obey_cast(&mut self, command: CastCommand<B>) {
        match command {
            CastCommand::Open(opened) => self.open_cast(opened),
            CastCommand::Act(listening, act) => {
                if self.cast.as_ref().is_some_and(|cast| cast.is_of(&listening)) {
                    self.act_on_cast(act);
                }
            }
        }
    }

    fn act_on_cast(&mut self, act: CastAct) {
        match act {
            CastAct::Close => self.close_cast(),
            CastAct::Lend(id, text) => self.lend_cast(id, text),
            CastAct::Start => self.with_cast(|cast| cast.group.start()),
            CastAct::Finish => self.with_cast(|cast| cast.is_finished = true),
            CastAct::Text(text) => self.with_cast(|cast| cast.waiting.push_back(text)),
        }
    }

    fn with_cast(&mut self, act: impl FnOnce(&mut Cast<B>)) {
        if let Some(cast) = &mut self.cast {
            act(cast);
            cast.feed();
        }
    }

    /// Opens a cast, which replaces the one that there is.
    fn open_cast(&mut self, opened: Opened<B>) {
        self.close_cast();
        let Opened { config, listening, events, room } = opened;
        let Some(pair) = pair(config.local, config.group) else { return };
        let mut path = Path::new(pair, &self.shape);
        path.lead_to(group_mac(config.group.ip()));
        let tcp = self.post.settings.tcp(&pair);
        let secret = self.post.settings.secret();
        let group = Group::new(GroupConfig {
            seed: GroupSeed::new(secret, &pair, self.now),
            buffer_bytes: config.buffer_bytes,
            largest_segment_bytes: u32::from(tcp.maximum_segment_size) - TIMESTAMP_BYTES,
            large_send_bytes: tcp.large_send_bytes,
            most_receivers: config.receivers,
            slow: config.slow,
            late: config.late,
            late_time: config.late_time,
            repairs: config.repairs,
        });
        let mut cast = Cast {
            listening: Arc::clone(&listening),
            group,
            path,
            ids: 0,
            places: Vec::new(),
            members: Vec::new(),
            waiting: VecDeque::new(),
            is_finished: false,
            events,
            room,
            taken: 0,
            counts: CastProgress::default(),
            told_at: Instant::ZERO,
        };
        cast.feed();
        self.listeners.push(listening);
        self.cast = Some(Box::new(cast));
    }

    /// Resets all members that have not ended, and whoever is about to join.
    fn close_cast(&mut self) {
        let Some(cast) = &self.cast else { return };
        let ids = (0..cast.places.len()).map(|id| cast.place(id as MemberId));
        let places: Vec<u32> = ids.collect();
        for place in places {
            self.abort_member(place);
        }
        if let Some(cast) = self.cast.take() {
            self.unlisten(&cast.listening);
        }
    }

    /// Aborts the connection of a member, which must know what was sent: a reset has the number that is expected.
    fn abort_member(&mut self, place: u32) {
        let is_member = self.cast.as_ref().is_some_and(|cast| cast.member_at(place).is_some());
        self.before_arrival(place, self.now);
        if let Some(slot) = self.slots.get(place).filter(|_| is_member) {
            slot.cell.prepare(Connection::abort);
            self.touch(place);
        }
    }

    fn lend_cast(&mut self, id: MemberId, text: SharedBytes) {
        let Some(cast) = &mut self.cast else { return };
        let place = cast.place(id);
        let now = self.now;
        if let Some(slot) = self.slots.get(place).filter(|_| cast.member_at(place) == Some(id)) {
            slot.cell.prepare(|connection| cast.group.lend(id, connection, text, now));
            self.touch(place);
        }
    }

    /// Makes a connection that has just been opened a member of its cast, or resets it.
    pub(super) fn join_cast(&mut self, place: u32, now: Instant) {
        // Whoever has ended may leave its number to the new one.
        self.note_cast_events();
        let (Some(cast), Some(slot)) = (&mut self.cast, self.slots.get_mut(place)) else { return };
        let peer = peer(&slot.cell.pair);
        let mut joined = None;
        slot.cell.prepare(|connection| {
            joined = Some(cast.group.join(connection, now).inspect_err(|_| connection.abort()));
        });
        match joined {
            Some(Ok(id)) => {
                cast.set_member(id, place, peer);
                cast.tell(CastEvent::Joined { peer });
            }
            Some(Err(why)) => cast.tell(CastEvent::Refused { peer, why }),
            None => {}
        }
        self.touch(place);
    }

    /// Tells the connection at `place`, if it is a member's, what its group has sent. Before anything arrives there.
    #[inline]
    pub(super) fn before_arrival(&mut self, place: u32, now: Instant) {
        let Some(cast) = &mut self.cast else { return };
        let Some(id) = cast.member_at(place) else { return };
        if let Some(slot) = self.slots.get(place) {
            slot.cell.prepare(|connection| cast.group.before(id, connection, now));
        }
    }

    /// Does what is due for the group.
    pub(super) fn wake_cast(&mut self, now: Instant) {
        let Some(cast) = &mut self.cast else { return };
        if cast.poll_at().is_some_and(|at| at <= now) {
            cast.group.on_timeout(now);
        }
        while let Some(cast) = &mut self.cast
            && let Some(id) = cast.group.poll_touched()
        {
            let place = cast.place(id);
            self.touch(place);
        }
    }

    /// Sends what leaves for all members: repairs, then new text. Then tells the application.
    pub(super) fn serve_cast<O: FrameSink>(
        &mut self,
        now: Instant,
        sink: &mut O,
    ) -> Result<(), DeviceError> {
        let Some(cast) = &mut self.cast else { return Ok(()) };
        cast.feed();
        cast.group.decide_repairs(now);
        while let Some(cast) = &mut self.cast
            && let Some(repair) = cast.group.poll_repair()
        {
            self.send_repair(now, &repair, sink)?;
        }
        if let Some(cast) = &mut self.cast {
            cast.send_new(now, &mut self.outbox, sink)?;
        }
        self.note_cast_events();
        self.tell_progress(now);
        Ok(())
    }

    fn send_repair<O: FrameSink>(
        &mut self,
        now: Instant,
        repair: &Repair,
        sink: &mut O,
    ) -> Result<(), DeviceError> {
        let Self { cast, slots, outbox, .. } = self;
        let Some(cast) = cast else { return Ok(()) };
        let transmit = cast.group.repair_segment(repair, now);
        let bytes = transmit.payload_bytes();
        if bytes == 0 {
            return Ok(());
        }
        match repair.member() {
            None => {
                outbox.push(&cast.path, &transmit, &mut cast.ids);
                cast.counts.group_repairs += 1;
            }
            Some(id) => {
                let place = cast.place(id);
                if let Some(slot) = slots.get_mut(place) {
                    outbox.push(&slot.path, &transmit, &mut slot.ids);
                }
                cast.count_own(id, bytes);
            }
        }
        if outbox.is_full() { cast.send_out(outbox, sink) } else { Ok(()) }
    }

    fn note_cast_events(&mut self) {
        while let Some(cast) = &mut self.cast
            && let Some(event) = cast.group.poll_event()
        {
            match event {
                GroupEvent::Abort(id) => {
                    let place = cast.place(id);
                    self.abort_member(place);
                }
                GroupEvent::WantsText { id, from, bytes } => {
                    cast.tell(CastEvent::WantsText { id, from, bytes });
                }
                GroupEvent::Ended { id, outcome, bytes, repaired_bytes, time } => {
                    let Some(peer) = cast.end_member(id) else { continue };
                    cast.tell(CastEvent::Ended { peer, outcome, bytes, repaired_bytes, time });
                }
            }
        }
    }

    fn tell_progress(&mut self, now: Instant) {
        let Some(cast) = &mut self.cast else { return };
        if now.since(cast.told_at) < BETWEEN_PROGRESS {
            return;
        }
        cast.told_at = now;
        let group = cast.group.progress();
        let slots = &self.slots;
        let slowest = cast.group.slowest().and_then(|id| slots.get(cast.place(id)));
        let slowest = slowest.map(|slot| peer(&slot.cell.pair));
        cast.tell(CastEvent::Progress(CastProgress { group, slowest, ..cast.counts }));
    }
}

/// No member's number: there are fewer.
const NOBODY: MemberId = MemberId::MAX;
const TIMESTAMP_BYTES: u32 = 12;
const BETWEEN_PROGRESS: Duration = Duration::from_millis(100);
