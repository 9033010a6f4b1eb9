//! Counts the deliveries of a policy, and numbers the flows.

use std::collections::HashMap;

use rxo_coalesce::{Counters, Deliveries, Delivery};
use rxo_frame::Frame;
use rxo_wire::tcp::FixedHeader;
use rxo_wire::{FlowKey, Offsets, SeqNumber};

use crate::numbered::Numbered;
use crate::study::MAX_FLOWS;

/// Gives each flow a number, in the order of their first packets.
#[derive(Debug, Default)]
pub(super) struct FlowNumbers(HashMap<[u8; 40], u32>);

impl FlowNumbers {
    /// The flow number for packets that belong to no flow, or to a flow beyond [`MAX_FLOWS`].
    pub(super) const NONE: u32 = u32::MAX;

    pub(super) fn number(&mut self, key: &FlowKey) -> u32 {
        let (key, next) = (key.to_bytes(), self.0.len());
        if next >= MAX_FLOWS {
            return self.0.get(&key).copied().unwrap_or(Self::NONE);
        }
        *self.0.entry(key).or_insert(next as u32)
    }
}

/// Counts of the deliveries of one policy.
#[derive(Debug, Default)]
pub(super) struct DeliveryCounts {
    pub(super) counters: Counters,
    /// The number of payload bytes in aggregates. A sink without scatter-gather must copy these bytes.
    pub(super) copied_bytes: u64,
    /// The number of segments that were delivered after later data of their flow.
    pub(super) late_segments: u64,
    /// The sequence number after the data of each flow that was delivered so far; `None` before the first data.
    ends: Vec<Option<SeqNumber>>,
}

impl DeliveryCounts {
    pub(super) fn add(&mut self, counters: &Counters) {
        self.counters = self.counters.zip_with(counters, u64::saturating_add);
    }

    pub(super) fn note(&mut self, deliveries: &Deliveries<'_, Numbered>) {
        for delivery in deliveries.iter() {
            match delivery {
                Delivery::Frame(single) => {
                    if let Some(at) = single.offsets() {
                        self.note_segment(single.frame(), at);
                    }
                }
                Delivery::Aggregate(aggregate) => {
                    self.copied_bytes += u64::from(aggregate.payload_bytes());
                    if delivery.kind() == rxo_coalesce::Kind::Data && aggregate.tunnel().is_none() {
                        let at = aggregate.offsets();
                        for (frame, payload) in aggregate.frames().zip(aggregate.payloads()) {
                            let end = at.payload + payload.len() as u32;
                            self.note_segment(frame, Offsets { end, ..at });
                        }
                    }
                }
                Delivery::Acks(_) => {}
            }
        }
    }

    fn note_segment(&mut self, frame: &Frame<Numbered>, at: Offsets) {
        let (number, payload) = (frame.bytes.number as usize, at.payload_bytes());
        let header = frame.bytes().get(at.transport as usize..).and_then(FixedHeader::of);
        let Some(header) = header.filter(|_| payload > 0 && number < MAX_FLOWS) else { return };
        if self.ends.len() <= number {
            self.ends.resize(number + 1, None);
        }
        let end = header.seq() + payload;
        match &mut self.ends[number] {
            Some(known) if header.seq().is_before(*known) => self.late_segments += 1,
            known => *known = Some(end),
        }
    }
}
