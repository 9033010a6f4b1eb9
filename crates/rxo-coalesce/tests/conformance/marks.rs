//! Marks of congestion: a host that counts them by packets receives as many as were marked (RFC 9768).

use rxo_testkit::script::Script;
use rxo_testkit::{Packet, seg};

use crate::{groups, polls, run_all_forms};

const CE: u8 = 3;
const ECT_0: u8 = 2;
const ECT_1: u8 = 1;
/// Every profile whose receiver gets packets without records.
const WITHOUT_RECORDS: [&str; 9] = [
    "linux-gro",
    "menon-2008",
    "rsc-2006",
    "rsc2",
    "rsc3",
    "rsc5",
    "inet-lro",
    "gallatin-2007",
    "xen-delayed",
];

fn marked(mark: u8) -> impl Fn(u32) -> Packet {
    move |number| seg().seq(100 + 100 * number).tos(mark)
}

fn shown(policy: &'static str, packets: &[Packet]) -> Vec<Vec<usize>> {
    groups(&run_all_forms(polls(policy, &[packets.to_vec()])))
}

#[test]
fn each_segment_marked_ce_is_a_packet_of_its_own() {
    for policy in WITHOUT_RECORDS {
        for base in [seg(), seg().v6(), seg().vlan(7), seg().ts(5, 6)] {
            let packet = |number: u32| base.clone().seq(100 + 100 * number).id(number as u16);
            let packets: Vec<_> = (0..4).map(|number| packet(number).tos(CE)).collect();
            assert_eq!(shown(policy, &packets), [[0], [1], [2], [3]], "{policy}");
        }
    }
}

#[test]
fn a_mark_in_a_stream_keeps_its_place() {
    let (plain, ce) = (marked(ECT_0), marked(CE));
    let packets = [plain(0), plain(1), ce(2), ce(3), plain(4), plain(5)];
    for policy in ["linux-gro", "inet-lro", "menon-2008"] {
        let expected = [vec![0, 1], vec![2], vec![3], vec![4, 5]];
        assert_eq!(shown(policy, &packets), expected, "{policy}");
    }
}

#[test]
fn transports_that_are_capable_of_ecn_are_merged_as_others_are() {
    for mark in [ECT_0, ECT_1] {
        let packets: Vec<_> = (0..3).map(marked(mark)).collect();
        assert_eq!(shown("linux-gro", &packets), [[0, 1, 2]]);
    }
}

#[test]
fn where_segments_are_told_one_by_one_marks_are_merged() {
    let packets: Vec<_> = (0..3).map(marked(CE)).collect();
    assert_eq!(shown("remember", &packets), [[0, 1, 2]]);
}

#[test]
fn of_pure_acks_the_last_hides_no_mark() {
    let ack = |number: u32| seg().pure_ack().ack(100 * number);
    let packets = [ack(1), ack(2), ack(3), ack(4).tos(CE), ack(5).tos(CE), ack(6), ack(7), ack(8)];
    let single = [vec![0], vec![1, 2], vec![3], vec![4], vec![5], vec![6, 7]];
    assert_eq!(shown("gallatin-2007", &packets), single);
    assert_eq!(shown("remember", &packets), [vec![0, 1, 2], vec![3, 4], vec![5, 6, 7]]);
}

#[test]
fn a_policy_may_be_told_otherwise() {
    let packets: Vec<_> = (0..3).map(marked(CE)).collect();
    let mut script: Script = polls("linux-gro", &[packets]);
    script.setup.merges_ce = Some(true);
    assert_eq!(groups(&run_all_forms(script)), [[0, 1, 2]]);
}
