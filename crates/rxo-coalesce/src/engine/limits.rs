//! What the engine reads out of a policy once.

use crate::acks::Memory;
use crate::merge::MAX_HEADER_BYTES;
use crate::{Hold, Policy, PureAckRule};

/// Where the last of several ACKs speaks for all, duplicates must be known.
pub(super) fn memory(policy: &Policy) -> Memory {
    match policy.pure_acks {
        PureAckRule::Single if policy.ack_limit() >= 2 => Memory::new(policy.flows),
        _ => Memory::off(),
    }
}

/// Plain segments with payloads up to this, in bytes, break no rule of the policy by themselves.
pub(super) fn plain_payload(policy: &Policy) -> u32 {
    if policy.refuses_plain() { 0 } else { most_payload(policy) }
}

/// Payloads up to this meet no limit of the policy; 0 where it coalesces no data.
pub(super) fn most_payload(policy: &Policy) -> u32 {
    if !policy.coalesce || policy.max_segments < 2 {
        return 0;
    }
    policy.max_bytes.saturating_sub(MAX_HEADER_BYTES as u32).min(policy.buffer_bytes)
}

/// Packets until a policy that counts them flushes; the most there are under others.
pub(super) const fn packet_window(hold: Hold) -> u32 {
    match hold {
        Hold::EveryNPackets(packets) => packets,
        Hold::EndOfPoll | Hold::EveryNthPoll(_) | Hold::Within(_) | Hold::Auto { .. } => u32::MAX,
    }
}
