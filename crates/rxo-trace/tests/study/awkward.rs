//! Awkward captures of the same transfers: each gives the answer of the clean capture, or says that it cannot.

use rxo_capture::Record;
use rxo_frame::Instant;
use rxo_testkit::{Workload, seg};
use rxo_trace::report::Report;
use rxo_trace::study::{ChecksumMode, Settings};

use crate::traffic::{ethernet, generated, point, record, settings, study};

const HOUR_NS: u64 = 3_600_000_000_000;

fn clean() -> Vec<Record> {
    let mut records = generated(Workload::W3, 20_000);
    records.iter_mut().for_each(|one| one.at = Instant::from_nanos(one.at.as_nanos() + HOUR_NS));
    records
}

fn studied(records: &[Record]) -> Report {
    let settings = settings(point("linux-gro", "time:50us"));
    study(Settings { checksums: ChecksumMode::Auto, ..settings }, &ethernet(), records)
}

/// Asserts that `records` give the answer of the clean capture, within 3 points.
fn assert_same_answer(what: &str, records: &[Record]) -> Report {
    let (clean, awkward) = (studied(&clean()), studied(records));
    let [expected, found] = [&clean, &awkward].map(|report| report.decision.fewer_packets);
    assert!(expected > 0.3 && clean.decision.is_worth_it == Some(true), "{:?}", clean.decision);
    assert!((found - expected).abs() < 0.03, "{what}: {found} in place of {expected}");
    assert_eq!(awkward.decision.is_worth_it, Some(true), "{what}: {:?}", awkward.decision);
    let cores = |report: &Report| report.decision.cores_without.unwrap();
    let ratio = cores(&awkward) / cores(&clean);
    assert!((0.85..1.15).contains(&ratio), "{what}: {ratio} of the cores");
    awkward
}

/// Leaves in the checksum field what a sender's system leaves there for its card: the pseudo-header's sum.
fn unfinished(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let is_tcp_on_ipv4 = bytes[12..14] == [8, 0] && bytes[14] == 0x45 && bytes[23] == 6;
    assert!(is_tcp_on_ipv4, "the workload has no other packets");
    let length = u32::from(u16::from_be_bytes([bytes[16], bytes[17]])) - 20;
    let words = bytes[26..34].chunks(2).map(|two| u32::from(u16::from_be_bytes([two[0], two[1]])));
    let mut sum = words.sum::<u32>() + 6 + length;
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    bytes[50..52].copy_from_slice(&(sum as u16).to_be_bytes());
    bytes
}

#[test]
fn checksums_that_were_left_to_the_card_change_nothing_and_are_named() {
    let records: Vec<_> = clean()
        .into_iter()
        .map(|one| record(unfinished(one.bytes.as_ref()), one.at.as_nanos()))
        .collect();
    let sentence = assert_same_answer("unfinished", &records).decision.sentence;
    assert!(sentence.contains("not finished when the capture was taken"), "{sentence}");
}

#[test]
fn a_short_snap_length_changes_nothing_and_is_named() {
    for snap_bytes in [64, 96, 128, 256] {
        let cut = |one: Record| {
            let bytes = one.bytes.as_ref();
            let held = bytes[..bytes.len().min(snap_bytes)].to_vec();
            Record { bytes: held.into(), ..one }
        };
        let records: Vec<_> = clean().into_iter().map(cut).collect();
        let sentence = assert_same_answer(&format!("{snap_bytes}"), &records).decision.sentence;
        assert!(sentence.contains("of packets that were cut"), "{sentence}");
    }
}

#[test]
fn one_wrong_time_does_not_decide() {
    let last = clean().len() - 1;
    for (place, is_early) in [(0, true), (last / 2, true), (last / 2, false), (last, false)] {
        let mut records = clean();
        let at_ns = records[place].at.as_nanos();
        let at_ns = if is_early { at_ns - HOUR_NS } else { at_ns + HOUR_NS };
        records[place].at = Instant::from_nanos(at_ns);
        assert_same_answer(&format!("packet {place}, early: {is_early}"), &records);
    }
}

#[test]
fn a_damaged_time_of_the_far_future_does_not_decide() {
    let mut records = clean();
    let place = records.len() / 3;
    records[place].at = Instant::from_nanos(u64::MAX / 2);
    assert_same_answer("a damaged time", &records);
}

#[test]
fn a_capture_of_merged_packets_says_that_it_cannot_say() {
    let merged = (0..64).map(|n| seg().seq(1 + n * 40_000).len(40_000).bytes());
    let records: Vec<_> =
        merged.zip((1..).map(|n| n * 100_000)).map(|(b, at)| record(b, at)).collect();
    let decision = studied(&records).decision;
    assert!(decision.sentence.starts_with("This capture cannot say"), "{}", decision.sentence);
    assert!(decision.sentence.contains("ethtool -K") && decision.is_worth_it.is_none());
}
