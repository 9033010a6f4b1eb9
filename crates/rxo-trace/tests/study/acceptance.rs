//! Expected results for real captures.

use std::collections::HashMap;

use rxo_capture::Record;
use rxo_coalesce::UdpRule;
use rxo_frame::{Frame, LinkKind};
use rxo_testkit::naive::{Reading, Segment, read};
use rxo_trace::study::{ChecksumMode, Settings};

use crate::captures::named;
use crate::traffic::{point, settings, study};

fn segments(records: &[Record]) -> impl Iterator<Item = Box<Segment>> + '_ {
    records.iter().filter_map(|record| {
        let frame = Frame::new(record.bytes.as_ref().to_vec(), record.at);
        match read(&frame, LinkKind::Ethernet) {
            Reading::Segment(segment) => Some(segment),
            _ => None,
        }
    })
}

/// Returns the number of data segments that continue the byte stream of the previous data segment of their
/// flow.
fn following(records: &[Record]) -> u64 {
    let mut next: HashMap<(Vec<u8>, (u16, u16)), u32> = HashMap::new();
    let mut count = 0;
    for segment in segments(records).filter(|segment| !segment.payload.is_empty()) {
        let end = segment.seq.wrapping_add(segment.payload.len() as u32);
        let before = next.insert((segment.ends.addresses.clone(), segment.ports), end);
        count += u64::from(before == Some(segment.seq));
    }
    count
}

#[test]
fn nine_tenths_of_a_bulk_read_are_coalesced() {
    let Some(captured) = named("smb2_bulk_read_1flow_ts") else { return };
    let following = following(&captured.records);
    assert!(following > 2_000, "{following} segments follow another");
    let settings = settings(point("remember", "packets:64"));
    let outcome = study(settings, &captured.interfaces, &captured.records).outcome;
    // Each eliminated packet is a segment that was appended to the one before.
    let share = outcome.eliminated as f64 / following as f64;
    assert!(share >= 0.9, "{} of {following} are coalesced", outcome.eliminated);
}

#[test]
fn fragments_are_never_coalesced_nor_lost() {
    let Some(captured) = named("ip_fragments") else { return };
    let packets = captured.records.len() as u64;
    for policy in ["linux-gro", "remember", "menon-2008"] {
        let mut point = point(policy, "packets:64");
        // Unfragmented datagrams are not part of this test.
        point.policy.udp = UdpRule::Off;
        let outcome = study(settings(point), &captured.interfaces, &captured.records).outcome;
        let fragments = outcome.bypassed.iter().find(|reason| reason.reason == "fragment");
        assert!(
            fragments.is_some_and(|fragments| fragments.count > 1_000),
            "{policy}: {outcome:?}"
        );
        assert_eq!(outcome.packets, packets, "{policy}");
        assert_eq!(outcome.deliveries + outcome.eliminated, packets, "{policy}");
        // The few unfragmented segments among them have PSH, which ends nothing under this one
        // policy.
        assert!(outcome.aggregates == 0 || policy == "menon-2008", "{policy}: {outcome:?}");
    }
}

#[test]
fn tiny_requests_and_responses_hardly_merge() {
    let Some(captured) = named("echo_500flows_tiny") else { return };
    let settings = settings(point("remember", "packets:64"));
    let outcome = study(settings, &captured.interfaces, &captured.records).outcome;
    // Every merged segment continues a byte stream. Another test compares with the oracle.
    let appended = outcome.aggregated_segments - outcome.aggregates;
    assert!(appended <= following(&captured.records));
    assert!(outcome.eliminated_per_10_000 < 500.0, "{}", outcome.eliminated_per_10_000);
}

#[test]
fn checksums_left_to_the_card_are_recognised_and_coalesced_on_request() {
    for (name, host) in [("web_12flows_nots", None), ("web_66flows_ts_sack", Some("10.0.0.6"))] {
        let Some(captured) = named(name) else { return };
        let with = |checksums| {
            let settings = Settings { checksums, ..settings(point("remember", "packets:64")) };
            study(settings, &captured.interfaces, &captured.records)
        };
        let verified = with(ChecksumMode::Verify);
        let checksums = &verified.traffic.checksums;
        assert!(checksums.unfinished > 100 && checksums.wrong == 0, "{name}: {checksums:?}");
        assert_eq!(checksums.sender_offload.len(), 1, "{name}: {checksums:?}");
        if let Some(host) = host {
            assert_eq!(checksums.sender_offload[0].address, host);
        }
        let note = verified.notes.iter().find(|note| note.contains("left for the sender's card"));
        assert!(note.is_some_and(|note| note.contains("--checksum partial")), "{name}");
        let partial = with(ChecksumMode::Partial);
        assert!(partial.outcome.eliminated >= verified.outcome.eliminated, "{name}");
        let bad = |report: &rxo_trace::report::Report| {
            let found = report.outcome.bypassed.iter();
            found
                .filter(|reason| reason.reason == "bad_tcp_checksum")
                .map(|reason| reason.count)
                .sum()
        };
        // In the smaller capture only packets such as pure ACKs are unfinished, which are no candidates.
        assert_eq!((bad(&partial), bad(&verified) > 0_u64), (0_u64, host.is_some()), "{name}");
    }
}
