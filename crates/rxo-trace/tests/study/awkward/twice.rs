//! Captures that have packets twice: found, named, and left out on request.

use rxo_capture::{LinkType, Record};
use rxo_trace::study::Settings;

use super::directions::{cooked, interface};
use super::transfer::{clean, with_hops};
use super::{assert_cannot_say, assert_same_answer, at, chosen, cut, studied};
use crate::traffic::{ethernet, record, study};

/// Returns the clean capture with a copy of each packet, `delay_ns` later.
fn twice(delay_ns: u64, copy: impl Fn(&Record) -> Record) -> Vec<Record> {
    let mut all = clean();
    let copies = all.iter().map(|one| at(copy(one), one.at.as_nanos() + delay_ns));
    let copies: Vec<Record> = copies.collect();
    all.extend(copies);
    all.sort_by_key(|one| one.at);
    all
}

#[test]
fn a_mirror_of_both_ports_cannot_say_and_can_with_dedup() {
    let tagged = |one: &Record| {
        let bytes = one.bytes.as_ref();
        record([&bytes[..12], &[0x81, 0, 0, 5], &bytes[12..]].concat(), 0)
    };
    let routed = |one: &Record| record(with_hops(one.bytes.as_ref(), 56), 0);
    let rows = [
        ("at once", twice(200, Clone::clone)),
        ("later", twice(40_000, Clone::clone)),
        ("behind a router", twice(9_000, routed)),
        ("with a tag", twice(0, tagged)),
        ("cut", twice(200, Clone::clone).into_iter().map(|one| cut(one, 96)).collect()),
    ];
    for (what, records) in rows {
        assert_cannot_say(what, &studied(&ethernet(), &records), "--dedup");
        let report = study(Settings { dedup: true, ..chosen() }, &ethernet(), &records);
        assert_same_answer(what, &report);
        assert!(report.traffic.duplicate_packets > 19_000, "{what}: {:?}", report.traffic);
    }
}

#[test]
fn any_on_a_bridge_counts_what_came_in() {
    let sll = LinkType::LINUX_SLL2;
    let both = |one: &Record| [0, 4].map(|kind| cooked(one, sll, kind));
    let records: Vec<Record> = clean().iter().flat_map(both).collect();
    assert_same_answer("in and out", &studied(&interface(sll), &records));
    let both = |one: &Record| [0, 3].map(|kind| cooked(one, sll, kind));
    let records: Vec<Record> = clean().iter().flat_map(both).collect();
    assert_cannot_say("in twice", &studied(&interface(sll), &records), "--dedup");
}
