//! Captures whose times are wrong.

use rxo_capture::Record;

use super::transfer::{HOUR_NS, clean};
use super::{assert_cannot_say, assert_same_answer, at, studied};
use crate::traffic::ethernet;

/// Asserts that the clean capture has the same answer with other times: `time` has a packet's number and
/// right time.
fn assert_no_change(what: &str, time: impl Fn(usize, u64) -> u64) {
    let change = |(place, one): (usize, Record)| {
        let at_ns = one.at.as_nanos();
        at(one, time(place, at_ns))
    };
    let records: Vec<Record> = clean().into_iter().enumerate().map(change).collect();
    assert_same_answer(what, &studied(&ethernet(), &records));
}

#[test]
fn one_wrong_time_does_not_decide() {
    let last = clean().len() - 1;
    for (wrong, is_early) in [(0, true), (last / 2, true), (last / 2, false), (last, false)] {
        assert_no_change(&format!("packet {wrong}, early: {is_early}"), |place, at_ns| {
            match is_early {
                _ if place != wrong => at_ns,
                true => at_ns - HOUR_NS,
                false => at_ns + HOUR_NS,
            }
        });
    }
    assert_no_change(
        "the far future",
        |place, at_ns| if place == 6_000 { u64::MAX / 2 } else { at_ns },
    );
    assert_no_change("1970", |place, at_ns| if place == 6_000 { 0 } else { at_ns });
}

#[test]
fn a_clock_that_is_set_does_not_decide() {
    for half in [false, true] {
        let is_later = move |place: usize| (place >= 10_000) == half;
        let step = move |place, at_ns| if is_later(place) { at_ns + HOUR_NS / 2 } else { at_ns };
        assert_no_change(&format!("set, {half}"), step);
    }
}

/// The clock of the second interface is 3 s behind; the interfaces take turns of a few packets.
#[test]
fn interfaces_whose_clocks_differ_cannot_say() {
    let interfaces = [ethernet(), ethernet()].concat();
    for turn in [1, 7, 64] {
        let on = |(place, one): (usize, Record)| {
            let interface = (place / turn % 2) as u32;
            let at_ns = one.at.as_nanos() - u64::from(interface) * 3_000_000_000;
            Record { interface, ..at(one, at_ns) }
        };
        let records: Vec<Record> = clean().into_iter().enumerate().map(on).collect();
        let report = studied(&interfaces, &records);
        assert_cannot_say(&format!("turns of {turn}"), &report, "the clocks of interfaces differ");
    }
}

#[test]
fn packets_slightly_out_of_order_do_not_decide() {
    assert_no_change("two processors", |place, at_ns| at_ns - (place as u64 % 2) * 900);
    assert_no_change("whole microseconds", |_, at_ns| at_ns / 1_000 * 1_000);
}

#[test]
fn a_clock_whose_ticks_are_longer_than_polls_cannot_say() {
    for tick_ns in [100_000, 1_000_000, 10_000_000] {
        let coarse = |one: Record| {
            let at_ns = one.at.as_nanos();
            at(one, at_ns / tick_ns * tick_ns)
        };
        let records: Vec<Record> = clean().into_iter().map(coarse).collect();
        let report = studied(&ethernet(), &records);
        assert_cannot_say(&format!("{tick_ns} ns"), &report, "its clock is too coarse");
    }
}
