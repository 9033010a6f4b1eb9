//! No contents of a capture make a study stop, panic or miscount.

use rxo_capture::{Interface, LinkType, Record};
use rxo_coalesce::{Policy, PureAckRule};
use rxo_frame::Instant;
use rxo_testkit::{Random, Workload};
use rxo_trace::report::Report;
use rxo_trace::study::{ChecksumMode, Point, Settings};

use crate::traffic::{ethernet, generated, point, settings, study};

fn links() -> Vec<Interface> {
    let types = [0, 1, 101, 108, 113, 147, 228, 229, 276, 9_999];
    let interface = |link| Interface { link: LinkType(link), snap_bytes: None, name: None };
    types.map(interface).into()
}

/// Returns real packets and noise, with arbitrary times and interfaces.
fn noise(packets: usize, seed: u64) -> Vec<Record> {
    let mut random = Random::new(seed);
    let real = generated(Workload::Mixed, packets);
    real.into_iter()
        .map(|record| {
            let mut bytes = record.bytes.as_ref().to_vec();
            for _ in 0..random.below(4) {
                let at = random.below(bytes.len().max(1) as u64) as usize;
                bytes[at] = random.below(256) as u8;
            }
            bytes.truncate(random.below(bytes.len() as u64 * 3) as usize);
            let at = match random.below(20) {
                0 => random.below(u64::MAX),
                1 => u64::MAX,
                _ => record.at.as_nanos().saturating_sub(random.below(5_000)),
            };
            Record {
                bytes: bytes.into(),
                original_bytes: random.below(3_000) as u32 * random.below(3) as u32,
                interface: if random.below(50) == 0 { u32::MAX } else { random.below(12) as u32 },
                at: Instant::from_nanos(at),
                ..Record::default()
            }
        })
        .collect()
}

fn every_packet_is_counted_once(report: &Report, packets: u64, what: &str) {
    let outcome = &report.outcome;
    assert_eq!(report.traffic.packets, packets, "{what}");
    assert_eq!(outcome.packets, packets, "{what}");
    let bypassed: u64 = outcome.bypassed.iter().map(|reason| reason.count).sum();
    let flushed: u64 = outcome.flushed.iter().map(|reason| reason.count).sum();
    assert_eq!(bypassed + flushed, outcome.deliveries, "{what}");
    assert_eq!(outcome.packets - outcome.deliveries, outcome.eliminated, "{what}");
    assert!(appended(report) <= outcome.eliminated, "{what}");
}

/// Returns the number of data segments that were appended to another; the other eliminated packets are pure
/// ACKs.
const fn appended(report: &Report) -> u64 {
    report.outcome.aggregated_segments - report.outcome.aggregates
}

#[test]
fn noise_is_counted() {
    for seed in 0..4 {
        let records = noise(1_500, seed);
        for policy in Policy::all() {
            for poll in ["packets:64", "time:1ns", "time:1s", "host:1us", "host:1s"] {
                let mode = [ChecksumMode::Verify, ChecksumMode::Partial, ChecksumMode::Trust]
                    [seed as usize % 3];
                let point = Point { policy, poll: poll.parse().unwrap() };
                let settings = Settings { checksums: mode, ..settings(point) };
                let report = study(settings, &links(), &records);
                let what = format!("{} {poll} {mode} seed {seed}", policy.name);
                every_packet_is_counted_once(&report, records.len() as u64, &what);
                let is_data_only = policy.pure_acks == PureAckRule::Bypass;
                assert!(!is_data_only || appended(&report) == report.outcome.eliminated, "{what}");
            }
        }
    }
}

#[test]
fn time_that_goes_back_is_said_and_changes_no_count() {
    let mut records = generated(Workload::W1, 600);
    records.chunks_mut(7).for_each(<[Record]>::reverse);
    let hold = |hold: &str| {
        let mut point = point("inet-lro", "time:20us");
        point.policy.set("hold", hold).unwrap();
        point
    };
    for point in [hold("end-of-poll"), hold("50us"), hold("polls:3")] {
        let report = study(settings(point), &ethernet(), &records);
        every_packet_is_counted_once(&report, 600, "reversed");
        assert!(report.traffic.steps_back > 100);
        assert!(
            report.notes.iter().any(|note| note.contains("time went back")),
            "{:?}",
            report.notes
        );
    }
}

#[test]
fn nothing_at_all_is_a_report_too() {
    let settings = Settings::new(point("linux-gro", "packets:64"));
    let report = study(settings, &[], &[]);
    assert_eq!((report.traffic.packets, report.outcome.deliveries), (0, 0));
    assert!(report.notes.is_empty() && report.flows.is_empty(), "{:?}", report.notes);
}
