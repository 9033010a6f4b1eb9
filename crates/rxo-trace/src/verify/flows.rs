//! Compares all flows of both captures, within limits.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

use hashbrown::HashTable;

use super::facts::{Class, ComparedPacket, Name};
use super::flow::{Flow, Mismatch, Tally, Unit};
use super::{ComparisonResult, Difference, Limits, Side};

/// All flows, by name. The table contains only indices into the vector, because the unused slots of a table for
/// a million flows must be small.
#[derive(Debug)]
pub(super) struct Flows {
    limits: Limits,
    places: HashTable<u32>,
    hasher: RandomState,
    flows: Vec<Entry>,
    tally: Tally,
    verdict: ComparisonResult,
}

/// An entry of the table. Its flow is `None` if the flow differs and is not compared further.
#[derive(Debug)]
struct Entry {
    name: Name,
    flow: Option<Flow>,
    /// `true` if the flow is already listed as undecided.
    is_undecided: bool,
}

impl Flows {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            places: HashTable::new(),
            hasher: RandomState::new(),
            flows: Vec::new(),
            tally: Tally::default(),
            verdict: ComparisonResult::default(),
        }
    }

    pub(super) const fn waiting_bytes(&self, side: Side) -> usize {
        self.tally.waiting[side.index()]
    }

    /// Returns `true` if the maximum number of differences was found.
    pub(super) fn has_enough(&self) -> bool {
        self.verdict.differences.len() >= self.limits.differences
    }

    /// Compares a packet of `side`, which may wait for its counterpart if `may_wait`.
    pub(super) fn push(
        &mut self,
        (side, may_wait): (Side, bool),
        packet: u64,
        mut seen: ComparedPacket,
    ) {
        self.make_room();
        let place = self.place(seen.name);
        let Some(flow) = self.flows.get_mut(place).and_then(|entry| entry.flow.as_mut()) else {
            return;
        };
        let met = match std::mem::replace(&mut seen.inner, Ok(Vec::new())) {
            Ok(inner) => {
                let unit = Unit::new(packet, seen.facts, seen.bytes(), inner);
                flow.push(side, unit, &mut self.tally)
            }
            Err(why) => Err(Mismatch::bad_note(side, packet, flow.offset(), why)),
        };
        if let Err(found) = met {
            self.report_difference(place, found);
        } else if !may_wait {
            flow.clear_of(side, &mut self.tally);
        }
        if let Some(found) = self.tally.undecided.take() {
            self.report_undecided(place, found);
        }
        while self.tally.waiting.iter().sum::<usize>() > self.limits.waiting_bytes {
            self.give_up_oldest();
        }
    }

    /// Returns the index of the flow called `name`. Adds the flow if it is new.
    fn place(&mut self, name: Name) -> usize {
        let Self { places, hasher, flows, .. } = self;
        let hash = hasher.hash_one(name);
        let is_it = |place: &u32| flows.get(*place as usize).is_some_and(|e| e.name == name);
        if let Some(place) = places.find(hash, is_it) {
            return *place as usize;
        }
        let place = flows.len();
        let of = |place: &u32| flows.get(*place as usize).map_or(0, |e| hasher.hash_one(e.name));
        places.insert_unique(hash, place as u32, of);
        flows.push(Entry { name, flow: Some(Flow::default()), is_undecided: false });
        self.verdict.flows += 1;
        place
    }

    /// Drops flows without waiting packets, because there are too many flows.
    fn make_room(&mut self) {
        if self.flows.len() < self.limits.flows {
            return;
        }
        let Self { places, hasher, flows, verdict, .. } = self;
        let before = flows.len();
        flows.retain(|entry| match &entry.flow {
            Some(flow) if flow.is_level() => {
                verdict.equal_payload_bytes += flow.offset();
                false
            }
            _ => true,
        });
        verdict.forgotten_flows += (before - flows.len()) as u64;
        places.clear();
        for (place, entry) in flows.iter().enumerate() {
            let of = |place: &u32| {
                flows.get(*place as usize).map_or(0, |entry| hasher.hash_one(entry.name))
            };
            places.insert_unique(hasher.hash_one(entry.name), place as u32, of);
        }
    }

    /// Returns all flows with waiting packets: the flow's index, the capture that is ahead, and the number of the
    /// oldest waiting packet.
    fn waiting(&self) -> impl Iterator<Item = (usize, Side, u64)> {
        self.flows.iter().enumerate().filter_map(|(place, entry)| {
            let (side, packet) = entry.flow.as_ref()?.oldest()?;
            Some((place, side, packet))
        })
    }

    /// Reports the oldest waiting packet as missing in the other capture, because the limit on waiting bytes is
    /// reached.
    #[cold]
    fn give_up_oldest(&mut self) {
        let [a, b] = self.tally.waiting;
        let ahead = if a >= b { Side::A } else { Side::B };
        let oldest = self.waiting().filter(|(_, side, _)| *side == ahead);
        let Some((place, ..)) = oldest.min_by_key(|(.., packet)| *packet) else {
            // No flow has a waiting packet, so the counts must be 0.
            self.tally.waiting = [0; 2];
            return;
        };
        self.report_missing(place);
    }

    /// Reports the waiting packets of a flow as missing in the other capture.
    fn report_missing(&mut self, place: usize) {
        let flow = self.flows.get(place).and_then(|entry| entry.flow.as_ref());
        if let Some(found) = flow.and_then(Flow::missing) {
            self.report_difference(place, found);
        }
    }

    /// Reports the difference `found` in a flow at most once, and drops the flow's waiting packets.
    fn report_difference(&mut self, place: usize, found: Mismatch) {
        let Some(entry) = self.flows.get_mut(place) else { return };
        if let Some(mut flow) = entry.flow.take() {
            flow.clear(&mut self.tally);
            self.verdict.equal_payload_bytes += flow.offset();
        }
        self.verdict.differences.push(difference(&entry.name, found));
    }

    /// Lists the flow as undecided, at most once.
    #[cold]
    fn report_undecided(&mut self, place: usize, found: Mismatch) {
        let listed = &mut self.verdict.undecided;
        match self.flows.get_mut(place) {
            Some(entry) if !entry.is_undecided && listed.len() < self.limits.differences => {
                entry.is_undecided = true;
                listed.push(difference(&entry.name, found));
            }
            _ => {}
        }
    }

    /// Drops the waiting packets of the capture `side`, because the unread part of the other capture may contain them.
    pub(super) fn forget_waiting(&mut self, side: Side) {
        for flow in self.flows.iter_mut().filter_map(|entry| entry.flow.as_mut()) {
            flow.clear_of(side, &mut self.tally);
        }
    }

    /// Returns the result of the comparison. Packets that still wait are missing in the other capture.
    pub(super) fn finish(mut self, packets_a: u64, packets_b: u64) -> ComparisonResult {
        self.report_rest_missing();
        let offsets = self.flows.iter().filter_map(|entry| entry.flow.as_ref()).map(Flow::offset);
        self.verdict.equal_payload_bytes += offsets.sum::<u64>();
        ComparisonResult {
            equal: self.verdict.differences.is_empty() && self.verdict.undecided.is_empty(),
            packets_a,
            packets_b,
            stopped: self.has_enough(),
            forgotten_segments: self.tally.forgotten_segments,
            ..self.verdict
        }
    }

    /// Reports all packets that still wait as missing, in the order of the packets.
    fn report_rest_missing(&mut self) {
        let mut waiting: Vec<(u64, usize)> =
            self.waiting().map(|(place, _, packet)| (packet, place)).collect();
        waiting.sort_unstable();
        for (_, place) in waiting {
            if self.has_enough() {
                return;
            }
            self.report_missing(place);
        }
    }
}

fn difference(name: &Name, found: Mismatch) -> Difference {
    let Mismatch { kind, stream_offset, packets, texts } = found;
    let ([packet_a, packet_b], [a, b]) = (packets, texts);
    let (flow, interface) = (text(name), name.interface);
    Difference { flow, interface, kind, stream_offset, packet_a, packet_b, a, b }
}

/// Formats the name of the flow as text.
fn text(name: &Name) -> String {
    let key = name.key;
    match name.class {
        Class::Tcp if key.is_in_tunnel() => format!("tcp {key:?} in a tunnel"),
        Class::Tcp => format!("tcp {key:?}"),
        Class::Udp => format!("udp {key:?}"),
        Class::Ip => format!("ip {} > {}", key.source(), key.destination()),
        Class::Link => "not ip".to_owned(),
    }
}
