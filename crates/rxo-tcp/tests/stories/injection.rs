//! Strangers that guess sequence numbers (RFC 5961): samples of the whole sequence space, counted.
//!
//! Each guess gets a connection with a fresh limit of challenges, so that every answer shows.

use rxo_tcp::State;
use rxo_wire::TcpFlags;

use crate::dsl::*;

/// Returns sequence numbers across the whole space, and around each number in `near`.
fn guesses(near: &[u32]) -> Vec<u32> {
    let samples = (0..SAMPLES).map(|number| number * (u32::MAX / SAMPLES) + 12_345);
    let close = near.iter().flat_map(|at| (0..7).map(|step| at.wrapping_add(step).wrapping_sub(3)));
    let mut all: Vec<u32> = samples.chain(close).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// The effects of all guesses of sequence numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    took_effect: usize,
    challenged: usize,
    unanswered: usize,
}

/// Tries a segment with each guessed number. `has_effect` judges the answer and the connection.
fn try_all(
    near: &[u32],
    guess: impl Fn(u32) -> Peer,
    has_effect: impl Fn(&Scene, &[String]) -> bool,
) -> Tally {
    let mut tally = Tally::default();
    let mut scene = open();
    for number in guesses(near) {
        scene.now = scene.now + ms(5_000);
        let answer = scene.answers(guess(number));
        if has_effect(&scene, &answer) {
            tally.took_effect += 1;
            scene = open();
        } else if answer.is_empty() {
            tally.unanswered += 1;
        } else {
            assert_eq!(answer, [". 101:101 ack 1"], "to {number}");
            tally.challenged += 1;
        }
    }
    tally
}

/// Returns a connection with 100 acknowledged bytes. The peer's largest window was 50,000, ours is 60,000.
fn open() -> Scene {
    let mut scene = Scene::established(with_sack());
    scene.sends(100);
    scene.gets(seg().ack(101));
    scene
}

/// The size of our window: a number relative to the peer's first byte is inside the window if it is below
/// this.
const OUR_WINDOW: u32 = 60_000;
const SAMPLES: u32 = 20_000;

fn inside(near: &[u32], is_inside: impl Fn(u32) -> bool) -> usize {
    guesses(near).into_iter().filter(|number| is_inside(*number)).count()
}

/// RFC 5961, section 3.2 (a, b, c): exactly one sequence number of a reset ends the connection; others in the
/// window are challenged, and all others are dropped silently.
#[test]
fn a_guessed_reset_ends_nothing() {
    let near = [1, 1 + OUR_WINDOW];
    let is_in_window = |seq: u32| (1..=OUR_WINDOW).contains(&seq);
    let tally =
        try_all(&near, |seq| seg().seq(seq).flags(TcpFlags::RST), |scene, _| scene.tcp.is_closed());
    let challenged = inside(&near, is_in_window) - 1;
    let unanswered = inside(&near, |seq| !is_in_window(seq));
    assert_eq!(tally, Tally { took_effect: 1, challenged, unanswered });
    assert!(unanswered > 19_900, "{tally:?}");
}

/// RFC 5961, section 4.2: a SYN is challenged whatever its sequence number, and changes nothing.
#[test]
fn a_guessed_syn_ends_nothing() {
    let near = [0, 1, 1 + OUR_WINDOW];
    let before = open().tcp.statistics();
    let tally = try_all(
        &near,
        |seq| seg().seq(seq).flags(TcpFlags::SYN),
        |scene, _| !scene.tcp.state().is_synchronized() || scene.tcp.statistics() != before,
    );
    let challenged = guesses(&near).len();
    assert_eq!(tally, Tally { challenged, ..Tally::default() });
}

/// RFC 5961, section 5.2 (a, b): text in the window counts only with an ACK that is at most the largest
/// window old: about one guess in 86,000.
#[test]
fn guessed_text_is_not_taken() {
    let near = [101, 101_u32.wrapping_sub(50_000)];
    let is_possible = |ack: u32| 101_u32.wrapping_sub(ack) <= 50_000;
    let tally = try_all(
        &near,
        |ack| seg().seq(501).len(10).ack(ack),
        |_, answer| answer.iter().any(|line| line.ends_with("sack 501-511")),
    );
    let took_effect = inside(&near, is_possible);
    let challenged = inside(&near, |ack| !is_possible(ack));
    assert_eq!(tally, Tally { took_effect, challenged, unanswered: 0 });
    assert!(took_effect < 10, "{tally:?}");
}

/// RFC 5961, section 7 (a): a flood of SYNs is answered as rarely as one of resets, whatever the sequence
/// numbers.
#[test]
fn a_flood_of_syns_is_answered_seldom() {
    for seq in [100, 70_000, 0x8000_0000] {
        let mut scene = open();
        let one = || syn().seq(seq);
        let answers: usize = (0..1_000).map(|_| scene.answers(one()).len()).sum();
        assert_eq!(answers, 10, "at {seq}");
    }
}

/// RFC 5961, section 7 (b): challenges of one connection do not limit another, so that no attacker can count
/// the challenges of others.
#[test]
fn the_limit_is_each_connections_own() {
    let (mut one, mut other) = (open(), open());
    let guess = || seg().seq(500).flags(TcpFlags::RST);
    let spent: usize = (0..50).map(|_| one.answers(guess()).len()).sum();
    assert_eq!(spent, 10);
    assert_eq!(other.answers(guess()).len(), 1);
}

/// RFC 9293, section 3.10.7.4, eighth step: a FIN that is followed by text was forged. The peer's own FIN is
/// still accepted.
#[test]
fn a_false_fin_does_not_deafen() {
    let fin = |seq| seg().seq(seq).flags(TcpFlags::FIN | TcpFlags::ACK);
    for forged in [502, 1_500, 2_002] {
        let mut scene = Scene::established(with_sack());
        scene.answers(fin(forged));
        scene.gets(seg().len(MSS));
        // Text after the forged FIN, then before it, and the forged FIN once more.
        scene.gets(seg().seq(2_001).len(MSS));
        scene.answers(fin(forged));
        scene.gets(seg().seq(1_001).len(MSS));
        assert_eq!(scene.tcp.readable_bytes(), 3_000, "FIN at {forged}");
        assert!(!scene.tcp.is_peer_done());
        scene.out();
        assert_eq!(scene.answers(fin(3_001)), [". 1:1 ack 3002"]);
        assert_eq!(scene.tcp.state(), State::CloseWait);
    }
}

/// The peer's own FIN arrives before its text, after a forged one: the last FIN counts.
#[test]
fn the_last_fin_counts() {
    let mut scene = Scene::established(plain());
    scene.answers(seg().seq(5_000).fin());
    scene.answers(seg().seq(1_001).fin());
    assert_eq!(scene.answers(seg().len(MSS)), [". 1:1 ack 1002"]);
    assert_eq!(scene.tcp.state(), State::CloseWait);
}
