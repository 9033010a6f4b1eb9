//! Reports to the peer if much text arrives out of order at once: every segment is reported, in few
//! acknowledgements. The peer treats unreported text as lost and sends it again (RFC 8985, section 6.2; RFC
//! 6675, section 4).

use rxo_tcp::{AckPolicy, Config, SegmentOptions};
use rxo_wire::SeqNumber;
use rxo_wire::tcp::SackBlock;

use crate::dsl::*;

/// The number of segments in one poll: a packet ring holds more than the limit of pending acknowledgements.
const TURN: u32 = 250;

fn config(acks: AckPolicy) -> Config {
    Config { acks, receive_buffer_bytes: 1 << 20, window_scaling: true, ..with_sack() }
}

/// Gives one segment after the other. Returns the acknowledgements that leave, with their blocks.
fn answers(
    scene: &mut Scene,
    numbers: impl Iterator<Item = u32>,
) -> Vec<(SeqNumber, Vec<SackBlock>)> {
    numbers.for_each(|number| scene.gets(seg().seq(1 + number * MSS).len(MSS)));
    let mut answers = Vec::new();
    while let Some(transmit) = scene.tcp.poll_transmit(scene.now) {
        let options = SegmentOptions::read(transmit.options.as_slice());
        answers.push((transmit.ack, options.sack.as_slice().to_vec()));
    }
    answers
}

/// Returns `true` if one of `answers` reports the arrival of the segment.
fn is_told(answers: &[(SeqNumber, Vec<SackBlock>)], number: u32) -> bool {
    let (start, end) = (PEER_ISS + 1 + number * MSS, PEER_ISS + 1 + (number + 1) * MSS);
    answers.iter().any(|(ack, blocks)| {
        let has =
            |block: &SackBlock| start.is_at_or_after(block.start) && block.end.is_at_or_after(end);
        ack.is_at_or_after(end) || blocks.iter().any(has)
    })
}

#[test]
fn all_that_a_turn_brings_out_of_order_is_told() {
    for acks in [AckPolicy::OneForATurn, AckPolicy::EverySecondSegment] {
        for every in [7, 20, 100] {
            let mut scene = Scene::established(config(acks));
            let arrived = || (0..TURN).filter(move |number| number % every != 3);
            let answers = answers(&mut scene, arrived());
            let untold: Vec<_> = arrived().filter(|number| !is_told(&answers, *number)).collect();
            assert!(untold.is_empty(), "{acks:?}, one of {every} lost: {untold:?}");
        }
    }
}

/// RFC 2018, section 4 (c): an acknowledgement repeats the blocks reported last, whatever the number of
/// segments in each, so that one acknowledgement may be lost.
#[test]
fn each_block_is_told_three_times() {
    let mut scene = Scene::established(config(AckPolicy::OneForATurn));
    let answers = answers(&mut scene, (0..TURN).filter(|number| number % 7 != 3));
    // The last segment of each block. The first four blocks fit into one acknowledgement.
    for number in (30..200).filter(|number| number % 7 == 2) {
        let times = answers.iter().filter(|one| is_told(std::slice::from_ref(one), number)).count();
        assert!(times >= 3, "{number} is told {times} times");
    }
}

/// Many segments out of order cause few acknowledgements: as many as from Linux, which acknowledges once per
/// aggregate.
#[test]
fn a_turn_out_of_order_brings_few_acks() {
    let mut scene = Scene::established(config(AckPolicy::OneForATurn));
    let answers = answers(&mut scene, (0..TURN).filter(|number| number % 50 != 3));
    assert!((4..=12).contains(&answers.len()), "{answers:?}");
}

/// RFC 5681, section 3.2: a peer that counts duplicates retransmits after three.
#[test]
fn the_first_three_duplicates_leave() {
    let mut scene = Scene::established(config(AckPolicy::OneForATurn));
    let told: Vec<_> = answers(&mut scene, 1..40)
        .iter()
        .map(|(_, blocks)| blocks[0].end - blocks[0].start)
        .collect();
    assert_eq!(told, [1, 2, 3, 39].map(|segments| segments * MSS as i32));
    // The count does not restart with each poll.
    assert_eq!(answers(&mut scene, 40..80).len(), 1);
}

/// RFC 2883, section 4: duplicate text is reported only once, so no such report may be dropped.
#[test]
fn every_duplicate_is_told() {
    let mut scene = Scene::established(config(AckPolicy::OneForATurn));
    let twice = answers(&mut scene, (1..9).flat_map(|number| [number, number]));
    let reported: Vec<_> = (1..9)
        .filter(|number| {
            let start = PEER_ISS + 1 + number * MSS;
            twice.iter().any(|(_, blocks)| {
                blocks[0] == SackBlock { start, end: start + MSS } && blocks.len() > 1
            })
        })
        .collect();
    assert_eq!(reported, (1..9).collect::<Vec<_>>());
}
