//! A patch: the differences between two headers of equal length.
//!
//! A patch consists of the number of hunks, followed by the hunks. A hunk consists of the number of bytes to
//! skip, the number of bytes that differ, and these bytes.

use super::{BadNote, Reader, put_number};

/// The maximum number of equal bytes between two differences that are included in one hunk. Including these
/// bytes makes the patch shorter, because a new hunk costs two numbers.
const GAP_BYTES: usize = 2;

/// Appends to `note` the patch that changes the header `from` to the header `to`, which has equal length.
/// Appends nothing if the headers are equal. Returns `true` if the headers differ.
pub(super) fn write(from: &[u8], to: &[u8], note: &mut Vec<u8>) -> bool {
    if from == to {
        return false;
    }
    let hunks = hunks(from, to);
    put_number(note, hunks.len() as u64);
    let mut after = 0;
    for (start, end) in hunks {
        put_number(note, (start - after) as u64);
        put_number(note, (end - start) as u64);
        note.extend_from_slice(to.get(start..end).unwrap_or_default());
        after = end;
    }
    true
}

/// Returns the ranges in which the two headers differ.
fn hunks(from: &[u8], to: &[u8]) -> Vec<(usize, usize)> {
    let mut hunks: Vec<(usize, usize)> = Vec::new();
    for (at, _) in from.iter().zip(to).enumerate().filter(|(_, (a, b))| a != b) {
        match hunks.last_mut() {
            Some((_, end)) if at <= *end + GAP_BYTES => *end = at + 1,
            _ => hunks.push((at, at + 1)),
        }
    }
    hunks
}

/// Applies the patch that comes next in `note` to `header`.
pub(super) fn apply(header: &mut [u8], note: &mut Reader<'_>) -> Result<(), BadNote> {
    let mut at = 0;
    for _ in 0..note.size(header.len())? {
        at += note.size(header.len())?;
        let count = note.size(header.len())?;
        let place = header.get_mut(at..at + count).ok_or(BadNote("changes bytes out of reach"))?;
        place.copy_from_slice(note.bytes(count)?);
        at += count;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_patch_makes_one_out_of_the_other(pairs: Vec<(u8, u8)>) {
            let (from, to): (Vec<u8>, Vec<u8>) = pairs.into_iter().unzip();
            let mut note = Vec::new();
            let differ = write(&from, &to, &mut note);
            prop_assert_eq!(differ, from != to);
            let mut patched = from;
            let mut reader = Reader::new(&note);
            if differ {
                apply(&mut patched, &mut reader).unwrap();
            }
            prop_assert!(reader.is_at_end());
            prop_assert_eq!(patched, to);
        }

        #[test]
        fn any_bytes_are_applied_or_refused(mut header: Vec<u8>, note: Vec<u8>) {
            _ = apply(&mut header, &mut Reader::new(&note));
        }
    }
}
