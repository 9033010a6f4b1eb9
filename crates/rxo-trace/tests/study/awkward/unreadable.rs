//! Captures whose packets the host reads, and the study does not.

use rxo_capture::{LinkType, Record};
use rxo_testkit::seg;
use rxo_trace::study::{ChecksumMode, Settings};

use super::directions::interface;
use super::transfer::{both_ways, clean, unfinished, with_hops};
use super::{assert_cannot_say, assert_same_answer, chosen, cut, studied};
use crate::traffic::{ethernet, record, study};

#[test]
fn a_link_type_that_is_not_read_cannot_say() {
    for link in [239, 258, 9_999] {
        let report = studied(&interface(LinkType(link)), &clean());
        assert_cannot_say(&format!("link type {link}"), &report, "on the host's own interface");
    }
}

#[test]
fn packets_that_were_cut_within_their_headers_cannot_say() {
    for snap_bytes in [40, 46] {
        let records: Vec<_> = clean().into_iter().map(|one| cut(one, snap_bytes)).collect();
        let report = studied(&ethernet(), &records);
        assert_cannot_say(&format!("snap length {snap_bytes}"), &report, "tcpdump -s 128");
    }
    // 64 bytes hold the headers of TCP over IPv4, but not those over IPv6.
    let long = |n: u32| seg().v6().ts(n, 1).seq(1 + n * 1_000).len(1_000).bytes();
    let records = (0..1_000).map(|n| cut(record(long(n), u64::from(n) * 1_000), 64));
    let report = studied(&ethernet(), &records.collect::<Vec<_>>());
    assert_cannot_say("IPv6", &report, "tcpdump -s 128");
}

/// Returns the clean capture with other addresses, which its checksums do not count.
fn anonymous(finish: impl Fn(Vec<u8>) -> Vec<u8>) -> Vec<Record> {
    let change = |one: Record| {
        let mut bytes = one.bytes.as_ref().to_vec();
        bytes[26] ^= 0x5a;
        record(finish(bytes), one.at.as_nanos())
    };
    clean().into_iter().map(change).collect()
}

#[test]
fn wrong_checksums_of_all_packets_cannot_say_and_can_if_none_is_verified() {
    let records = anonymous(|bytes| with_hops(&bytes, 57));
    assert_cannot_say("anonymous", &studied(&ethernet(), &records), "--checksum trust");
    let trust = Settings { checksums: ChecksumMode::Trust, ..chosen() };
    assert_same_answer("anonymous, trusted", &study(trust, &ethernet(), &records));
}

#[test]
fn wrong_checksums_of_ip_headers_cannot_say() {
    for snap_bytes in [96, 65_535] {
        let records: Vec<_> =
            anonymous(|bytes| bytes).into_iter().map(|one| cut(one, snap_bytes)).collect();
        let report = studied(&ethernet(), &records);
        assert_cannot_say(&format!("addresses, {snap_bytes}"), &report, "tcprewrite --fixcsum");
    }
}

#[test]
fn a_card_that_completes_the_checksums_of_ip_headers_changes_nothing() {
    let left_to_the_card = |(one, is_sent): (Record, bool)| {
        let mut bytes = one.bytes.as_ref().to_vec();
        if is_sent {
            bytes = unfinished(&bytes);
            bytes[24..26].fill(0);
        }
        record(bytes, one.at.as_nanos())
    };
    let records: Vec<Record> = both_ways(64).into_iter().map(left_to_the_card).collect();
    assert_same_answer("a sender of ACKs", &studied(&ethernet(), &records));
}
