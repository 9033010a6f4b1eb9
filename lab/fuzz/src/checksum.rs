//! Target `checksum`: every implementation agrees with a naive one, for any division of the bytes.

use rxo_testkit::naive::internet_checksum;
use rxo_wire::checksum::{Sum, Summer, update_long, update_word};

/// Checks all implementations on `data`. The first bytes select the start of the rest and its division.
///
/// # Panics
/// If two implementations differ, or the whole differs from its parts.
pub fn run(data: &[u8]) {
    let Some(([skip, cut_high, cut_low], rest)) = data.split_first_chunk::<3>() else { return };
    // Vectors are loaded from any address, so the offset within a cache line varies.
    let bytes = rest.get(usize::from(skip % 64)..).unwrap_or_default();
    let expected = !internet_checksum(bytes);
    let cut = usize::from(u16::from_be_bytes([*cut_high, *cut_low])) % (bytes.len() + 1);
    let (head, tail) = bytes.split_at(cut);
    assert_eq!(Sum::of(bytes).fold(), expected, "short sum of {} bytes", bytes.len());
    for summer in Summer::available() {
        assert_eq!(summer.sum(bytes).fold(), expected, "{} of {}", summer.name(), bytes.len());
        let parts = summer.sum(head) + summer.sum(tail).at(cut);
        assert_eq!(parts.fold(), expected, "{} cut at {cut}", summer.name());
        let rest = summer.sum(bytes) - summer.sum(head);
        assert!(same(rest.fold(), summer.sum(tail).at(cut).fold()), "{}", summer.name());
    }
    check_updates(bytes, cut);
}

/// Checks that updating a checksum for a changed field equals summing again (RFC 1624).
fn check_updates(bytes: &[u8], cut: usize) {
    let at = cut & !1;
    let Some(old) = bytes.get(at..).and_then(|rest| rest.first_chunk::<4>()) else { return };
    let mut changed = bytes.to_vec();
    changed[at..at + 4].iter_mut().for_each(|byte| *byte = byte.wrapping_mul(7).wrapping_add(3));
    let new = [changed[at], changed[at + 1], changed[at + 2], changed[at + 3]];
    let before = internet_checksum(bytes);
    let expected = internet_checksum(&changed);
    let long = update_long(before, u32::from_be_bytes(*old), u32::from_be_bytes(new));
    assert!(same(long, expected), "{long:#06x} is not {expected:#06x}");
    let high = |field: [u8; 4]| u16::from_be_bytes([field[0], field[1]]);
    let low = |field: [u8; 4]| u16::from_be_bytes([field[2], field[3]]);
    let words = update_word(before, high(*old), high(new));
    let words = update_word(words, low(*old), low(new));
    assert!(same(words, expected), "{words:#06x} is not {expected:#06x}");
}

/// Compares checksums: one's complement has two zeros, which are equal.
fn same(one: u16, other: u16) -> bool {
    one == other || (matches!(one, 0 | u16::MAX) && matches!(other, 0 | u16::MAX))
}
