//! Compares the aggregates of a study with those of the testkit's naive oracle.

use rxo_capture::{LinkType, Record};
use rxo_frame::Frame;
use rxo_testkit::Workload;
use rxo_testkit::naive::{Reading, read};
use rxo_testkit::oracle::expected;
use rxo_testkit::script::{Script, Setup, Step};

use crate::captures;
use crate::traffic::{ethernet, generated, point, settings, study};

/// Returns the groups of two or more data segments that the oracle delivers in polls of `poll` packets.
fn aggregates(records: &[Record], policy: &'static str, poll: usize) -> Vec<Vec<usize>> {
    let frames: Vec<Frame<Vec<u8>>> = records
        .iter()
        .map(|record| Frame::new(record.bytes.as_ref().to_vec(), record.at))
        .collect();
    let mut setup = Setup::new(policy);
    // The host's sink segments UDP, which only this profile leaves to the sink.
    setup.udp = (policy == "linux-gro").then_some(true);
    let mut script = Script::one_poll(setup, frames);
    script.steps.clear();
    for (index, _) in records.iter().enumerate() {
        script.steps.push(Step::Frame(index));
        if (index + 1).is_multiple_of(poll) {
            script.steps.push(Step::Poll);
        }
    }
    script.steps.push(Step::Poll);
    let has_data = |index: &usize| match read(script.frame(*index), script.setup.link) {
        Reading::Segment(segment) | Reading::Datagram(segment) => !segment.payload.is_empty(),
        _ => false,
    };
    let groups = expected(&script).into_iter().flatten().map(|due| due.frames);
    groups.filter(|group| group.len() > 1 && group.iter().all(has_data)).collect()
}

fn agrees(records: &[Record], policy: &'static str, what: &str) {
    let wanted = aggregates(records, policy, 64);
    let report = study(settings(point(policy, "packets:64")), &ethernet(), records);
    let outcome = report.outcome;
    assert_eq!(outcome.aggregates, wanted.len() as u64, "{what}, {policy}");
    let segments: usize = wanted.iter().map(Vec::len).sum();
    assert_eq!(outcome.aggregated_segments, segments as u64, "{what}, {policy}");
    let link = rxo_frame::LinkKind::Ethernet;
    for index in wanted.iter().flatten() {
        let frame = Frame::new(records[*index].bytes.as_ref().to_vec(), records[*index].at);
        let (Reading::Segment(segment) | Reading::Datagram(segment)) = read(&frame, link) else {
            panic!("{what}: no segment")
        };
        assert!(segment.checksum_ok, "{what}: packet {index} has a bad checksum and was merged");
    }
}

#[test]
fn generated_traffic_is_coalesced_as_the_oracle_says() {
    for kind in [Workload::Mixed, Workload::W3, Workload::W9, Workload::BadCase] {
        let records = generated(kind, 1_500);
        for policy in ["linux-gro", "remember", "menon-2008", "inet-lro", "none"] {
            agrees(&records, policy, kind.name());
        }
    }
}

#[test]
fn real_captures_are_coalesced_as_the_oracle_says_and_nothing_bad_is() {
    for captured in captures::all() {
        if captured.interfaces[0].link != LinkType::ETHERNET {
            eprintln!("{}: not Ethernet, left to the comparison by hand", captured.name);
            continue;
        }
        // The oracle is slow on purpose. This number is enough to include every kind of packet.
        let records = &captured.records[..captured.records.len().min(5_000)];
        for policy in ["linux-gro", "remember", "menon-2008"] {
            agrees(records, policy, &captured.name);
        }
    }
}
