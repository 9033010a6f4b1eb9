//! Tests of the pending acknowledgements, for single segments and for runs.

use rxo_wire::tcp::SackBlock;

use super::*;

const FULL: u32 = 1000;

fn plain(number: u32) -> PendingAck {
    let ack = SeqNumber(number);
    PendingAck { ack, echo: number, window: 7, has_mark: false, kind: AckKind::Plain }
}

fn alone(number: u32) -> PendingAck {
    PendingAck { kind: AckKind::Alone, ..plain(number) }
}

fn taken(acks: &mut Acks) -> Vec<PendingAck> {
    let first = acks.take().map(|(first, _)| first);
    first.into_iter().chain(acks.later().iter().copied()).collect()
}

fn numbers(acks: &mut Acks) -> Vec<u32> {
    taken(acks).iter().map(|ack| ack.ack.0).collect()
}

fn blocks(start: u32) -> SackBlocks {
    let mut blocks = SackBlocks::default();
    blocks.push(SackBlock { start: SeqNumber(start), end: SeqNumber(start + 1) });
    blocks
}

/// Every second full segment owes an acknowledgement (RFC 9293, section 3.8.6.3, SHLD-18, 19; Menon 2008,
/// section 3.4).
#[test]
fn every_second_full_segment_owes_one() {
    let mut acks = Acks::new(0, AckPolicy::EverySecondSegment);
    let pending = [1, 2, 3, 4, 5].map(|number| {
        let causes_ack = acks.count(FULL, FULL);
        if causes_ack {
            acks.queue(plain(number));
        }
        causes_ack
    });
    assert_eq!(pending, [false, true, false, true, false]);
    assert_eq!(numbers(&mut acks), [2, 4]);
    assert!(acks.is_delaying());
    assert!(numbers(&mut acks).is_empty());
}

#[test]
fn small_segments_wait_until_they_are_two_full_ones() {
    let mut acks = Acks::new(0, AckPolicy::EverySecondSegment);
    assert_eq!((0..20).find(|_| acks.count(100, FULL)), Some(19));
}

#[test]
fn alike_ones_are_counted_as_each_alone_would_be() {
    for (bytes, quick) in (1..=2 * FULL + 1).step_by(7).flat_map(|bytes| [(bytes, 0), (bytes, 3)]) {
        let (mut alone, mut together) = (
            Acks::new(quick, AckPolicy::EverySecondSegment),
            Acks::new(quick, AckPolicy::EverySecondSegment),
        );
        for acks in [&mut alone, &mut together] {
            acks.count(FULL / 3, FULL);
        }
        let mut left = 40;
        while left > 0 {
            let (counted, causes_ack) = together.count_alike((bytes, left), FULL);
            let each: Vec<_> = (0..counted).map(|_| alone.count(bytes, FULL)).collect();
            let first = each.iter().position(|causes_ack| *causes_ack);
            assert_eq!(first, causes_ack.then_some(each.len() - 1), "{bytes} bytes, {quick} quick");
            if causes_ack {
                alone.queue(plain(left));
                together.queue(plain(left));
            }
            left -= counted;
        }
        assert_eq!(alone.unacknowledged_bytes, together.unacknowledged_bytes);
        assert_eq!(alone.quick, together.quick);
    }
}

/// Each duplicate acknowledgement is sent with the SACK blocks with which it was added.
#[test]
fn duplicates_leave_one_by_one_in_their_place() {
    let mut acks = Acks::new(0, AckPolicy::EverySecondSegment);
    acks.queue(plain(1));
    acks.queue(plain(2));
    acks.queue_with_sack(alone(2), blocks(5));
    acks.queue(alone(2));
    acks.queue_with_sack(alone(2), blocks(6));
    acks.queue(plain(9));
    let mut next = || acks.take().map(|(_, sack)| (sack, acks.later().len()));
    let none = SackBlocks::default();
    let expected = [(none, 1), (blocks(5), 0), (none, 0), (blocks(6), 0), (none, 0)];
    assert_eq!([(); 5].map(|()| next()), expected.map(Some));
    assert_eq!(next(), None);
}

/// An acknowledgement of several segments echoes the timestamp of the first (RFC 7323, section 4.3).
#[test]
fn a_stretch_ack_is_the_last_one_with_the_echo_of_the_first() {
    let mut acks = Acks::new(0, AckPolicy::EverySecondSegment);
    acks.queue(plain(1));
    acks.take();
    (2..9).for_each(|n| acks.queue(plain(n)));
    acks.stretch();
    (9..12).for_each(|n| acks.queue(plain(n)));
    acks.stretch();
    let said: Vec<_> = taken(&mut acks).iter().map(|ack| (ack.ack.0, ack.echo)).collect();
    assert_eq!(said, [(11, 2)], "one until it is sent, and not the one that was");
}

/// A stretch acknowledgement replaces neither duplicates, which the peer counts, nor congestion marks, which
/// must not be hidden (RFC 3168, section 6.1.3).
#[test]
fn a_stretch_ack_replaces_neither_duplicates_nor_marks() {
    let mut acks = Acks::new(0, AckPolicy::EverySecondSegment);
    let marked = |number| PendingAck { has_mark: true, ..plain(number) };
    for ack in [plain(1), alone(1), plain(2), plain(3), marked(4), marked(5)] {
        acks.queue(ack);
        acks.stretch();
    }
    let said = core::iter::from_fn(|| acks.take()).map(|(ack, _)| (ack.ack.0, ack.has_mark));
    let expected = [(1, false), (1, false), (3, false), (5, true)];
    assert_eq!(said.collect::<Vec<_>>(), expected);
}

/// Each receiver acknowledges another one of eight segments, even after an acknowledgement for another
/// reason.
#[test]
fn spread_ones_are_due_at_the_offset() {
    for offset in 0..8 {
        let mut acks = Acks::new(0, AckPolicy::Spread { segments: 8, offset });
        let due: Vec<u16> = (1..=24)
            .filter(|number| {
                if *number == 13 {
                    acks.queue(plain(13));
                }
                acks.count(FULL, FULL)
            })
            .collect();
        assert_eq!(due, [8 - offset, 16 - offset, 24 - offset]);
    }
}

#[test]
fn the_last_one_is_kept_with_its_blocks() {
    let mut acks = Acks::new(0, AckPolicy::Spread { segments: 8, offset: 0 });
    acks.queue_with_sack(alone(1), blocks(3));
    acks.take();
    (2..5).for_each(|n| acks.queue_with_sack(alone(n), blocks(n)));
    acks.keep_last();
    let (last, sack) = acks.take().expect("one is owed");
    assert_eq!((last.ack.0, last.echo, sack), (4, 2, blocks(4)));
    assert!(acks.take().is_none());
    acks.queue_with_sack(alone(6), blocks(6));
    acks.queue(plain(7));
    acks.keep_last();
    let (last, sack) = acks.take().expect("one is owed");
    assert_eq!((last.ack.0, sack), (7, SackBlocks::default()));
}

/// Acknowledgements queued before the mark do not echo it (RFC 3168, section 6.1.3).
#[test]
fn marked_ones_leave_apart() {
    let mut acks = Acks::new(0, AckPolicy::EverySecondSegment);
    acks.queue(plain(1));
    acks.queue(plain(2));
    acks.queue(PendingAck { has_mark: true, ..plain(3) });
    assert_eq!(numbers(&mut acks), [1, 2]);
    assert_eq!(numbers(&mut acks), [3]);
}

#[test]
fn what_has_no_room_is_covered_by_the_last() {
    let mut acks = Acks::new(0, AckPolicy::EverySecondSegment);
    (0..2_000).for_each(|n| acks.queue(plain(n)));
    let many = numbers(&mut acks);
    assert_eq!((many.len(), many.last()), (MOST_PENDING, Some(&1_999)));
    (0..2_000).for_each(|n| acks.queue_with_sack(alone(n), blocks(n)));
    let all: Vec<_> = core::iter::from_fn(|| acks.take()).collect();
    let last = all.last().map(|(ack, sack)| (ack.ack.0, *sack));
    assert_eq!((all.len(), last), (MOST_SACKS, Some((1_999, blocks(1_999)))));
}

#[test]
fn memory_for_a_flood_is_given_back() {
    let mut acks = Acks::new(0, AckPolicy::EverySecondSegment);
    (0..1_000).for_each(|n| acks.queue(plain(n)));
    acks.take();
    acks.queue(plain(1_000));
    assert_eq!(numbers(&mut acks), [1_000]);
    assert!(acks.pending.capacity() < 2 * MOST_KEPT, "{}", acks.pending.capacity());
}
