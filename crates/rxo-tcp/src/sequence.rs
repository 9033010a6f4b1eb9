//! Arithmetic on sequence numbers that the whole crate shares.

use rxo_wire::SeqNumber;

/// Bytes from `from` up to `to`; 0 when `to` is before it.
pub(crate) fn distance(from: SeqNumber, to: SeqNumber) -> u32 {
    u32::try_from(to - from).unwrap_or(0)
}

/// The one that comes later on the circle.
pub(crate) fn later(a: SeqNumber, b: SeqNumber) -> SeqNumber {
    if a.is_before(b) { b } else { a }
}

/// The one that comes earlier on the circle.
pub(crate) fn earlier(a: SeqNumber, b: SeqNumber) -> SeqNumber {
    if a.is_before(b) { a } else { b }
}

/// The one `bytes` before `seq`.
pub(crate) fn before(seq: SeqNumber, bytes: u32) -> SeqNumber {
    SeqNumber(seq.0.wrapping_sub(bytes))
}
