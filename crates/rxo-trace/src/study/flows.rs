//! The flows of a capture, with the counts of each flow.
//!
//! The table is designed for a million flows in little memory: it has records of fixed size in slabs that never
//! move, and an index of nine bytes per slot. Only the index is reallocated. Beyond [`MAX_FLOWS`] no flow is
//! added; the packets of further flows are counted in the totals and as untracked.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use hashbrown::HashTable;
use rxo_wire::{FlowHasher, FlowKey, SeqNumber};
use serde::{Deserialize, Serialize};

use super::gaps::Gaps;
use super::merges::Merges;
use super::packet_kind::Segment;
use super::part::Numbering;
use super::point::{CHOSEN_SLOT, SLOTS};
use crate::report::{FlowReport, Protocol};

/// The maximum number of flows that are counted individually. This number of flows takes about 260 MB.
pub const MAX_FLOWS: usize = 1_500_000;
/// The flow number for packets whose flow is not counted individually.
pub(super) const NO_FLOW: u32 = u32::MAX;

const SLAB: usize = 4_096;
const NO_VLAN: u16 = u16::MAX;

/// The running totals of one flow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Flow {
    #[serde(with = "wire_key")]
    pub(super) key: FlowKey,
    pub(super) protocol: Protocol,
    /// The numbers of the captures with the flow's earliest and latest packet. A saved part stores these numbers
    /// next to the flow.
    #[serde(skip)]
    pub(super) files: [u32; 2],
    pub(super) packets: u64,
    bytes: u64,
    payload_bytes: u64,
    data_segments: u64,
    pure_acks: u64,
    /// The number of packets of the flow minus the number of their deliveries, under each poll rule with a
    /// [`super::point::slot`]. Saturates.
    eliminated: [u32; SLOTS],
    aggregates: u64,
    /// The time of the flow's earliest packet in nanoseconds, as in its record. The next field is the time of
    /// the latest packet.
    first_ns: u64,
    last_ns: u64,
    first_ack: u32,
    /// The acknowledgement number (SEG.ACK) of the flow's last pure ACK.
    ack: u32,
    first_window: u16,
    window: u16,
    vlan: u16,
    /// The number of packets whose checksum the sender's card was to complete. Saturates.
    unfinished: u32,
    /// The smallest hop limit (TTL) of the flow's packets.
    hops: u8,
    /// The state for finding packets that were merged before the capture. Each part of a study has its own
    /// state: the first packet of a part is not compared with packets of the previous part.
    #[serde(skip)]
    pub(super) merges: Merges,
    /// The state for finding payload that is missing in the capture, of each part by itself.
    #[serde(skip)]
    pub(super) gaps: Gaps,
    /// `true` if the flow's last packet was a plain ACK: a pure ACK without flags other than ACK and without
    /// options other than timestamps.
    after_plain_ack: bool,
    /// `true` if the flow's first packet was a plain ACK.
    begins_with_plain_ack: bool,
}

/// The time of a packet, and the capture that contains the packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sighting {
    /// The time of the packet in nanoseconds, as in its record.
    pub(super) at_ns: u64,
    /// The number of the capture that contains the packet.
    pub(super) file: u32,
}

/// The fields of a flow's first or last packet that decide whether an ACK before a cut and an ACK after it could be
/// aggregated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PlainAck {
    ack: u32,
    window: u16,
}

impl PlainAck {
    /// Returns `true` if the pure ACK `next`, which differs only in ACK number and window, could be aggregated
    /// with this ACK.
    pub(super) const fn is_followed_by(self, next: Self) -> bool {
        let advances =
            next.ack != self.ack && SeqNumber(next.ack).is_at_or_after(SeqNumber(self.ack));
        let updates_window = next.ack == self.ack && next.window != self.window;
        advances || updates_window
    }
}

impl Flow {
    fn new(segment: &Segment, Sighting { at_ns, file }: Sighting) -> Self {
        Self {
            key: segment.key,
            protocol: segment.protocol,
            files: [file; 2],
            packets: 0,
            bytes: 0,
            payload_bytes: 0,
            data_segments: 0,
            pure_acks: 0,
            eliminated: [0; SLOTS],
            aggregates: 0,
            first_ns: at_ns,
            last_ns: at_ns,
            first_ack: 0,
            ack: 0,
            first_window: 0,
            window: 0,
            vlan: segment.vlan.unwrap_or(NO_VLAN),
            unfinished: 0,
            hops: u8::MAX,
            merges: Merges::default(),
            gaps: Gaps::default(),
            after_plain_ack: false,
            begins_with_plain_ack: false,
        }
    }

    /// Returns `true` if the flow has this key and this protocol. A key does not contain the protocol.
    #[inline]
    fn is(&self, key: &FlowKey, protocol: Protocol) -> bool {
        self.key == *key && self.protocol == protocol
    }

    /// Returns the identity of the flow, by which flows can be sorted independently of their order in the capture.
    pub(super) fn identity(&self) -> ([u8; 40], Protocol) {
        (self.key.to_bytes(), self.protocol)
    }

    /// Counts a packet with `wire_bytes` bytes on the wire. Returns `true` if it is a pure ACK that could be aggregated
    /// with the flow's previous packet.
    #[inline]
    pub(super) fn count(
        &mut self,
        segment: &Segment,
        bytes: &[u8],
        wire_bytes: u64,
        seen: Sighting,
    ) -> bool {
        self.packets += 1;
        self.bytes += wire_bytes;
        self.payload_bytes += u64::from(segment.at.payload_bytes());
        self.data_segments += u64::from(segment.at.payload_bytes() > 0);
        self.hops = self.hops.min(segment.hops(bytes));
        self.see(seen);
        let follows = segment.is_pure_ack && self.count_ack(segment, bytes);
        self.after_plain_ack = segment.is_pure_ack && segment.is_bare;
        if self.packets == 1 {
            self.begins_with_plain_ack = self.after_plain_ack;
            (self.first_ack, self.first_window) = (self.ack, self.window);
        }
        follows
    }

    /// Records the time of a packet. Captures are read in order, so among packets with equal times, the one
    /// that is read first is the earliest, and the one that is read last is the latest.
    #[inline]
    fn see(&mut self, Sighting { at_ns, file }: Sighting) {
        if at_ns < self.first_ns {
            (self.first_ns, self.files[0]) = (at_ns, file);
        }
        if at_ns >= self.last_ns {
            (self.last_ns, self.files[1]) = (at_ns, file);
        }
    }

    fn count_ack(&mut self, segment: &Segment, bytes: &[u8]) -> bool {
        self.pure_acks += 1;
        let next = PlainAck { ack: segment.ack(bytes), window: segment.window(bytes) };
        let follows = PlainAck { ack: self.ack, window: self.window }.is_followed_by(next);
        (self.ack, self.window) = (next.ack, next.window);
        self.after_plain_ack && segment.is_bare && follows
    }

    /// Returns the flow's first packet if it was a plain ACK; otherwise `None`.
    pub(super) fn first_ack(&self) -> Option<PlainAck> {
        let ack = PlainAck { ack: self.first_ack, window: self.first_window };
        self.begins_with_plain_ack.then_some(ack)
    }

    /// Returns the flow's last packet if it was a plain ACK; otherwise `None`.
    pub(super) fn last_ack(&self) -> Option<PlainAck> {
        let ack = PlainAck { ack: self.ack, window: self.window };
        self.after_plain_ack.then_some(ack)
    }

    /// Adds the counts of other packets of the flow, which another part has counted. `numbering` translates that
    /// part's capture numbers.
    fn add(&mut self, other: &Self, numbering: &Numbering<'_>) {
        let Self { packets, bytes, payload_bytes, data_segments, pure_acks, .. } = other;
        for (mine, theirs) in [
            (&mut self.packets, packets),
            (&mut self.bytes, bytes),
            (&mut self.payload_bytes, payload_bytes),
            (&mut self.data_segments, data_segments),
            (&mut self.pure_acks, pure_acks),
            (&mut self.aggregates, &other.aggregates),
        ] {
            *mine = mine.saturating_add(*theirs);
        }
        for (mine, theirs) in self.eliminated.iter_mut().zip(other.eliminated) {
            *mine = mine.saturating_add(theirs);
        }
        self.unfinished = self.unfinished.saturating_add(other.unfinished);
        self.hops = self.hops.min(other.hops);
        let at = |ns, file| (ns, numbering.place(file));
        if at(other.first_ns, other.files[0]) < at(self.first_ns, self.files[0]) {
            (self.first_ns, self.files[0]) = (other.first_ns, other.files[0]);
        }
        if at(other.last_ns, other.files[1]) > at(self.last_ns, self.files[1]) {
            (self.last_ns, self.files[1]) = (other.last_ns, other.files[1]);
        }
        // One flow may be on two VLANs that its key does not distinguish. The smaller one does not depend on
        // the order.
        self.vlan = self.vlan.min(other.vlan);
    }

    /// Returns the flow with `files` as the numbers of the captures with its first and last packet.
    pub(super) const fn in_files(mut self, files: [u32; 2]) -> Self {
        self.files = files;
        self
    }

    /// Returns the largest of the flow's counts.
    pub(super) fn most(&self) -> u64 {
        let traffic = [self.packets, self.bytes, self.payload_bytes, self.data_segments];
        let others = [self.pure_acks, self.aggregates];
        traffic.into_iter().chain(others).fold(0, u64::max)
    }

    /// Clears the fields on the flow's first and last packet, which have no meaning once the flow's counts are
    /// added to the counts of another part.
    pub(super) fn forget_ends(&mut self) {
        self.merges = Merges::default();
        self.gaps = Gaps::default();
        (self.first_ack, self.first_window, self.ack, self.window) = (0, 0, 0, 0);
        (self.begins_with_plain_ack, self.after_plain_ack) = (false, false);
    }

    pub(super) const fn count_unfinished(&mut self) {
        self.unfinished = self.unfinished.saturating_add(1);
    }

    /// Counts an aggregate of `segments` segments of the flow under the poll rule with this slot.
    #[inline]
    pub(super) fn coalesced(&mut self, slot: usize, segments: u64) {
        self.aggregates += u64::from(slot == CHOSEN_SLOT);
        if let Some(eliminated) = self.eliminated.get_mut(slot) {
            *eliminated = eliminated.saturating_add((segments - 1) as u32);
        }
    }

    pub(super) fn unfinished(&self) -> u64 {
        self.unfinished.into()
    }

    /// Returns `true` if the flow's packets have a VLAN tag.
    pub(super) const fn is_tagged(&self) -> bool {
        self.vlan != NO_VLAN
    }

    /// Returns the smallest hop limit of the flow's packets.
    pub(super) const fn hops(&self) -> u8 {
        self.hops
    }

    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the number of eliminated packets under the poll rule of each slot.
    pub(super) fn eliminated(&self) -> [u64; SLOTS] {
        self.eliminated.map(u64::from)
    }

    /// Returns the flow's entry in a report that begins at `start_ns`. `names` are the names of the captures, by
    /// number.
    pub(super) fn report(&self, start_ns: u64, names: &[Arc<str>]) -> FlowReport {
        let side = |address: core::net::IpAddr, port| {
            core::net::SocketAddr::new(address, port).to_string()
        };
        let name = |file: u32| names.get(file as usize).cloned().unwrap_or_default();
        let eliminated = u64::from(self.eliminated[CHOSEN_SLOT]);
        FlowReport {
            source: side(self.key.source(), self.key.source_port()),
            destination: side(self.key.destination(), self.key.destination_port()),
            protocol: self.protocol,
            vlan: (self.vlan != NO_VLAN).then_some(self.vlan),
            packets: self.packets,
            bytes: self.bytes,
            payload_bytes: self.payload_bytes,
            data_segments: self.data_segments,
            pure_acks: self.pure_acks,
            deliveries: self.packets.saturating_sub(eliminated),
            aggregates: self.aggregates,
            // Every aggregate has one delivery, which was not eliminated.
            aggregated_segments: eliminated.saturating_add(self.aggregates),
            first_ns: self.first_ns.saturating_sub(start_ns),
            last_ns: self.last_ns.saturating_sub(start_ns),
            first_file: name(self.files[0]),
            last_file: name(self.files[1]),
        }
    }
}

/// The counts of all flows, by flow key.
#[derive(Clone, Debug)]
pub(super) struct Flows {
    hasher: FlowHasher,
    slabs: Vec<Vec<Flow>>,
    limit: usize,
    /// The index: half of each flow's hash, and the flow's number.
    places: HashTable<(u32, u32)>,
    /// The number of the flow of the last packet, which is often the flow of the next packet too.
    last: u32,
}

/// Returns a hash for the index from half of a flow's hash, so that the index can grow without reading the flows.
const fn spread(tag: u32) -> u64 {
    (tag as u64) << 32 | tag as u64
}

impl Flows {
    /// Creates a table for `limit` flows. The hashes of the table have a random seed. With a known seed,
    /// someone could create a capture whose flows all have the same slot in the index, so that each look-up
    /// would visit all flows. The report does not depend on the seed.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            hasher: FlowHasher::new(RandomState::new().hash_one(0)),
            slabs: Vec::new(),
            limit,
            places: HashTable::new(),
            last: NO_FLOW,
        }
    }

    /// Returns the number of the segment's flow. Adds the flow if it is new. Returns [`NO_FLOW`] if the flow is
    /// new and the table is full.
    #[inline]
    pub(super) fn find_or_add(&mut self, segment: &Segment, seen: Sighting) -> u32 {
        let (key, protocol) = (segment.key, segment.protocol);
        if self.get(self.last).is_some_and(|flow| flow.is(&key, protocol)) {
            return self.last;
        }
        let number = self.look_up(&key, protocol, || Flow::new(segment, seen));
        self.last = number;
        number
    }

    /// Adds the counts of a flow from another part. Returns `false` if the flow is new and the table is full.
    pub(super) fn add(&mut self, other: &Flow, numbering: &Numbering<'_>) -> bool {
        let before = self.len();
        let other = other.clone().in_files(other.files.map(|file| numbering.number(file)));
        let number = self.look_up(&other.key, other.protocol, || other.clone());
        let is_new = self.len() > before;
        match self.get_mut(number).filter(|_| !is_new) {
            Some(flow) => flow.add(&other, numbering),
            None => return is_new,
        }
        true
    }

    fn look_up(&mut self, key: &FlowKey, protocol: Protocol, new: impl FnOnce() -> Flow) -> u32 {
        let tag = (self.hasher.hash(key).0 >> 32) as u32;
        let is_same = |&(known, number): &(u32, u32)| {
            known == tag && self.get(number).is_some_and(|flow| flow.is(key, protocol))
        };
        let found = self.places.find(spread(tag), is_same).map(|(_, number)| *number);
        found.unwrap_or_else(|| self.insert(new, tag))
    }

    #[cold]
    fn insert(&mut self, new: impl FnOnce() -> Flow, tag: u32) -> u32 {
        let count = self.len();
        if count >= self.limit {
            return NO_FLOW;
        }
        if count.is_multiple_of(SLAB) {
            self.slabs.push(Vec::with_capacity(SLAB));
        }
        if let Some(slab) = self.slabs.last_mut() {
            slab.push(new());
        }
        self.places.insert_unique(spread(tag), (tag, count as u32), |(tag, _)| spread(*tag));
        count as u32
    }

    #[inline]
    pub(super) fn get(&self, number: u32) -> Option<&Flow> {
        let number = number as usize;
        self.slabs.get(number / SLAB)?.get(number % SLAB)
    }

    /// Returns a mutable reference to the flow with this number; `None` for [`NO_FLOW`].
    #[inline]
    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut Flow> {
        let number = number as usize;
        self.slabs.get_mut(number / SLAB)?.get_mut(number % SLAB)
    }

    /// Returns the number of flows in the table.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// Returns an iterator over mutable references to all flows.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Flow> {
        self.slabs.iter_mut().flatten()
    }

    /// Returns an iterator over all flows, in the order in which they were first seen.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Flow> + Clone {
        self.slabs.iter().flatten()
    }

    /// Returns the `most` flows with the most packets, in descending order. Flows with an equal number of
    /// packets are ordered by their first packet, and then by key.
    pub(super) fn top(&self, most: usize) -> Vec<&Flow> {
        let mut heap = std::collections::BinaryHeap::with_capacity(most.min(self.len()) + 1);
        for (number, flow) in self.iter().enumerate() {
            let age = core::cmp::Reverse((flow.first_ns, flow.identity()));
            heap.push(core::cmp::Reverse((flow.packets, age, number)));
            if heap.len() > most {
                heap.pop();
            }
        }
        let numbers = heap.into_sorted_vec().into_iter();
        numbers.filter_map(|entry| self.get(entry.0.2 as u32)).collect()
    }
}

/// The serialization of a flow's key in a saved part.
pub(super) mod wire_key {
    use rxo_wire::FlowKey;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(in super::super) fn serialize<S: Serializer>(
        key: &FlowKey,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        let bytes = key.to_bytes();
        let (chunks, _) = bytes.as_chunks::<8>();
        let words: [u64; 5] = core::array::from_fn(|word| u64::from_be_bytes(chunks[word]));
        words.serialize(to)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<FlowKey, D::Error> {
        let words = <[u64; 5]>::deserialize(from)?;
        let mut bytes = [0; 40];
        for (chunk, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *chunk = word.to_be_bytes();
        }
        Ok(FlowKey::from_bytes(&bytes))
    }
}

#[cfg(test)]
mod tests;
