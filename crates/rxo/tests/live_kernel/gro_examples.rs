//! For each difference in coalescing, a burst in which it is the only difference.

use rxo_testkit::{Packet, seg, udp};

use crate::gro_difference::Difference;

/// Creates the burst in which this difference occurs.
pub(crate) fn of(difference: Difference) -> Vec<Packet> {
    let base = |n: u32| seg().seq(100 * n).id(n as u16);
    let datagram = |n: u32| udp().seq(100 * n).id(n as u16);
    match difference {
        Difference::RefusedOvertakes => vec![base(0), base(1), base(2).bad_checksum(), base(2)],
        Difference::HeldSideBySide => {
            vec![base(0).v6(), base(9).v6().flow_label(7), base(1).v6()]
        }
        Difference::CeMarks => (0..3).map(|n| base(n).tos(3)).collect(),
        Difference::Padding => vec![base(0).len(1), base(0).seq(1).id(1).len(1).padded()],
        Difference::Tags => (0..3).map(|n| base(n).vlan(5)).collect(),
        Difference::TunnelPort => (0..3).map(|n| datagram(n).ports(1000, 4789)).collect(),
        Difference::MixedChecksums => vec![base(0), base(1).partial(), base(2)],
        Difference::ChecksumElsewhere => {
            (0..3).map(|n| base(n).partial().partial_elsewhere(8, 16)).collect()
        }
        Difference::TrustedChecksum => (0..2).map(|n| base(n).bad_checksum().verified()).collect(),
        Difference::FixedIdWithoutDf => (0..3).map(|n| base(n).id(9).df(false)).collect(),
        Difference::OddExtensions => (0..3).map(|n| base(n).v6().extension(43, &[0, 0])).collect(),
        Difference::UrgentPointer => vec![base(0), base(1).urgent(7), base(2)],
        Difference::OddFlags => (0..3).map(|n| base(n).flags(0x210)).collect(),
    }
}
