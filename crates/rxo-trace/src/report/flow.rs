//! The effect of the chosen policy on one flow.

use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};

/// The transport protocol of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// The flow consists of TCP segments.
    #[default]
    Tcp,
    /// The flow consists of UDP datagrams.
    Udp,
}

impl Protocol {
    /// Returns the name of the protocol, as tables show it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
        }
    }
}

/// The figures of one flow: one direction of a TCP connection, or of the datagrams between two ports.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FlowReport {
    /// The source address and port, as text.
    pub source: String,
    /// The destination address and port, as text.
    pub destination: String,
    /// The transport protocol of the flow.
    pub protocol: Protocol,
    /// The VLAN identifier of the flow's innermost tag; `None` without a tag.
    pub vlan: Option<u16>,
    /// The number of packets of the flow.
    pub packets: u64,
    /// The number of bytes of the flow on the wire, link-layer headers included.
    pub bytes: u64,
    /// The number of TCP or UDP payload bytes of the flow.
    pub payload_bytes: u64,
    /// The number of packets with payload: TCP segments or UDP datagrams.
    pub data_segments: u64,
    /// The number of packets without payload that acknowledge, and are neither SYN, FIN nor RST.
    pub pure_acks: u64,
    /// The number of deliveries to the host's stack.
    pub deliveries: u64,
    /// The number of aggregates of two or more segments among the deliveries.
    pub aggregates: u64,
    /// The number of segments in the flow's aggregates.
    pub aggregated_segments: u64,
    /// The time of the flow's first packet, in nanoseconds after the capture's first packet.
    pub first_ns: u64,
    /// The time of the flow's last packet, in nanoseconds after the capture's first packet.
    pub last_ns: u64,
    /// The capture with the flow's first packet: the name of a [`super::Source`].
    #[serde(serialize_with = "text")]
    pub first_file: Arc<str>,
    /// The capture with the flow's last packet; differs from `first_file` if the flow continues in a later
    /// capture.
    #[serde(serialize_with = "text")]
    pub last_file: Arc<str>,
}

/// Serializes shared text. Serde supports that only with a feature that would affect every crate.
fn text<S: Serializer>(text: &Arc<str>, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(text)
}
