//! Totals of a connection's packets, for TCP_INFO.
//!
//! Counted from the packets and from the movement of SND.UNA and RCV.NXT, so that the endpoint need
//! not count.

use rxo_frame::Instant;
use rxo_tcp::{Connection, Ecn, Segment, Statistics, Transmit};
use rxo_wire::{SeqNumber, TcpFlags};

/// Totals since the connection began. Segments are counted as on the wire.
#[derive(Clone, Debug, Default)]
pub(super) struct Record {
    pub(super) segments_in: u32,
    pub(super) data_segments_in: u32,
    /// Segments with data that arrived after a gap.
    pub(super) out_of_order_in: u32,
    /// Segments that arrived with CE.
    pub(super) marked_in: u32,
    /// Whether a segment has arrived from a sender that supports ECN.
    pub(super) is_ect_seen: bool,
    pub(super) segments_out: u32,
    pub(super) data_segments_out: u32,
    /// Retransmitted SYNs and segments with data.
    pub(super) segments_again: u32,
    pub(super) bytes_sent: u64,
    pub(super) bytes_again: u64,
    pub(super) bytes_acked: u64,
    pub(super) bytes_received: u64,
    /// Bytes acknowledged by segments with ECE.
    pub(super) bytes_echoed: u64,
    /// Retransmission timeouts, and the number of them that were the first in a row.
    pub(super) timeouts: u32,
    pub(super) timeout_recoveries: u32,
    pub(super) data_sent_at: Option<Instant>,
    pub(super) data_received_at: Option<Instant>,
    pub(super) ack_received_at: Option<Instant>,
    /// The end of the data sent so far.
    sent_to: Option<SeqNumber>,
    has_sent_syn: bool,
    last: Option<Last>,
}

/// The state of the connection at the last check.
#[derive(Clone, Copy, Debug)]
struct Last {
    una: SeqNumber,
    rcv_nxt: SeqNumber,
    is_open: bool,
    backoff: u32,
}

/// The properties of a received segment that are counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrived {
    seq: SeqNumber,
    has_data: bool,
    has_ack: bool,
    has_echo: bool,
    ecn: Ecn,
}

impl Arrived {
    pub(super) fn of(segment: &Segment<Vec<u8>>) -> Self {
        Self {
            seq: segment.seq,
            has_data: segment.text_bytes() > 0,
            has_ack: segment.has(TcpFlags::ACK),
            has_echo: segment.has(TcpFlags::ECE) && !segment.has(TcpFlags::SYN),
            ecn: segment.ecn,
        }
    }
}

impl Record {
    /// Counts a received segment. `tcp` is the connection after it.
    pub(super) fn arrived(&mut self, segment: &Arrived, tcp: &Connection<Vec<u8>>, now: Instant) {
        let (acked, expected) = (self.bytes_acked, self.last.map(|last| last.rcv_nxt));
        self.follow(&tcp.statistics(), tcp.state().is_synchronized(), now);
        self.segments_in += 1;
        self.marked_in += u32::from(segment.ecn == Ecn::Congestion);
        self.is_ect_seen |= segment.ecn != Ecn::NotCapable;
        if segment.has_data {
            self.data_segments_in += 1;
            self.data_received_at = Some(now);
            let has_gap = expected.is_some_and(|expected| expected.is_before(segment.seq));
            self.out_of_order_in += u32::from(has_gap);
        }
        if segment.has_ack {
            self.ack_received_at = Some(now);
        }
        if segment.has_echo {
            self.bytes_echoed += self.bytes_acked - acked;
        }
    }

    /// Counts `transmit`, which leaves as `segments` packets.
    pub(super) fn left(&mut self, transmit: &Transmit<'_>, segments: u32, now: Instant) {
        self.segments_out += segments;
        if transmit.flags.contains(TcpFlags::SYN) {
            self.segments_again += u32::from(self.has_sent_syn);
            self.has_sent_syn = true;
        }
        let bytes = transmit.payload_bytes() as u32;
        if bytes == 0 {
            return;
        }
        self.data_segments_out += segments;
        self.bytes_sent += u64::from(bytes);
        self.data_sent_at = Some(now);
        if self.sent_to.is_some_and(|end| transmit.seq.is_before(end)) {
            self.segments_again += segments;
            self.bytes_again += u64::from(bytes);
        }
        let end = transmit.seq + bytes;
        if self.sent_to.is_none_or(|sent_to| sent_to.is_before(end)) {
            self.sent_to = Some(end);
        }
    }

    /// Counts what has moved since the last check; `is_open` says whether the connection is open. A
    /// FIN counts as one byte.
    pub(super) fn follow(&mut self, seen: &Statistics, is_open: bool, at: Instant) {
        let backoff = seen.recovery.backoff;
        let now = Last { una: seen.snd_una, rcv_nxt: seen.rcv_nxt, is_open, backoff };
        let Some(last) = self.last.replace(now) else { return };
        if last.is_open {
            self.bytes_acked += forward(last.una, now.una);
            self.bytes_received += forward(last.rcv_nxt, now.rcv_nxt);
        }
        if is_open && !last.is_open {
            // Like Linux, times before the first event count from the opening.
            self.data_sent_at.get_or_insert(at);
            self.data_received_at.get_or_insert(at);
        }
        let fired = backoff.saturating_sub(last.backoff);
        self.timeouts += fired;
        self.timeout_recoveries += u32::from(fired > 0 && last.backoff == 0);
    }
}

/// How far a number moved; 0 if it moved back.
fn forward(from: SeqNumber, to: SeqNumber) -> u64 {
    u64::try_from(to - from).unwrap_or(0)
}
