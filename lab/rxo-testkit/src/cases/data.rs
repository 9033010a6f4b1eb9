//! Payload sizes, bursts, and sequence numbers.

use super::{Case, at, both, second};
use crate::{Packet, seg};

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    cases.extend(both("single", |base| vec![base.clone()], &[100]));
    cases.extend(both("data_same", |base| second(base, |packet| packet), &[200]));
    cases.extend(both("data_lrg_sml", |base| second(base, |packet| packet.len(50)), &[150]));
    cases.extend(both("data_lrg_1byte", |base| second(base, |p| p.len(1).padded()), &[101]));
    let small_first = |base: &Packet| vec![base.clone().len(50), at(base, 50)];
    cases.extend(both("data_sml_lrg", small_first, &[50, 100]));
    cases.extend(both("tcp_seq", |base| second(base, |p| p.seq(201)), &[100, 100]));
    cases.extend(both("tcp_csum", |base| second(base, Packet::bad_checksum), &[100, 100]));
    cases.extend([seg(), seg().v6()].map(bursts));
    cases
}

fn bursts(base: Packet) -> Case {
    let [first, second] = [0, 200].map(|begin| vec![at(&base, begin), at(&base, begin + 100)]);
    let mut case = super::case("data_burst", first, &[200, 200]);
    case.bursts.push(second);
    case
}
