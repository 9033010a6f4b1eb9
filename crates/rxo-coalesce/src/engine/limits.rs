//! Limits that the engine derives from a policy once, at construction.

use crate::acks::Memory;
use crate::candidate::MAX_HEADER_BYTES;
use crate::{Hold, Policy, PureAckRule};

/// Creates the memory of each flow's last ACK if the policy delivers only the last of several ACKs; otherwise
/// returns a memory that is off.
pub(super) fn memory(policy: &Policy) -> Memory {
    match policy.pure_acks {
        PureAckRule::Single if policy.ack_limit() >= 2 => Memory::new(policy.flows),
        _ => Memory::off(),
    }
}

/// Returns the payload, in bytes, up to which all plain segments satisfy the static rules of the policy; 0 if the
/// policy also refuses segments without DF or with a zero timestamp echo, because these may be plain.
pub(super) fn plain_payload(policy: &Policy) -> u32 {
    if policy.refuses_plain() { 0 } else { most_payload(policy) }
}

/// Returns the longest payload, in bytes, that is within all limits of the policy; 0 if the policy coalesces no
/// data.
pub(super) fn most_payload(policy: &Policy) -> u32 {
    if !policy.coalesce || policy.max_segments < 2 {
        return 0;
    }
    policy.max_bytes.saturating_sub(MAX_HEADER_BYTES as u32).min(policy.buffer_bytes)
}

/// Returns the number of packets after which a policy that counts packets flushes; `u32::MAX` under other
/// policies.
pub(super) const fn packet_window(hold: Hold) -> u32 {
    match hold {
        Hold::EveryNPackets(packets) => packets,
        Hold::EndOfPoll | Hold::EveryNthPoll(_) | Hold::Within(_) | Hold::Auto { .. } => u32::MAX,
    }
}
