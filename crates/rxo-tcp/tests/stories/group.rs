//! Segments that the peer sends to a multicast group (Chan and Cheriton 2013, section 4).

use proptest::prelude::*;
use rxo_tcp::{AckPolicy, Arrival, Config, GroupCounts, GsoSegment};
use rxo_wire::TcpFlags;

use crate::dsl::*;
use crate::harness::run::run;

fn config() -> Config {
    Config { sack: true, timestamps: true, window_scaling: true, ..plain() }
}

/// Returns the receiver of a cast in ESTABLISHED.
fn receiver() -> Scene {
    Scene::established(config())
}

/// Returns a segment to the group, whose ACK number and window this connection must ignore. TSecr names
/// another receiver.
fn to_group(seq: u32, len: u32) -> Peer {
    seg().seq(seq).len(len).ack(77_777).win(3).ts(20, 1 << 30)
}

impl Scene {
    /// Gives segments to the connection as sent to the group, as a run if possible.
    fn receives(&mut self, peers: impl IntoIterator<Item = Peer>) {
        let segments: Vec<_> = peers.into_iter().map(|peer| self.segment(peer)).collect();
        match run(&segments, 1) {
            Some(run) => self.tcp.on_group_arrival(self.now, Arrival::run(run)),
            None => self.tcp.on_group_arrival(self.now, Arrival::segments(segments)),
        }
    }

    fn group(&self) -> GroupCounts {
        self.tcp.statistics().group
    }
}

#[test]
fn text_to_the_group_is_acknowledged_whatever_else_it_says() {
    let mut scene = receiver();
    let before = scene.tcp.statistics();
    scene.receives([to_group(1, MSS), to_group(1 + MSS, MSS)]);
    assert_eq!(scene.out(), [". 1:1 ack 2001"]);
    let bytes: Vec<u8> = (1..2_001).map(stream_byte).collect();
    assert_eq!(scene.reads(), bytes);
    let after = scene.tcp.statistics();
    assert_eq!((after.snd_una, after.snd_wnd), (before.snd_una, before.snd_wnd));
    assert_eq!((after.srtt, after.group.taken), (before.srtt, 2));
}

/// A GSO frame counts as its original segments.
#[test]
fn segments_of_a_gso_frame_are_counted() {
    let mut scene = receiver();
    let whole = scene.segment(to_group(1, 5 * MSS - 1));
    let size = std::num::NonZeroU16::new(MSS as u16).expect("a size");
    scene.tcp.on_group_arrival(
        scene.now,
        Arrival::gso(GsoSegment::new(whole, size, |it| (it.clone(), it))),
    );
    assert_eq!((scene.group().taken, scene.reads().len()), (5, 4_999));
}

#[test]
fn the_fin_comes_to_the_group() {
    let mut scene = receiver();
    scene.receives([to_group(1, 500).fin()]);
    assert_eq!(scene.out(), [". 1:1 ack 502"]);
    assert!(scene.tcp.is_peer_done());
}

/// A gap is reported at once and filled by unicast, and segments to the group continue to count.
#[test]
fn what_was_lost_comes_by_unicast() {
    let mut scene = receiver();
    scene.receives([to_group(1 + MSS, MSS)]);
    assert_eq!(scene.out(), [". 1:1 ack 1 sack 1001-2001"]);
    scene.gets(seg().seq(1).len(MSS).ts(30, 0));
    assert_eq!(scene.out(), [". 1:1 ack 2001"]);
    scene.receives([to_group(2_001, MSS).ts(31, 0), to_group(3_001, MSS).ts(31, 0)]);
    assert_eq!(scene.out(), [". 1:1 ack 4001"]);
}

/// Repairs for other receivers arrive again. If every receiver answered them, the answers would flood the
/// sender.
#[test]
fn repairs_for_others_are_answered_seldom() {
    let mut scene = receiver();
    scene.receives([to_group(1, MSS), to_group(1_001, MSS)]);
    scene.out();
    let mut answers = 0;
    for _ in 0..1_000 {
        scene.receives([to_group(1, MSS)]);
        answers += scene.out().len();
    }
    assert_eq!((answers, scene.group().outside), (10, 1_000));
    scene.now = scene.now + ms(5_000);
    scene.receives([to_group(1, MSS).ts(5_000, 0)]);
    assert_eq!(scene.out().len(), 1, "the acknowledgement may have been lost");
}

/// RFC 5961, section 3: a sender whose connection is gone answers the challenge by a valid reset. Repairs for
/// other receivers must not use up the challenges.
#[test]
fn a_reset_is_challenged_however_much_was_repaired_for_others() {
    let mut scene = receiver();
    scene.receives([to_group(1, MSS)]);
    (0..100).for_each(|_| scene.receives([to_group(1, MSS)]));
    scene.out();
    scene.gets(seg().seq(1 + 2 * MSS).flags(TcpFlags::RST));
    assert_eq!(scene.out(), [". 1:1 ack 1001"]);
}

/// Forgeries that need no view of the group's traffic are refused.
#[test]
fn what_cannot_be_the_peers_is_refused() {
    let rows = [
        ("a reset", to_group(1, 0).flags(TcpFlags::RST)),
        ("a reset with text", to_group(1, MSS).flags(TcpFlags::RST | TcpFlags::ACK)),
        ("a SYN", to_group(1, MSS).flags(TcpFlags::SYN)),
        ("an acknowledgement", to_group(1, 0)),
        ("an old timestamp", to_group(1, MSS).ts(u32::MAX, 0)),
        ("a timestamp ahead of the clock", to_group(1, MSS).ts(10_021, 0)),
    ];
    for (name, peer) in rows {
        let mut scene = receiver();
        let before = scene.tcp.statistics();
        scene.receives([peer]);
        assert_eq!(scene.out(), [""; 0], "{name}");
        let after = scene.tcp.statistics();
        assert_eq!(after.group, GroupCounts { refused: 1, ..GroupCounts::default() }, "{name}");
        assert_eq!((after.rcv_nxt, after.snd_una), (before.rcv_nxt, before.snd_una), "{name}");
    }
    let mut without = Scene::established(with_sack());
    without.receives([seg().len(MSS)]);
    assert_eq!((without.out().len(), without.group().refused), (0, 1), "no timestamps, no group");
}

/// An attacker that knows the window but not the clock must guess the timestamp: one in 400,000 fits.
#[test]
fn a_forger_must_guess_the_clock() {
    const SAMPLES: u32 = 20_000;
    let mut scene = receiver();
    for number in 0..SAMPLES {
        scene.receives([to_group(30_001, 100)
            .ts(number.wrapping_mul(u32::MAX / SAMPLES).wrapping_add(500_000), 0)]);
    }
    assert!(scene.group().taken <= 1, "{:?}", scene.group());
    assert!(scene.out().len() <= 1);
}

/// After a pause, a timestamp that has advanced with the peer's clock is accepted.
#[test]
fn a_pause_is_no_forgery() {
    let mut scene = receiver();
    scene.receives([to_group(1, MSS), to_group(1_001, MSS)]);
    scene.out();
    scene.now = scene.now + ms(3_600_000);
    scene.receives([to_group(2_001, MSS).ts(3_600_000, 0), to_group(3_001, MSS).ts(3_600_001, 0)]);
    assert_eq!(scene.out(), [". 1:1 ack 4001"]);
}

#[test]
fn before_the_handshake_is_over_nothing_is_taken() {
    let mut scene = Scene::active(config());
    scene.out();
    scene.receives([to_group(1, MSS)]);
    assert_eq!((scene.out().len(), scene.group().refused), (0, 1));
}

/// A receiver acknowledges one of eight segments, at its own offset, and sends one acknowledgement for all
/// text out of order that arrives at once.
#[test]
fn receivers_acknowledge_at_different_segments() {
    for offset in 0..8 {
        let acks = AckPolicy::Spread { segments: 8, offset };
        let mut scene = Scene::established(Config { acks, ..config() });
        let mut at = Vec::new();
        for number in 0..16 {
            scene.receives([to_group(1 + number * MSS, MSS)]);
            if !scene.out().is_empty() {
                at.push(number + 1);
            }
            scene.reads();
        }
        assert_eq!(at, [8 - u32::from(offset), 16 - u32::from(offset)]);
    }
    let acks = AckPolicy::Spread { segments: 8, offset: 0 };
    let mut scene = Scene::established(Config { acks, ..config() });
    scene.receives((1..9).map(|number| to_group(1 + number * MSS, MSS)));
    assert_eq!(scene.out(), [". 1:1 ack 1 sack 1001-9001"]);
}

/// TSecr names the receiver that leads the group's congestion control.
#[test]
fn only_the_receiver_that_a_segment_names_acknowledges_it_at_once() {
    let acks = AckPolicy::Spread { segments: 8, offset: 0 };
    let mut scene = Scene::established(Config { acks, ..config() });
    let std::net::IpAddr::V4(own) = scene.tcp.pair().source() else { panic!("IPv4") };
    let names = [0, own.to_bits(), own.to_bits() ^ 1, own.to_bits()];
    let answers = (0_u32..).zip(names).map(|(number, name)| {
        // The scene adds its first timestamp to echoes.
        let name = name.wrapping_sub(scene.first_ts);
        scene.receives([to_group(1 + number * MSS, MSS).ts(20, name)]);
        scene.reads();
        scene.out().len()
    });
    assert_eq!(answers.collect::<Vec<_>>(), [0, 1, 0, 1]);
}

/// Returns the segments of a test: the position, the length, and `true` for one sent to the group.
fn steps() -> impl Strategy<Value = Vec<(u32, u32, bool)>> {
    prop::collection::vec((0_u32..12, 1_u32..=MSS, any::<bool>()), 1..60)
}

proptest! {
    /// The oracle receives the same segment on the connection itself, with the fields that it would have
    /// there.
    #[test]
    fn a_segment_to_the_group_does_what_one_of_the_connection_does(steps in steps(), spread: bool) {
        let acks = if spread { AckPolicy::Spread { segments: 4, offset: 1 } } else { AckPolicy::OneForATurn };
        let config = Config { acks, ..config() };
        let (mut scene, mut oracle) = (Scene::established(config.clone()), Scene::established(config));
        for (number, (ahead, len, is_run)) in steps.into_iter().enumerate() {
            let edge = (scene.tcp.statistics().rcv_nxt - PEER_ISS).unsigned_abs();
            let seq = edge + ahead * MSS * u32::from(ahead > 9);
            let count = if is_run { 3 } else { 1 };
            let value = number as u32;
            let parts = (0..count).map(|part| seq + part * len);
            scene.receives(parts.clone().map(|seq| to_group(seq, len).ts(value, 1 << 29)));
            oracle.gets_run(parts.map(|seq| seg().seq(seq).len(len).ts(value, u32::MAX)));
            if scene.group().outside > 0 {
                // A segment received before is answered more rarely if sent to the group.
                break;
            }
            let (said, expected) = (scene.out(), oracle.out());
            prop_assert_eq!(said, expected);
            prop_assert_eq!(scene.reads(), oracle.reads());
        }
        prop_assert_eq!(scene.group().refused, 0);
    }
}
