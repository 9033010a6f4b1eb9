//! Captures with both directions: what the host sent is no part of what it receives.

use rxo_capture::{Capture, CaptureWriter, Direction, Interface, LinkType, Packet, Record};
use rxo_trace::study::Study;

use super::transfer::{HOUR_NS, both_ways, clean, unfinished, unmarked, with_hops};
use super::{
    advised, assert_cannot_say, assert_same_answer, assert_same_polls, at, chosen, cut, studied,
};
use crate::traffic::{ethernet, record};

/// Returns the record as a Linux cooked capture has it.
pub(super) fn cooked(one: &Record, link: LinkType, packet_type: u8) -> Record {
    let bytes = one.bytes.as_ref();
    let (kind, packet) = (&bytes[12..14], &bytes[14..]);
    let header = match link {
        LinkType::LINUX_SLL => [&[0, packet_type, 0, 1, 0, 6][..], &[2; 8], kind].concat(),
        _ => [kind, &[0, 0, 0, 0, 0, 3, 0, 1, packet_type, 6], &[2; 8]].concat(),
    };
    record([&header, packet].concat(), one.at.as_nanos())
}

pub(super) fn interface(link: LinkType) -> Vec<Interface> {
    vec![Interface { link, snap_bytes: None, name: None }]
}

#[test]
fn what_a_cooked_capture_marks_as_sent_does_not_count() {
    for link in [LinkType::LINUX_SLL, LinkType::LINUX_SLL2] {
        for snap_bytes in [128, 65_535] {
            let mark = |(one, is_sent): (Record, bool)| {
                cut(cooked(&one, link, if is_sent { 4 } else { 0 }), snap_bytes)
            };
            let records: Vec<Record> = both_ways(64).into_iter().map(mark).collect();
            let report = studied(&interface(link), &records);
            assert_same_answer(&format!("{link:?}, {snap_bytes}"), &report);
            assert_eq!((report.traffic.packets, report.traffic.sent_packets), (20_000, 10_000));
            let sentence = &report.decision.sentence;
            assert!(
                sentence.contains("10,000 packets that the host sent do not count"),
                "{sentence}"
            );
        }
    }
}

#[test]
fn what_pcapng_marks_as_sent_does_not_count() {
    let mut writer = CaptureWriter::new(Vec::new(), "test").unwrap();
    let interface = writer.add_interface(&ethernet()[0]).unwrap();
    for (one, is_sent) in both_ways(64) {
        let packet = Packet {
            interface,
            at: one.at,
            original_bytes: one.original_bytes,
            pieces: &[one.bytes.as_ref()],
            direction: Some(if is_sent { Direction::Out } else { Direction::In }),
            comments: &[],
            custom: &[],
        };
        writer.write(&packet).unwrap();
    }
    let file = std::io::Cursor::new(writer.finish().unwrap());
    let mut capture = Capture::from_reader("marked", Box::new(file)).unwrap();
    let mut study = Study::new(chosen()).unwrap();
    study.read(&mut capture, |_| true);
    let report = study.finish(None);
    assert_eq!(report.traffic.sent_packets, 10_000);
    assert_same_answer("epb_flags", &report);
}

#[test]
fn the_host_is_found_if_it_takes_part_in_all_packets() {
    for (ack_hops, snap_bytes) in [(64, 65_535), (63, 65_535), (64, 96)] {
        let records = unmarked(both_ways(ack_hops));
        let records: Vec<_> = records.into_iter().map(|one| cut(one, snap_bytes)).collect();
        let report = studied(&ethernet(), &records);
        assert_same_answer(&format!("both ways, {ack_hops}, {snap_bytes}"), &report);
        let decision = &report.decision;
        assert!(decision.receivers[0].is_host && decision.packets == 20_000, "{decision:?}");
        assert!(decision.sentence.contains("on which the capture was taken"), "{decision:?}");
    }
}

/// The figures of the other poll rules leave out what the host sends, as the headline does.
#[test]
fn every_poll_rule_is_about_what_the_host_receives() {
    assert_same_polls(&advised(&unmarked(both_ways(64))));
}

#[test]
fn the_host_is_found_by_the_checksums_that_its_card_was_to_complete() {
    let finish = |(one, is_sent): (Record, bool)| {
        if is_sent { record(unfinished(one.bytes.as_ref()), one.at.as_nanos()) } else { one }
    };
    let records: Vec<Record> = both_ways(63).into_iter().map(finish).collect();
    assert_same_answer("unfinished ACKs", &studied(&ethernet(), &records));
}

/// Keeps the conversations of one pair of hosts, and sends them eight times as fast, so that coalescing is
/// worth it.
fn pair(mut records: Vec<Record>) -> Vec<Record> {
    let host = |one: &Record| (one.bytes.as_ref()[29], one.bytes.as_ref()[33]);
    let first = host(&records[0]);
    records.retain(|one| host(one) == first || host(one) == (first.1, first.0));
    let faster = |one: Record| {
        let at_ns = one.at.as_nanos();
        at(one, HOUR_NS + (at_ns - HOUR_NS) / 8)
    };
    records.into_iter().map(faster).collect()
}

#[test]
fn between_two_hosts_of_one_network_each_has_its_decision() {
    let near =
        |(one, _): (Record, bool)| record(with_hops(one.bytes.as_ref(), 64), one.at.as_nanos());
    let records = pair(both_ways(64).into_iter().map(near).collect());
    let decision = studied(&ethernet(), &records).decision;
    assert_eq!((decision.is_worth_it, decision.receivers.len()), (None, 2), "{decision:?}");
    assert!(decision.sentence.starts_with("It depends on the receiving host"), "{decision:?}");
    assert!(decision.sentence.contains("Not worth it: no two packets"), "{decision:?}");
    assert!(decision.sentence.contains("--flow \"dst "), "{decision:?}");
    // A filter with only an address accepts no packet of a VLAN.
    let tagged = |one: &Record| {
        let (addresses, rest) = one.bytes.as_ref().split_at(12);
        record([addresses, &[0x81, 0, 0, 7], rest].concat(), one.at.as_nanos())
    };
    let tagged: Vec<Record> = records.iter().map(tagged).collect();
    let decision = studied(&ethernet(), &tagged).decision;
    assert!(decision.sentence.starts_with("It depends on the receiving host"), "{decision:?}");
    assert!(decision.sentence.contains(" Capture on the host."), "{decision:?}");
    let far = pair(unmarked(both_ways(64)));
    let decision = studied(&ethernet(), &far).decision;
    assert!(decision.receivers[0].is_host && decision.is_worth_it == Some(true), "{decision:?}");
}

#[test]
fn a_sending_host_has_nothing_to_gain_by_its_own_data() {
    // The same packets, captured on a sender: its ACKs came through routers, its data did not.
    let turned = |(one, is_ack): (Record, bool)| {
        let hops = if is_ack { 57 } else { 64 };
        record(with_hops(one.bytes.as_ref(), hops), one.at.as_nanos())
    };
    let records = pair(both_ways(64).into_iter().map(turned).collect());
    let decision = studied(&ethernet(), &records).decision;
    assert!(decision.receivers[0].is_host, "{decision:?}");
    assert_eq!(decision.is_worth_it, Some(false), "{decision:?}");
    assert!(decision.sentence.starts_with("Not worth it: no two packets"), "{decision:?}");
}

#[test]
fn a_capture_of_sent_packets_only_cannot_say() {
    let sll = LinkType::LINUX_SLL;
    let records: Vec<Record> = clean().iter().map(|one| cooked(one, sll, 4)).collect();
    assert_cannot_say("sent only", &studied(&interface(sll), &records), "-Q in");
}

/// If the receiving host is not found, the figures include both directions. The decision must say so.
#[test]
fn figures_of_both_directions_are_named_where_the_host_is_not_found() {
    let slow = |(one, _): (Record, bool)| {
        let at_ns = one.at.as_nanos();
        let at_ns = HOUR_NS + (at_ns - HOUR_NS) / 1_000_000 * 100_000_000 + at_ns % 1_000_000;
        record(with_hops(one.bytes.as_ref(), 64), at_ns)
    };
    let mut records: Vec<Record> = both_ways(64).into_iter().map(slow).collect();
    let host = |one: &Record| (one.bytes.as_ref()[29], one.bytes.as_ref()[33]);
    let first = host(&records[0]);
    records.retain(|one| host(one) == first || host(one) == (first.1, first.0));
    let decision = studied(&ethernet(), &records).decision;
    assert_eq!((decision.is_worth_it, decision.receivers.len()), (Some(false), 2), "{decision:?}");
    assert!(decision.sentence.contains("does not show one receiving host"), "{decision:?}");
}
