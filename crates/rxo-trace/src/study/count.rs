//! Counts the totals of the traffic.

use rxo_capture::LinkType;
use serde::{Deserialize, Serialize};

use super::checksum::Finding;
use super::encapsulation::Encapsulation;
use super::intake::ParsedRecord;
use super::packet_kind::Segment;
use crate::report::Protocol;

/// The largest payload that a link can carry, in bytes. A packet with more payload was merged before the
/// capture, or captured before its segmentation.
const SUPER_BYTES: u32 = 9_216;

/// The longest time without packets that rates include, in nanoseconds. A longer time is a pause, or an error
/// of the capture's clock.
const PAUSE_NS: u64 = 1_000_000_000;
/// The time that rates include for a pause, in nanoseconds. If this were 0, a single packet between two pauses
/// would have an infinite rate.
const PAUSE_COUNTS_NS: u64 = 10_000_000;
/// The time after another packet, in nanoseconds, from which on a packet does not count as close to it. A clock with
/// such long ticks would put all packets of a tick into one poll.
const CLOSE_NS: u64 = 50_000;

rxo_frame::counters! {
    /// The counts so far, all of which are sums. The fields have the names of the report's fields, and these
    /// names are part of the format of saved parts.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub(super) struct Count {
        pub(super) packets: u64,
        pub(super) bytes: u64,
        pub(super) tcp_packets: u64,
        pub(super) data_segments: u64,
        pub(super) pure_acks: u64,
        pub(super) aggregatable_pure_acks: u64,
        pub(super) udp_packets: u64,
        pub(super) cut_packets: u64,
        pub(super) short_packets: u64,
        pub(super) super_packets: u64,
        pub(super) super_bytes: u64,
        pub(super) merged_packets: u64,
        pub(super) merged_bytes: u64,
        pub(super) tcp_payload_bytes: u64,
        pub(super) missing_bytes: u64,
        pub(super) late_bytes: u64,
        pub(super) unserved_packets: u64,
        pub(super) untracked_packets: u64,
        pub(super) filtered_packets: u64,
        pub(super) sent_packets: u64,
        pub(super) marked_packets: u64,
        pub(super) duplicate_packets: u64,
        pub(super) mpls: u64,
        pub(super) pppoe: u64,
        pub(super) tags: u64,
        pub(super) gre: u64,
        pub(super) ip_in_ip: u64,
        pub(super) vxlan: u64,
        pub(super) geneve: u64,
        pub(super) ppp: u64,
        pub(super) wireless: u64,
        pub(super) sealed_packets: u64,
        pub(super) unknown_link_packets: u64,
        pub(super) not_ip_packets: u64,
        pub(super) right: u64,
        pub(super) wrong: u64,
        pub(super) unfinished: u64,
        pub(super) cut_segments: u64,
        pub(super) steps_back: u64,
        pub(super) clock_sets: u64,
        pub(super) duration_ns: u64,
        pub(super) active_ns: u64,
        pub(super) pauses: u64,
        pub(super) simultaneous_packets: u64,
        pub(super) close_packets: u64,
        pub(super) limit_own: u64,
        pub(super) limit_1: u64,
        pub(super) limit_4: u64,
        pub(super) limit_16: u64,
        pub(super) limit_64: u64,
    }
}

impl Count {
    /// Returns the largest count.
    pub(super) fn most(&self) -> u64 {
        self.named().map(|(_, count)| count).fold(0, u64::max)
    }

    /// Adds the time between two packets that the filter accepts.
    #[inline]
    pub(super) const fn gap(&mut self, gap_ns: u64) {
        self.simultaneous_packets += (gap_ns == 0) as u64;
        self.close_packets += (gap_ns > 0 && gap_ns < CLOSE_NS) as u64;
        if gap_ns > PAUSE_NS {
            self.pauses += 1;
            self.active_ns = self.active_ns.saturating_add(PAUSE_COUNTS_NS);
        } else {
            self.active_ns = self.active_ns.saturating_add(gap_ns);
        }
    }

    /// Counts a packet that the filter accepts.
    #[inline]
    pub(super) fn packet(&mut self, taken: &ParsedRecord) {
        self.packets += 1;
        self.bytes += taken.wire_bytes;
        self.cut_packets += u64::from(taken.is_cut);
        self.short_packets += u64::from(taken.is_short);
    }

    /// Counts the TCP segment or UDP datagram of a packet. `finding` is the result of the checksum check;
    /// `None` if the checksum was not checked.
    #[inline]
    pub(super) fn segment(
        &mut self,
        segment: &Segment,
        finding: Option<Finding>,
        taken: &ParsedRecord,
    ) {
        match segment.protocol {
            Protocol::Tcp => {
                self.tcp_packets += 1;
                self.tcp_payload_bytes += u64::from(segment.at.payload_bytes());
                self.data_segments += u64::from(segment.at.payload_bytes() > 0);
                self.pure_acks += u64::from(segment.is_pure_ack);
            }
            Protocol::Udp => self.udp_packets += 1,
        }
        if segment.at.payload_bytes() > SUPER_BYTES {
            self.super_packets += 1;
            self.super_bytes += taken.wire_bytes;
        }
        self.cut_segments += u64::from(!taken.is_whole);
        match finding {
            Some(Finding::Right) => self.right += 1,
            Some(Finding::Wrong) => self.wrong += 1,
            Some(Finding::Unfinished) => self.unfinished += 1,
            None => {}
        }
    }

    /// Counts the encapsulation of a packet. `is_read` is `true` if the inner IP packet was found.
    #[cold]
    pub(super) const fn encapsulation(&mut self, kind: Encapsulation, is_read: bool) {
        let count = match kind {
            Encapsulation::Mpls => &mut self.mpls,
            Encapsulation::Pppoe => &mut self.pppoe,
            Encapsulation::Tags => &mut self.tags,
            Encapsulation::Gre => &mut self.gre,
            Encapsulation::IpInIp => &mut self.ip_in_ip,
            Encapsulation::Vxlan => &mut self.vxlan,
            Encapsulation::Geneve => &mut self.geneve,
            Encapsulation::Ppp => &mut self.ppp,
            Encapsulation::Wireless => &mut self.wireless,
        };
        *count += 1;
        self.sealed_packets += !is_read as u64;
    }

    /// Returns the number of packets in each kind of encapsulation, with the name that reports use.
    pub(super) const fn encapsulations(&self) -> [(&'static str, u64); 9] {
        [
            ("MPLS", self.mpls),
            ("PPPoE", self.pppoe),
            ("more than two VLAN tags", self.tags),
            ("GRE", self.gre),
            ("IP in IP", self.ip_in_ip),
            ("VXLAN", self.vxlan),
            ("Geneve", self.geneve),
            ("PPP", self.ppp),
            ("802.11", self.wireless),
        ]
    }

    /// Counts a packet that contains no IP packet for an engine, or has an unknown link type.
    #[cold]
    pub(super) fn without_network(&mut self, link: LinkType) {
        if link.is_known() {
            self.not_ip_packets += 1;
        } else {
            self.unknown_link_packets += 1;
        }
    }
}
