//! Rows for pure ACKs: alone, and after a held one.

use std::vec;

use super::*;
use crate::acks::{ack_candidate, ack_verdict};
use crate::{Candidate, Held};
use Verdict::{Append, Bypass, FlushThenBypass, FlushThenStart, Start};

pub(super) fn all() -> impl Iterator<Item = Row> {
    let remember = Policy { extension_headers: true, ..Policy::remember() };
    rows(remember, refused()).chain(rows(remember, news())).chain(rows(remember, differs()))
}

fn ack() -> Packet {
    seg().pure_ack()
}

/// Builds an ACK that acknowledges more than [`ack`].
fn more() -> Packet {
    ack().ack(101)
}

fn refused() -> Vec<(Vec<Packet>, Packet, Verdict)> {
    let routing = ack().v6().extension(43, &[0; 6]);
    let rows = [
        (ack().bad_ip_checksum(), BypassReason::BadIpChecksum),
        (ack().reserved_bit(), BypassReason::ReservedBit),
        (routing, BypassReason::ExtensionHeader),
        (ack().ip_options(&[1]), BypassReason::IpOptions),
        (ack().syn(), BypassReason::Syn),
        (ack().rst(), BypassReason::Rst),
        (ack().urg(), BypassReason::Urg),
        (ack().fin(), BypassReason::Fin),
        (ack().psh(), BypassReason::PureAck),
        (ack().no_ack(), BypassReason::OddFlags),
        (ack().flags(0x210), BypassReason::OddFlags),
        (ack().urgent(1), BypassReason::Urg),
        (ack().window_scale(7), BypassReason::TcpOptions),
        (ack().sack(&[(200, 300)]), BypassReason::Sack),
    ];
    rows.into_iter().map(|(next, reason)| (vec![], next, Bypass(reason))).collect()
}

fn news() -> Vec<(Vec<Packet>, Packet, Verdict)> {
    let old = FlushThenBypass(FlushReason::Ack, BypassReason::OldAck);
    let again = FlushThenBypass(FlushReason::Repeated, BypassReason::DuplicateAck);
    vec![
        (vec![], ack(), Start(None)),
        (vec![], ack().tos(3), Start(None)),
        (vec![ack()], more(), Append(None)),
        (vec![ack()], ack().window(9), Append(None)),
        (vec![ack(), more()], ack().ack(102), Append(None)),
        (vec![ack()], ack().ack(99), old),
        (vec![ack()], ack(), again),
        (vec![ack().ts(1, 2)], ack().ts(2, 2), again),
    ]
}

fn differs() -> Vec<(Vec<Packet>, Packet, Verdict)> {
    let hop_by_hop = |packet: Packet, byte| packet.v6().extension(0, &[1, 1, byte]);
    let rows = [
        (ack(), more().seq(101), FlushReason::OutOfSequence),
        (ack(), more().tos(8), FlushReason::TrafficClass),
        (ack(), more().ttl(9), FlushReason::HopLimit),
        (ack(), more().df(false), FlushReason::DontFragment),
        (ack().v6(), more().v6().flow_label(1), FlushReason::FlowLabel),
        (ack(), more().ece(), FlushReason::Flags),
        (ack(), more().ts(1, 2), FlushReason::Options),
        (ack().ts(1, 2), more().ts_first(1, 2), FlushReason::Options),
        (ack().ts(2, 2), more().ts(1, 2), FlushReason::Timestamp),
        (hop_by_hop(ack(), 0), hop_by_hop(more(), 1), FlushReason::Link),
    ];
    rows.into_iter()
        .map(|(held, next, reason)| (vec![held], next, FlushThenStart(reason, None)))
        .collect()
}

fn judge(row: &Row) -> Verdict {
    let frame = row.next.frame();
    let (parsed, tcp) = read(&frame);
    if let Err(reason) = ack_candidate(&parsed, frame.bytes(), &row.policy) {
        return Verdict::Bypass(reason);
    }
    let next = &Candidate::new(&parsed, &tcp, &frame);
    let held = Held { segments: row.held.len() as u32, ..Held::BLANK };
    let Some(last) = row.held.last().map(Packet::frame) else { return Start(None) };
    let (last_parsed, last_tcp) = read(&last);
    ack_verdict((&held, &Candidate::new(&last_parsed, &last_tcp, &last)), next, &row.policy)
}

#[test]
fn acks_get_the_verdict_of_their_row() {
    for row in all() {
        check(&row, judge(&row));
    }
}
