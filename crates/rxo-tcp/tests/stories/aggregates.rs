//! Equivalence: the same input as single segments and as aggregates gives the same bytes, the same
//! acknowledgement numbers and the same congestion window (Menon 2008, sections 3.4 and 3.6).

use proptest::prelude::*;
use rxo_tcp::{Arrival, Config};
use rxo_wire::SeqNumber;
use rxo_wire::tcp::AckRecord;

use crate::dsl::*;

/// The input of a peer between two polls.
#[derive(Clone, Debug)]
struct Turn {
    /// Segments of text: the length, the advance of the ACK number, and `true` for a gap before the segment.
    segments: Vec<(u32, u32, bool)>,
    /// The number of bytes that the application sends before the segments arrive.
    sends: u32,
    /// `true` if the application reads after the segments have arrived.
    reads: bool,
    /// The time until the next turn, in milliseconds.
    pause: u64,
}

fn turns() -> impl Strategy<Value = Vec<Turn>> {
    let segment = (1_u32..=MSS, 0_u32..3_000, prop::bool::weighted(0.05));
    let turn = (prop::collection::vec(segment, 1..12), 0_u32..9_000, any::<bool>(), 0_u64..60);
    let turn =
        turn.prop_map(|(segments, sends, reads, pause)| Turn { segments, sends, reads, pause });
    prop::collection::vec(turn, 1..12)
}

/// Everything about a connection that is visible from outside.
#[derive(Debug, PartialEq)]
struct Seen {
    lines: Vec<String>,
    bytes: Vec<u8>,
    windows: Vec<(u32, u32, u32)>,
}

#[derive(Clone, Copy, PartialEq)]
enum Way {
    Single,
    Aggregate,
}

fn play(turns: &[Turn], config: &Config, way: Way) -> Seen {
    let mut scene = Scene::established(config.clone());
    let with_timestamps = config.timestamps;
    let mut seen = Seen { lines: Vec::new(), bytes: Vec::new(), windows: Vec::new() };
    let (mut seq, mut ack) = (1, 1);
    for (number, turn) in turns.iter().enumerate() {
        let data = vec![7; turn.sends as usize];
        let _ = scene.tcp.send(&data);
        seen.lines.extend(scene.out());
        let outstanding = {
            let now = scene.tcp.statistics();
            (now.snd_nxt - now.snd_una) as u32
        };
        let most = ack + outstanding;
        let mut segments = Vec::new();
        for (length, advance, has_gap) in &turn.segments {
            seq += if *has_gap { 100 } else { 0 };
            ack = most.min(ack + advance);
            let peer = seg().seq(seq).ack(ack).len(*length);
            segments.push(if with_timestamps { peer.ts(number as u32, 0) } else { peer });
            seq += length;
        }
        match way {
            Way::Single => segments.into_iter().for_each(|peer| scene.gets(peer)),
            Way::Aggregate => scene.gets_aggregate(segments),
        }
        let after = scene.tcp.statistics();
        seen.windows.push((after.cwnd, after.ssthresh, after.in_flight));
        seen.lines.extend(scene.out());
        if turn.reads {
            seen.bytes.extend(scene.reads());
        }
        seen.lines.extend(scene.after(ms(turn.pause)));
    }
    seen.bytes.extend(scene.reads());
    seen
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn singles_and_aggregates_are_the_same(turns in turns(), choice in 0_u8..4) {
        let config = match choice {
            0 => plain(),
            1 => with_sack(),
            2 => Config { timestamps: true, sack: true, ..plain() },
            _ => Config { large_send_bytes: 64_000, window_scaling: true, ..with_sack() },
        };
        let single = play(&turns, &config, Way::Single);
        let aggregate = play(&turns, &config, Way::Aggregate);
        prop_assert_eq!(single, aggregate);
    }
}

/// Without loss, a stack that transmits after each single segment sends the same acknowledgement numbers, and
/// has the same window after each aggregate.
#[test]
fn a_bulk_transfer_is_acknowledged_alike() {
    let mut single = Scene::established(plain());
    let mut aggregate = Scene::established(plain());
    for turn in 0..5 {
        let segments: Vec<Peer> =
            (0..9).map(|n| seg().seq(1 + (turn * 9 + n) * MSS).len(MSS)).collect();
        let one_by_one: Vec<_> =
            segments.iter().flat_map(|peer| single.answers(peer.clone())).collect();
        aggregate.gets_aggregate(segments);
        assert_eq!(one_by_one, aggregate.out());
        assert_eq!(single.reads(), aggregate.reads());
        assert_eq!(single.out(), aggregate.out());
    }
}

/// RFC 9293, section 3.8.6.3: text that waits after an aggregate arrived with it, whatever was waiting
/// before. Its delayed acknowledgement therefore starts anew.
#[test]
fn an_aggregate_does_not_hurry_the_acknowledgement_of_its_last_segment() {
    let mut scene = Scene::established(plain());
    scene.gets(seg().seq(1).len(1));
    assert!(scene.after(ms(20)).is_empty());
    let full = |at| seg().seq(at).len(MSS);
    scene.gets_aggregate(vec![full(2), full(2 + MSS), seg().seq(2 + 2 * MSS).len(1)]);
    assert_eq!(scene.out().len(), 1);
    assert!(scene.after(ms(30)).is_empty(), "the last has waited for 30 ms, the first for 50");
    assert_eq!(scene.after(ms(30)).len(), 1);
}

/// Menon 2008, section 3.4: each acknowledgement on segments with text opens the window.
#[test]
fn acknowledgements_inside_an_aggregate_are_counted() {
    let mut scene = Scene::established(plain());
    scene.sends(30_000);
    assert_eq!(scene.cwnd_segments(), 10);
    scene.gets_aggregate((0..5).map(|n| seg().seq(1 + n * 10).len(10).ack(1 + (n + 1) * 2 * MSS)));
    assert_eq!(scene.cwnd_segments(), 20);
}

/// A record has the effect of the pure ACK that it describes, and ten records have the effect of ten ACKs,
/// whether they are contiguous or not.
#[test]
fn a_record_is_a_pure_ack() {
    let [mut whole, mut record, mut side_by_side] = [(); 3].map(|()| Scene::established(plain()));
    let first_out = whole.sends(30_000);
    assert_eq!(first_out, record.sends(30_000));
    assert_eq!(first_out, side_by_side.sends(30_000));
    let acks = (1..=10).map(|n| seg().ack(1 + n * MSS).win(40_000 + n as u16));
    let records: Vec<AckRecord> = acks.clone().map(|peer| record.record(peer)).collect();
    acks.for_each(|peer| whole.gets(peer));
    side_by_side.tcp.on_pure_acks(side_by_side.now, &records);
    record.tcp.on_arrival(record.now, Arrival::acks(records));
    assert_eq!(whole.tcp.statistics(), record.tcp.statistics());
    assert_eq!(whole.tcp.statistics(), side_by_side.tcp.statistics());
    let out = whole.out();
    assert_eq!(out, record.out());
    assert_eq!(out, side_by_side.out());
    assert_eq!(whole.cwnd_segments(), 20);
    assert_ne!(whole.tcp.statistics().snd_una, SeqNumber(0));
}

/// The first of two ACKs opens a window that was probed, and the second closes it again. The probes begin
/// anew, as if each ACK had come alone.
#[test]
fn a_window_that_opens_and_closes_in_one_arrival_is_probed_anew() {
    let (mut alone, mut together) = (Scene::established(plain()), Scene::established(plain()));
    for scene in [&mut alone, &mut together] {
        scene.sends(30_000);
        scene.gets(seg().ack(1 + 10 * MSS).win(0));
        assert!(!scene.after(ms(1_500)).is_empty());
        assert!(scene.tcp.statistics().window_probes > 0);
    }
    let acks = [500, 0].map(|window| seg().ack(1 + 10 * MSS).win(window));
    let records = acks.clone().map(|peer| {
        let segment = together.segment(peer);
        let (seq, ack, window, flags) = (segment.seq, segment.ack, segment.window, segment.flags);
        let arrived_at_ns = segment.arrived_at.as_nanos();
        AckRecord { arrived_at_ns, seq, ack, window, flags, ..AckRecord::default() }
    });
    for peer in acks {
        let segment = alone.segment(peer);
        alone.tcp.on_arrival(alone.now, segment.into());
    }
    together.tcp.on_arrival(together.now, Arrival::acks(records));
    assert_eq!(alone.tcp.statistics(), together.tcp.statistics());
    assert_eq!(alone.tcp.poll_at(), together.tcp.poll_at());
    assert_eq!(together.tcp.statistics().window_probes, 0);
}
