//! Arithmetic on sequence numbers that the whole crate shares.

use rxo_wire::SeqNumber;

/// The distance from `from` to `to` in bytes; 0 if `to` is before `from`.
pub(crate) fn distance(from: SeqNumber, to: SeqNumber) -> u32 {
    u32::try_from(to - from).unwrap_or(0)
}

/// The later of two sequence numbers.
pub(crate) fn later(a: SeqNumber, b: SeqNumber) -> SeqNumber {
    if a.is_before(b) { b } else { a }
}

/// The earlier of two sequence numbers.
pub(crate) fn earlier(a: SeqNumber, b: SeqNumber) -> SeqNumber {
    if a.is_before(b) { a } else { b }
}

/// The sequence number `bytes` before `seq`.
pub(crate) fn before(seq: SeqNumber, bytes: u32) -> SeqNumber {
    SeqNumber(seq.0.wrapping_sub(bytes))
}
