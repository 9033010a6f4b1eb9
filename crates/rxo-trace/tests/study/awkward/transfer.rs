//! The transfer of all captures, and the parts that captures of it are made from.

use rxo_capture::Record;
use rxo_frame::Instant;
use rxo_testkit::{Workload, seg};

use crate::traffic::{generated, record};

pub(super) const HOUR_NS: u64 = 3_600_000_000_000;

/// Returns what the receiving host received: data of 16 flows from four hosts behind routers.
pub(super) fn clean() -> Vec<Record> {
    let mut records = generated(Workload::W3, 20_000);
    for one in &mut records {
        one.bytes = with_hops(one.bytes.as_ref(), 57).into();
        one.at = Instant::from_nanos(one.at.as_nanos() + HOUR_NS);
    }
    records
}

/// Returns what the receiving host received and sent: an ACK after every second segment.
pub(super) fn both_ways(ack_hops: u8) -> Vec<(Record, bool)> {
    let mut all = Vec::new();
    for (number, data) in (0_u16..).zip(clean()) {
        let at_ns = data.at.as_nanos() + 5;
        let flow =
            u32::from(u16::from_be_bytes([data.bytes.as_ref()[34], data.bytes.as_ref()[35]]));
        all.push((data, false));
        if number % 2 == 1 {
            let ack = seg().flow(flow - 1_000).reply().pure_ack().ack(u32::from(number) * 1448);
            all.push((record(ack.id(number).ttl(ack_hops).bytes(), at_ns), true));
        }
    }
    all
}

/// Returns the records without the mark of who sent them.
pub(super) fn unmarked(all: Vec<(Record, bool)>) -> Vec<Record> {
    all.into_iter().map(|(one, _)| one).collect()
}

/// Returns the IPv4 frame with another hop limit (TTL).
pub(super) fn with_hops(bytes: &[u8], hops: u8) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[22] = hops;
    bytes[24..26].fill(0);
    let words = bytes[14..34].chunks(2).map(|two| u32::from(u16::from_be_bytes([two[0], two[1]])));
    let sum = !folded(words.sum());
    bytes[24..26].copy_from_slice(&sum.to_be_bytes());
    bytes
}

/// Returns the frame with what a sender's system leaves in the checksum field for its card: the
/// pseudo-header's sum.
pub(super) fn unfinished(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let is_tcp_on_ipv4 = bytes[12..14] == [8, 0] && bytes[14] == 0x45 && bytes[23] == 6;
    assert!(is_tcp_on_ipv4, "the workload has no other packets");
    let length = u32::from(u16::from_be_bytes([bytes[16], bytes[17]])) - 20;
    let words = bytes[26..34].chunks(2).map(|two| u32::from(u16::from_be_bytes([two[0], two[1]])));
    let sum = folded(words.sum::<u32>() + 6 + length);
    bytes[50..52].copy_from_slice(&sum.to_be_bytes());
    bytes
}

fn folded(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    sum as u16
}
