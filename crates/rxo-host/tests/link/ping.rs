//! Echo requests and replies (RFC 792; RFC 4443, section 4.2).

use crate::peer::*;

fn ping(bytes: usize) -> Vec<u8> {
    let rest: Vec<u8> = (0..4 + bytes).map(|at| at as u8).collect();
    ethernet(OURS, PEER, 0x0800, &icmp("10.0.0.9", "10.0.0.2", 8, 0, &rest))
}

fn ping6() -> Vec<u8> {
    let rest = [1, 2, 3, 4, 5, 6, 7];
    ethernet(OURS, PEER, 0x86dd, &icmpv6(64, "fd00::9", "fd00::2", (128, 0), &rest))
}

#[test]
fn a_ping_is_answered_with_what_it_brought() {
    for bytes in [0, 1, 56, 1_452] {
        let rest: Vec<u8> = (0..4 + bytes).map(|at| at as u8).collect();
        let expected = ethernet(PEER, OURS, 0x0800, &icmp("10.0.0.2", "10.0.0.9", 0, 0, &rest));
        assert_eq!(answers(&mut link(), &ping(bytes), at(0)), [expected]);
    }
    let expected = icmpv6(64, "fd00::2", "fd00::9", (129, 0), &[1, 2, 3, 4, 5, 6, 7]);
    let expected = ethernet(PEER, OURS, 0x86dd, &expected);
    assert_eq!(answers(&mut link(), &ping6(), at(0)), [expected]);
}

#[test]
fn what_is_not_right_is_not_answered() {
    let wrong_icmp = {
        let mut frame = ping(8);
        frame[40] ^= 1;
        frame
    };
    let wrong_ip = {
        let mut frame = ping(8);
        frame[22] ^= 1;
        frame
    };
    let to_another = ethernet(OURS, PEER, 0x0800, &icmp("10.0.0.9", "10.0.0.3", 8, 0, &[0; 4]));
    let to_all = ethernet(ALL, PEER, 0x0800, &icmp("10.0.0.9", "10.0.0.255", 8, 0, &[0; 4]));
    let from_group = ethernet(OURS, PEER, 0x0800, &icmp("224.0.0.1", "10.0.0.2", 8, 0, &[0; 4]));
    let from_us = ethernet(OURS, PEER, 0x0800, &icmp("10.0.0.2", "10.0.0.2", 8, 0, &[0; 4]));
    let a_reply = ethernet(OURS, PEER, 0x0800, &icmp("10.0.0.9", "10.0.0.2", 0, 0, &[0; 4]));
    let for_others = ethernet(PEER, PEER, 0x0800, &icmp("10.0.0.9", "10.0.0.2", 8, 0, &[0; 4]));
    let rows = [wrong_icmp, wrong_ip, to_another, to_all, from_group, from_us, a_reply, for_others];
    assert_unanswered(&rows);
}

#[test]
fn a_flood_of_pings_is_answered_in_part() {
    let mut link = link();
    let answered: usize = (0..5_000).map(|_| answers(&mut link, &ping(8), at(0)).len()).sum();
    assert_eq!(answered, 100);
    assert_eq!(link.counters().held_back, 4_900);
    let answered: usize = (0..5_000).map(|_| answers(&mut link, &ping(8), at(50)).len()).sum();
    assert_eq!(answered, 50);
}

/// Echo replies that cannot be sent wait in a bounded queue.
#[test]
fn answers_that_nobody_sends_are_bounded() {
    let mut link = link();
    for second in 0..100 {
        for _ in 0..100 {
            receives(&mut link, &ping(8), at(second * 1_000));
        }
    }
    assert_eq!(out(&mut link).len(), 256);
}
