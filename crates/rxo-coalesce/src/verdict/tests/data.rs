//! Rows for data segments: alone, and after held ones.

use std::vec;

use rxo_wire::FlowHash;

use super::*;
use crate::held::Segment;
use crate::verdict::{regular_step, verdict};
use crate::{Candidate, Held, candidate};
use Verdict::{Append, Bypass, FlushThenBypass, FlushThenStart, Start};

pub(super) fn all() -> impl Iterator<Item = Row> {
    let gro = Policy::linux_gro();
    let small = Policy { max_segments: 3, max_bytes: 576, ..gro };
    let lro = Policy::inet_lro();
    let remember = Policy::remember();
    rows(gro, refused())
        .chain(rows(Policy::none(), vec![(vec![], seg(), Bypass(BypassReason::CoalescingOff))]))
        .chain(rows(lro, refused_by_lro()))
        .chain(rows(lro, any_id()))
        .chain(rows(Policy::rsc_2006(), refused_by_rsc()))
        .chain(rows(gro, starts()))
        .chain(rows(gro, differs_in_ip()))
        .chain(rows(gro, differs_in_tcp()))
        .chain(rows(gro, closes()))
        .chain(rows(small, limits()))
        .chain(rows(remember, remembered()))
}

/// Rows for segments that may not be coalesced at all.
fn refused() -> Vec<(Vec<Packet>, Packet, Verdict)> {
    let routing = seg().v6().extension(43, &[0; 6]);
    let rows = [
        (seg().bad_ip_checksum(), BypassReason::BadIpChecksum),
        (seg().reserved_bit(), BypassReason::ReservedBit),
        (routing, BypassReason::ExtensionHeader),
        (seg().ip_options(&[1]), BypassReason::IpOptions),
        (seg().syn(), BypassReason::Syn),
        (seg().rst(), BypassReason::Rst),
        (seg().urg(), BypassReason::Urg),
        (seg().urgent(1), BypassReason::Urg),
        (seg().cwr(), BypassReason::Cwr),
        (seg().no_ack(), BypassReason::OddFlags),
        (seg().flags(0x210), BypassReason::OddFlags),
        (seg().pure_ack().fin(), BypassReason::Fin),
        (seg().pure_ack(), BypassReason::PureAck),
        (seg().tos(3), BypassReason::CeMark),
        (seg().options(&[8, 40, 0, 0]), BypassReason::TcpOptions),
    ];
    rows.into_iter().map(|(next, reason)| (vec![], next, Bypass(reason))).collect()
}

/// Rows for segments that only `inet-lro` refuses.
fn refused_by_lro() -> Vec<(Vec<Packet>, Packet, Verdict)> {
    let rows = [
        (seg().fin(), BypassReason::Fin),
        (seg().ece(), BypassReason::Ece),
        (seg().ts(1, 0), BypassReason::ZeroEcho),
        (seg().window_scale(7), BypassReason::TcpOptions),
        (seg().v6().extension(0, &[1, 4]), BypassReason::IpOptions),
    ];
    rows.into_iter().map(|(next, reason)| (vec![], next, Bypass(reason))).collect()
}

/// Rows for IPv4 IDs that follow no pattern, where the policy does not compare them.
fn any_id() -> Vec<(Vec<Packet>, Packet, Verdict)> {
    let without_df = |packet: Packet| packet.df(false);
    vec![
        (vec![seg()], at(100).id(7), Append(None)),
        (vec![seg().id(1), at(100).id(2)], at(200).id(2), Append(None)),
        (vec![seg().id(2), at(100).id(2)], at(200).id(3), Append(None)),
        (vec![seg().id(1), at(100).id(9)], at(200).id(10), Append(None)),
        (vec![without_df(seg())], without_df(at(100)), Append(None)),
    ]
}

/// Rows for segments that only the network card's profile refuses, and for its treatment of PSH.
fn refused_by_rsc() -> Vec<(Vec<Packet>, Packet, Verdict)> {
    let (order, alone) = (FlushReason::OutOfSequence, BypassReason::PshAlone);
    vec![
        (vec![], seg().df(false), Bypass(BypassReason::DfClear)),
        (vec![], seg().len(8 * 1024 + 1), Bypass(BypassReason::TooLarge)),
        (vec![], seg().psh(), Bypass(alone)),
        (vec![seg()], at(100).psh(), Append(Some(FlushReason::Psh))),
        (vec![seg()], at(101).psh(), FlushThenBypass(order, alone)),
    ]
}

fn starts() -> Vec<(Vec<Packet>, Packet, Verdict)> {
    vec![
        (vec![], seg(), Start(None)),
        (vec![], seg().ts(1, 0), Start(None)),
        (vec![], seg().psh(), Start(Some(FlushReason::Psh))),
        (vec![], seg().fin(), Start(Some(FlushReason::Fin))),
        (vec![seg()], at(100), Append(None)),
        (vec![seg().id(1)], at(100).id(2), Append(None)),
        (vec![seg(), at(100)], at(200), Append(None)),
    ]
}

fn differs_in_ip() -> Vec<(Vec<Packet>, Packet, Verdict)> {
    let hop_by_hop = |packet: Packet, byte| packet.v6().extension(0, &[1, 1, byte]);
    let rows = [
        (seg(), at(101), FlushReason::OutOfSequence),
        (seg(), seg(), FlushReason::OutOfSequence),
        (seg(), at(100).tos(8), FlushReason::TrafficClass),
        (seg().v6(), at(100).v6().tos(8), FlushReason::TrafficClass),
        (seg(), at(100).ttl(9), FlushReason::HopLimit),
        (seg(), at(100).df(false), FlushReason::DontFragment),
        (seg().v6(), at(100).v6().flow_label(1), FlushReason::FlowLabel),
        (seg(), at(100).id(2), FlushReason::IpId),
        (seg().df(false), at(100).df(false), FlushReason::IpId),
        (hop_by_hop(seg(), 0), hop_by_hop(at(100), 1), FlushReason::Link),
    ];
    let row = |(held, next, reason)| (vec![held], next, FlushThenStart(reason, None));
    let changes = vec![seg().id(1), at(100).id(2)];
    let stays = (changes, at(200).id(2), FlushThenStart(FlushReason::IpId, None));
    rows.into_iter().map(row).chain([stays]).collect()
}

fn differs_in_tcp() -> Vec<(Vec<Packet>, Packet, Verdict)> {
    let unknown = |packet: Packet, byte| packet.options(&[1, 1, 30, 6, 1, 2, 3, byte]);
    let rows = [
        (seg(), at(100).ece(), FlushReason::Flags),
        (seg(), at(100).flags(0x110), FlushReason::Flags),
        (seg(), at(100).ack(101), FlushReason::Ack),
        (seg(), at(100).window(9), FlushReason::Window),
        (seg(), at(100).ts(1, 2), FlushReason::Options),
        (seg().ts(1, 2), at(100).ts(2, 2), FlushReason::Options),
        (unknown(seg(), 4), unknown(at(100), 5), FlushReason::Options),
        (seg(), at(100).partial(), FlushReason::ChecksumStatus),
        (seg().len(50), at(50), FlushReason::LongSegment),
    ];
    rows.into_iter()
        .map(|(held, next, reason)| (vec![held], next, FlushThenStart(reason, None)))
        .collect()
}

fn closes() -> Vec<(Vec<Packet>, Packet, Verdict)> {
    let order = FlushReason::OutOfSequence;
    vec![
        (vec![seg()], at(100).psh(), Append(Some(FlushReason::Psh))),
        (vec![seg()], at(100).fin(), Append(Some(FlushReason::Fin))),
        (vec![seg()], at(100).len(50), Append(Some(FlushReason::ShortSegment))),
        (vec![seg()], at(101).psh(), FlushThenStart(order, Some(FlushReason::Psh))),
        (vec![seg()], at(101).fin(), FlushThenStart(order, Some(FlushReason::Fin))),
    ]
}

/// Rows for a policy with at most three segments and 576 bytes.
fn limits() -> Vec<(Vec<Packet>, Packet, Verdict)> {
    let long = |bytes| at(bytes).len(180);
    vec![
        (vec![], seg().len(540), Bypass(BypassReason::TooLarge)),
        (vec![seg(), at(100)], at(200), Append(Some(FlushReason::SegmentLimit))),
        (vec![long(0), long(180)], long(360), FlushThenStart(FlushReason::ByteLimit, None)),
    ]
}

fn remembered() -> Vec<(Vec<Packet>, Packet, Verdict)> {
    let start = |reason| FlushThenStart(reason, None);
    vec![
        (vec![seg()], at(100).ack(101).window(9), Append(None)),
        (vec![seg()], at(100).ack(99), start(FlushReason::Ack)),
        (vec![seg().ts(2, 2)], at(100).ts(1, 2), start(FlushReason::Timestamp)),
        (vec![seg().pure_ack()], seg(), start(FlushReason::Order)),
    ]
}

fn judge(row: &Row) -> Verdict {
    let frame = row.next.frame();
    let (parsed, tcp) = read(&frame);
    if let Err(reason) = candidate(&parsed, &row.policy) {
        return Verdict::Bypass(reason);
    }
    let next = &Candidate::new(&parsed, &tcp, &frame);
    let frames: Vec<_> = row.held.iter().map(Packet::frame).collect();
    let Some((first, others)) = frames.split_first() else {
        return verdict(None, next, &row.policy);
    };
    let (mut last, mut last_tcp) = read(first);
    let mut held = Held::BLANK;
    let segment = |parsed: &Parsed, tcp: &TcpSegment, frame: &Frame<Vec<u8>>| {
        Segment::of(&Candidate::new(parsed, tcp, frame), (parsed.key, FlowHash(0)), frame, 0)
    };
    held.begin(&segment(&last, &last_tcp, first));
    for frame in others {
        let (parsed, tcp) = read(frame);
        let candidates = [(&last, &last_tcp), (&parsed, &tcp)];
        let [before, next] = candidates.map(|(parsed, tcp)| Candidate::new(parsed, tcp, frame));
        let id_step = regular_step(&before, &next);
        held.append(&Segment { id_step, ..segment(&parsed, &tcp, frame) }, &row.policy);
        (last, last_tcp) = (parsed, tcp);
    }
    let frame = frames.last().expect("one at least");
    verdict(Some((&held, &Candidate::new(&last, &last_tcp, frame))), next, &row.policy)
}

#[test]
fn data_gets_the_verdict_of_its_row() {
    for row in all() {
        check(&row, judge(&row));
    }
}
