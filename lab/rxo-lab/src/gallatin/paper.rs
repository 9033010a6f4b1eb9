//! The paper's two tables: netperf TCP_SENDFILE over Myri10GE, 2007.

use rxo_demo::sending::Way;
use serde::Serialize;

use super::peer::Peer;

/// A row of the paper's tables.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct PaperRow {
    /// Name of the sending host's receive path in the paper.
    pub(super) name: &'static str,
    /// The corresponding way in this experiment.
    pub(super) way: Way,
    pub(super) gbit_per_s: f64,
    /// The sender's processor time for 1,024 bytes, in microseconds ("Service Demand, Send local").
    pub(super) us_per_kb: f64,
}

/// Returns the paper's rows for a receiver like `peer`; empty if the paper has none.
pub(super) const fn rows(peer: Peer) -> &'static [PaperRow] {
    match peer {
        Peer::Rarely => &LRO_RECEIVER,
        Peer::EveryEight => &SOLARIS_RECEIVER,
        Peer::EachSegment => &[],
    }
}

/// Returns the paper's row to compare with `way`; `None` if the paper has none. Of several rows the last is
/// used.
pub(super) fn row(peer: Peer, way: Way) -> Option<&'static PaperRow> {
    rows(peer).iter().rfind(|row| row.way == way)
}

const OWN: &str = "driver's own LRO, aggregates ACKs";
const UNPATCHED: &str = "inet_lro, does not";
const PATCHED: &str = "inet_lro with the patch, does";

/// Results on a two-core Athlon 64 at 2.0 GHz; the receiver uses inet_lro.
const LRO_RECEIVER: [PaperRow; 3] = [
    PaperRow { name: OWN, way: Way::AckAggregate, gbit_per_s: 9.442_65, us_per_kb: 0.282 },
    PaperRow { name: UNPATCHED, way: Way::NoAggregation, gbit_per_s: 9.442_88, us_per_kb: 0.349 },
    PaperRow { name: PATCHED, way: Way::AckAggregate, gbit_per_s: 9.443_30, us_per_kb: 0.294 },
];

/// Results on four Xeon 5160 cores at 3.0 GHz; the receiver is Solaris 10U4 and acknowledges about 8:1.
const SOLARIS_RECEIVER: [PaperRow; 3] = [
    PaperRow { name: OWN, way: Way::AckAggregate, gbit_per_s: 9.280_09, us_per_kb: 0.252 },
    PaperRow { name: UNPATCHED, way: Way::NoAggregation, gbit_per_s: 8.530_80, us_per_kb: 0.404 },
    PaperRow { name: PATCHED, way: Way::AckAggregate, gbit_per_s: 9.249_65, us_per_kb: 0.255 },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_compared_is_the_patch_with_what_was_before() {
        for peer in [Peer::Rarely, Peer::EveryEight] {
            assert_eq!(row(peer, Way::AckAggregate).unwrap().name, PATCHED);
            assert_eq!(row(peer, Way::NoAggregation).unwrap().name, UNPATCHED);
            assert!(row(peer, Way::KernelGro).is_none());
        }
        assert!(row(Peer::EachSegment, Way::AckAggregate).is_none());
    }
}
