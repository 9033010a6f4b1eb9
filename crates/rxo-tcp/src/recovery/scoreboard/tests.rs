//! Tests of splits, counters and limits against an oracle with the state of each byte.

use super::*;
use proptest::prelude::*;

fn board(limit: usize) -> Scoreboard {
    let mut board = Scoreboard::with_limit(limit);
    board.sent(SeqNumber(0), SeqNumber(100), Instant::ZERO);
    board
}

fn block(start: u32, end: u32) -> SackBlock {
    SackBlock { start: SeqNumber(start), end: SeqNumber(end) }
}

#[test]
fn a_sack_cuts_a_large_send() {
    let mut board = board(32);
    let mut news = 0;
    board.sack(block(40, 60), |range| news += range.bytes());
    board.sack(block(40, 60), |range| news += range.bytes());
    assert_eq!((news, board.in_flight(), board.sacked()), (20, 80, 20));
    assert_eq!(board.mark_lost(|range| range.start == SeqNumber(0)), 40);
    assert_eq!(board.first_lost(30), Some((SeqNumber(0), SeqNumber(30))));
    board.sent_again(SeqNumber(0), SeqNumber(30), Instant::ZERO);
    assert_eq!((board.in_flight(), board.lost()), (70, 10));
    assert_eq!(board.last_unsacked(10), Some((SeqNumber(90), SeqNumber(100))));
}

#[test]
fn no_room_forgets_the_sack_only() {
    let mut board = board(1);
    board.sack(block(40, 60), |_| unreachable!("nothing can be cut"));
    assert_eq!(board.in_flight(), 100);
    board.acknowledge(SeqNumber(70), |range| assert_eq!(range.bytes(), 70));
    assert_eq!(board.in_flight(), 30);
}

/// Data that a peer held and discarded is retransmitted (RFC 2018, section 8).
#[test]
fn a_peer_that_reneged_is_not_believed() {
    let mut board = board(32);
    board.sack(block(50, 100), |_| {});
    board.mark_all_lost();
    assert_eq!((board.lost(), board.sacked()), (50, 50));
    board.acknowledge(SeqNumber(50), |_| {});
    board.mark_all_lost();
    assert_eq!((board.lost(), board.sacked()), (50, 0));
}

proptest! {
    /// The naive oracle keeps the state of each byte.
    #[test]
    fn counters_agree_with_bytes(
        operations in prop::collection::vec((0_u8..4, 0_u32..100, 1_u32..40), 0..40),
    ) {
        let mut board = board(256);
        let mut bytes = [RangeState::InFlight; 100];
        let mut una = 0;
        for (operation, at, length) in operations {
            let end = (at + length).min(100);
            match operation {
                0 => {
                    board.acknowledge(SeqNumber(at), |_| {});
                    una = una.max(at);
                }
                1 => {
                    board.sack(block(at.max(una), end.max(una)), |_| {});
                    let from = at.max(una) as usize;
                    bytes[from..(end as usize).max(from)].fill(RangeState::Sacked);
                }
                2 => {
                    board.mark_lost(|_| true);
                    let is_in_flight = |state: &&mut RangeState| **state == RangeState::InFlight;
                    bytes.iter_mut().filter(is_in_flight).for_each(|state| *state = RangeState::Lost);
                }
                _ => {
                    let Some((start, end)) = board.first_lost(length) else { continue };
                    board.sent_again(start, end, Instant::ZERO);
                    bytes[start.0 as usize..end.0 as usize].fill(RangeState::InFlight);
                }
            }
            let left = &bytes[una as usize..];
            let count = |state| left.iter().filter(|is| **is == state).count() as u32;
            let counted = [board.in_flight(), board.sacked(), board.lost()];
            let expected = [count(RangeState::InFlight), count(RangeState::Sacked), count(RangeState::Lost)];
            prop_assert_eq!(counted, expected);
            prop_assert_eq!(board.ranges.iter().map(Sent::bytes).sum::<u32>(), 100 - una);
        }
    }
}
