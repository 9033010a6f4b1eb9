//! The totals of the traffic.

use rxo_capture::LinkType;
use serde::{Deserialize, Serialize};

use super::checksum::Finding;
use super::intake::Taken;
use super::packet_kind::Segment;
use crate::report::Protocol;

/// Packets with more payload than this cannot come from a link, in bytes.
const SUPER_BYTES: u32 = 9_216;

/// Defines [`Count`], whose fields are sums, so that none can be forgotten where two are added.
macro_rules! counts {
    ($($field:ident),* $(,)?) => {
        /// The counts so far, all of them sums. Names are those of the report.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        pub(super) struct Count {
            $(pub(super) $field: u64,)*
        }

        impl Count {
            /// The names of the counts, which are part of the form of saved parts.
            pub(super) const NAMES: &'static [&'static str] = &[$(stringify!($field)),*];

            /// Returns the largest count.
            pub(super) fn most(&self) -> u64 {
                [$(self.$field),*].into_iter().fold(0, u64::max)
            }

            /// Adds the counts of other packets.
            pub(super) fn add(&mut self, other: &Self) {
                $(self.$field = self.$field.saturating_add(other.$field);)*
            }
        }
    };
}

counts! {
    packets,
    bytes,
    tcp_packets,
    data_segments,
    pure_acks,
    aggregatable_pure_acks,
    udp_packets,
    cut_packets,
    short_packets,
    super_packets,
    unserved_packets,
    untracked_packets,
    filtered_packets,
    unknown_link_packets,
    not_ip_packets,
    right,
    wrong,
    unfinished,
    cut_segments,
    steps_back,
    duration_ns,
}

impl Count {
    /// Counts a packet that the filter accepts.
    #[inline]
    pub(super) fn packet(&mut self, taken: &Taken) {
        self.packets += 1;
        self.bytes += taken.wire_bytes;
        self.cut_packets += u64::from(taken.is_cut);
        self.short_packets += u64::from(taken.is_short);
    }

    /// Counts the TCP segment or UDP datagram of a packet. `finding` is the result for its checksum, if it was checked.
    #[inline]
    pub(super) fn segment(&mut self, segment: &Segment, finding: Option<Finding>, taken: &Taken) {
        match segment.protocol {
            Protocol::Tcp => {
                self.tcp_packets += 1;
                self.data_segments += u64::from(segment.at.payload_bytes() > 0);
                self.pure_acks += u64::from(segment.is_pure_ack);
            }
            Protocol::Udp => self.udp_packets += 1,
        }
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
}
