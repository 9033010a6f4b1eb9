//! The decisions of a policy, for rules that make only some decisions themselves.
//!
//! They are free functions, so that an implementation of [`Rules`](super::Rules) can call them for the cases that
//! it does not decide itself.

use rxo_frame::Instant;
use rxo_wire::TcpFlags;

use super::{Flow, Moment, Placement, Release};
use crate::{Candidate, FlushReason, Held, Hold, PayloadRule, Policy, PshRule, Verdict};

/// Decides the placement by `policy`: behind all held segments of the flow, unless the candidate has PSH and
/// bypasses under the policy.
pub fn verdict<M>(policy: &Policy, flow: &Flow<'_, M>, next: &Candidate<'_>) -> Placement {
    let held = flow.runs.last().map(|run| &run.held).zip(flow.last.as_ref());
    match crate::verdict(held, next, policy) {
        Verdict::Bypass(reason) => Placement::Bypass(FlushReason::Order, reason),
        Verdict::FlushThenBypass(flush, reason) => Placement::Bypass(flush, reason),
        Verdict::Start(_) | Verdict::Append(_) | Verdict::FlushThenStart(..) => Placement::Last,
    }
}

/// Returns the reason for which `run` ends by `policy`, or `None` if it stays open; see
/// [`Rules::close`](super::Rules::close).
pub fn close(
    policy: &Policy,
    run: &Held,
    last: &Candidate<'_>,
    next: Option<&Candidate<'_>>,
) -> Option<FlushReason> {
    match next {
        Some(next) => crate::verdict(Some((run, last)), next, policy).flushes(),
        None => complete(policy, run, last),
    }
}

fn complete(policy: &Policy, run: &Held, last: &Candidate<'_>) -> Option<FlushReason> {
    let flags = last.tcp.flags;
    if flags.contains(TcpFlags::PSH) && policy.psh != PshRule::Keep {
        return Some(FlushReason::Psh);
    }
    if flags.contains(TcpFlags::FIN) {
        return Some(FlushReason::Fin);
    }
    if policy.payload == PayloadRule::SameThenShorter && run.last_payload_bytes < run.gso_size {
        return Some(FlushReason::ShortSegment);
    }
    (run.segments >= policy.max_segments.into()).then_some(FlushReason::SegmentLimit)
}

/// Decides by `policy` how many runs of the flow are delivered: closed runs at once, and all runs when the
/// policy's hold ends. [`Hold::Auto`] ends at the end of the poll, because the receiver's load is unknown.
pub fn hold<M>(policy: &Policy, flow: &Flow<'_, M>, moment: Moment, now: Instant) -> Release {
    let Some(first) = flow.runs.first() else { return Release::Nothing(None) };
    if let Some(reason) = first.end {
        return Release::Runs(1, reason);
    }
    let deadline = policy.time_limit().map(|limit| first.oldest + limit);
    let reason = match (moment, policy.hold) {
        (Moment::EndOfPoll(_), Hold::EndOfPoll | Hold::Auto { .. }) => Some(FlushReason::EndOfPoll),
        (Moment::EndOfPoll(number), Hold::EveryNthPoll(polls))
            if number.is_multiple_of(u64::from(polls.max(1))) =>
        {
            Some(FlushReason::PollLimit)
        }
        (Moment::EndOfPoll(_), Hold::EveryNthPoll(_)) if first.held.segments == 1 => {
            Some(FlushReason::LoneSegment)
        }
        (Moment::PacketWindow, _) => Some(FlushReason::PacketLimit),
        (Moment::Placed, _) => None,
        _ => deadline.filter(|deadline| now >= *deadline).map(|_| FlushReason::Timeout),
    };
    match reason {
        Some(reason) => Release::Runs(flow.runs.len(), reason),
        None => Release::Nothing(deadline),
    }
}
