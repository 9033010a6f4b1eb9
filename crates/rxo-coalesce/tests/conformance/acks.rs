//! Pure ACKs: which may be aggregated, and which may not.
//!
//! Each case is also compared with the oracle, and checked by two senders: one receives the frames, the other
//! the deliveries.

use rxo_testkit::promise::{Observed, ShownAcks};
use rxo_testkit::script::Setup;
use rxo_testkit::{Packet, seg};

use crate::{groups, polls, run_all_forms};

/// A policy that delivers only the last ACK.
const SINGLE: &str = "gallatin-2007";
/// A policy that delivers a record of each ACK.
const RECORD: &str = "remember";

fn ack(number: u32) -> Packet {
    seg().pure_ack().ack(number)
}

fn acks<const N: usize>(numbers: [u32; N]) -> Vec<Packet> {
    numbers.map(ack).to_vec()
}

/// Runs `packets` in one poll under `policy`.
fn shown(policy: &'static str, packets: &[Packet]) -> Observed {
    run_all_forms(polls(policy, &[packets.to_vec()]))
}

/// Runs `packets` in one poll under [`SINGLE`], with a setting changed by `change`.
fn shown_with(change: impl Fn(&mut Setup), packets: &[Packet]) -> Observed {
    let mut script = polls(SINGLE, &[packets.to_vec()]);
    change(&mut script.setup);
    run_all_forms(script)
}

fn single(packets: &[Packet]) -> Vec<Vec<usize>> {
    groups(&shown(SINGLE, packets))
}

fn record(packets: &[Packet]) -> Vec<Vec<usize>> {
    groups(&shown(RECORD, packets))
}

/// Returns the deliveries of several ACKs, in order.
fn several(observed: &Observed) -> Vec<&ShownAcks> {
    observed.deliveries().filter_map(|shown| shown.acks.as_ref()).collect()
}

#[test]
fn advancing_acks_become_one_that_says_the_last() {
    for base in [seg(), seg().v6(), seg().vlan(7), seg().ts(5, 6), seg().v6().ts_first(5, 6)] {
        let packets: Vec<_> =
            (1..=4).map(|number| base.clone().pure_ack().ack(number * 1000)).collect();
        let observed = shown(SINGLE, &packets);
        assert_eq!(groups(&observed), [vec![0], vec![1, 2, 3]]);
        let acks = several(&observed);
        assert_eq!((acks[0].bytes.clone(), acks[0].count), (packets[3].bytes(), 3));
        assert_eq!(record(&packets), [vec![0, 1, 2, 3]]);
    }
}

#[test]
fn the_first_ack_of_a_flow_passes_for_it_may_repeat_what_nobody_knows() {
    assert_eq!(single(&acks([100, 200])), [vec![0], vec![1]]);
    assert_eq!(record(&acks([100, 200])), [vec![0, 1]]);
}

#[test]
fn a_duplicate_passes_in_its_place() {
    let packets = acks([100, 200, 300, 300, 400, 500]);
    assert_eq!(single(&packets), [vec![0], vec![1, 2], vec![3], vec![4, 5]]);
    assert_eq!(record(&packets), [vec![0, 1, 2], vec![3], vec![4, 5]]);
}

#[test]
fn a_duplicate_with_a_later_timestamp_is_one_all_the_same() {
    let packets = [ack(100).ts(1, 1), ack(200).ts(1, 1), ack(200).ts(2, 1), ack(300).ts(2, 1)];
    assert_eq!(single(&packets), [vec![0], vec![1], vec![2], vec![3]]);
}

#[test]
fn a_duplicate_after_the_poll_is_not_swallowed() {
    let script = polls(SINGLE, &[acks([100, 200]), acks([200, 300])]);
    assert_eq!(groups(&run_all_forms(script)), [vec![0], vec![1], vec![2], vec![3]]);
}

#[test]
fn after_the_poll_advancing_acks_go_on() {
    let script = polls(SINGLE, &[acks([100, 200]), acks([300, 400])]);
    assert_eq!(groups(&run_all_forms(script)), [vec![0], vec![1], vec![2, 3]]);
}

#[test]
fn whatever_comes_between_a_duplicate_is_not_swallowed() {
    let between = [
        seg().ack(200),
        seg().ack(200).psh(),
        ack(200).psh(),
        ack(200).fin(),
        ack(200).urg(),
        ack(200).sack(&[(300, 400)]),
        ack(200).ip_options(&[1]),
        ack(200).options(&[30, 4, 0, 0]),
        ack(200).fragment(0, true),
        ack(200).bad_checksum(),
        ack(200).bad_ip_checksum(),
        ack(200).cut(1),
    ];
    for packet in between {
        let packets = [ack(100), ack(200), packet.clone(), ack(200), ack(300)];
        let groups = single(&packets);
        assert!(groups.contains(&vec![3]), "{packet:?}: {groups:?}");
        assert_eq!(groups.concat(), [0, 1, 2, 3, 4], "{packet:?}");
    }
}

#[test]
fn an_overtaken_ack_is_not_the_last_word_of_its_flow() {
    for newer in [seg().ack(300), ack(300).sack(&[(400, 500)]), ack(300).psh()] {
        // The fourth repeats the second; the third was sent before both.
        let packets = [ack(100), newer, ack(200), ack(300), ack(400)];
        assert_eq!(single(&packets), [vec![0], vec![1], vec![2], vec![3], vec![4]]);
    }
}

#[test]
fn an_ack_that_an_odd_header_overtook_is_not_the_last_word_of_its_flow() {
    let v6 = seg().v6().pure_ack();
    let newer = [
        v6.clone().ack(300).extension(43, &[2, 1]),
        v6.clone().ack(300).extension(60, &[1, 200]),
        v6.clone().ack(300).extension(60, &[0x75, 0]),
        seg().v6().ack(300).extension(43, &[2, 1]),
        ack(300).ip_options(&[1]),
    ];
    for (number, newer) in newer.into_iter().enumerate() {
        let base = if number == 4 { seg().pure_ack() } else { v6.clone() };
        // The flow has no recorded ACK before the first. The third repeats it.
        let packets = [newer, base.clone().ack(200), base.clone().ack(300), base.ack(400)];
        assert_eq!(single(&packets), [vec![0], vec![1], vec![2], vec![3]], "{number}");
    }
}

#[test]
fn data_that_acknowledges_more_within_one_aggregate_counts_whole() {
    let packets = [
        ack(100),
        seg().ack(100),
        seg().seq(200).id(1).ack(300),
        ack(200).seq(300),
        ack(300).seq(300),
        ack(400).seq(300),
    ];
    assert_eq!(single(&packets), [vec![0], vec![1, 2], vec![3], vec![4], vec![5]]);
}

#[test]
fn data_between_two_acks_of_a_flow_keeps_its_place() {
    let packets =
        [ack(100), ack(200), seg().ack(200), seg().seq(200).ack(200).id(1), ack(300).seq(300)];
    assert_eq!(record(&packets), [vec![0, 1], vec![2, 3], vec![4]]);
    assert_eq!(single(&packets), [vec![0], vec![1], vec![2, 3], vec![4]]);
}

#[test]
fn flows_that_take_turns_are_aggregated_each() {
    let turn = |number: u32| [0, 1, 2].map(|flow| ack(number).flow(flow));
    let packets: Vec<_> = (1..4).flat_map(|number| turn(number * 100)).collect();
    assert_eq!(record(&packets), [[0, 3, 6], [1, 4, 7], [2, 5, 8]]);
}

#[test]
fn a_window_update_joins_and_is_shown() {
    let packets = [ack(100), ack(200).window(500), ack(200).window(900)];
    let observed = shown(SINGLE, &packets);
    assert_eq!(groups(&observed), [vec![0], vec![1, 2]]);
    assert_eq!(several(&observed)[0].records[1].window, 900);
}

#[test]
fn a_zero_window_update_survives() {
    let packets = [ack(100), ack(200), ack(300).window(0)];
    let observed = shown(SINGLE, &packets);
    assert_eq!(groups(&observed), [vec![0], vec![1, 2]]);
    assert_eq!(several(&observed)[0].bytes[48..50], [0, 0], "the one that is shown says zero");
}

#[test]
fn a_window_that_changes_and_comes_back_makes_no_duplicate() {
    // If only the last ACK were delivered, it would repeat the one before all of them.
    let update = |window| ack(100).window(window);
    let packets = [update(500), update(0), update(500)];
    assert_eq!(single(&packets), [vec![0], vec![1], vec![2]]);
    assert_eq!(record(&packets), [vec![0, 1, 2]]);
    let advanced = [update(500), ack(200).window(500), ack(200).window(0), ack(200).window(500)];
    assert_eq!(single(&advanced), [vec![0], vec![1, 2, 3]], "what advances repeats nothing");
}

#[test]
fn an_ack_that_goes_back_passes_and_changes_nothing() {
    let packets = acks([100, 300, 200, 300, 400]);
    assert_eq!(single(&packets), [vec![0], vec![1], vec![2], vec![3], vec![4]]);
    assert_eq!(record(&packets), [vec![0, 1], vec![2], vec![3, 4]]);
}

#[test]
fn numbers_wrap() {
    let packets = [ack(0xffff_ff00).ts(0xffff_ffff, 1), ack(5).ts(0, 1), ack(100).ts(1, 1)];
    assert_eq!(single(&packets), [vec![0], vec![1, 2]]);
}

#[test]
fn a_change_of_marks_is_never_swallowed() {
    let changes: [fn(Packet) -> Packet; 4] =
        [Packet::ece, Packet::cwr, |packet| packet.flags(0x110), |packet| packet.tos(2)];
    for change in changes {
        for base in [seg(), seg().v6()] {
            let plain = |number| base.clone().pure_ack().ack(number);
            let marked = |number| change(plain(number));
            let packets = [plain(1), plain(2), plain(3), marked(4), marked(5), plain(6), plain(7)];
            assert_eq!(single(&packets), [vec![0], vec![1, 2], vec![3, 4], vec![5, 6]]);
            assert_eq!(record(&packets), [vec![0, 1, 2], vec![3, 4], vec![5, 6]]);
        }
    }
}

#[test]
fn sack_and_reports_of_duplicates_travel_alone() {
    for blocks in [&[(300, 400)][..], &[(50, 60)], &[(320, 340), (300, 400)]] {
        let packets = [ack(100), ack(150), ack(200), ack(200).sack(blocks), ack(250), ack(260)];
        assert_eq!(single(&packets), [vec![0], vec![1, 2], vec![3], vec![4], vec![5]]);
        assert_eq!(record(&packets), [vec![0, 1, 2], vec![3], vec![4, 5]]);
    }
}

#[test]
fn what_differs_in_the_headers_starts_anew() {
    let changes: [fn(Packet) -> Packet; 6] = [
        |packet| packet.seq(99),
        |packet| packet.ttl(9),
        |packet| packet.df(false),
        |packet| packet.vlan(7),
        |packet| packet.ts(3, 4),
        |packet| packet.tos(4),
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let packets = [ack(100), ack(200), change(ack(300)), change(ack(400))];
        assert_eq!(record(&packets), [vec![0, 1], vec![2, 3]], "change {number}");
    }
    assert_eq!(record(&[ack(100).id(7), ack(200).id(3)]), [vec![0, 1]], "the ID says nothing");
}

#[test]
fn a_timestamp_that_goes_back_starts_anew_and_an_echo_may_do_what_it_likes() {
    let packets = [ack(100).ts(5, 9), ack(200).ts(5, 2), ack(300).ts(4, 2), ack(400).ts(4, 9)];
    assert_eq!(record(&packets), [vec![0, 1], vec![2, 3]]);
}

#[test]
fn another_arrangement_of_options_starts_anew() {
    let packets = [ack(100).ts(1, 1), ack(200).ts_first(1, 1), ack(300).ts_first(2, 1)];
    assert_eq!(record(&packets), [vec![0], vec![1, 2]]);
    let bare = |number| ack(number).bare_timestamp(1, 1);
    let packets = [bare(100), bare(200).options(&[1, 1]), bare(300), bare(400).options(&[30, 0])];
    assert_eq!(
        record(&packets),
        [vec![0], vec![1], vec![2], vec![3]],
        "padding, an option that lies"
    );
}

#[test]
fn padding_is_trimmed_where_the_last_is_shown_and_kept_where_frames_are_taken() {
    for byte in [0, 0xaa] {
        let packets = [ack(100), ack(200).padded(), ack(300).padded_with(byte)];
        let observed = shown(SINGLE, &packets);
        assert_eq!(groups(&observed), [vec![0], vec![1, 2]]);
        assert_eq!(several(&observed)[0].bytes, ack(300).bytes(), "54 bytes");
    }
}

#[test]
fn a_keep_alive_is_no_more_than_itself() {
    let probe = ack(200).seq(99);
    let packets = [ack(100), ack(200), probe.clone(), probe, ack(300)];
    assert_eq!(single(&packets), [vec![0], vec![1], vec![2], vec![3], vec![4]]);
}

#[test]
fn of_so_many_acks_at_least_one_is_shown() {
    let packets: Vec<_> = (0..10).map(|number| ack(100 * number)).collect();
    let keep = |every| groups(&shown_with(|setup| setup.keep_every = Some(every), &packets));
    assert_eq!(keep(4), [vec![0], vec![1, 2, 3, 4], vec![5, 6, 7, 8], vec![9]]);
    assert_eq!(keep(1).len(), 10, "every one");
    let most = |most| groups(&shown_with(|setup| setup.max_acks = Some(most), &packets));
    assert_eq!(most(3), [vec![0], vec![1, 2, 3], vec![4, 5, 6], vec![7, 8, 9]]);
}

#[test]
fn an_ack_with_a_wrong_checksum_passes_and_is_forgotten() {
    let packets = [ack(100), ack(200), ack(900).bad_checksum(), ack(200), ack(300), ack(400)];
    assert_eq!(single(&packets), [vec![0], vec![1], vec![2], vec![3], vec![4, 5]]);
}

fn superset(packets: &[Packet]) -> Vec<Vec<usize>> {
    groups(&shown_with(|setup| setup.sack_superset = Some(true), packets))
}

#[test]
fn a_longer_list_stands_for_a_shorter_where_the_policy_says_so() {
    let list = |blocks: &[(u32, u32)]| ack(100).sack(blocks);
    let growing = [list(&[(300, 400)]), list(&[(300, 500)]), list(&[(700, 800), (300, 500)])];
    assert_eq!(superset(&growing), [vec![0, 1, 2]]);
    assert_eq!(superset(&[list(&[(300, 500)]), list(&[(300, 400)])]), [vec![0], vec![1]]);
    let arrived = [list(&[(200, 400)]), ack(400), ack(500)];
    assert_eq!(superset(&arrived), [vec![0, 1, 2]], "what is acknowledged needs no list");
    assert_eq!(single(&growing), [vec![0], vec![1], vec![2]]);
}

#[test]
fn a_list_that_comes_twice_is_a_duplicate_whatever_the_time() {
    let list = |value| ack(100).ts(value, 1).sack(&[(300, 400)]);
    assert_eq!(superset(&[list(1), list(1), list(2)]), [vec![0], vec![1], vec![2]]);
    let plain = [ack(100).sack(&[(300, 400)]), ack(100), ack(500)];
    assert_eq!(superset(&plain), [vec![0], vec![1], vec![2]]);
}

#[test]
fn a_list_that_was_overtaken_hides_no_duplicate_behind_it() {
    let overtaken = ack(200).sack(&[(300, 400)]);
    let packets = [ack(400), overtaken, ack(400), ack(500), ack(600)];
    assert_eq!(superset(&packets), [vec![0], vec![1], vec![2], vec![3, 4]]);
    let current = ack(400).sack(&[(500, 600)]);
    assert_eq!(superset(&[ack(400), current, ack(600), ack(700)]), [vec![0], vec![1, 2, 3]]);
}

#[test]
fn a_report_of_a_duplicate_passes_also_where_lists_may_be_covered() {
    let packets = [ack(100).sack(&[(300, 400)]), ack(100).sack(&[(50, 60), (300, 400)])];
    assert_eq!(superset(&packets), [vec![0], vec![1]]);
}

#[test]
fn a_fragment_makes_flows_of_its_hosts_strangers_but_none_forgets_what_it_acknowledged() {
    let fragment = seg().fragment(0, true);
    let packets = [ack(100), ack(300), fragment, ack(200), ack(300), ack(400), ack(500)];
    let groups = single(&packets);
    assert_eq!(groups, [vec![0], vec![1], vec![2], vec![3], vec![4], vec![5, 6]]);
}

/// Builds seven ACKs of a flow in sequence. The fifth has the TSval `value` and is changed by `change`.
fn run_with(base: &Packet, value: u32, change: impl Fn(Packet) -> Packet) -> Vec<Packet> {
    let ack = |turn: u32| {
        let plain = base.clone().pure_ack().ack(100 * turn).id(turn as u16);
        if turn == 5 { change(plain.ts(value, 1)) } else { plain.ts(turn, 1) }
    };
    (1..8).map(ack).collect()
}

/// A variation of the fifth of seven ACKs: its TSval, another change, and the expected deliveries.
type Odd = (u32, fn(Packet) -> Packet, &'static [&'static [usize]]);

/// Each ACK of a run is compared in full: whatever differs in it, the oracle gives the same result.
#[test]
fn an_ack_that_differs_ends_a_run() {
    let (all, alone): (&[&[usize]], &[&[usize]]) =
        (&[&[0, 1, 2, 3, 4, 5, 6]], &[&[0, 1, 2, 3], &[4], &[5, 6]]);
    let odd: [Odd; 8] = [
        (5, |ack| ack, all),
        (5, |ack| ack.window(7), all),
        (3, |ack| ack, &[&[0, 1, 2, 3], &[4, 5, 6]]),
        (5, Packet::bad_checksum, alone),
        (5, |ack| ack.tos(3), alone),
        (5, |ack| ack.seq(99), alone),
        (5, |ack| ack.vlan(7), &[&[4], &[0, 1, 2, 3, 5, 6]]),
        (5, |ack| ack.ack(200), alone),
    ];
    for base in [seg(), seg().v6()] {
        for (number, (value, change, expected)) in odd.iter().enumerate() {
            assert_eq!(record(&run_with(&base, *value, change)), *expected, "change {number}");
        }
    }
}
