//! Arithmetic on sequence numbers, shared by the whole crate.

use rxo_wire::SeqNumber;

/// Returns the distance from `from` to `to` in bytes; 0 if `to` is before `from`.
pub(crate) fn distance(from: SeqNumber, to: SeqNumber) -> u32 {
    u32::try_from(to - from).unwrap_or(0)
}

/// Returns the later of two sequence numbers.
pub(crate) fn later(a: SeqNumber, b: SeqNumber) -> SeqNumber {
    if a.is_before(b) { b } else { a }
}

/// Returns the earlier of two sequence numbers.
pub(crate) fn earlier(a: SeqNumber, b: SeqNumber) -> SeqNumber {
    if a.is_before(b) { a } else { b }
}

/// Returns the sequence number `bytes` bytes before `seq`.
pub(crate) fn before(seq: SeqNumber, bytes: u32) -> SeqNumber {
    SeqNumber(seq.0.wrapping_sub(bytes))
}

/// Returns `true` if a 32-bit counter of the bytes since `origin` wraps between `from` and `to`.
pub(crate) fn wraps_between(origin: SeqNumber, from: SeqNumber, to: SeqNumber) -> bool {
    counted(origin, to) < counted(origin, from)
}

/// Returns the number of bytes from `origin` to `to` if the sequence numbers have wrapped `rounds` times in
/// between.
pub(crate) fn after_rounds(rounds: u16, origin: SeqNumber, to: SeqNumber) -> u64 {
    u64::from(rounds) << 32 | u64::from(counted(origin, to))
}

fn counted(origin: SeqNumber, seq: SeqNumber) -> u32 {
    seq.0.wrapping_sub(origin.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_counted_beyond_the_numbers() {
        let origin = SeqNumber(0xffff_fff0);
        let (mut at, mut rounds, mut bytes) = (origin, 0_u16, 0_u64);
        for step in [0, 15, 1, 1 << 30, u32::MAX / 2, u32::MAX / 2, 7, 1 << 30, 1 << 30, 1 << 30] {
            let next = at + step;
            rounds += u16::from(wraps_between(origin, at, next));
            (at, bytes) = (next, bytes + u64::from(step));
            assert_eq!(after_rounds(rounds, origin, at), bytes, "after {step}");
        }
        assert_eq!(rounds, 2);
    }
}
