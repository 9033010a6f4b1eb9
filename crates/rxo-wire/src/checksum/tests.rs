//! Compares every implementation, and the functions based on sums, with a word-by-word oracle.

use std::vec::Vec;

use proptest::prelude::*;

use super::*;

/// Sums word by word as in RFC 1071, section 1: slow but obviously right.
fn naive_fold(bytes: &[u8]) -> u16 {
    let words = bytes
        .chunks(2)
        .map(|pair| u64::from(pair[0]) << 8 | u64::from(pair.get(1).copied().unwrap_or_default()));
    let mut sum: u64 = words.sum();
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    sum as u16
}

fn noise(length: usize, seed: u32) -> Vec<u8> {
    let mut state = seed | 1;
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    core::iter::repeat_with(next).take(length).collect()
}

#[test]
fn the_rfc_1071_example_sums_as_it_says() {
    let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
    for summer in Summer::available() {
        assert_eq!(summer.sum(&bytes).fold(), 0xddf2, "{summer:?}");
        assert_eq!(summer.sum(&bytes).checksum(), 0x220d, "{summer:?}");
    }
}

#[test]
fn detect_takes_the_last_of_the_available() {
    let available: Vec<_> = Summer::available().collect();
    assert_eq!(available.first(), Some(&Summer::portable()));
    assert_eq!(available.last(), Some(&Summer::detect()));
    let mut names: Vec<_> = available.iter().map(|summer| summer.name()).collect();
    names.dedup();
    assert_eq!(names.len(), available.len());
}

#[test]
fn every_length_sums_as_the_oracle_does() {
    let bytes = noise(2100, 7);
    for summer in Summer::available() {
        for length in 0..=bytes.len() {
            let part = &bytes[..length];
            assert_eq!(summer.sum(part).fold(), naive_fold(part), "{summer:?}, {length} bytes");
        }
    }
}

#[test]
fn every_alignment_sums_as_the_oracle_does() {
    let bytes = noise(1600, 11);
    for summer in Summer::available() {
        for start in 0..=64 {
            for length in [1, 63, 64, 65, 127, 128, 255, 1448, 1480, 1481] {
                let part = &bytes[start..start + length];
                assert_eq!(summer.sum(part).fold(), naive_fold(part), "{summer:?} at {start}");
            }
        }
    }
}

#[test]
fn extreme_words_do_not_overflow_a_lane() {
    for byte in [0x00, 0x7f, 0x80, 0xff] {
        for length in [65_535, 65_536, 65_537, 131_072, 200_001] {
            let bytes = std::vec![byte; length];
            for summer in Summer::available() {
                assert_eq!(summer.sum(&bytes).fold(), naive_fold(&bytes), "{summer:?} {byte:#x}");
            }
        }
    }
}

#[test]
fn only_zeros_sum_to_the_positive_zero() {
    for summer in Summer::available() {
        for length in [0, 2, 65, 1480] {
            assert_eq!(summer.sum(&std::vec![0; length]).fold(), 0, "{summer:?}");
        }
        let mut bytes = std::vec![0; 1480];
        bytes[700] = 0xff;
        bytes[701] = 0xff;
        assert_eq!(summer.sum(&bytes).fold(), 0xffff, "{summer:?}");
    }
}

#[test]
fn the_carry_out_of_64_bits_comes_back() {
    let full = Sum::of(&[0xff; 8]);
    assert_eq!((full + full).fold(), 0xffff);
    assert_eq!((full + Sum::word(1)).fold(), 1);
    assert_eq!(Sum::of(&[0xff; 24]).fold(), 0xffff);
}

#[test]
fn several_fields_sum_as_they_do_one_by_one() {
    let fields = [u32::MAX, 0xffff_0000, 1, 0x8000_0001];
    let one_by_one = fields.into_iter().fold(Sum::ZERO, |sum, field| sum + Sum::long(field));
    assert_eq!(Sum::longs(fields).fold(), one_by_one.fold());
    assert_eq!(Sum::longs([]).fold(), 0);
}

#[test]
fn subtracting_all_there_is_leaves_the_negative_zero() {
    let sum = Sum::of(b"payload");
    assert_eq!((sum - sum).fold(), 0xffff);
    assert_eq!((sum - Sum::ZERO).fold(), sum.fold());
}

#[test]
fn an_ipv4_header_checksum_ignores_what_stands_in_its_field() {
    // A well-known example: the checksum of this header is 0xb861.
    let mut header = [
        0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0x00, 0x00, 0xc0, 0xa8, 0x00,
        0x01, 0xc0, 0xa8, 0x00, 0xc7,
    ];
    assert_eq!(ipv4_header_checksum(&header), 0xb861);
    header[10..12].copy_from_slice(&[0xb8, 0x61]);
    assert_eq!(ipv4_header_checksum(&header), 0xb861);
    assert!(Sum::of(&header).is_valid());
    assert_eq!(ipv4_header_checksum(&header[..4]), Sum::of(&header[..4]).checksum());
}

#[test]
fn completing_writes_all_ones_where_the_sum_says_zero() {
    let packet = [0xff, 0xff, 0x00, 0x00];
    assert_eq!(complete(&packet, 0, 2, Summer::detect()), Some(0xffff));
    assert_eq!(complete(&packet, 0, 3, Summer::detect()), None);
    assert_eq!(complete(&packet, 5, 0, Summer::detect()), None);
    assert_eq!(complete(&packet, 0, usize::MAX, Summer::detect()), None);
}

/// Generates words that often make sums reach 0x0000 and 0xffff.
fn word() -> impl Strategy<Value = u16> {
    prop_oneof![
        Just(0),
        Just(1),
        Just(0x7fff),
        Just(0x8000),
        Just(0xfffe),
        Just(0xffff),
        any::<u16>()
    ]
}

proptest! {
    #[test]
    fn any_bytes_sum_as_the_oracle_does(bytes in proptest::collection::vec(any::<u8>(), 0..2100)) {
        for summer in Summer::available() {
            prop_assert_eq!(summer.sum(&bytes).fold(), naive_fold(&bytes), "{:?}", summer);
        }
    }

    #[test]
    fn parts_combine_at_any_offset(
        bytes in proptest::collection::vec(any::<u8>(), 0..2100),
        cut in any::<prop::sample::Index>(),
    ) {
        let at = cut.index(bytes.len() + 1);
        let (head, tail) = bytes.split_at(at);
        for summer in Summer::available() {
            let (head, tail) = (summer.sum(head), summer.sum(tail).at(at));
            prop_assert_eq!((head + tail).fold(), naive_fold(&bytes));
            // Subtracting a part of zeros from the whole gives one of the two zeros.
            let left = ((head + tail) - head).fold();
            prop_assert_eq!(left % 0xffff, tail.fold() % 0xffff);
        }
    }

    #[test]
    fn an_updated_word_equals_summing_again(
        words in proptest::collection::vec(word(), 1..12),
        at in any::<prop::sample::Index>(),
        new in word(),
    ) {
        let bytes = |words: &[u16]| -> Vec<u8> {
            words.iter().flat_map(|word| word.to_be_bytes()).collect()
        };
        let checksum = Sum::of(&bytes(&words)).checksum();
        let mut changed = words.clone();
        let old = core::mem::replace(&mut changed[at.index(words.len())], new);
        let again = Sum::of(&bytes(&changed)).checksum();
        let updated = update_word(checksum, old, new);
        if changed.iter().all(|word| *word == 0) {
            // The one exception: the two results are different zeros.
            prop_assert_eq!((updated, again), (0, 0xffff));
        } else {
            prop_assert_eq!(updated, again);
        }
    }

    #[test]
    fn an_updated_long_equals_summing_again(
        rest in proptest::collection::vec(any::<u8>(), 20),
        (old, new) in ((word(), word()), (word(), word())),
    ) {
        let long = |(high, low): (u16, u16)| u32::from(high) << 16 | u32::from(low);
        let sum = |field: u32| Sum::of(&rest) + Sum::long(field) + Sum::word(6);
        let (old, new) = (long(old), long(new));
        prop_assert_eq!(update_long(sum(old).checksum(), old, new), sum(new).checksum());
    }
}
