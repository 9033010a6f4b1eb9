//! TCP flags, pure ACKs and options.

use super::{Case, at, both};
use crate::Packet;

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    cases.extend(both("ack", pure_acks, &[0, 0, 0]));
    cases.extend(both("flags_psh", |base| five(base, &[2], Packet::psh), &[300, 200]));
    // Kernels differ here; rxo never merges a segment with CWR.
    let cwr = |base: &Packet| five(base, &[1, 2], Packet::cwr);
    cases.extend(both("flags_cwr", cwr, &[100, 100, 100, 200]));
    cases.extend(both("flags_syn", |base| between(base, Packet::syn), &[200, 0, 200]));
    cases.extend(both("flags_rst", |base| between(base, Packet::rst), &[200, 0, 200]));
    cases.extend(both("flags_urg", |base| between(base, Packet::urg), &[200, 0, 200]));
    cases.extend(both("tcp_ts", timestamps, &[200, 100, 100, 100]));
    cases.extend(both("tcp_opt", other_options, &[200, 100]));
    cases
}

fn pure_acks(base: &Packet) -> Vec<Packet> {
    let ack = base.clone().pure_ack();
    vec![ack.clone(), ack.clone(), ack.ack(101)]
}

/// Makes five segments; `change` is applied to those whose number is in `which`.
fn five(base: &Packet, which: &[u32], change: impl Fn(Packet) -> Packet) -> Vec<Packet> {
    let segment = |number: u32| {
        let plain = at(base, number * 100);
        if which.contains(&number) { change(plain) } else { plain }
    };
    (0..5).map(segment).collect()
}

/// Makes two segments, an empty one that `flag` changes, and two more.
fn between(base: &Packet, flag: impl Fn(Packet) -> Packet) -> Vec<Packet> {
    let flagged = flag(at(base, 200).pure_ack());
    vec![base.clone(), at(base, 100), flagged, at(base, 300), at(base, 400)]
}

fn timestamps(base: &Packet) -> Vec<Packet> {
    vec![
        base.clone().ts(0, 0),
        at(base, 100).ts(0, 0),
        at(base, 200).ts(100, 0),
        at(base, 300).ts_in_the_middle(100, 0),
        at(base, 400).ts_first(100, 0),
    ]
}

fn other_options(base: &Packet) -> Vec<Packet> {
    vec![base.clone().ts(0, 0), at(base, 100).ts(0, 0), at(base, 200).window_scale(7)]
}
