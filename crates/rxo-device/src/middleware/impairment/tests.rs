//! The impaired network on virtual time: examples first, then properties for arbitrary frames and times.

use proptest::prelude::*;
use rxo_frame::{ChecksumStatus, VlanTag};
use rxo_testkit::naive::{self, Reading, Segment};
use rxo_testkit::{Packet, seg, udp};

use super::*;
use crate::{FrameSource, MemoryLink, MemoryOptions};

const PERCENT: u32 = 10_000;

fn at(micros: u64) -> Instant {
    Instant::from_micros(micros)
}

fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

fn network(settings: ImpairmentSettings) -> Impairment {
    Impairment::new(settings, LinkKind::Ethernet).unwrap()
}

/// Builds a frame that contains its number.
fn numbered(number: u32, arrived_at: Instant) -> Frame<Vec<u8>> {
    Frame::new(number.to_be_bytes().to_vec(), arrived_at)
}

fn number(frame: &Frame<Vec<u8>>) -> u32 {
    u32::from_be_bytes(frame.bytes[..].try_into().unwrap())
}

/// Returns the numbers of all frames that the network has released by `now`.
fn out(network: &mut Impairment, now: Instant) -> Vec<u32> {
    std::iter::from_fn(|| network.pop(now)).map(|frame| number(&frame)).collect()
}

/// Sends `count` frames, one per millisecond. Returns the numbers of all frames that come out, and the
/// counters.
fn sent(settings: ImpairmentSettings, count: u32) -> (Vec<u32>, ImpairmentCounters) {
    let mut network = network(settings);
    let mut all = Vec::new();
    for index in 0..count {
        let now = at(u64::from(index) * 1_000);
        network.push(&numbered(index, now));
        all.extend(out(&mut network, now));
    }
    while let Some(due_at) = network.poll_at() {
        all.extend(out(&mut network, due_at));
    }
    (all, network.counters())
}

#[test]
fn a_delayed_frame_comes_out_on_time_and_not_before() {
    let mut network = network(ImpairmentSettings { delay: millis(20), ..Default::default() });
    network.push(&numbered(7, at(500)));
    assert_eq!(network.poll_at(), Some(at(20_500)));
    assert_eq!(network.pop(at(20_499)), None);
    let frame = network.pop(at(21_000)).unwrap();
    assert_eq!((number(&frame), frame.arrived_at), (7, at(20_500)));
    assert_eq!((network.poll_at(), network.is_empty()), (None, true));
}

#[test]
fn what_the_device_said_survives_the_delay() {
    let mut network = network(ImpairmentSettings { delay: millis(1), ..Default::default() });
    let tag = VlanTag { tpid: 0x8100.try_into().unwrap(), tci: 5 };
    let frame = Frame { vlan: Some(tag), ..seg().partial().frame() };
    network.push(&frame);
    let late = network.pop(at(1_000)).unwrap();
    assert_eq!(late, Frame { arrived_at: at(1_000), ..frame });
}

#[test]
fn jitter_delays_and_keeps_the_order() {
    let settings = ImpairmentSettings { delay: millis(1), jitter: millis(5), ..Default::default() };
    let mut network = network(settings);
    (0..1_000).for_each(|index| network.push(&numbered(index, at(u64::from(index) * 10))));
    let mut waits = Vec::new();
    for index in 0..1_000 {
        let frame = network.pop(Instant::from_nanos(u64::MAX)).unwrap();
        assert_eq!(number(&frame), index);
        waits.push(frame.arrived_at.since(at(u64::from(index) * 10)));
    }
    assert!(waits.iter().all(|wait| (millis(1)..=millis(6)).contains(wait)), "{waits:?}");
    assert!(waits.iter().max() > Some(&millis(5)), "{waits:?}");
}

#[test]
fn a_link_takes_its_time_for_each_frame() {
    let rate_bytes_per_s = Some(4_000);
    let mut network = network(ImpairmentSettings { rate_bytes_per_s, ..Default::default() });
    (0..3).for_each(|index| network.push(&numbered(index, at(0))));
    let times: Vec<_> = std::iter::from_fn(|| network.poll_at().and_then(|at| network.pop(at)))
        .map(|frame| frame.arrived_at)
        .collect();
    assert_eq!(times, [at(1_000), at(2_000), at(3_000)]);
}

#[test]
fn gathered_frames_come_out_together() {
    let gather = Duration::from_micros(250);
    let mut network = network(ImpairmentSettings { gather, ..Default::default() });
    (0..50).for_each(|index| network.push(&numbered(index, at(u64::from(index) * 10 + 1))));
    // The first frame came at 1 and the 26th at 251, when the wait for the first is over.
    assert_eq!(network.poll_at(), Some(at(251)));
    assert_eq!(out(&mut network, at(251)).len(), 25);
    assert_eq!(network.poll_at(), Some(at(501)));
    assert_eq!(out(&mut network, at(500)), [0_u32; 0]);
    assert_eq!(out(&mut network, at(501)).len(), 25);
    // A frame that comes later begins another wait.
    network.push(&numbered(99, at(10_000)));
    assert_eq!(network.poll_at(), Some(at(10_250)));
}

#[test]
fn a_frame_set_back_is_overtaken_by_as_many_as_said() {
    // Only the first frame is set back: the setting is reset before the others are added.
    let mut network = network(ImpairmentSettings {
        reorder_ppm: 100 * PERCENT,
        displacement: Displacement { frames: Some(3), time: millis(100) },
        ..Default::default()
    });
    network.push(&numbered(0, at(0)));
    network.settings.reorder_ppm = 0;
    assert_eq!(out(&mut network, at(0)), [0_u32; 0]);
    (1..6).for_each(|index| network.push(&numbered(index, at(10))));
    assert_eq!(out(&mut network, at(10)), [1, 2, 3, 0, 4, 5]);
    assert_eq!(network.counters().reordered, 1);
}

#[test]
fn a_frame_set_back_does_not_wait_for_others_longer_than_said() {
    let mut network = network(ImpairmentSettings {
        reorder_ppm: 100 * PERCENT,
        displacement: Displacement { frames: Some(3), time: millis(2) },
        delay: millis(1),
        ..Default::default()
    });
    network.push(&numbered(0, at(0)));
    assert_eq!(out(&mut network, at(1_000)), [0_u32; 0]);
    assert_eq!(network.poll_at(), Some(at(3_000)));
    assert_eq!(out(&mut network, at(3_000)), [0]);
}

#[test]
fn a_frame_set_back_by_time_lets_everything_pass_meanwhile() {
    let displacement = Displacement { frames: None, time: millis(5) };
    let settings =
        ImpairmentSettings { reorder_ppm: 100 * PERCENT, displacement, ..Default::default() };
    let mut network = network(settings);
    network.push(&numbered(0, at(0)));
    network.settings.reorder_ppm = 0;
    (1..9).for_each(|index| network.push(&numbered(index, at(u64::from(index) * 1_000))));
    assert_eq!(out(&mut network, at(9_000)), [1, 2, 3, 4, 0, 5, 6, 7, 8]);
}

#[test]
fn a_full_network_drops_and_says_for_which_limit() {
    let settings = ImpairmentSettings {
        delay: millis(1),
        limit_frames: 3,
        limit_bytes: 10,
        ..Default::default()
    };
    let mut network = network(settings);
    (0..3).for_each(|index| network.push(&numbered(index, at(0))));
    assert_eq!((network.counters().over_bytes, network.counters().over_frames), (1, 0));
    network.push(&Frame::new(vec![0; 2], at(0)));
    network.push(&Frame::new(vec![], at(0)));
    assert_eq!((network.counters().over_bytes, network.counters().over_frames), (1, 1));
    assert_eq!(network.counters().dropped(), 2);
    // When a frame has left, another one is accepted.
    assert!(network.pop(at(1_000)).is_some());
    network.push(&numbered(9, at(1_000)));
    assert_eq!(network.counters().dropped(), 2);
}

#[test]
fn a_hundredth_is_lost_and_the_same_hundredth_each_time() {
    let lossy = |seed| ImpairmentSettings { seed, loss_ppm: PERCENT, ..Default::default() };
    let (kept, counters) = sent(lossy(1), 100_000);
    // Allows four standard deviations of the binomial distribution around 1,000.
    assert!((874..=1_126).contains(&counters.lost), "{counters:?}");
    assert_eq!(kept.len() as u64, 100_000 - counters.lost);
    assert_eq!(sent(lossy(1), 100_000), (kept.clone(), counters));
    assert_ne!(sent(lossy(2), 100_000).0, kept);
}

#[test]
fn what_is_lost_does_not_depend_on_the_other_settings() {
    let lossy = ImpairmentSettings { seed: 3, loss_ppm: 5 * PERCENT, ..Default::default() };
    let worse = ImpairmentSettings {
        duplicate_ppm: 10 * PERCENT,
        reorder_ppm: 10 * PERCENT,
        jitter: millis(30),
        ..lossy
    };
    let (mut kept, counters) = sent(worse, 5_000);
    kept.sort_unstable();
    kept.dedup();
    assert_eq!(kept, sent(lossy, 5_000).0);
    assert!(counters.doubled > 300 && counters.reordered > 300, "{counters:?}");
    assert_eq!(counters.given, 5_000 - counters.lost + counters.doubled);
}

#[test]
fn settings_that_cannot_be_are_named() {
    let default = ImpairmentSettings::default();
    let rows = [
        (ImpairmentSettings { loss_ppm: 1_000_001, ..default }, "loss of 1000001 in a million"),
        (ImpairmentSettings { rate_bytes_per_s: Some(0), ..default }, "a rate of 0"),
        (ImpairmentSettings { limit_frames: 0, ..default }, "a limit of frames of 0"),
        (ImpairmentSettings { limit_bytes: 0, ..default }, "a limit of bytes of 0"),
    ];
    for (settings, message) in rows {
        let error = Impairment::new(settings, LinkKind::Ethernet).unwrap_err().to_string();
        assert!(error.starts_with(message), "{error}");
    }
}

/// Builds a GSO frame of `len` bytes, and its headers.
fn train(len: usize, packet: Packet) -> (Frame<Vec<u8>>, Segment) {
    let frame = packet.len(len).already_aggregated(100).frame();
    match naive::read(&frame, LinkKind::Ethernet) {
        Reading::Segment(shape) => (frame, *shape),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_super_packet_is_cut_as_a_kernel_cuts_it() {
    for packet in [seg().psh().id(65_534), seg().v6().ts(1, 2).vlan(3).fin(), seg().cwr()] {
        let (mut frame, shape) = train(1_050, packet);
        // The oracle writes complete checksums.
        frame.checksum = ChecksumStatus::Verified;
        let mut network = network(ImpairmentSettings::default());
        network.push(&frame);
        let parts: Vec<_> = std::iter::from_fn(|| network.pop(at(0))).collect();
        assert!(parts.iter().all(|part| part.gso.is_none() && part.checksum == frame.checksum));
        let bytes: Vec<_> = parts.into_iter().map(|part| part.bytes).collect();
        let mut expected = naive::resegment(&frame.bytes, &shape, 100, false);
        expected.iter_mut().skip(1).for_each(|bytes| without_cwr(bytes, &shape));
        assert_eq!(bytes, expected);
        assert_eq!((network.counters().cut, network.counters().taken), (1, 11));
    }
}

/// Removes CWR, which the segmentation oracle copies to every segment; RFC 3168 requires it only on the
/// first.
fn without_cwr(bytes: &mut [u8], shape: &Segment) {
    let flags = shape.transport_at + 13;
    if bytes[flags] & 0x80 != 0 {
        bytes[flags] &= !0x80;
        let sum = naive::transport_checksum(&shape.ends.addresses, 6, &{
            let mut segment = bytes[shape.transport_at..].to_vec();
            segment[16..18].fill(0);
            segment
        });
        bytes[shape.transport_at + 16..][..2].copy_from_slice(&sum.to_be_bytes());
    }
}

#[test]
fn a_partial_checksum_stays_partial_in_every_segment() {
    let (frame, shape) = train(350, seg());
    let mut network = network(ImpairmentSettings::default());
    network.push(&frame);
    for bytes in [100, 100, 100, 50] {
        let part = network.pop(at(0)).unwrap();
        assert_eq!(part.checksum, frame.checksum);
        let tcp = shape.transport_at;
        let seed = naive::pseudo_header_sum(&shape.ends.addresses, 6, 20 + bytes);
        assert_eq!(part.bytes[tcp + 16..tcp + 18], seed.to_be_bytes());
    }
    assert_eq!(network.pop(at(0)), None);
}

#[test]
fn what_cannot_be_cut_stays_whole() {
    let (train, _) = train(350, seg());
    let broken = Frame { bytes: vec![0xff; 300], ..train.clone() };
    let datagrams = Frame { gso: train.gso, ..udp().frame() };
    let (empty, _) = self::train(0, seg());
    for frame in [broken, datagrams, empty] {
        let mut network = network(ImpairmentSettings::default());
        network.push(&frame);
        assert_eq!(network.pop(at(0)), Some(frame));
        assert_eq!(network.counters().cut, 0);
    }
}

#[test]
fn without_impairment_super_packets_stay_whole_too() {
    let (frame, _) = train(350, seg());
    let mut network = Impairment::transparent();
    network.push(&frame);
    assert_eq!(network.pop(at(0)), Some(frame));
}

#[test]
fn loss_hits_segments_and_not_trains() {
    let mut network = network(ImpairmentSettings { loss_ppm: 50 * PERCENT, ..Default::default() });
    let (frame, _) = train(10_000, seg());
    network.push(&frame);
    let counters = network.counters();
    assert_eq!(counters.taken, 100);
    assert!((25..=75).contains(&counters.lost), "{counters:?}");
}

#[test]
fn a_source_behind_it_gives_within_the_budget_and_tells_its_end_last() {
    let link = MemoryLink::new(MemoryOptions::default());
    let now = std::cell::Cell::new(at(0));
    let delayed = ImpairmentSettings { delay: millis(1), ..Default::default() };
    let mut source = ImpairedSource::new(link.source(), network(delayed), || now.get());
    (0..5).for_each(|index| link.push(&numbered(index, at(0))));
    let mut batch = Vec::new();
    assert_eq!(source.receive(&mut batch, 8).unwrap(), 0);
    assert_eq!(source.poll_at(), Some(at(1_000)));
    link.vanish();
    assert_eq!(source.receive(&mut batch, 8).unwrap(), 0);
    now.set(at(1_000));
    assert_eq!(source.receive(&mut batch, 3).unwrap(), 3);
    assert_eq!(source.receive(&mut batch, 8).unwrap(), 2);
    assert!(source.receive(&mut batch, 8).is_err());
    assert_eq!(batch.iter().map(number).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    let counters = source.counters();
    assert_eq!((counters.frames, counters.bytes, counters.impaired.given), (5, 20, 5));
}

fn settings() -> impl Strategy<Value = ImpairmentSettings> {
    let shares = (0..=100 * PERCENT, 0..=100 * PERCENT, 0..=100 * PERCENT);
    let times = (0..3_000_u64, 0..3_000_u64, 0..3_000_u64, 0..3_000_u64);
    let limits = (prop::option::of(1_u64..1_000_000), 1_usize..40, 1_usize..4_000);
    let frames = prop::option::of(0_u32..6);
    (any::<u64>(), shares, times, limits, frames).prop_map(
        |(seed, shares, times, limits, frames)| ImpairmentSettings {
            seed,
            loss_ppm: shares.0,
            duplicate_ppm: shares.1,
            reorder_ppm: shares.2,
            delay: Duration::from_micros(times.0),
            jitter: Duration::from_micros(times.1),
            gather: Duration::from_micros(times.3),
            displacement: Displacement { frames, time: Duration::from_micros(times.2) },
            rate_bytes_per_s: limits.0,
            limit_frames: limits.1,
            limit_bytes: limits.2,
        },
    )
}

/// Generates arbitrary frames, each with its delay after the one before in microseconds.
fn frames() -> impl Strategy<Value = Vec<(u64, Vec<u8>)>> {
    prop::collection::vec((0..2_000_u64, prop::collection::vec(any::<u8>(), 0..200)), 0..60)
}

proptest! {
    /// A network that only delays returns all frames in order, bit for bit.
    #[test]
    fn nothing_is_lost_without_loss(frames in frames(), delay in 0..9_000_u64, jitter in 0..9_000_u64) {
        let (delay, jitter) = (Duration::from_micros(delay), Duration::from_micros(jitter));
        let mut network = network(ImpairmentSettings { delay, jitter, ..Default::default() });
        let (mut now, mut given) = (at(0), Vec::new());
        for (gap, bytes) in &frames {
            now = now + Duration::from_micros(*gap);
            network.push(&Frame::new(bytes, now));
            given.extend(std::iter::from_fn(|| network.pop(now)));
        }
        while let Some(due_at) = network.poll_at() {
            given.extend(network.pop(due_at));
        }
        let sent: Vec<_> = frames.into_iter().map(|(_, bytes)| bytes).collect();
        prop_assert!(given.is_sorted_by_key(|frame| frame.arrived_at));
        prop_assert_eq!(given.into_iter().map(|frame| frame.bytes).collect::<Vec<_>>(), sent);
    }

    /// Under any settings: the limits hold, frames are on time, every frame is counted, and a second run is
    /// equal.
    #[test]
    fn any_network_keeps_its_books(settings in settings(), frames in frames()) {
        let run = || {
            let mut network = network(settings);
            let (mut now, mut given) = (at(0), Vec::new());
            for (gap, bytes) in &frames {
                now = now + Duration::from_micros(*gap);
                network.push(&Frame::new(bytes, now));
                assert!(network.queue.len() + network.reordered.len() <= settings.limit_frames);
                assert!(network.stored_bytes <= settings.limit_bytes);
                given.extend(std::iter::from_fn(|| network.pop(now)));
                assert!(network.poll_at().is_none_or(|due_at| due_at > now));
            }
            while let Some(due_at) = network.poll_at() {
                given.extend(network.pop(due_at));
            }
            assert_eq!(network.stored_bytes, 0);
            (given, network.counters())
        };
        let (given, counters) = run();
        prop_assert_eq!(counters.given as usize, given.len());
        prop_assert_eq!(counters.taken as usize, frames.len());
        prop_assert_eq!(counters.given + counters.dropped(), counters.taken + counters.doubled);
        for frame in &given {
            prop_assert!(frames.iter().any(|(_, bytes)| *bytes == frame.bytes));
        }
        prop_assert_eq!(run(), (given, counters));
    }
}
