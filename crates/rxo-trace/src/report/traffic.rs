//! The traffic of the captures, independent of the policy.

use serde::{Deserialize, Serialize};

/// One capture that was read.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Source {
    /// The name of the file, as the user typed it; `-` for standard input.
    pub name: String,
    /// The format as text: `pcap` or `pcapng`, and the compression.
    pub format: String,
    /// The number of packets read from the capture.
    pub packets: u64,
    /// The time of the capture's first packet, in nanoseconds since 1970 UTC.
    pub started_at_ns: u64,
    /// The time from the capture's first packet to its last, in nanoseconds.
    pub duration_ns: u64,
    /// The reason why the capture was not read to its end, with the byte offset; `None` if it was.
    pub damage: Option<String>,
}

impl Source {
    /// Adds the totals of another part of the same capture.
    pub(crate) fn add(&mut self, other: Self) {
        if self.packets == 0 || other.packets == 0 {
            let (started_at_ns, duration_ns) = match self.packets {
                0 => (other.started_at_ns, other.duration_ns),
                _ => (self.started_at_ns, self.duration_ns),
            };
            (self.started_at_ns, self.duration_ns) = (started_at_ns, duration_ns);
        } else {
            let end = |source: &Self| source.started_at_ns.saturating_add(source.duration_ns);
            let end_ns = end(self).max(end(&other));
            self.started_at_ns = self.started_at_ns.min(other.started_at_ns);
            self.duration_ns = end_ns - self.started_at_ns;
        }
        self.packets = self.packets.saturating_add(other.packets);
        // The first in alphabetical order, so that the order of parts does not matter.
        self.damage = [self.damage.take(), other.damage].into_iter().flatten().min();
    }
}

/// Totals of all captures together.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Traffic {
    /// The number of packets.
    pub packets: u64,
    /// The number of bytes on the wire, link-layer headers included.
    pub bytes: u64,
    /// The time from the first packet to the last, in nanoseconds.
    pub duration_ns: u64,
    /// The time that rates are computed from, in nanoseconds: `duration_ns`, with 10 ms in place of each
    /// pause.
    pub active_ns: u64,
    /// The number of pauses: times of more than a second without packets. Some may be errors of the capture's
    /// clock.
    pub pauses: u64,
    /// The number of packets that were more than a second older than the packet before.
    #[serde(skip)]
    pub clock_sets: u64,
    /// The number of packets with the time of the packet before.
    #[serde(skip)]
    pub simultaneous_packets: u64,
    /// The number of packets that came less than 50 µs after the packet before, and not at the same time.
    #[serde(skip)]
    pub close_packets: u64,
    /// The time of the first packet, in nanoseconds since 1970 UTC.
    pub started_at_ns: u64,
    /// The number of TCP and UDP flows, one for each direction. There are more if `untracked_packets` is not 0.
    pub flows: u64,
    /// The number of UDP flows among `flows`.
    pub udp_flows: u64,
    /// The number of TCP packets.
    pub tcp_packets: u64,
    /// The number of TCP packets with payload.
    pub data_segments: u64,
    /// The number of TCP packets without payload that acknowledge, and are neither SYN, FIN nor RST.
    pub pure_acks: u64,
    /// The number of pure ACKs that ACK aggregation could eliminate: they follow another ACK of their flow, advance its
    /// ACK number (or change only the window), and have no option but the timestamp.
    pub aggregatable_pure_acks: u64,
    /// The number of UDP packets, without fragments.
    pub udp_packets: u64,
    /// The number of packets that the capture truncated.
    pub cut_packets: u64,
    /// The number of packets that the capture calls complete, but that are shorter than their IP header
    /// states. Included in `cut_packets`.
    pub short_packets: u64,
    /// The number of packets with more than 9,216 bytes of payload, which is more than any link carries:
    /// segments were merged before the capture, or not yet segmented.
    pub super_packets: u64,
    /// The bytes of `super_packets`, on the wire.
    pub super_bytes: u64,
    /// The number of other packets that were merged from several segments before the capture, as the numbers of the next
    /// packets show.
    pub merged_packets: u64,
    /// The payload of `merged_packets` in bytes.
    pub merged_bytes: u64,
    /// The payload of all TCP packets in bytes.
    #[serde(skip)]
    pub tcp_payload_bytes: u64,
    /// The TCP payload in bytes that the capture lacks between other payload, although its host received it.
    #[serde(skip)]
    pub missing_bytes: u64,
    /// The number of packets of an unknown link type, which belong to no flow and reach no engine.
    pub unknown_link_packets: u64,
    /// The number of packets of interfaces for which there was no memory, which reach no engine.
    pub unserved_packets: u64,
    /// The number of TCP and UDP packets of flows that are not tracked individually and not counted in `flows`.
    pub untracked_packets: u64,
    /// The number of packets that the filter excluded. No other number of the traffic counts them.
    pub filtered_packets: u64,
    /// The number of packets that the capturing host sent, as their records say. No other number of the traffic counts
    /// them, because a host does not receive what it sends.
    pub sent_packets: u64,
    /// The number of packets that the capture has twice, as from a mirror port.
    pub duplicate_packets: u64,
    /// `true` if duplicates were left out; `packets` does not contain them then.
    pub are_duplicates_left_out: bool,
    /// The encapsulations of packets, most frequent first. Each packet counts with its outermost one.
    pub encapsulations: Vec<Encapsulation>,
    /// The number of packets in an encapsulation that cannot be read, for example because it is encrypted.
    pub sealed_packets: u64,
    /// The number of packets whose time is before that of the previous packet in the file.
    pub steps_back: u64,
    /// The status of the TCP and UDP checksums. UDP packets without a checksum are not included.
    pub checksums: Checksums,
}

/// A kind of encapsulation, such as GRE or MPLS.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Encapsulation {
    /// The name of the encapsulation.
    pub name: String,
    /// The number of packets in it.
    pub packets: u64,
}

/// The status of the traffic's TCP and UDP checksums.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Checksums {
    /// The way in which checksums were checked: `auto`, `verify`, `partial` or `trust`.
    pub mode: String,
    /// The number of correct checksums.
    pub right: u64,
    /// The number of wrong checksums, without unfinished ones.
    pub wrong: u64,
    /// The number of unfinished checksums, which are only the pseudo-header's sum: the sender's card was to complete
    /// them.
    pub unfinished: u64,
    /// The number of checksums in truncated packets, which cannot be verified.
    pub cut: u64,
    /// The senders of unfinished checksums, in descending order of their number of unfinished checksums.
    pub sender_offload: Vec<SenderOffload>,
}

/// A sender that was captured before its card completed checksums.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SenderOffload {
    /// The address of the sender.
    pub address: String,
    /// The number of the sender's packets with unfinished checksums.
    pub unfinished: u64,
    /// The number of all TCP and UDP packets of the sender.
    pub packets: u64,
}
