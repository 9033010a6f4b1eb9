//! The totals of the traffic.

use rxo_capture::LinkType;
use rxo_frame::Instant;

use super::checksum::Finding;
use super::intake::Taken;
use super::seen::Segment;

/// Packets with more payload than this cannot come from a link, in bytes.
const SUPER_BYTES: u32 = 9_216;

/// The counts so far. Names are those of the report.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Count {
    pub(super) packets: u64,
    pub(super) bytes: u64,
    /// Time of the first packet on the capture's clock; `None` before it.
    pub(super) first: Option<Instant>,
    pub(super) last: Instant,
    /// Time of the first packet in its record.
    pub(super) started_at: Instant,
    pub(super) tcp_packets: u64,
    pub(super) data_segments: u64,
    pub(super) pure_acks: u64,
    pub(super) aggregatable_pure_acks: u64,
    pub(super) cut_packets: u64,
    pub(super) short_packets: u64,
    pub(super) super_packets: u64,
    pub(super) unserved_packets: u64,
    pub(super) untracked_packets: u64,
    pub(super) filtered_packets: u64,
    pub(super) unknown_link_packets: u64,
    pub(super) not_ip_packets: u64,
    pub(super) right: u64,
    pub(super) wrong: u64,
    pub(super) unfinished: u64,
    pub(super) cut_segments: u64,
}

impl Count {
    /// Counts a packet that the filter accepts.
    #[inline]
    pub(super) fn packet(&mut self, taken: &Taken, at: Instant, now: Instant) {
        if self.first.is_none() {
            self.first = Some(now);
            self.started_at = at;
        }
        self.last = now;
        self.packets += 1;
        self.bytes += taken.wire_bytes;
        self.cut_packets += u64::from(taken.is_cut);
        self.short_packets += u64::from(taken.is_short);
    }

    /// Counts its TCP segment. `finding` is the result for its checksum, if it was checked.
    #[inline]
    pub(super) fn segment(&mut self, segment: &Segment, finding: Option<Finding>, taken: &Taken) {
        self.tcp_packets += 1;
        self.data_segments += u64::from(segment.at.payload_bytes() > 0);
        self.pure_acks += u64::from(segment.is_pure_ack);
        self.super_packets += u64::from(segment.at.payload_bytes() > SUPER_BYTES);
        self.cut_segments += u64::from(!taken.is_whole);
        match finding {
            Some(Finding::Right) => self.right += 1,
            Some(Finding::Wrong) => self.wrong += 1,
            Some(Finding::Unfinished) => self.unfinished += 1,
            None => {}
        }
    }

    /// Counts a packet without an IP packet for an engine, or of an unknown link type.
    #[cold]
    pub(super) fn without_network(&mut self, link: LinkType) {
        if link.is_known() {
            self.not_ip_packets += 1;
        } else {
            self.unknown_link_packets += 1;
        }
    }

    /// Time from the first packet to the last, in nanoseconds.
    pub(super) fn duration_ns(&self) -> u64 {
        self.first.map_or(0, |first| self.last.nanos_since(first))
    }

    /// Time of the first packet, in nanoseconds on the capture's clock.
    pub(super) fn first_ns(&self) -> u64 {
        self.first.unwrap_or_default().as_nanos()
    }
}
