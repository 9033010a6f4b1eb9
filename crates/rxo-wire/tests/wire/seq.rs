//! Sequence numbers wrap around.

use rxo_wire::SeqNumber;

#[test]
fn order_holds_across_the_wrap() {
    let last = SeqNumber(u32::MAX);
    assert_eq!(last + 1, SeqNumber(0));
    assert!(last.is_before(last + 1));
    assert!(!(last + 1).is_before(last));
    assert!((last + 1).is_at_or_after(last));
    assert!(last.is_at_or_after(last) && !last.is_before(last));
}

#[test]
fn distance_is_signed_and_takes_the_shorter_way() {
    assert_eq!(SeqNumber(5) - SeqNumber(u32::MAX - 4), 10);
    assert_eq!(SeqNumber(u32::MAX - 4) - SeqNumber(5), -10);
    assert_eq!(SeqNumber(0x8000_0000) - SeqNumber(0), i32::MIN);
}

#[test]
fn before_reaches_half_the_circle() {
    for start in [0, 1, 0x7fff_ffff, 0x8000_0000, u32::MAX] {
        let start = SeqNumber(start);
        for distance in [1, 1448, 0x7fff_ffff] {
            assert!(start.is_before(start + distance), "{start:?} + {distance}");
            assert!(!(start + distance).is_before(start), "{start:?} + {distance}");
        }
        assert!(!start.is_before(start + 0x8000_0001));
    }
}
