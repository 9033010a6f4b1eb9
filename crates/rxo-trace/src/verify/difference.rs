//! The result of comparing two captures, as data.

use serde::Serialize;

/// The result of comparing two captures.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ComparisonResult {
    /// `true` if the compared parts are equal, and no flow is undecided.
    pub equal: bool,
    /// The number of packets in the first capture.
    pub packets_a: u64,
    /// The number of packets in the second capture.
    pub packets_b: u64,
    /// The number of flows seen: each direction of each connection. Packets that are not TCP are assigned to
    /// flows by their addresses, and by their ports if they have any.
    pub flows: u64,
    /// The number of TCP payload bytes that are equal.
    pub equal_payload_bytes: u64,
    /// The number of segments whose ACK number, window, options, PSH and FIN could not be compared, because
    /// they end inside an aggregate of the other capture that has no note. The header of an aggregate has
    /// only the fields of its last segment. UDP datagrams inside such an aggregate count as well: their
    /// lengths are known only from the other capture.
    pub forgotten_segments: u64,
    /// The first difference of each flow, in the order in which the differences were found.
    pub differences: Vec<Difference>,
    /// For each UDP flow, the first position at which the captures have equal bytes but end datagrams at
    /// different positions, and no note gives the number of datagrams in either packet. The number of flows
    /// is limited like that of `differences`.
    pub undecided: Vec<Difference>,
    /// `true` if the comparison stopped because enough flows differ.
    pub stopped: bool,
    /// The number of flows that were forgotten while no difference was found in them, because there were too
    /// many flows. If packets of such a flow come later, their offsets count from that point.
    pub forgotten_flows: u64,
}

/// The first difference of one flow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The flow that differs, as text: protocol, addresses and ports.
    pub flow: String,
    /// The number of the capture interface, from 0.
    pub interface: u32,
    /// The kind of the difference, such as a byte or a flag.
    pub kind: Kind,
    /// The number of payload bytes of the flow before the difference.
    pub stream_offset: u64,
    /// The number of the packet in the first capture, from 1 over the whole file; `None` if that capture has no such
    /// packet.
    pub packet_a: Option<u64>,
    /// The number of the packet in the second capture, from 1 over the whole file; `None` if that capture has no such
    /// packet.
    pub packet_b: Option<u64>,
    /// The packet or field of the first capture, as text.
    pub a: String,
    /// The packet or field of the second capture, as text.
    pub b: String,
}

/// The kind of a difference between two captures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A byte of the payload differs.
    Payload,
    /// The sequence number differs: the stream continues with other data.
    Sequence,
    /// One capture has a packet without payload at the position at which the other capture has payload.
    Order,
    /// The acknowledgement number of a segment differs.
    Acknowledgement,
    /// The advertised window of a segment differs.
    Window,
    /// The TCP options of a segment differ.
    Options,
    /// The ECN bits of the IP header differ, or one of the TCP flags ECE, CWR and AE.
    Ecn,
    /// The DSCP differs: the TOS or traffic class byte without its ECN bits.
    TrafficClass,
    /// TCP flags other than ECE, CWR and AE differ, or the urgent pointer.
    Flags,
    /// The lengths of the datagrams that a packet consists of differ.
    Datagrams,
    /// A packet that is not a TCP segment differs.
    Packet,
    /// The note of an aggregate does not match the aggregate.
    Note,
    /// One capture has a packet that the other lacks.
    Missing,
}

impl Kind {
    /// Returns the name of the kind, for readers.
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
            Self::Datagrams => "lengths of datagrams",
            Self::Packet => "packet",
            Self::Note => "note",
            Self::Missing => "missing packet",
        }
    }
}
