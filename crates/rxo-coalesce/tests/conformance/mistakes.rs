//! Mistakes of other implementations, each as a test.

use rxo_testkit::oracle::HoldRule;
use rxo_testkit::promise::{Record, ShownAcks};
use rxo_testkit::script::Setup;
use rxo_testkit::{Packet, seg};

use crate::{deliver_under, groups, payload_lengths, polls, run_all_forms};

/// Runs `packets` under every policy and calls `check` with the frame numbers of each delivery.
fn under_every_policy(packets: &[Packet], check: impl Fn(&str, Vec<Vec<usize>>)) {
    for policy in Setup::policies() {
        let (observed, _) = deliver_under(policy, packets);
        check(policy, groups(&observed));
    }
}

pub(crate) fn never_merged(packets: &[Packet]) {
    let expected = alone(packets.len());
    under_every_policy(packets, |policy, groups| assert_eq!(groups, expected, "{policy}"));
}

/// Returns the groups for `frames` deliveries of one frame each.
fn alone(frames: usize) -> Vec<Vec<usize>> {
    (0..frames).map(|index| vec![index]).collect()
}

#[test]
fn zero_window_is_never_hidden() {
    let packets: Vec<_> = [(100, 4096), (200, 9999), (300, 0)]
        .map(|(seq, window)| seg().seq(seq).window(window))
        .to_vec();
    let (_, lengths) = deliver_under("linux-gro", &packets);
    assert_eq!(lengths, [100, 100, 100]);
    let (observed, _) = deliver_under("remember", &packets);
    let merged = observed.deliveries().next().and_then(|shown| shown.merged.clone()).unwrap();
    assert_eq!(merged.bytes[48..50], [0, 0], "the merged header says the last window");
    let windows: Vec<_> = merged.records.iter().map(|Record { window, .. }| *window).collect();
    assert_eq!(windows, [4096, 9999, 0], "and each one is kept");
}

#[test]
fn a_window_update_is_never_folded_into_nothing() {
    let packets = [
        seg().window(0),
        seg().seq(200).pure_ack().window(0),
        seg().seq(200).pure_ack().window(4096),
    ];
    under_every_policy(&packets, |policy, groups| {
        let remembers = policy == "remember";
        let expected = if remembers { vec![vec![0], vec![1, 2]] } else { alone(packets.len()) };
        assert_eq!(groups, expected, "{policy}");
    });
    let (observed, _) = deliver_under("remember", &packets);
    let windows: Vec<u16> =
        observed.deliveries().filter_map(|shown| shown.acks.as_ref()).flat_map(windows).collect();
    assert_eq!(windows, [0, 4096], "where they are in one delivery each is recorded");
}

fn windows(acks: &ShownAcks) -> impl Iterator<Item = u16> {
    acks.records.iter().map(|record| record.window)
}

#[test]
fn two_ids_apart_are_never_merged_where_ids_count() {
    for id in [60_000, 6, 9] {
        under_every_policy(&[seg().id(7), seg().seq(200).id(id)], |policy, groups| {
            let compares = matches!(policy, "linux-gro" | "remember" | "none");
            let expected = if compares { alone(2) } else { vec![vec![0, 1]] };
            assert_eq!(groups, expected, "{policy}, ID {id}; no paper compares IDs");
        });
        for policy in ["linux-gro", "remember"] {
            let packets = [seg().df(false).id(7), seg().df(false).seq(200).id(id)];
            assert_eq!(groups(&deliver_under(policy, &packets).0), alone(2), "{policy}, no DF");
        }
    }
}

#[test]
fn an_ecn_mark_is_never_lost() {
    for base in [seg(), seg().v6()] {
        never_merged(&[base.clone().tos(2), base.clone().tos(3).seq(200)]);
        never_merged(&[base.clone().tos(3), base.clone().tos(2).seq(200)]);
        never_merged(&[base.clone(), base.clone().ece().seq(200)]);
        never_merged(&[base.clone().cwr(), base.cwr().seq(200)]);
    }
}

#[test]
fn the_ttl_is_never_ignored() {
    never_merged(&[seg(), seg().seq(200).ttl(7)]);
    never_merged(&[seg().v6(), seg().v6().seq(200).ttl(7)]);
}

#[test]
fn data_is_never_delivered_before_what_came_first() {
    let odd = [
        seg().seq(300).pure_ack(),
        seg().seq(300).pure_ack().padded(),
        seg().seq(300).rst().len(0),
        seg().seq(300).fin().len(0),
        seg().seq(300).syn().len(0),
        seg().seq(300).bad_checksum(),
        seg().seq(300).bad_ip_checksum(),
        seg().seq(300).fragment(0, true),
        seg().seq(300).fragment(9, false),
        seg().seq(300).ip_options(&[1]),
        seg().seq(300).cut(90),
    ];
    for packet in odd {
        let packets = [seg(), seg().seq(200), packet.clone(), seg().seq(400), seg().seq(500)];
        under_every_policy(&packets, |policy, groups| {
            let order: Vec<_> = groups.concat();
            assert_eq!(order, [0, 1, 2, 3, 4], "{policy}: {packet:?}");
            assert!(groups.contains(&vec![2]), "{policy} merged {packet:?}");
        });
    }
}

#[test]
fn a_c_b_is_never_delivered_as_a_bc() {
    let packets = [seg(), seg().seq(300), seg().seq(200)];
    under_every_policy(&packets, |policy, groups| {
        assert_eq!(groups, [vec![0], vec![1], vec![2]], "{policy}");
    });
}

#[test]
fn of_data_and_three_duplicate_acks_everything_is_delivered() {
    let ack = seg().seq(300).pure_ack();
    let packets = [seg(), seg().seq(200), ack.clone(), ack.clone(), ack];
    under_every_policy(&packets, |policy, groups| {
        assert_eq!(groups.concat(), [0, 1, 2, 3, 4], "{policy}");
        assert_eq!(groups[groups.len() - 3..], [vec![2], vec![3], vec![4]], "{policy}");
    });
}

#[test]
fn a_flush_releases_everything() {
    let packets: Vec<_> = (0..40).map(|flow| seg().flow(flow)).collect();
    for policy in Setup::policies() {
        let (observed, _) = deliver_under(policy, &packets);
        assert_eq!(observed.frame_order().len(), 40, "{policy}");
    }
}

#[test]
fn reordering_never_corrupts_payload() {
    // The payload depends on its position in the stream, and every delivery is compared with it byte for
    // byte.
    let places = [0, 2, 1, 3, 5, 4, 4, 6, 8, 7, 9];
    let packets: Vec<_> = places.map(|place| seg().seq(100 + place * 100)).to_vec();
    under_every_policy(&packets, |policy, groups| {
        assert_eq!(groups.concat().len(), places.len(), "{policy}");
    });
}

#[test]
fn padding_is_never_counted_as_data() {
    for policy in Setup::policies() {
        let packets = [seg().len(3).padded_with(0xaa), seg().seq(103).len(3).padded_with(0xbb)];
        let (_, lengths) = deliver_under(policy, &packets);
        assert_eq!(lengths.iter().sum::<usize>(), 6, "{policy}");
    }
    let (_, lengths) = deliver_under("linux-gro", &[seg().pure_ack().padded(), seg()]);
    assert_eq!(lengths, [0, 100]);
}

#[test]
fn fragments_are_never_coalesced_and_never_dropped() {
    for base in [seg().df(false), seg().v6()] {
        let packets = [
            base.clone(),
            base.clone().seq(200).fragment(0, true),
            base.clone().seq(300).fragment(12, true),
            base.clone().seq(400).fragment(24, false),
            base.seq(200),
        ];
        never_merged(&packets);
    }
}

#[test]
fn a_fragment_lets_other_hosts_be() {
    let packets =
        [seg(), seg().flow(40), seg().seq(200).fragment(0, true), seg().flow(40).seq(200)];
    let (observed, _) = deliver_under("linux-gro", &packets);
    assert_eq!(groups(&observed), [vec![0], vec![2], vec![1, 3]]);
}

#[test]
fn a_burst_of_45_segments_is_one_packet() {
    let burst: Vec<_> = (0..45)
        .map(|number| seg().seq(100 + number * 1448).len(1448).id(number as u16).ts(1, 2))
        .collect();
    for policy in ["linux-gro", "remember"] {
        let (_, lengths) = deliver_under(policy, &burst);
        assert_eq!(lengths, [45 * 1448], "{policy}");
    }
}

#[test]
fn condensed_acks_are_never_fewer_than_they_were() {
    let acks: Vec<_> = (0..20).map(|number| seg().pure_ack().ack(100 + number * 2896)).collect();
    under_every_policy(&acks, |policy, groups| match policy {
        "gallatin-2007" => assert_eq!(groups, [vec![0], (1..20).collect()]),
        "remember" => assert_eq!(groups, [(0..20).collect::<Vec<_>>()]),
        _ => assert_eq!(groups, alone(20), "{policy}"),
    });
    for (policy, count) in [("gallatin-2007", 19), ("remember", 20)] {
        let (observed, _) = deliver_under(policy, &acks);
        let shown = observed.deliveries().filter_map(|shown| shown.acks.as_ref());
        let counts: Vec<_> = shown.map(|acks| (acks.count, acks.records.len())).collect();
        assert_eq!(counts, [(count, count)], "{policy}");
    }
}

#[test]
fn of_three_duplicates_none_is_condensed_into_another() {
    let numbers = [100, 200, 300, 300, 300, 300, 400];
    let acks = numbers.map(|number| seg().pure_ack().ack(number));
    under_every_policy(&acks, |policy, groups| {
        for duplicate in [3, 4, 5] {
            assert!(groups.contains(&vec![duplicate]), "{policy}: {groups:?}");
        }
        assert_eq!(groups.concat(), [0, 1, 2, 3, 4, 5, 6], "{policy}");
    });
}

#[test]
fn a_duplicate_is_delivered_as_it_came() {
    let packets = [seg(), seg(), seg().seq(200)];
    under_every_policy(&packets, |policy, groups| {
        assert_eq!(groups.concat(), [0, 1, 2], "{policy}");
        assert_eq!(groups[0], [0], "{policy}");
    });
}

#[test]
fn sack_travels_alone_and_in_order() {
    let packets = [seg(), seg().seq(200).pure_ack().sack(&[(5, 9)]), seg().seq(200)];
    never_merged(&packets);
}

#[test]
fn delayed_aggregation_joins_two_polls_and_holds_no_longer() {
    let segment = |number: u32| seg().seq(100 + number * 100);
    let script = polls(
        "xen-delayed",
        &[vec![segment(0), segment(1)], vec![segment(2)], vec![segment(3), segment(4)], vec![]],
    );
    let observed = run_all_forms(script.clone());
    assert_eq!(payload_lengths(&script, &observed), [300, 200]);
}

#[test]
fn a_policy_that_counts_polls_holds_no_segment_alone() {
    let request = |number: u32| seg().seq(100 + number * 100);
    for every in [2, 3, 8] {
        let mut script =
            polls("xen-delayed", &[vec![request(0)], vec![request(1)], vec![request(2)]]);
        script.setup.hold = Some(HoldRule::Polls(every));
        let observed = run_all_forms(script);
        let by_step: Vec<usize> = observed.steps.iter().map(Vec::len).collect();
        // Each request is delivered in the step that ends its own poll.
        assert_eq!(by_step, [0, 1, 0, 1, 0, 1, 0], "every {every} polls");
    }
}

#[test]
fn a_segment_alone_leaves_and_those_together_stay() {
    let other = seg().flow(9);
    let script = polls("xen-delayed", &[vec![seg(), other, seg().seq(200)], vec![seg().seq(300)]]);
    assert_eq!(groups(&run_all_forms(script)), [vec![1], vec![0, 2, 3]]);
}
