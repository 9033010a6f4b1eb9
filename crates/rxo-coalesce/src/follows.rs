//! Whether one plain segment only continues another.
//!
//! The same question as in [`crate::expected`], for flows that take turns: no run is expected, so
//! nothing is prepared for the segment after. That both have one flow key, that the next is plain
//! and has the expected sequence number is known; what else the rules ask is compared in a few words.

use rxo_frame::Frame;
use rxo_wire::Plain;

use crate::expected::{Shape, number, word};
use crate::held::Held;

/// How much the IPv4 ID counts from `last`, the last segment of `held`, to `next`, which `plain`
/// describes and whose IP header begins at `network`; 0 for IPv6. `None` when only the full rules can
/// tell.
#[inline(always)]
pub(crate) fn follows<S: Shape, B: AsRef<[u8]>>(
    held: &Held,
    last: &Frame<B>,
    next: &Frame<B>,
    plain: &Plain,
    network: usize,
) -> Option<u16> {
    let (old, new) = (last.bytes(), next.bytes());
    let is_alike = old.len() == new.len()
        && usize::from(held.header_bytes) == network + plain.header_bytes as usize
        && held.last_payload_bytes == plain.payload_bytes
        && last.checksum == next.checksum
        && last.vlan == next.vlan;
    if !is_alike {
        return None;
    }
    let (old_link, old) = old.split_at_checked(network)?;
    let (new_link, new) = new.split_at_checked(network)?;
    let step = S::step(held.id_pattern, old, new)?;
    let (old, new) = (old.get(S::IP_BYTES..)?, new.get(S::IP_BYTES..)?);
    let has_timestamp = plain.header_bytes as usize > S::IP_BYTES + TCP_BYTES;
    let differing = link(old_link, new_link) | tcp(old, new)? | timestamp(old, new, has_timestamp)?;
    (differing == 0).then_some(step)
}

const TCP_BYTES: usize = 20;

/// Zero when both Ethernet headers are alike, or there are none.
#[inline(always)]
pub(crate) fn link(old: &[u8], new: &[u8]) -> u64 {
    let (Some(old), Some(new)) = (old.first_chunk::<14>(), new.first_chunk::<14>()) else {
        return 0;
    };
    (word(old, 0) ^ word(new, 0)) | (word(old, 6) ^ word(new, 6))
}

/// Zero when ACK number, header length, flags and window are alike.
#[inline(always)]
fn tcp(old: &[u8], new: &[u8]) -> Option<u64> {
    Some(word::<20>(old.first_chunk()?, 8) ^ word::<20>(new.first_chunk()?, 8))
}

/// Zero when the options are alike: the timestamp with its padding, or none.
#[inline(always)]
fn timestamp(old: &[u8], new: &[u8], is_there: bool) -> Option<u64> {
    if !is_there {
        return Some(0);
    }
    let (old, new): (&[u8; 32], &[u8; 32]) = (old.first_chunk()?, new.first_chunk()?);
    // The checksum and urgent pointer before the options are shifted out.
    let options = (number(old, 16) ^ number(new, 16)) << 32;
    Some(options | (word(old, 24) ^ word(new, 24)))
}
