//! The paper's two tables: netperf TCP_SENDFILE over Myri10GE, 2007.

use rxo_demo::sending::Way;

use super::peer::Peer;

/// A row of the paper's tables.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PaperRow {
    /// The corresponding way in this experiment.
    pub(super) way: Way,
    pub(super) gbit_per_s: f64,
    /// The sender's processor time for 1,024 bytes, in microseconds ("Service Demand, Send local").
    pub(super) us_per_kb: f64,
}

/// Returns the paper's rows for a receiver like `peer`; empty if the paper has none.
const fn rows(peer: Peer) -> &'static [PaperRow] {
    match peer {
        Peer::Rarely => &LRO_RECEIVER,
        Peer::EveryEight => &SOLARIS_RECEIVER,
        Peer::EachSegment => &[],
    }
}

/// Returns the paper's row to compare with `way`; `None` if the paper has none. Rows of the driver's own LRO
/// are not compared.
pub(super) fn row(peer: Peer, way: Way) -> Option<&'static PaperRow> {
    rows(peer).iter().find(|row| row.way == way)
}

/// Results on a two-core Athlon 64 at 2.0 GHz; the receiver uses inet_lro. Without and with the patch.
const LRO_RECEIVER: [PaperRow; 2] = [
    PaperRow { way: Way::NoAggregation, gbit_per_s: 9.442_88, us_per_kb: 0.349 },
    PaperRow { way: Way::AckAggregate, gbit_per_s: 9.443_30, us_per_kb: 0.294 },
];

/// Results on four Xeon 5160 cores at 3.0 GHz; the receiver is Solaris 10U4 and acknowledges about 8:1.
const SOLARIS_RECEIVER: [PaperRow; 2] = [
    PaperRow { way: Way::NoAggregation, gbit_per_s: 8.530_80, us_per_kb: 0.404 },
    PaperRow { way: Way::AckAggregate, gbit_per_s: 9.249_65, us_per_kb: 0.255 },
];
