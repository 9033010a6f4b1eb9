//! What a comparison found, as data.

use serde::Serialize;

/// How two captures compare.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Verdict {
    /// Whether nothing differs, as far as was compared.
    pub equal: bool,
    /// Packets read of the first capture.
    pub packets_a: u64,
    /// Packets read of the second.
    pub packets_b: u64,
    /// Flows met: each direction of each connection, and everything that is not TCP by addresses
    /// (and ports, where there are any).
    pub flows: u64,
    /// TCP payload bytes that were found equal.
    pub equal_payload_bytes: u64,
    /// Segments whose ACK number, window, options, PSH and FIN could not be compared: they end inside
    /// an aggregate of the other capture that has no note of them. Only the last segment's stand in
    /// its header.
    pub forgotten_segments: u64,
    /// Where each flow that differs first differs, in the order in which that was found.
    pub differences: Vec<Difference>,
    /// Whether the comparison stopped because enough flows differ.
    pub stopped: bool,
    /// Flows that were forgotten while equal, because there were too many: offsets of theirs count
    /// from there.
    pub forgotten_flows: u64,
}

/// The first difference of one flow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The flow, as text: protocol, addresses, ports.
    pub flow: String,
    /// The capture interface, from 0.
    pub interface: u32,
    /// What differs.
    pub kind: Kind,
    /// How many payload bytes of the flow came before.
    pub stream_offset: u64,
    /// The packet of the first capture, counted from 1 over the whole file; `None` when it has no
    /// counterpart.
    pub packet_a: Option<u64>,
    /// The packet of the second, likewise.
    pub packet_b: Option<u64>,
    /// What the first has there, as text.
    pub a: String,
    /// What the second has.
    pub b: String,
}

/// What differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A byte of the stream.
    Payload,
    /// The sequence number: other data comes next.
    Sequence,
    /// A packet without payload where the other has payload, or the other way round.
    Order,
    /// The acknowledgement number.
    Acknowledgement,
    /// The window.
    Window,
    /// The TCP options.
    Options,
    /// The ECN bits, or ECE, CWR, AE.
    Ecn,
    /// The other bits of the TOS or traffic class byte.
    TrafficClass,
    /// Other flags, or the urgent pointer.
    Flags,
    /// A packet that is not a TCP segment.
    Packet,
    /// What rides beside an aggregate does not fit it.
    Note,
    /// One capture has something that the other has not.
    Missing,
}

impl Kind {
    /// As people read it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Payload => "payload",
            Self::Sequence => "sequence number",
            Self::Order => "order",
            Self::Acknowledgement => "acknowledgement",
            Self::Window => "window",
            Self::Options => "TCP options",
            Self::Ecn => "ECN",
            Self::TrafficClass => "traffic class",
            Self::Flags => "flags",
            Self::Packet => "packet",
            Self::Note => "note",
            Self::Missing => "missing packet",
        }
    }
}
