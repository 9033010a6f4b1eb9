//! The portable implementation of checksum sums, without instructions that only some processors have.

/// Returns the unfolded sum of `bytes` as native words: eight bytes at a time, with carry.
#[inline]
pub(super) fn sum(bytes: &[u8]) -> u64 {
    let (blocks, rest) = bytes.as_chunks::<64>();
    add(blocks.iter().fold(0, add_block), sum_short(rest))
}

/// Returns the sum of a few bytes without the loop over blocks: for headers and the remainder of a block.
#[inline]
pub(super) const fn sum_short(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut total = 0;
    let mut index = 0;
    while index < words.len() {
        total = add(total, u64::from_ne_bytes(words[index]));
        index += 1;
    }
    add(total, last(rest))
}

/// Returns `total` plus the eight words of `block`, added in one chain of additions with carry.
#[inline]
fn add_block(total: u64, block: &[u8; 64]) -> u64 {
    let (words, _) = block.as_chunks::<8>();
    let (total, carry) = words.iter().fold((total, false), |(total, carry), word| {
        // `carrying_add` is newer than the oldest compiler; this is its definition.
        let (total, first) = total.overflowing_add(u64::from_ne_bytes(*word));
        let (total, second) = total.overflowing_add(carry as u64);
        (total, first | second)
    });
    // Cannot overflow: a sum that carried is below its greatest value.
    total + carry as u64
}

/// Returns at most seven bytes as one word, padded with zeros.
#[inline]
const fn last(bytes: &[u8]) -> u64 {
    let mut total = 0;
    let (fours, rest) = bytes.as_chunks::<4>();
    if let [four] = fours {
        total += u32::from_ne_bytes(*four) as u64;
    }
    let (twos, rest) = rest.as_chunks::<2>();
    if let [two] = twos {
        total += u16::from_ne_bytes(*two) as u64;
    }
    if let [one] = rest {
        total += u16::from_ne_bytes([*one, 0]) as u64;
    }
    total
}

#[inline]
const fn add(a: u64, b: u64) -> u64 {
    let (sum, carry) = a.overflowing_add(b);
    sum + carry as u64
}
