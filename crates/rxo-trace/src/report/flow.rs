//! What the chosen policy does to one flow.

use serde::Serialize;

/// One flow: one direction of a connection.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FlowReport {
    /// Source address and port, as text.
    pub source: String,
    /// Destination address and port, as text.
    pub destination: String,
    /// The VLAN identifier of its innermost tag, if any.
    pub vlan: Option<u16>,
    /// Packets.
    pub packets: u64,
    /// Bytes on the wire, link-layer headers included.
    pub bytes: u64,
    /// TCP payload bytes.
    pub payload_bytes: u64,
    /// Packets with payload.
    pub data_segments: u64,
    /// Packets without payload that acknowledge, and are neither SYN, FIN nor RST.
    pub pure_acks: u64,
    /// Deliveries that the host's stack would have handled.
    pub deliveries: u64,
    /// Aggregates of two segments or more among them.
    pub aggregates: u64,
    /// Segments in those.
    pub aggregated_segments: u64,
    /// First packet, nanoseconds after the first packet of all.
    pub first_ns: u64,
    /// Last packet, likewise.
    pub last_ns: u64,
}
