//! Parses the `Range` field (RFC 9110, section 14).
//!
//! A single range is served. Several ranges are answered with the whole file, which the RFC allows.

/// The part of a file that a `Range` field selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RangeChoice {
    /// The client gets the whole file, because the field contains no range that the server supports.
    Whole,
    /// The client gets `bytes` bytes, at least one, starting at offset `from`.
    Part { from: u64, bytes: u64 },
    /// The client gets nothing, because the range begins after the end of the file (status 416).
    Nothing,
}

/// Returns the part of a file of `length` bytes that `field`, the value of a `Range` field, selects.
pub(crate) fn wanted(field: &str, length: u64) -> RangeChoice {
    let Some((unit, set)) = field.split_once('=') else { return RangeChoice::Whole };
    if !unit.trim().eq_ignore_ascii_case("bytes") || set.contains(',') {
        return RangeChoice::Whole;
    }
    let Some((first, last)) = set.trim().split_once('-') else { return RangeChoice::Whole };
    match (number(first), number(last)) {
        (Some(Some(first)), Some(last)) => between(first, last, length),
        (Some(None), Some(Some(bytes))) => suffix(bytes, length),
        _ => RangeChoice::Whole,
    }
}

fn between(first: u64, last: Option<u64>, length: u64) -> RangeChoice {
    if last.is_some_and(|last| last < first) {
        return RangeChoice::Whole;
    }
    if first >= length {
        return RangeChoice::Nothing;
    }
    let last = last.unwrap_or(u64::MAX).min(length - 1);
    RangeChoice::Part { from: first, bytes: last - first + 1 }
}

fn suffix(bytes: u64, length: u64) -> RangeChoice {
    match (bytes, length) {
        (0, _) => RangeChoice::Nothing,
        // A suffix of an empty file is the whole file; no `Content-Range` can express it.
        (_, 0) => RangeChoice::Whole,
        _ => RangeChoice::Part { from: length.saturating_sub(bytes), bytes: bytes.min(length) },
    }
}

/// Parses an optional number: `Some(None)` for an empty string, `None` if there are characters other than
/// digits. A number that is too large becomes the largest `u64`.
fn number(text: &str) -> Option<Option<u64>> {
    let text = text.trim();
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some((!text.is_empty()).then(|| text.parse().unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::RangeChoice::{Nothing, Part, Whole};
    use super::*;

    #[test]
    fn each_form_of_a_range() {
        let rows = [
            ("bytes=0-0", 10, Part { from: 0, bytes: 1 }),
            ("Bytes = 2-5 ", 10, Part { from: 2, bytes: 4 }),
            ("bytes=2-", 10, Part { from: 2, bytes: 8 }),
            ("bytes=2-99", 10, Part { from: 2, bytes: 8 }),
            ("bytes=2-99999999999999999999999", 10, Part { from: 2, bytes: 8 }),
            ("bytes=-3", 10, Part { from: 7, bytes: 3 }),
            ("bytes=-30", 10, Part { from: 0, bytes: 10 }),
            ("bytes=10-", 10, Nothing),
            ("bytes=0-", 0, Nothing),
            ("bytes=-0", 10, Nothing),
            ("bytes=-1", 0, Whole),
            ("bytes=5-2", 10, Whole),
            ("bytes=0-1,3-4", 10, Whole),
            ("bytes=-", 10, Whole),
            ("bytes=+1-2", 10, Whole),
            ("lines=0-1", 10, Whole),
            ("bytes", 10, Whole),
            ("", 10, Whole),
        ];
        for (field, length, expected) in rows {
            assert_eq!(wanted(field, length), expected, "{field} of {length}");
        }
    }

    proptest! {
        #[test]
        fn a_part_lies_inside(
            field in "bytes=[0-9]{0,21}-[0-9]{0,21}",
            length in prop_oneof![0..20_u64, any::<u64>()],
        ) {
            if let Part { from, bytes } = wanted(&field, length) {
                prop_assert!(bytes > 0 && from.checked_add(bytes).unwrap() <= length);
            }
        }

        #[test]
        fn any_text_is_answered(field in ".{0,40}", length in any::<u64>()) {
            wanted(&field, length);
        }
    }
}
