//! Awkward captures of the same transfer: each gives the answer of the clean capture, or says that it cannot.
//!
//! The clean capture has what the receiving host received. Each other capture is made from it, as another
//! place, another program or another accident would have recorded the same transfer.

mod clocks;
mod directions;
mod encapsulations;
mod files;
mod losses;
mod transfer;
mod twice;
mod unreadable;

use std::sync::OnceLock;

use rxo_capture::{Interface, Record};
use rxo_frame::Instant;
use rxo_testkit::seg;
use rxo_trace::report::Report;
use rxo_trace::study::{ChecksumMode, Settings};

use self::transfer::{clean, unfinished};
use crate::traffic::{ethernet, point, record, settings, study};

fn chosen() -> Settings {
    let settings = settings(point("linux-gro", "time:50us"));
    Settings { checksums: ChecksumMode::Auto, ..settings }
}

fn studied(interfaces: &[Interface], records: &[Record]) -> Report {
    study(chosen(), interfaces, records)
}

/// Returns the report of the clean capture, with advice.
fn expected() -> &'static Report {
    static EXPECTED: OnceLock<Report> = OnceLock::new();
    EXPECTED.get_or_init(|| {
        let clean = advised(&clean());
        let decision = &clean.decision;
        assert!(decision.fewer_packets > 0.3 && decision.is_worth_it == Some(true), "{decision:?}");
        clean
    })
}

/// Returns the report with the advice on other poll rules.
fn advised(records: &[Record]) -> Report {
    study(Settings { advise: true, ..chosen() }, &ethernet(), records)
}

/// Asserts that the report has the answer of the clean capture, within 3 points.
fn assert_same_answer(what: &str, awkward: &Report) {
    let (found, wanted) = (&awkward.decision, &expected().decision);
    assert_near(what, found.fewer_packets, wanted.fewer_packets);
    assert_eq!(found.is_worth_it, Some(true), "{what}: {found:?}");
    assert_near_cores(what, found.cores_without, wanted.cores_without);
}

/// Asserts that every wait has the answer that it has for the clean capture, and that the chosen one has that of the
/// decision: all are about the same packets. A host that does not wait is busy with what it sends, too, and the clean capture
/// does not show that: it may merge more.
fn assert_same_polls(awkward: &Report) {
    let decision = &awkward.decision;
    let [found, wanted] = [awkward, expected()].map(|report| report.advice.as_ref().unwrap());
    assert_eq!(found.polls.len(), wanted.polls.len());
    for (found, wanted) in found.polls.iter().zip(&wanted.polls) {
        if found.is_today {
            assert!(found.fewer_packets >= wanted.fewer_packets, "{found:?}");
            continue;
        }
        assert_near(&found.poll, found.fewer_packets, wanted.fewer_packets);
        assert_near_cores(&found.poll, found.cores_with, wanted.cores_with);
    }
    let chosen = found.polls.iter().find(|poll| poll.is_chosen).unwrap();
    assert_eq!(chosen.fewer_packets, decision.fewer_packets);
    assert_eq!(chosen.cores_with, decision.cores_with);
    assert_eq!(found.linux.as_ref().unwrap().fewer_packets, decision.fewer_packets);
}

fn assert_near(what: &str, found: f64, wanted: f64) {
    assert!((found - wanted).abs() < 0.03, "{what}: {found} in place of {wanted}");
}

fn assert_near_cores(what: &str, found: Option<f64>, wanted: Option<f64>) {
    let ratio = found.unwrap() / wanted.unwrap();
    assert!((0.85..1.15).contains(&ratio), "{what}: {ratio} of the cores");
}

/// Asserts that the report has no answer, and says `remedy`.
fn assert_cannot_say(what: &str, report: &Report, remedy: &str) {
    let decision = &report.decision;
    assert_eq!(decision.is_worth_it, None, "{what}: {decision:?}");
    assert!(decision.sentence.starts_with("This capture cannot say"), "{what}: {decision:?}");
    assert!(decision.sentence.contains(remedy), "{what}: {}", decision.sentence);
}

/// Returns the record as a capture with this snap length has it.
fn cut(one: Record, snap_bytes: usize) -> Record {
    let bytes = one.bytes.as_ref();
    let held = bytes[..bytes.len().min(snap_bytes)].to_vec();
    Record { bytes: held.into(), ..one }
}

#[test]
fn checksums_that_were_left_to_the_card_change_nothing_and_are_named() {
    for snap_bytes in [64, 96, 65_535] {
        let records: Vec<_> = clean()
            .into_iter()
            .map(|one| record(unfinished(one.bytes.as_ref()), one.at.as_nanos()))
            .map(|one| cut(one, snap_bytes))
            .collect();
        let report = studied(&ethernet(), &records);
        assert_same_answer(&format!("unfinished, {snap_bytes}"), &report);
        let sentence = report.decision.sentence;
        assert!(sentence.contains("when the capture was taken count as right"), "{sentence}");
    }
}

#[test]
fn a_short_snap_length_changes_nothing_and_is_named() {
    for snap_bytes in [64, 80, 96, 128, 160, 200, 256] {
        let records: Vec<_> = clean().into_iter().map(|one| cut(one, snap_bytes)).collect();
        let report = studied(&ethernet(), &records);
        assert_same_answer(&format!("snap length {snap_bytes}"), &report);
        let sentence = report.decision.sentence;
        assert!(sentence.contains("of packets that were cut"), "{sentence}");
    }
}

#[test]
fn a_capture_of_merged_packets_says_that_it_cannot_say() {
    let merged = (0..64).map(|n| seg().seq(1 + n * 40_000).len(40_000).bytes());
    let records: Vec<_> =
        merged.zip((1..).map(|n| n * 100_000)).map(|(b, at)| record(b, at)).collect();
    assert_cannot_say("merged", &studied(&ethernet(), &records), "ethtool -K");
}

/// Returns a capture above GRO of segments of `bytes` bytes: 16 packets of each of 8 flows, of one, two or three segments.
fn merged_pairs(bytes: usize, count_of: impl Fn(u32) -> u32) -> Vec<Record> {
    let mut records = Vec::new();
    for flow in 0..8 {
        let (mut seq, mut id) = (1, 100);
        for number in 0..16 {
            let segments = count_of(number);
            let length = bytes * segments as usize;
            let packet = seg().flow(flow).seq(seq).id(id).len(length).bytes();
            records.push(record(packet, 1_000_000 + u64::from(number * 8 + flow) * 20_000));
            (seq, id) = (seq + length as u32, id + segments as u16);
        }
    }
    records.sort_by_key(|one| one.at);
    records
}

#[test]
fn merges_that_a_link_could_carry_are_found_by_the_numbers_of_the_packets() {
    for bytes in [300, 500, 1_448] {
        let records = merged_pairs(bytes, |number| 1 + number % 3);
        assert_cannot_say(&format!("{bytes}"), &studied(&ethernet(), &records), "--live");
    }
    // The same packets as their sender sent them.
    let records = merged_pairs(1_448, |_| 1);
    assert_eq!(studied(&ethernet(), &records).traffic.merged_packets, 0);
}

#[test]
fn settings_are_advised_only_where_there_is_a_decision() {
    let report = advised(&merged_pairs(1_448, |number| 1 + number % 3));
    assert_cannot_say("merged", &report, "--live");
    assert!(report.advice.unwrap().linux.is_none());
    assert!(expected().advice.as_ref().unwrap().linux.is_some());
}

/// Returns the record with another time.
fn at(one: Record, at_ns: u64) -> Record {
    Record { at: Instant::from_nanos(at_ns), ..one }
}
