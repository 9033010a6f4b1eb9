//! Frames, their checksum status, and time.

use rxo_frame::{ChecksumStatus, Duration, Frame, Gather, Instant};

#[test]
fn a_new_frame_claims_nothing() {
    let frame = Frame::new(vec![1, 2, 3], Instant::from_micros(5));
    assert_eq!(frame.checksum, ChecksumStatus::Unknown);
    assert!(frame.gso.is_none() && frame.vlan.is_none());
    assert_eq!(frame.arrived_at.as_nanos(), 5_000);
    assert_eq!(frame.bytes(), [1, 2, 3]);
}

#[test]
fn a_borrowed_frame_shows_itself_as_one_piece_and_one_frame() {
    let mut owned = Frame::new(vec![1, 2, 3], Instant::ZERO);
    owned.checksum = ChecksumStatus::Partial { start: 34, offset: 16 };
    let frame = owned.borrowed();
    let mut pieces = Vec::new();
    frame.for_each_slice(|piece| pieces.push(piece));
    assert_eq!(pieces, [&[1_u8, 2, 3][..]]);
    let mut frames = Vec::new();
    frame.for_each_frame(|frame| frames.push(frame));
    assert_eq!(frames, [frame]);
    assert_eq!((frame.byte_len(), frame.frame_count()), (3, 1));
    assert_eq!(frame.offload().checksum, owned.checksum);
}

#[test]
fn only_an_unknown_checksum_needs_a_look_and_only_a_partial_one_completing() {
    let partial = ChecksumStatus::Partial { start: 34, offset: 16 };
    let said = [ChecksumStatus::Unknown, ChecksumStatus::Verified, partial];
    assert_eq!(said.map(ChecksumStatus::is_trusted), [false, true, true]);
    assert_eq!(said.map(ChecksumStatus::is_partial), [false, false, true]);
}

#[test]
fn time_saturates_at_both_ends() {
    let late = Instant::from_nanos(u64::MAX - 1);
    assert_eq!((late + Duration::from_secs(1)).as_nanos(), u64::MAX);
    assert_eq!((late + Duration::MAX).as_nanos(), u64::MAX);
    assert_eq!(Instant::from_micros(u64::MAX).as_nanos(), u64::MAX);
    assert_eq!(Instant::ZERO.since(late), Duration::ZERO);
    assert_eq!(Instant::from_nanos(30) - Instant::from_nanos(10), Duration::from_nanos(20));
    assert!(Instant::from_nanos(10) < Instant::from_nanos(11));
}
