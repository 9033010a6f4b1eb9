//! Decisions of the engine without a verdict of the rules: for frames that are not valid TCP segments, and
//! for pure ACKs that are compared only with the last ACK of their flow.

use std::vec;

use rxo_testkit::{arp, udp};

use super::*;

/// A policy, the packets of a poll, and every reason counted for them.
type Counted = (Policy, Vec<Packet>, Vec<&'static str>);

pub(super) fn all() -> Vec<Counted> {
    unread().into_iter().chain(shown()).chain(flushed()).chain(datagrams()).collect()
}

fn unread() -> Vec<Counted> {
    let rows = [
        (seg().cut(20), "truncated"),
        (seg().length_lie(4000), "truncated"),
        (seg().header_lie(-1), "malformed"),
        (seg().offset_lie(-1), "malformed"),
        (seg().fragment(0, true), "fragment"),
        (seg().protocol(50), "unknown_header"),
        (udp(), "not_tcp"),
        (seg().bad_checksum(), "bad_tcp_checksum"),
        (seg().pure_ack().bad_checksum(), "bad_tcp_checksum"),
        (seg().already_aggregated(50), "already_aggregated"),
        (seg().partial_elsewhere(24, 16), "checksum_elsewhere"),
        (seg().partial_elsewhere(0, 6), "checksum_elsewhere"),
    ];
    rows.into_iter()
        .map(|(packet, reason)| (Policy::remember(), vec![packet], vec![reason]))
        .collect()
}

/// Rows for pure ACKs under a policy that delivers only the last of several.
fn shown() -> Vec<Counted> {
    let policy =
        Policy { pure_acks: crate::PureAckRule::Single, max_acks: 2, ..Policy::linux_gro() };
    let ack = |number| seg().pure_ack().ack(number);
    let rows = [
        (vec![ack(1)], vec!["first_ack"]),
        (vec![ack(1), ack(1)], vec!["first_ack", "duplicate_ack"]),
        (vec![ack(1), ack(0)], vec!["first_ack", "old_ack"]),
        (vec![ack(1), ack(2), ack(3)], vec!["first_ack", "ack_limit"]),
        (vec![ack(1), ack(2), ack(2).window(9)], vec!["first_ack", "ack_limit"]),
        (vec![ack(1).tos(3)], vec!["ce_mark"]),
    ];
    rows.into_iter().map(|(packets, reasons)| (policy, packets, reasons)).collect()
}

/// Rows in which the held segments are flushed before a frame of their flow that cannot join them.
fn flushed() -> Vec<Counted> {
    let gro = Policy::linux_gro();
    let rows = [
        (at(100).syn(), "syn"),
        (at(100).pure_ack(), "pure_ack"),
        (at(100).bad_checksum(), "bad_tcp_checksum"),
        (at(100).bad_ip_checksum(), "bad_ip_checksum"),
        (at(100).fragment(0, true), "fragment"),
        (at(100).length_lie(4000), "truncated"),
    ];
    rows.into_iter().map(|(next, reason)| (gro, vec![seg(), next], vec!["order", reason])).collect()
}

/// Rows for datagrams if UDP is coalesced: alone, and after one that they may not join.
fn datagrams() -> Vec<Counted> {
    let policy = Policy { udp: crate::UdpRule::Equal, ..Policy::linux_gro() };
    let alone = [
        (udp(), vec![]),
        (udp().bad_ip_checksum(), vec!["bad_ip_checksum"]),
        (udp().reserved_bit(), vec!["reserved_bit"]),
        (udp().ip_options(&[1]), vec!["ip_options"]),
        (udp().v6().extension(43, &[0; 6]), vec!["extension_header"]),
        (udp().ports(1000, 4789), vec!["udp_tunnel"]),
        (udp().ports(1000, 6081), vec!["udp_tunnel"]),
        (udp().len(0), vec!["udp_length"]),
        (udp().udp_length_lie(-1), vec!["udp_length"]),
        (udp().udp_length_lie(1), vec!["malformed"]),
        (udp().no_checksum(), vec!["udp_checksum_zero"]),
        (udp().v6().no_checksum(), vec!["udp_checksum_zero"]),
        (udp().len(65_000).no_checksum().verified(), vec!["udp_checksum_zero"]),
        (udp().bad_checksum(), vec!["bad_udp_checksum"]),
        (udp().fragment(0, true), vec!["fragment"]),
        (udp().already_aggregated(50), vec!["already_aggregated"]),
        (udp().partial_elsewhere(50, 16), vec!["checksum_elsewhere"]),
    ];
    let behind = [
        (udp().len(50), vec!["short_segment"]),
        (udp().len(101), vec!["long_segment"]),
        (udp().tos(3), vec!["traffic_class_changed"]),
        (udp().ttl(9), vec!["hop_limit_changed"]),
        (udp().df(false).id(1), vec!["df_changed"]),
        (udp().id(2), vec!["ip_id"]),
        (udp().partial(), vec!["checksum_status_changed"]),
        (udp().no_checksum(), vec!["order", "udp_checksum_zero"]),
        (udp().bad_checksum(), vec!["order", "bad_udp_checksum"]),
        (udp().fragment(0, true), vec!["order", "fragment"]),
        (seg(), vec!["order"]),
        (udp().ports(7, 8), vec![]),
    ];
    let alone = alone.into_iter().map(|(packet, reasons)| (policy, vec![packet], reasons));
    let behind = behind.into_iter().map(|(next, reasons)| (policy, vec![udp(), next], reasons));
    alone.chain(behind).collect()
}

#[test]
fn what_gets_no_verdict_gets_the_reason_of_its_row() {
    for (policy, packets, reasons) in all() {
        assert_counted(policy, &packets, reasons);
    }
    let arp = [arp()];
    assert_eq!(counted(Policy::linux_gro(), &arp, LinkKind::Ethernet), ["not_ip"]);
}
