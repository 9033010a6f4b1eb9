//! The effect of the chosen policy on one flow.

use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};

/// The transport protocol of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// TCP.
    #[default]
    Tcp,
    /// UDP.
    Udp,
}

impl Protocol {
    /// Returns the name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
        }
    }
}

/// One flow: one direction of a TCP connection, or of the datagrams between two ports.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FlowReport {
    /// Source address and port, as text.
    pub source: String,
    /// Destination address and port, as text.
    pub destination: String,
    /// The transport protocol.
    pub protocol: Protocol,
    /// The VLAN identifier of the flow's innermost tag, if any.
    pub vlan: Option<u16>,
    /// Packets of the flow.
    pub packets: u64,
    /// Bytes on the wire, link-layer headers included.
    pub bytes: u64,
    /// TCP or UDP payload bytes.
    pub payload_bytes: u64,
    /// Packets with payload: TCP segments or UDP datagrams.
    pub data_segments: u64,
    /// Packets without payload that acknowledge, and are neither SYN, FIN nor RST.
    pub pure_acks: u64,
    /// Deliveries to the host's stack.
    pub deliveries: u64,
    /// Aggregates of two or more segments among the deliveries.
    pub aggregates: u64,
    /// Segments in these aggregates.
    pub aggregated_segments: u64,
    /// Time of the first packet, in nanoseconds after the capture's first packet.
    pub first_ns: u64,
    /// Time of the last packet, in nanoseconds after the capture's first packet.
    pub last_ns: u64,
    /// The capture with the first packet: the name of a [`super::Source`].
    #[serde(serialize_with = "text")]
    pub first_file: Arc<str>,
    /// The capture with the last packet; another one if the flow goes on in a later capture.
    #[serde(serialize_with = "text")]
    pub last_file: Arc<str>,
}

/// Serializes a shared text. Serde does so itself only with a feature that would concern every crate.
fn text<S: Serializer>(text: &Arc<str>, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(text)
}
