//! Packets that may hide a segment or its addresses: nothing overtakes them, and nothing is merged across
//! them.

use rxo_testkit::{Packet, seg};

use crate::mistakes::never_merged;
use crate::{groups, polls, run_all_forms};

/// The Home Address destination option (RFC 6275 section 6.3).
const HOME_ADDRESS: &[u8] = &[1, 0, 201, 16, 0xfd, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9];

fn shown(policy: &'static str, packets: &[Packet]) -> Vec<Vec<usize>> {
    groups(&run_all_forms(polls(policy, &[packets.to_vec()])))
}

/// Builds three segments of a flow, each after an extension header of the type `kind`.
fn behind(kind: u8, data: &[u8]) -> Vec<Packet> {
    (0..3).map(|number| seg().v6().extension(kind, data).seq(100 + 100 * number)).collect()
}

#[test]
fn behind_routing_headers_and_home_addresses_nothing_is_merged() {
    let routing = [&[2, 1][..], &[0, 1], &[4, 2], &[4, 0]];
    for data in routing {
        never_merged(&behind(43, data));
    }
    never_merged(&behind(60, HOME_ADDRESS));
    never_merged(&behind(51, &[0; 10]));
    // A list of options that exceeds its header.
    never_merged(&behind(60, &[1, 200]));
}

#[test]
fn behind_options_that_leave_the_addresses_alone_segments_are_merged() {
    for (kind, data) in [(60, &[1, 4][..]), (0, &[5, 2, 0, 0]), (60, &[0, 0, 0, 0, 0, 0])] {
        assert_eq!(shown("linux-gro", &behind(kind, data)), [[0, 1, 2]], "{kind} {data:?}");
    }
}

#[test]
fn a_segment_behind_an_unknown_header_overtakes_nothing_of_its_hosts() {
    let held = seg().v6();
    for kind in [135, 139, 140, 253] {
        let hidden = seg().v6().extension(kind, &[1, 2]).seq(200);
        let other = held.clone().ports(7, 8);
        let stranger = held.clone().host(77);
        let packets = [stranger, held.clone(), other, hidden];
        assert_eq!(shown("linux-gro", &packets), [vec![1], vec![2], vec![3], vec![0]], "{kind}");
    }
}

#[test]
fn encrypted_packets_overtake_nothing_of_their_hosts_and_datagrams_may() {
    for base in [seg(), seg().v6()] {
        for (protocol, waits) in [(50, true), (200, true), (1, false), (58, false), (47, false)] {
            let packets = [base.clone(), base.clone().protocol(protocol)];
            let expected = if waits { [[0], [1]] } else { [[1], [0]] };
            assert_eq!(shown("linux-gro", &packets), expected, "{protocol}");
        }
    }
}

#[test]
fn what_a_stranger_hides_leaves_the_next_pure_ack_alone() {
    let ack = |number: u32| seg().v6().pure_ack().ack(100 * number);
    let polls_around = |hidden: Packet| {
        let script = polls("gallatin-2007", &[vec![ack(1), ack(2)], vec![hidden, ack(3), ack(4)]]);
        groups(&run_all_forms(script))
    };
    let (ours, theirs) = (seg().v6(), seg().v6().host(77));
    for hide in [
        |packet: Packet| packet.fragment(0, true),
        |packet: Packet| packet.extension(135, &[]),
        |packet: Packet| packet.extension(43, &[2, 1]),
    ] {
        let alone = [vec![0], vec![1], vec![2], vec![3], vec![4]];
        assert_eq!(polls_around(hide(ours.clone())), alone);
        let undoubted = [vec![0], vec![1], vec![2], vec![3, 4]];
        assert_eq!(polls_around(hide(theirs.clone())), undoubted);
    }
}
