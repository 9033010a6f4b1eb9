use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;

const SIZE: u32 = 1_000;
const ROUND_TRIP: Duration = Duration::from_micros(400);

fn at(us: u64) -> Instant {
    Instant::from_micros(us)
}

/// Returns the request of receiver `id` for segment `number` of the stream.
fn wanted(id: MemberId, number: u64) -> RepairRequest {
    let start = number * u64::from(SIZE);
    RepairRequest::of_test((start, start + u64::from(SIZE)), id, ROUND_TRIP)
}

/// Returns the blocks of a stream of `segments` segments that was sent at the time 0.
fn blocks(segments: u64) -> Blocks {
    let mut blocks = Blocks::default();
    blocks.sent((0, segments * u64::from(SIZE)), SIZE, at(0));
    blocks
}

impl Blocks {
    fn packets_at(&mut self, now: Instant) -> Vec<(u64, Range<u8>)> {
        core::iter::from_fn(|| self.take_due(false, None, now))
            .map(|due| (due.start, due.packets))
            .collect()
    }
}

#[test]
fn one_packet_repairs_a_different_loss_at_each_receiver() {
    let mut blocks = blocks(64);
    for id in 0..20 {
        assert!(blocks.ask(&wanted(id, u64::from(id)), false, at(300)));
    }
    assert_eq!(blocks.next_at(false), Some(at(0)), "at once");
    assert_eq!(blocks.packets_at(at(500)), [(0, 0..1)]);
    assert_eq!((blocks.packets_at(at(9_000)), blocks.next_at(false)), (Vec::new(), None));
}

#[test]
fn an_open_block_waits_for_more_segments_but_not_long() {
    let mut blocks = blocks(70);
    assert!(blocks.ask(&wanted(1, 66), false, at(300)));
    assert_eq!(blocks.next_at(false), Some(at(10_000)));
    assert_eq!(blocks.packets_at(at(9_999)), []);
    assert_eq!(blocks.next_at(true), Some(at(0)), "no more segments follow");
    blocks.sent((70_000, 200_000), SIZE, at(2_000));
    assert_eq!(blocks.packets_at(at(2_000)), [(64_000, 0..1)]);
}

#[test]
fn whoever_asks_for_more_later_gets_the_difference() {
    let mut blocks = blocks(64);
    assert!(blocks.ask(&wanted(1, 3), false, at(300)));
    assert_eq!(blocks.packets_at(at(300)), [(0, 0..1)]);
    assert!(
        blocks.ask(&wanted(2, 9), false, at(310)) && blocks.ask(&wanted(1, 60), false, at(320))
    );
    assert_eq!(blocks.packets_at(at(320)), [(0, 1..2)]);
}

#[test]
fn who_asks_again_gets_more_packets_then_the_segments() {
    let mut blocks = blocks(64);
    let ask = |blocks: &mut Blocks, us| {
        (0..8).all(|number| blocks.ask(&wanted(1, number), false, at(us)))
    };
    assert!(ask(&mut blocks, 300) && ask(&mut blocks, 450), "they have not left");
    assert_eq!(blocks.packets_at(at(500)), [(0, 0..8)]);
    assert!(ask(&mut blocks, 999), "they are on their way");
    assert_eq!(blocks.packets_at(at(999)), []);
    for (us, packets) in [(1_000, 8..9), (2_000, 9..11), (3_000, 11..15)] {
        assert!(ask(&mut blocks, us));
        assert_eq!(blocks.packets_at(at(us)), [(0, packets)]);
    }
    assert!(!ask(&mut blocks, 4_000), "it cannot use packets");
    assert!(blocks.ask(&wanted(2, 1), false, at(4_000)), "another one can");
}

#[test]
fn after_the_fin_the_second_repair_is_the_segment() {
    let mut blocks = blocks(10);
    assert!(blocks.ask(&wanted(1, 3), true, at(300)));
    assert_eq!(blocks.take_due(true, None, at(500)).map(|due| due.packets), Some(0..1));
    assert!(!blocks.ask(&wanted(1, 3), true, at(1_000)));
}

#[test]
fn what_no_block_has_is_repeated() {
    let mut blocks = blocks(64);
    let short = RepairRequest::of_test((0, 10), 1, ROUND_TRIP);
    let shifted = RepairRequest::of_test((10, 1_010), 1, ROUND_TRIP);
    for wanted in [short, shifted, wanted(1, 64)] {
        assert!(!blocks.ask(&wanted, false, at(300)));
    }
    assert!((0..32).all(|number| blocks.ask(&wanted(1, number), false, at(300))));
    assert!(!blocks.ask(&wanted(1, 32), false, at(300)), "more than parity packets");
    assert_eq!(blocks.advance(64_000), 64_000);
    assert!(blocks.blocks.is_empty());
}

#[test]
fn a_block_is_kept_whole_until_all_receivers_have_all_of_it() {
    let mut blocks = blocks(70);
    assert_eq!(
        [0, 9_000, 63_999, 64_000, 69_999].map(|una| blocks.advance(una)),
        [0, 0, 0, 64_000, 64_000]
    );
    assert_eq!(blocks.advance(70_000), 70_000);
    // What follows is another block, because the data of the last one is gone.
    blocks.sent((70_000, 75_000), SIZE, at(2_000));
    assert_eq!(blocks.advance(71_000), 70_000);
}

proptest! {
    /// The oracle: each block needs as many packets as the receiver with the most losses in it lacks
    /// segments.
    #[test]
    fn the_worst_receiver_decides(
        lost in prop::collection::vec((0_u32..30, 0_u64..256), 0..150),
    ) {
        let mut blocks = blocks(256);
        let mut all = BTreeMap::<(u64, MemberId), u64>::new();
        for (id, number) in lost {
            *all.entry((number / 64, id)).or_default() |= 1 << (number % 64);
            prop_assert!(blocks.ask(&wanted(id, number), false, at(300)));
        }
        let mut worst = BTreeMap::<u64, u8>::new();
        for ((block, _), lost) in all {
            let worst = worst.entry(64_000 * block).or_default();
            *worst = (*worst).max(lost.count_ones() as u8);
        }
        let worst: Vec<_> = worst.into_iter().map(|(start, most)| (start, 0..most)).collect();
        prop_assert_eq!(blocks.packets_at(at(500)), worst);
    }
}
