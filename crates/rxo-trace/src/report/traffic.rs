//! What the traffic is, whatever the policy.

use serde::Serialize;

/// One capture that was read.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Source {
    /// The file as named by the user; `-` for standard input.
    pub name: String,
    /// `pcap` or `pcapng`, and how it was compressed, as text.
    pub format: String,
    /// Packets read from it.
    pub packets: u64,
    /// When its first packet was captured, nanoseconds since 1970 UTC.
    pub started_at_ns: u64,
    /// From its first packet to its last, in nanoseconds.
    pub duration_ns: u64,
    /// Why it was not read to its end, with the byte offset; `None` when it was.
    pub damage: Option<String>,
}

/// Totals of all captures together.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Traffic {
    /// Packets.
    pub packets: u64,
    /// Bytes on the wire, link-layer headers included.
    pub bytes: u64,
    /// From the first packet to the last, in nanoseconds.
    pub duration_ns: u64,
    /// When the first packet was captured, nanoseconds since 1970 UTC.
    pub started_at_ns: u64,
    /// TCP flows, each direction for itself; more when `untracked_packets` is not 0.
    pub flows: u64,
    /// TCP packets.
    pub tcp_packets: u64,
    /// TCP packets with payload.
    pub data_segments: u64,
    /// TCP packets without payload that acknowledge, and are neither SYN, FIN nor RST.
    pub pure_acks: u64,
    /// Pure ACKs that follow another of their flow, advance its ACK number (or change the window
    /// only), and carry no option but the timestamp: what ACK aggregation could take away.
    pub aggregatable_pure_acks: u64,
    /// Packets that the capture holds only the beginning of.
    pub cut_packets: u64,
    /// Packets among them that the capture calls whole and that end before their IP header says.
    pub short_packets: u64,
    /// IP packets larger than any link's, 9,216 bytes: the capture was taken where segments were
    /// already (or still) together.
    pub super_packets: u64,
    /// Packets whose link type is not known; they are in no flow and no engine sees them.
    pub unknown_link_packets: u64,
    /// Packets of interfaces beyond those there is memory for; no engine sees them.
    pub unserved_packets: u64,
    /// TCP packets of flows beyond those with figures of their own; not in `flows`.
    pub untracked_packets: u64,
    /// Packets read that the filter left out; in no other number here.
    pub filtered_packets: u64,
    /// How often a packet's time was before that of the one before it in the file.
    pub steps_back: u64,
    /// What is known of their TCP checksums.
    pub checksums: Checksums,
}

/// How the TCP checksums of the traffic stand.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Checksums {
    /// Whether they were looked at: `verify`, `partial` or `trust`.
    pub mode: String,
    /// Right.
    pub right: u64,
    /// Wrong, sender's offload left out.
    pub wrong: u64,
    /// Only the pseudo-header's sum: the sender's card was to fill the checksum in.
    pub unfinished: u64,
    /// Not to be known, because the capture cut the packet.
    pub cut: u64,
    /// Senders whose checksums are unfinished, most packets first.
    pub sender_offload: Vec<SenderOffload>,
}

/// A host that was captured before its card filled checksums in.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SenderOffload {
    /// The host's address.
    pub address: String,
    /// Its packets with unfinished checksums.
    pub unfinished: u64,
    /// All its TCP packets.
    pub packets: u64,
}
