//! Rules for pure ACKs: they decide whether an ACK may be aggregated, and whether it joins the ACKs that its
//! flow holds.
//!
//! Pure functions, like [`crate::candidate()`] and [`crate::verdict()`], and total: they return an answer
//! with a reason for every frame.

use rxo_wire::tcp::{OptionLayout, Options};
use rxo_wire::{Offsets, Parsed, TcpFlags, TcpSegment, Transport};

use super::sack::Sack;
use crate::ack_point::{AckChange, AckPoint};
use crate::candidate::{check_ip, is_marked_ce};
use crate::verdict::{ip_fields, link_bytes};
use crate::{BypassReason, Candidate, CeRule, FlushReason, Held, Policy, PureAckRule, Verdict};

/// ECN flags (RFC 3168, RFC 9768). They may be set if they are the same in all ACKs of an aggregate.
const MARKS: TcpFlags = TcpFlags::ECE.union(TcpFlags::CWR).union(TcpFlags::AE);

/// Returns `true` if the segment is TCP and carries no payload.
#[inline]
pub(crate) fn is_pure(parsed: &Parsed) -> bool {
    parsed.payload_bytes() == 0 && matches!(parsed.transport, Transport::Tcp(_))
}

/// Applies the static rules to a segment without payload, under a policy that aggregates pure ACKs. Does not
/// verify its TCP checksum.
///
/// # Errors
/// The first rule that the segment breaks, as the reason to deliver it untouched.
pub(crate) fn ack_candidate<'a>(
    parsed: &'a Parsed,
    bytes: &[u8],
    policy: &Policy,
) -> Result<&'a TcpSegment, BypassReason> {
    let Transport::Tcp(tcp) = &parsed.transport else { return Err(BypassReason::NotTcp) };
    if !parsed.ip.checksum_ok {
        return Err(BypassReason::BadIpChecksum);
    }
    if parsed.ip.has_options || parsed.ip.reserved_bit {
        check_ip(parsed, policy)?;
    }
    flags(tcp.flags)?;
    if tcp.urgent != 0 {
        return Err(BypassReason::Urg);
    }
    if loses_ce_marks(policy) && is_marked_ce(&parsed.ip) {
        return Err(BypassReason::CeMark);
    }
    options(parsed, tcp, bytes, policy)?;
    Ok(tcp)
}

/// Returns `true` if the policy would lose CE marks, because it delivers only the last of several ACKs. If the
/// policy delivers one record per ACK, no mark is lost.
const fn loses_ce_marks(policy: &Policy) -> bool {
    matches!(policy.ce, CeRule::Bypass) && matches!(policy.pure_acks, PureAckRule::Single)
}

/// Accepts ACK with any ECN flags, and refuses every other flag.
fn flags(flags: TcpFlags) -> Result<(), BypassReason> {
    let refused = [
        (TcpFlags::SYN, BypassReason::Syn),
        (TcpFlags::RST, BypassReason::Rst),
        (TcpFlags::URG, BypassReason::Urg),
        (TcpFlags::FIN, BypassReason::Fin),
        (TcpFlags::PSH, BypassReason::PureAck),
        (TcpFlags::RESERVED, BypassReason::OddFlags),
    ];
    match refused.iter().find(|(refused, _)| flags.intersects(*refused)) {
        Some((_, reason)) => Err(*reason),
        None if flags.contains(TcpFlags::ACK) => Ok(()),
        None => Err(BypassReason::OddFlags),
    }
}

/// Accepts an ACK with no options, or with only a timestamp. Accepts SACK blocks, except a D-SACK, if the policy
/// lets a later ACK whose blocks cover them replace this ACK (`sack_superset`).
fn options(
    parsed: &Parsed,
    tcp: &TcpSegment,
    bytes: &[u8],
    policy: &Policy,
) -> Result<(), BypassReason> {
    if tcp.options == OptionLayout::None || tcp.options.has_timestamp() {
        return Ok(());
    }
    match Sack::read(option_bytes(parsed.at, bytes)).filter(|sack| !sack.is_empty()) {
        None => Err(BypassReason::TcpOptions),
        Some(sack) if covers_sack(policy) && !sack.is_duplicate_report(tcp.ack) => Ok(()),
        Some(_) => Err(BypassReason::Sack),
    }
}

const fn covers_sack(policy: &Policy) -> bool {
    policy.sack_superset && matches!(policy.pure_acks, PureAckRule::Single)
}

fn option_bytes(at: Offsets, bytes: &[u8]) -> &[u8] {
    bytes.get(at.tcp_options()).unwrap_or_default()
}

/// Decides on the pure ACK `next`, whose flow holds pure ACKs. `last` is the last held ACK.
pub(crate) fn ack_verdict(
    (held, last): (&Held, &Candidate<'_>),
    next: &Candidate<'_>,
    policy: &Policy,
) -> Verdict {
    let point = |tcp: &TcpSegment| AckPoint { ack: tcp.ack, window: tcp.window };
    let next_has_blocks = next.tcp.options == OptionLayout::Other;
    let has_blocks = next_has_blocks || last.tcp.options == OptionLayout::Other;
    let blocks = |ack: &Candidate<'_>| Sack::read(option_bytes(ack.at, ack.bytes));
    let repeats_blocks = || {
        let (old, new) = (blocks(last), blocks(next));
        old.zip(new).is_some_and(|(old, new)| new.repeats(&old))
    };
    match point(&last.tcp).compare(point(&next.tcp)) {
        AckChange::Less => Verdict::FlushThenBypass(FlushReason::Ack, BypassReason::OldAck),
        AckChange::Same if !next_has_blocks || repeats_blocks() => {
            Verdict::FlushThenBypass(FlushReason::Repeated, BypassReason::DuplicateAck)
        }
        AckChange::Same | AckChange::More => match mismatch(last, next, has_blocks) {
            None => {
                let is_full = held.segments + 1 >= policy.ack_limit();
                Verdict::Append(is_full.then_some(FlushReason::AckLimit))
            }
            Some(reason) => Verdict::FlushThenStart(reason, None),
        },
    }
}

/// Returns the first rule that `next` breaks after `last`, apart from the ACK number; `None` if it breaks
/// none.
fn mismatch(last: &Candidate<'_>, next: &Candidate<'_>, has_blocks: bool) -> Option<FlushReason> {
    if next.tcp.seq != last.tcp.seq {
        return Some(FlushReason::OutOfSequence);
    }
    let flags = (next.tcp.flags.bits() ^ last.tcp.flags.bits()) & MARKS.bits();
    ip_fields(last, next)
        .or_else(|| (flags != 0).then_some(FlushReason::Flags))
        .or_else(|| link_bytes(last, next))
        .or_else(|| match has_blocks {
            true => (!covers(last, next)).then_some(FlushReason::Options),
            false => timestamp(last, next),
        })
}

/// Returns the rule that the options break, or `None`: they must have the same layout, and TSval must not
/// decrease.
fn timestamp(last: &Candidate<'_>, next: &Candidate<'_>) -> Option<FlushReason> {
    let went_back = next.tcp.timestamp.value.wrapping_sub(last.tcp.timestamp.value) as i32;
    if !are_arranged_alike(last, next) {
        return Some(FlushReason::Options);
    }
    (went_back < 0).then_some(FlushReason::Timestamp)
}

fn are_arranged_alike(last: &Candidate<'_>, next: &Candidate<'_>) -> bool {
    let (old, new) = (option_bytes(last.at, last.bytes), option_bytes(next.at, next.bytes));
    let kinds = |options| {
        Options::new(options).map(|option| option.map(|option| (option.kind, option.data.len())))
    };
    next.tcp.options == last.tcp.options && old.len() == new.len() && kinds(old).eq(kinds(new))
}

/// Returns `true` if the options of `next` contain all information in the options of `last`.
fn covers(last: &Candidate<'_>, next: &Candidate<'_>) -> bool {
    let (old, new) = (option_bytes(last.at, last.bytes), option_bytes(next.at, next.bytes));
    let (Some(old_blocks), Some(new_blocks)) = (Sack::read(old), Sack::read(new)) else {
        return false;
    };
    new_blocks.timestamp_follows(&old_blocks) && new_blocks.covers(&old_blocks, next.tcp.ack)
}
