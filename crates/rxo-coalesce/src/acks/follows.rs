//! Whether a plain pure ACK may join those held, in a few compares.
//!
//! The same answer as [`super::ack_verdict`] gives, for what nearly every ACK is. That both have one
//! flow key and that the next is plain is known. `None` when only the full rules can tell.

use rxo_frame::Frame;
use rxo_wire::Plain;

use super::{AckPoint, News};
use crate::expected::{Shape, number};
use crate::follows::link;
use crate::held::Held;

const TCP_BYTES: usize = 20;

/// What `next`, which `plain` describes and whose IP header begins at `network`, says, if it may
/// follow `last`, the last pure ACK of `held`.
#[inline(always)]
pub(crate) fn follows<S: Shape, B: AsRef<[u8]>>(
    held: &Held,
    last: &Frame<B>,
    next: &Frame<B>,
    plain: &Plain,
    network: usize,
) -> Option<AckPoint> {
    let (old, new) = (last.bytes(), next.bytes());
    let (old_link, old) = old.split_at_checked(network)?;
    let (new_link, new) = new.split_at_checked(network)?;
    let said = AckPoint::of(new.get(S::IP_BYTES..)?)?;
    let is_alike = usize::from(held.network) == network
        && usize::from(held.transport) == network + S::IP_BYTES
        && last.vlan == next.vlan
        && held.next_seq == plain.seq
        && held.acks.said?.news(said) == News::More;
    if !is_alike || !S::is_alike(old, new)? {
        return None;
    }
    let has_timestamp = plain.header_bytes as usize > S::IP_BYTES + TCP_BYTES;
    let (old, new) = (old.get(S::IP_BYTES..)?, new.get(S::IP_BYTES..)?);
    let is_ahead = link(old_link, new_link) == 0
        && layout(old)? == layout(new)?
        && (!has_timestamp || timestamp_follows(old, new)?);
    is_ahead.then_some(said)
}

/// Header length and flags.
#[inline(always)]
fn layout(tcp: &[u8]) -> Option<[u8; 2]> {
    tcp.get(12..)?.first_chunk().copied()
}

/// Whether both have the timestamp in its usual place, and it does not go back.
#[inline(always)]
fn timestamp_follows(old: &[u8], new: &[u8]) -> Option<bool> {
    let (old, new): (&[u8; 32], &[u8; 32]) = (old.first_chunk()?, new.first_chunk()?);
    let (old, new) = (number(old, 20), number(new, 20));
    let is_usual = old >> 32 == new >> 32;
    Some(is_usual && (new as u32).wrapping_sub(old as u32) as i32 >= 0)
}
