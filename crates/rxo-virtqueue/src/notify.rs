//! The rule by which a side may omit a notification: the event index (sections 2.7.7, 2.7.10 and 2.8.10).
//!
//! These are pure functions, which tests compare with a naive implementation.

use crate::ring::Position;

/// Returns `true` if the index of a split ring passed the entry `event`, for which the other side requested a
/// notification (section 2.7.10.1). The index advanced by `passed` entries to `new`. If `passed` is 65,536 or
/// more, every entry was passed.
#[inline]
#[must_use]
pub const fn split_passes(event: u16, new: u16, passed: u32) -> bool {
    let behind = new.wrapping_sub(event).wrapping_sub(1);
    (behind as u32) < passed
}

/// Returns `true` if the position of a packed ring passed the descriptor for which the other side requested a
/// notification (section 2.8.10). The position advanced by `passed` descriptors to `now`.
///
/// `event` is the event suppression structure: offset and wrap counter in the low half, flags in the high
/// half. Invalid flags and offsets count as "always", because a spurious notification does no harm.
#[inline]
#[must_use]
pub(crate) const fn packed_passes(
    event: u32,
    now: Position,
    passed: u32,
    size: u16,
    event_index: bool,
) -> bool {
    if passed == 0 {
        return false;
    }
    match event >> 16 {
        FLAG_DISABLE => return false,
        FLAG_DESCRIPTOR if event_index => {}
        _ => return true,
    }
    let Some(asked) = Position::from_off_wrap(event & 0xffff, size) else { return true };
    let lap = 2 * size as u32;
    let behind = (now.linear(size) + lap - asked.linear(size)) % lap;
    // A distance of zero means the next descriptor, or the one a whole lap ago; only the latter was passed.
    let behind = if behind == 0 { lap } else { behind };
    behind <= passed
}

/// Flag of the event suppression structure: always notify.
pub(crate) const FLAG_ENABLE: u32 = 0;
/// Flag of the event suppression structure: never notify.
pub(crate) const FLAG_DISABLE: u32 = 1;
/// Flag of the event suppression structure: notify when a given descriptor is passed.
pub(crate) const FLAG_DESCRIPTOR: u32 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares every passed entry with `event`: the naive oracle.
    fn naive_split(event: u16, new: u16, passed: u32) -> bool {
        (1..=passed).any(|back| new.wrapping_sub(back as u16) == event)
    }

    #[test]
    fn the_split_rule_is_the_naive_one() {
        for new in [0_u16, 1, 2, 100, 0x7fff, 0x8000, 0xfffe, 0xffff] {
            for event in (0..600).map(|near: u16| new.wrapping_add(near).wrapping_sub(300)) {
                for passed in [0, 1, 2, 3, 17, 255, 299, 300, 0xffff, 0x1_0000, u32::MAX] {
                    let naive = passed > 0xffff || naive_split(event, new, passed);
                    assert_eq!(split_passes(event, new, passed), naive, "{event} {new} {passed}");
                }
            }
        }
    }

    /// Returns the position one descriptor before `at`.
    fn before(at: Position, size: u16) -> Position {
        match at.index {
            0 => Position { index: size - 1, wrap: !at.wrap },
            index => Position { index: index - 1, wrap: at.wrap },
        }
    }

    fn naive_packed(asked: Position, mut now: Position, passed: u32, size: u16) -> bool {
        (0..passed).any(|_| {
            now = before(now, size);
            now == asked
        })
    }

    fn positions(size: u16) -> impl Iterator<Item = Position> {
        (0..2 * size).map(move |n| Position { index: n % size, wrap: n < size })
    }

    #[test]
    fn the_packed_rule_is_the_naive_one() {
        for size in 1..=9 {
            for now in positions(size) {
                for asked in positions(size) {
                    for passed in 0..5 * u32::from(size) {
                        let event = FLAG_DESCRIPTOR << 16 | asked.off_wrap();
                        let naive = naive_packed(asked, now, passed, size);
                        assert_eq!(packed_passes(event, now, passed, size, true), naive);
                    }
                }
            }
        }
    }

    #[test]
    fn flags_of_a_packed_ring_decide_alone_without_the_event_index() {
        let now = Position::START;
        for (flags, indexed, plain) in [
            (FLAG_ENABLE, true, true),
            (FLAG_DISABLE, false, false),
            (FLAG_DESCRIPTOR, false, true),
            (3, true, true),
        ] {
            assert_eq!(packed_passes(flags << 16 | 2, now, 1, 4, true), indexed);
            assert_eq!(packed_passes(flags << 16 | 2, now, 1, 4, false), plain);
            assert!(!packed_passes(flags << 16, now, 0, 4, true), "nothing was passed");
        }
        assert!(packed_passes(FLAG_DESCRIPTOR << 16 | 4, now, 1, 4, true), "outside the ring");
    }
}
