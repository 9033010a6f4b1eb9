//! A segment in flight, and the work of a device on GSO frames and ACK templates.

use rxo_frame::Instant;
use rxo_tcp::{Ecn, Payload, Segment, SegmentOptions, Transmit};
use rxo_wire::tcp::AckRecord;
use rxo_wire::{SeqNumber, TcpFlags};

#[derive(Clone)]
pub(crate) struct Wire {
    pub(crate) seq: SeqNumber,
    pub(crate) ack: SeqNumber,
    pub(crate) flags: TcpFlags,
    pub(crate) window: u16,
    pub(crate) options: SegmentOptions,
    pub(crate) text: Vec<u8>,
    pub(crate) ecn: Ecn,
}

impl Wire {
    pub(crate) fn into_segment(self, arrived_at: Instant) -> Segment<Vec<u8>> {
        let range = 0..self.text.len();
        Segment {
            seq: self.seq,
            ack: self.ack,
            flags: self.flags,
            window: self.window,
            options: self.options,
            payload: Payload::new(self.text, range),
            ecn: self.ecn,
            arrived_at,
        }
    }
}

impl Wire {
    /// Returns the segment as a record if it is a pure ACK that a record can express, otherwise `None`.
    pub(crate) fn record(&self, arrived_at: Instant) -> Option<AckRecord> {
        let marks = TcpFlags::ECE | TcpFlags::CWR;
        let is_pure = self.text.is_empty() && self.flags.without(marks) == TcpFlags::ACK;
        let timestamp = self.options.timestamp.unwrap_or_default();
        (is_pure && self.options.sack.is_empty()).then(|| AckRecord {
            arrived_at_ns: arrived_at.as_nanos(),
            seq: self.seq,
            ack: self.ack,
            ts_value: timestamp.value,
            ts_echo: timestamp.echo,
            window: self.window,
            flags: self.flags,
            ecn: self.ecn.bits(),
            has_timestamp: self.options.timestamp.is_some(),
        })
    }
}

/// Appends the segments of `transmit` to `to`.
pub(crate) fn cut(transmit: &Transmit<'_>, to: &mut Vec<Wire>) {
    let text = transmit.payload.to_vec();
    let whole = Wire {
        seq: transmit.seq,
        ack: transmit.ack,
        flags: transmit.flags,
        window: transmit.window,
        options: SegmentOptions::read(transmit.options.as_slice()),
        text: Vec::new(),
        ecn: transmit.ecn,
    };
    let size = transmit.gso_size.map_or(text.len().max(1), |size| usize::from(size.get()));
    let last = text.len().div_ceil(size).max(1) - 1;
    for number in 0..=last {
        let part = text[number * size..text.len().min((number + 1) * size)].to_vec();
        let at_end = TcpFlags::FIN | TcpFlags::PSH;
        let mut flags = if number == last { whole.flags } else { whole.flags.without(at_end) };
        if number > 0 {
            flags = flags.without(TcpFlags::CWR);
        }
        let seq = whole.seq + (number * size) as u32;
        to.push(Wire { seq, flags, text: part, ..whole.clone() });
    }
    for later in transmit.later() {
        let options = SegmentOptions::read(later.options.as_slice());
        to.push(Wire { ack: later.ack, window: later.window, options, ..whole.clone() });
    }
}
