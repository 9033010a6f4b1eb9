//! Translates between the sequence numbers of a script and the real ones of a connection.
//!
//! A script counts from 0 on either side. Numbers of the peer, which the script plays, are used unchanged;
//! the host's numbers and timestamps are learned from its first segment.

use std::collections::BTreeMap;

use rxo_wire::{FlowKey, TcpFlags};

use crate::script::{Segment, SegmentOption};

/// The connection of a script's segments.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    /// Direction of the segments that the host sends.
    pub(super) pair: FlowKey,
    /// Offset from the script's numbers to the host's numbers; known once the host's SYN has left.
    local: Option<u32>,
    /// Sequence number of the script's SYN, once it has arrived. The peer's numbers are used unchanged.
    remote: Option<u32>,
    /// Host timestamps by the script's timestamps.
    timestamps: BTreeMap<u32, u32>,
    /// The first pair of timestamps: the script's and the host's.
    first_timestamp: Option<(u32, u32)>,
}

impl Flow {
    pub(super) fn new(pair: FlowKey) -> Self {
        Self { pair, local: None, remote: None, timestamps: BTreeMap::new(), first_timestamp: None }
    }

    /// Translates the script's `segment` into one that the host can receive.
    pub(super) fn live(&mut self, segment: &Segment) -> Segment {
        let is_syn = segment.flags.contains(TcpFlags::SYN);
        let local = self.local.unwrap_or(0);
        let mut live = segment.clone();
        if is_syn {
            self.remote.get_or_insert(segment.seq);
        }
        live.ack = segment.ack.map(|ack| ack.wrapping_add(local));
        for option in live.options.iter_mut().flatten() {
            match option {
                SegmentOption::Sack(blocks) => {
                    for (start, end) in blocks {
                        (*start, *end) = (start.wrapping_add(local), end.wrapping_add(local));
                    }
                }
                SegmentOption::Timestamp { echo, .. } if segment.ack.is_some() => {
                    *echo = self.live_timestamp(*echo);
                }
                _ => {}
            }
        }
        live
    }

    /// Returns the offset of the payload of the script's `segment` in the stream.
    pub(super) fn offset_of(&self, segment: &Segment) -> u32 {
        let first = self.remote.unwrap_or(0).wrapping_add(1);
        let syn = u32::from(segment.flags.contains(TcpFlags::SYN));
        segment.seq.wrapping_add(syn).wrapping_sub(first)
    }

    /// Returns the sequence number that a message about the host's segment `seq` must quote.
    pub(super) fn live_seq(&self, seq: u32) -> u32 {
        seq.wrapping_add(self.local.unwrap_or(0))
    }

    /// Returns the host's timestamp for the script's `value`: a known one, or the first one plus the same
    /// difference.
    fn live_timestamp(&self, value: u32) -> u32 {
        let (script, live) = self.first_timestamp.unwrap_or((0, 0));
        let near = value.wrapping_sub(script).wrapping_add(live);
        self.timestamps.get(&value).copied().unwrap_or(near)
    }

    /// Translates `live`, which the host has sent, into the script's numbers. The initial numbers are learned
    /// from `expected`, the segment in the script.
    pub(super) fn scripted(&mut self, live: &Segment, expected: &Segment) -> Segment {
        if live.flags.contains(TcpFlags::SYN) && self.local.is_none() {
            self.local = Some(live.seq.wrapping_sub(expected.seq));
        }
        let mut shown = live.clone();
        shown.seq = live.seq.wrapping_sub(self.local.unwrap_or(0));
        let said = timestamp(expected).map(|(value, _)| value);
        for option in shown.options.iter_mut().flatten() {
            if let SegmentOption::Timestamp { value, .. } = option {
                *value = self.script_timestamp(*value, said);
            }
        }
        shown
    }

    fn script_timestamp(&mut self, live: u32, said: Option<u32>) -> u32 {
        if let Some(said) = said {
            self.first_timestamp.get_or_insert((said, live));
            self.timestamps.insert(said, live);
        }
        let (script, first) = self.first_timestamp.unwrap_or((0, live));
        live.wrapping_sub(first).wrapping_add(script)
    }
}

/// Returns TSval and TSecr of `segment`; `None` without a timestamp.
pub(super) fn timestamp(segment: &Segment) -> Option<(u32, u32)> {
    segment.options.iter().flatten().find_map(|option| match option {
        SegmentOption::Timestamp { value, echo } => Some((*value, *echo)),
        _ => None,
    })
}
