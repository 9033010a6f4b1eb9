//! All flows of both captures, within limits.

use std::collections::HashMap;

use super::facts::{Class, Name, Seen};
use super::flow::{Flow, Mismatch, Unit};
use super::{Difference, Limits, Side, Verdict};

/// Every flow, by name. `None` stands for one that differs: nothing more of it is compared.
#[derive(Debug)]
pub(super) struct Flows {
    limits: Limits,
    flows: HashMap<Name, Option<Flow>>,
    /// What waits of each capture, in bytes.
    waiting: [usize; 2],
    verdict: Verdict,
}

impl Flows {
    pub(super) fn new(limits: Limits) -> Self {
        Self { limits, flows: HashMap::new(), waiting: [0; 2], verdict: Verdict::default() }
    }

    pub(super) const fn waiting_bytes(&self, side: Side) -> usize {
        self.waiting[side.index()]
    }

    /// Whether as many flows differ as are told of.
    pub(super) fn has_enough(&self) -> bool {
        self.verdict.differences.len() >= self.limits.differences
    }

    /// Takes a packet in: of which side, and whether it may wait for its counterpart.
    pub(super) fn push(&mut self, (side, may_wait): (Side, bool), packet: u64, seen: &Seen) {
        let name = seen.name;
        self.make_room();
        let flow = self.flows.entry(name).or_insert_with(|| {
            self.verdict.flows += 1;
            Some(Flow::new())
        });
        let Some(flow) = flow else { return };
        let unit = Unit::new(packet, seen.facts, seen.bytes());
        if let Err(found) = flow.push(side, unit, &mut self.waiting) {
            self.differ(name, found);
        } else if !may_wait {
            flow.clear_of(side, &mut self.waiting);
        }
        while self.waiting.iter().sum::<usize>() > self.limits.waiting_bytes {
            self.give_up_oldest();
        }
    }

    /// Too many flows: forgets those of which nothing waits.
    fn make_room(&mut self) {
        if self.flows.len() < self.limits.flows {
            return;
        }
        let before = self.flows.len();
        let verdict = &mut self.verdict;
        self.flows.retain(|_, flow| match flow {
            Some(flow) if flow.is_level() => {
                verdict.equal_payload_bytes += flow.offset();
                false
            }
            _ => true,
        });
        self.verdict.forgotten_flows += (before - self.flows.len()) as u64;
    }

    /// Too much waits: the packet that waits longest is missing in the other capture.
    #[cold]
    fn give_up_oldest(&mut self) {
        let ahead = if self.waiting[0] >= self.waiting[1] { Side::A } else { Side::B };
        let oldest = self.flows.iter().filter_map(|(name, flow)| {
            let (side, packet) = flow.as_ref()?.oldest()?;
            (side == ahead).then_some((packet, *name))
        });
        let Some((_, name)) = oldest.min_by_key(|(packet, _)| *packet) else {
            // Nothing waits, whatever was counted.
            self.waiting = [0; 2];
            return;
        };
        if let Some(found) = self.flows.get(&name).and_then(Option::as_ref).and_then(Flow::missing)
        {
            self.differ(name, found);
        }
    }

    /// The flow differs: says so, once, and forgets what waits of it.
    fn differ(&mut self, name: Name, found: Mismatch) {
        if let Some(Some(mut flow)) = self.flows.insert(name, None) {
            flow.clear(&mut self.waiting);
            self.verdict.equal_payload_bytes += flow.offset();
        }
        let Mismatch { kind, stream_offset, packets, texts } = found;
        let ([packet_a, packet_b], [a, b]) = (packets, texts);
        let (flow, interface) = (text(&name), name.interface);
        let difference =
            Difference { flow, interface, kind, stream_offset, packet_a, packet_b, a, b };
        self.verdict.differences.push(difference);
    }

    /// Forgets what waits of one capture: nobody knows whether the other has it.
    pub(super) fn forget_waiting(&mut self, side: Side) {
        for flow in self.flows.values_mut().flatten() {
            flow.clear_of(side, &mut self.waiting);
        }
    }

    /// What was found. Whatever still waits is missing in the other capture.
    pub(super) fn finish(mut self, packets_a: u64, packets_b: u64) -> Verdict {
        self.miss_the_rest();
        let offsets = self.flows.values().flatten().map(Flow::offset);
        self.verdict.equal_payload_bytes += offsets.sum::<u64>();
        Verdict {
            equal: self.verdict.differences.is_empty(),
            packets_a,
            packets_b,
            stopped: self.has_enough(),
            ..self.verdict
        }
    }

    /// Whatever still waits is missing in the other capture; in the order of the packets.
    fn miss_the_rest(&mut self) {
        let waiting = self.flows.iter().filter_map(|(name, flow)| {
            let (_, packet) = flow.as_ref()?.oldest()?;
            Some((packet, *name))
        });
        let mut waiting: Vec<(u64, Name)> = waiting.collect();
        waiting.sort_unstable_by_key(|(packet, _)| *packet);
        for (_, name) in waiting {
            if self.has_enough() {
                return;
            }
            let found = self.flows.get(&name).and_then(Option::as_ref).and_then(Flow::missing);
            if let Some(found) = found {
                self.differ(name, found);
            }
        }
    }
}

/// The flow as text.
fn text(name: &Name) -> String {
    let key = name.key;
    match name.class {
        Class::Tcp => format!("tcp {key:?}"),
        Class::Udp => format!("udp {key:?}"),
        Class::Ip => format!("ip {} > {}", key.source(), key.destination()),
        Class::Link => "not ip".to_owned(),
    }
}
