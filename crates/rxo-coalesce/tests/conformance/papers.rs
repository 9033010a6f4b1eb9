//! Segments that only some systems of the papers refuse.

use rxo_testkit::{Packet, seg};

use crate::{groups, polls, run_all_forms};

const RSC: [&str; 4] = ["rsc-2006", "rsc2", "rsc3", "rsc5"];
const LRO: [&str; 3] = ["inet-lro", "gallatin-2007", "xen-delayed"];

/// Returns `true` if two segments of a flow, changed alike, are merged under this policy.
fn merges(policy: &'static str, change: fn(Packet) -> Packet) -> bool {
    let packets = [seg().id(1), seg().seq(200).id(2)].map(change);
    groups(&run_all_forms(polls(policy, &[packets.to_vec()]))) == [[0, 1]]
}

fn only_these_refuse(policies: &[&str], change: fn(Packet) -> Packet) {
    for policy in rxo_testkit::Setup::policies().into_iter().filter(|policy| *policy != "none") {
        assert_eq!(merges(policy, change), !policies.contains(&policy), "{policy}");
    }
}

#[test]
fn receive_side_coalescing_wants_df() {
    only_these_refuse(&RSC, |packet| packet.df(false));
    only_these_refuse(&RSC, |packet| packet.df(false).ts(1, 2));
    only_these_refuse(&[], |packet| packet.v6().df(false));
}

#[test]
fn large_receive_offload_takes_no_echo_of_zero() {
    only_these_refuse(&LRO, |packet| packet.ts(1, 0));
    only_these_refuse(&LRO, |packet| packet.v6().ts(1, 0));
    only_these_refuse(&[], |packet| packet.ts(0, 1));
}

#[test]
fn flags_other_than_ack_and_psh_stop_both() {
    only_these_refuse(&[&RSC[..], &LRO].concat(), Packet::ece);
}
