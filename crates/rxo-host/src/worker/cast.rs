//! The worker's side of a cast: the group, its members' connections, and the packets for all of them.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;

use rxo_device::{DeviceError, FrameSink};
use rxo_frame::{Duration, Instant, SharedBytes};
use rxo_tcp::{
    Connection, Group, GroupConfig, GroupEvent, GroupSeed, MemberId, Parity, Repair, Transmit,
};
use rxo_wire::FlowKey;
use rxo_wire::tcp::AckRecord;

use super::beside::Beside;
use super::connections::Connections;
use super::last_acks::Closer;
use super::network::Network;
use super::slots::Slots;
use crate::buffer::Buffer;
use crate::cast::{CastAct, CastCommand, CastEvent, CastProgress, Opened};
use crate::erasure::Encoder;
use crate::link::group_mac;
use crate::socket::Listening;
use crate::transmit::{Outbox, Path};

/// The cast of this host, if there is one. Without a cast, all operations do nothing.
#[derive(Debug)]
pub(super) struct Casting<B>(Option<Box<Cast<B>>>);

impl<B> Default for Casting<B> {
    fn default() -> Self {
        Self(None)
    }
}

impl<B: AsRef<[u8]>> Casting<B> {
    /// Returns `true` if connections of `listening` belong to this cast.
    pub(super) fn is_of(&self, listening: &Arc<Listening<B>>) -> bool {
        self.0.as_ref().is_some_and(|cast| Arc::ptr_eq(&cast.listening, listening))
    }

    /// Prepares the connection of a receiver that requests to join. A receiver that is too late to join gets
    /// separate sequence numbers, and is refused once its connection is established. With the group's sequence
    /// numbers in its SYN-ACK, an attacker could forge segments to the group.
    pub(super) fn prepare(&self, connection: &mut Connection<Buffer<B>>) {
        if let Some(Cast { group, .. }) = self.0.as_deref().filter(|it| !it.group.is_too_late()) {
            connection.join_group(group.seed(), group.config().buffer_bytes);
        }
    }

    /// Returns the deadline of the group's next timer; `None` if no timer runs.
    pub(super) fn poll_at(&self) -> Option<Instant> {
        self.0.as_ref()?.group.poll_at()
    }

    /// Returns the member whose connection has the index `place`; `None` if it belongs to no member.
    #[inline]
    pub(super) fn member_at(&mut self, place: u32) -> Option<Member<'_, B>> {
        let cast = self.0.as_deref_mut()?;
        let id = cast.member_at(place)?;
        Some(Member { cast, id })
    }
}

impl<B: AsRef<[u8]> + Default + Send + Sync + 'static> Casting<B> {
    /// Processes an application's command about its cast. Opening a cast replaces the existing one.
    pub(super) fn apply(
        &mut self,
        command: CastCommand<B>,
        connections: &mut Connections<B>,
        network: &Network<B>,
        now: Instant,
    ) {
        match command {
            CastCommand::Open(opened) => {
                self.close(connections, now);
                self.0 = Cast::open(opened, connections, network, now).map(Box::new);
            }
            CastCommand::Act(listening, _) if !self.is_of(&listening) => {}
            CastCommand::Act(_, CastAct::Close) => self.close(connections, now),
            CastCommand::Act(_, act) => {
                if let Some(cast) = &mut self.0 {
                    cast.apply(act, connections, now);
                }
            }
        }
    }

    /// Resets all members that have not ended, and all connections that are about to join.
    fn close(&mut self, connections: &mut Connections<B>, now: Instant) {
        let Some(mut cast) = self.0.take() else { return };
        for id in 0..cast.places.len() {
            let place = cast.place(id as MemberId);
            cast.abort_member(connections, place, now);
        }
        connections.unlisten(&cast.listening);
    }

    /// Makes a newly established connection a member of its cast, or resets it.
    pub(super) fn join(&mut self, connections: &mut Connections<B>, place: u32, now: Instant) {
        if let Some(cast) = &mut self.0 {
            cast.join(connections, place, now);
        }
    }

    /// Updates the connection at index `place`, if it is a member of the cast, with the data that the group
    /// has sent. Must be called before segments are passed to the connection.
    #[inline]
    pub(super) fn before_arrival(&mut self, slots: &Slots<B>, place: u32, now: Instant) {
        if let Some(cast) = &mut self.0 {
            cast.before_arrival(slots, place, now);
        }
    }

    /// Runs the group's expired timers.
    pub(super) fn wake(&mut self, connections: &mut Connections<B>, now: Instant) {
        let Some(cast) = &mut self.0 else { return };
        if cast.group.poll_at().is_some_and(|at| at <= now) {
            cast.group.on_timeout(now);
        }
        while let Some(id) = cast.group.poll_touched() {
            connections.touch(cast.place(id));
        }
    }

    /// Sends the packets for all members, repairs before new data, and then reports events to the
    /// application.
    pub(super) fn serve<O: FrameSink>(
        &mut self,
        connections: &mut Connections<B>,
        outbox: &mut Outbox,
        now: Instant,
        sink: &mut O,
    ) -> Result<(), DeviceError> {
        let Some(cast) = &mut self.0 else { return Ok(()) };
        cast.feed();
        cast.group.decide_repairs(now);
        while let Some(repair) = cast.group.poll_repair() {
            cast.push_repair(&mut connections.slots, outbox, now, &repair);
            if outbox.is_full() {
                cast.send_out(outbox, sink)?;
            }
        }
        cast.send_new(now, outbox, sink)?;
        cast.note_events(connections, now);
        cast.report_progress(&connections.slots, now);
        Ok(())
    }
}

/// A member of a cast, whose hooks run while its connection is served ([`Beside`]).
pub(super) struct Member<'a, B> {
    cast: &'a mut Cast<B>,
    id: MemberId,
}

impl<B: AsRef<[u8]>> Member<'_, B> {
    /// Passes ACKs of the member to the group, as [`Group::on_acks`] does.
    #[inline]
    pub(super) fn on_acks(
        &mut self,
        connection: &mut Connection<Buffer<B>>,
        records: impl Iterator<Item = AckRecord>,
        now: Instant,
    ) -> bool {
        self.cast.group.on_acks(self.id, connection, records, now)
    }
}

impl<B: AsRef<[u8]>> Beside<B> for Member<'_, B> {
    const CLOSER: Closer = Closer::Member;
    /// `false`, because the cast sends the group's data, limited by the group's window.
    const WAITS_FOR_DEVICE: bool = false;

    fn before(&mut self, connection: &mut Connection<Buffer<B>>, now: Instant) {
        self.cast.group.wake(self.id, connection, now);
    }

    /// Counts `transmit` if it is a repair for this member alone. Returns `true` if the group will send
    /// `transmit` instead of the connection.
    fn takes(&mut self, transmit: &Transmit<'_>) -> bool {
        let is_deferred = self.cast.group.defer(self.id, transmit);
        if !is_deferred && transmit.payload_bytes() > 0 {
            self.cast.count_own(self.id, transmit.payload_bytes());
        }
        is_deferred
    }

    fn after(&mut self, connection: &mut Connection<Buffer<B>>, now: Instant) {
        self.cast.group.after(self.id, connection, now);
    }
}

/// The state of this host's cast.
#[derive(Debug)]
struct Cast<B> {
    listening: Arc<Listening<B>>,
    group: Group,
    path: Path,
    /// The headers of parity packets.
    datagrams: Path,
    encoder: Encoder,
    ids: u16,
    /// The connection index and the peer address of each member.
    places: Vec<(u32, SocketAddr)>,
    /// The member to which each connection belongs, by the connection's index; [`NO_MEMBER`] for a connection
    /// that is not a member.
    members: Vec<MemberId>,
    /// Data of the application that does not fit into the group's send buffer yet.
    waiting: VecDeque<SharedBytes>,
    is_finished: bool,
    events: Sender<CastEvent>,
    /// The stream position up to which the application may write.
    room: Arc<AtomicU64>,
    taken: u64,
    counts: CastProgress,
    told_at: Instant,
}

impl<B: AsRef<[u8]>> Cast<B> {
    fn count_own(&mut self, id: MemberId, bytes: usize) {
        self.group.count_repair(id, bytes);
        self.counts.own_repairs += 1;
    }

    /// Moves waiting data into the group's send buffer, and updates the position up to which the application
    /// may write.
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

    /// Returns the member whose connection has the index `place`; `None` if it belongs to no member.
    #[inline]
    fn member_at(&self, place: u32) -> Option<MemberId> {
        self.members.get(place as usize).copied().filter(|id| *id != NO_MEMBER)
    }

    fn set_member(&mut self, id: MemberId, place: u32, peer: SocketAddr) {
        let (ids, places) = (id as usize + 1, place as usize + 1);
        self.places.resize(self.places.len().max(ids), (u32::MAX, peer));
        self.places[id as usize] = (place, peer);
        self.members.resize(self.members.len().max(places), NO_MEMBER);
        self.members[place as usize] = id;
    }

    /// Removes a member whose connection has ended. Returns the address of its peer; `None` if there is no
    /// such member.
    fn end_member(&mut self, id: MemberId) -> Option<SocketAddr> {
        let (place, peer) = self.places.get(id as usize).copied()?;
        *self.members.get_mut(place as usize)? = NO_MEMBER;
        Some(peer)
    }

    fn place(&self, id: MemberId) -> u32 {
        self.places.get(id as usize).map_or(u32::MAX, |(place, _)| *place)
    }

    fn emit(&self, event: CastEvent) {
        // Fails if the application has dropped the cast; its command to close it is on the way.
        let _sent = self.events.send(event);
    }

    fn send_new<O: FrameSink>(
        &mut self,
        now: Instant,
        outbox: &mut Outbox,
        sink: &mut O,
    ) -> Result<(), DeviceError> {
        // The device's backlog is bounded, and a group may send more than that at once.
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

impl<B: AsRef<[u8]> + Default + Send + Sync + 'static> Cast<B> {
    fn open(
        opened: Opened<B>,
        connections: &mut Connections<B>,
        network: &Network<B>,
        now: Instant,
    ) -> Option<Self> {
        let Opened { config, listening, events, room } = opened;
        let pair = FlowKey::between(config.local, config.group)?;
        let mut path = Path::new(pair, &network.shape);
        let mac = group_mac(config.group.ip());
        path.set_destination(mac);
        let datagrams = Path::of_datagrams(pair, &network.shape, mac);
        let settings = &connections.post.settings;
        let tcp = settings.tcp(&pair);
        let group = Group::new(GroupConfig {
            seed: GroupSeed::new(settings.secret(), &pair, now),
            buffer_bytes: config.buffer_bytes,
            largest_segment_bytes: u32::from(tcp.maximum_segment_size) - TIMESTAMP_BYTES,
            large_send_bytes: tcp.large_send_bytes,
            most_receivers: config.receivers,
            slow: config.slow,
            late: config.late,
            late_time: config.late_time,
            repairs: config.repairs,
            control: config.control,
        });
        connections.listeners.push(Arc::clone(&listening));
        let mut cast = Self {
            listening,
            group,
            path,
            datagrams,
            encoder: Encoder::default(),
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
        Some(cast)
    }

    fn apply(&mut self, act: CastAct, connections: &mut Connections<B>, now: Instant) {
        match act {
            CastAct::Provide(id, text) => return self.provide(connections, id, text, now),
            CastAct::Start => self.group.start(),
            CastAct::Finish => self.is_finished = true,
            CastAct::Text(text) => self.waiting.push_back(text),
            CastAct::Close => {}
        }
        self.feed();
    }

    /// Aborts the connection of a member. Updates the connection first, because a reset must carry the
    /// expected sequence number.
    fn abort_member(&mut self, connections: &mut Connections<B>, place: u32, now: Instant) {
        self.before_arrival(&connections.slots, place, now);
        let is_member = self.member_at(place).is_some();
        if let Some(slot) = connections.slots.get(place).filter(|_| is_member) {
            slot.cell.prepare(Connection::abort);
            connections.touch(place);
        }
    }

    fn provide(
        &mut self,
        connections: &mut Connections<B>,
        id: MemberId,
        text: SharedBytes,
        now: Instant,
    ) {
        let place = self.place(id);
        let is_member = self.member_at(place) == Some(id);
        if let Some(slot) = connections.slots.get(place).filter(|_| is_member) {
            slot.cell.prepare(|connection| self.group.provide(id, connection, text, now));
            connections.touch(place);
        }
    }

    fn join(&mut self, connections: &mut Connections<B>, place: u32, now: Instant) {
        // A member that has ended may pass its id to the new one.
        self.note_events(connections, now);
        let Some(slot) = connections.slots.get_mut(place) else { return };
        let peer = slot.cell.pair.receiver();
        let mut joined = None;
        slot.cell.prepare(|connection| {
            joined = Some(self.group.join(connection, now).inspect_err(|_| connection.abort()));
        });
        match joined {
            Some(Ok(id)) => {
                self.set_member(id, place, peer);
                self.emit(CastEvent::Joined { peer });
            }
            Some(Err(why)) => self.emit(CastEvent::Refused { peer, why }),
            None => {}
        }
        connections.touch(place);
    }

    #[inline]
    fn before_arrival(&mut self, slots: &Slots<B>, place: u32, now: Instant) {
        let Some(id) = self.member_at(place) else { return };
        if let Some(slot) = slots.get(place) {
            slot.cell.prepare(|connection| self.group.before(id, connection, now));
        }
    }

    fn push_repair(
        &mut self,
        slots: &mut Slots<B>,
        outbox: &mut Outbox,
        now: Instant,
        repair: &Repair,
    ) {
        if let Some(parity) = self.group.parity(repair, now) {
            return self.push_parity(outbox, &parity);
        }
        let transmit = self.group.repair_segment(repair, now);
        let bytes = transmit.payload_bytes();
        if bytes == 0 {
            return;
        }
        match repair.member() {
            None => {
                outbox.push(&self.path, &transmit, &mut self.ids);
                self.counts.group_repairs += 1;
            }
            Some(id) => {
                let place = self.place(id);
                if let Some(slot) = slots.get_mut(place) {
                    outbox.push(&slot.path, &transmit, &mut slot.ids);
                }
                self.count_own(id, bytes);
            }
        }
    }

    fn push_parity(&mut self, outbox: &mut Outbox, parity: &Parity<'_>) {
        let block = &parity.block;
        let text = self.group.sent_text(block.seq, block.bytes);
        // Without a symbol, all receivers have the block by now.
        let Some(symbol) = self.encoder.symbol(block, parity.index, text) else { return };
        let mut payload = Vec::with_capacity(Parity::HEADER_BYTES + symbol.len());
        Parity { symbol, ..*parity }.write(&mut payload);
        outbox.push_datagram(&self.datagrams, &payload, self.ids);
        self.ids = self.ids.wrapping_add(1);
        self.counts.parity_packets += 1;
    }

    fn note_events(&mut self, connections: &mut Connections<B>, now: Instant) {
        let mut none_is_left = self.group.receivers() == 0;
        while let Some(event) = self.group.poll_event() {
            match event {
                GroupEvent::Abort(id) => self.abort_member(connections, self.place(id), now),
                GroupEvent::WantsText { id, from, bytes } => {
                    self.emit(CastEvent::WantsText { id, from, bytes });
                }
                GroupEvent::Ended { id, outcome, bytes, repaired_bytes, time } => {
                    let Some(peer) = self.end_member(id) else { continue };
                    if std::mem::take(&mut none_is_left) {
                        let group = self.group.progress();
                        self.emit(CastEvent::Progress(CastProgress { group, ..self.counts }));
                    }
                    self.emit(CastEvent::Ended { peer, outcome, bytes, repaired_bytes, time });
                }
            }
        }
    }

    fn report_progress(&mut self, slots: &Slots<B>, now: Instant) {
        if now.since(self.told_at) < BETWEEN_PROGRESS {
            return;
        }
        self.told_at = now;
        let group = self.group.progress();
        let slowest = self.group.slowest().and_then(|id| slots.get(self.place(id)));
        let slowest = slowest.map(|slot| slot.cell.pair.receiver());
        self.emit(CastEvent::Progress(CastProgress { group, slowest, ..self.counts }));
    }
}

/// The value that marks a connection without a member. No member has this id, because there are fewer
/// members.
const NO_MEMBER: MemberId = MemberId::MAX;
const TIMESTAMP_BYTES: u32 = 12;
const BETWEEN_PROGRESS: Duration = Duration::from_millis(100);
