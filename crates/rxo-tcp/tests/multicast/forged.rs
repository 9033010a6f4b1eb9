//! Forged segments: a stranger that does not see the group's traffic has no effect, and a receiver has
//! little.

use proptest::prelude::*;
use rxo_frame::Duration;
use rxo_tcp::{Config, Outcome, Refusal, State};
use rxo_wire::{SeqNumber, TcpFlags};

use crate::room::{ISS, Room, group_config, receiver_config};
use crate::wire::Wire;

/// Returns a pure ACK as receiver `number` would send it.
fn ack(room: &Room, number: usize, ack: SeqNumber) -> Wire {
    let statistics = room.receivers[number].tcp.statistics();
    Wire {
        seq: statistics.snd_nxt,
        ack,
        flags: TcpFlags::ACK,
        window: 60_000,
        options: rxo_tcp::SegmentOptions {
            timestamp: Some(rxo_wire::tcp::Timestamp { value: u32::MAX / 4, echo: 0 }),
            ..Default::default()
        },
        text: Vec::new(),
        ecn: rxo_tcp::Ecn::NotCapable,
    }
}

/// RFC 5961, section 5: an ACK of data that was never sent is invalid, so the group does not count it.
#[test]
fn acknowledging_what_was_never_sent_changes_nothing() {
    let mut room = Room::new(group_config(), 5, 1_000_000);
    room.begin();
    room.run_until(|room| room.group.progress().slowest > 50_000);
    for step in 1..100_u32 {
        let before = room.group.progress();
        let unsent = ack(&room, 2, ISS + 1 + before.sent as u32 + step * 10_000);
        room.arrives(2, unsent);
        assert_eq!(room.group.progress().slowest, before.slowest);
    }
    room.finish();
    assert_eq!(room.done(), 5, "{:?}", room.outcomes());
}

/// A receiver that acknowledges data without having it harms only itself: its own file is incomplete.
#[test]
fn acknowledging_what_did_not_arrive_harms_nobody_else() {
    let mut room = Room::new(group_config(), 5, 1_000_000);
    room.links.loss = 20;
    room.begin();
    while room.sides.iter().any(|side| side.outcome.is_none()) {
        let sent = room.sides[2].tcp.statistics().snd_nxt;
        if room.sides[2].id.is_some() {
            let optimist = ack(&room, 2, sent);
            room.arrives(2, optimist);
        }
        let until = room.now + Duration::from_millis(1);
        room.run_until(|room| {
            room.now >= until || room.sides.iter().all(|it| it.outcome.is_some())
        });
    }
    for honest in [0, 1, 3, 4] {
        assert!(room.is_done(honest), "receiver {honest}: {:?}", room.outcomes());
    }
}

/// Without a receiver's numbers, no ACK, reset or FIN changes its connection.
#[test]
fn segments_with_guessed_numbers_change_nothing() {
    let mut room = Room::new(group_config(), 5, 1_000_000);
    room.begin();
    room.run_until(|room| room.group.progress().slowest > 50_000);
    for guess in 0..1_000_u32 {
        let before = room.group.progress();
        let flags = [TcpFlags::ACK, TcpFlags::RST, TcpFlags::FIN | TcpFlags::ACK, TcpFlags::SYN];
        let seq = SeqNumber(guess.wrapping_mul(2_654_435_761));
        let mut forged = ack(&room, 2, SeqNumber(guess.wrapping_mul(40_503_559)));
        forged.seq = seq;
        forged.flags = flags[guess as usize % flags.len()];
        // One guess of 65,536 would hit the receiver's window; none of these does.
        let offset = seq - room.sides[2].tcp.statistics().rcv_nxt;
        assert!(!(0..300_000).contains(&offset), "guess {guess} hits");
        room.arrives(2, forged);
        assert_eq!(room.group.progress().slowest, before.slowest);
    }
    room.finish();
    assert_eq!(room.done(), 5, "{:?}", room.outcomes());
}

/// RFC 9293, section 3.10.7.4, fifth step: only an ACK of our SYN opens a connection, so a forged SYN makes
/// no member and delays no receiver.
#[test]
fn a_join_without_the_handshakes_proof_is_none() {
    let mut room = Room::new(group_config(), 5, 10_000_000);
    room.begin();
    for _ in 0..10 {
        let number = room.come(receiver_config());
        // The SYN-ACK never reaches it, so it guesses.
        room.receivers[number].absent_until = crate::room::FOR_EVER;
        room.run_until(|room| matches!(room.sides[number].tcp.state(), State::SynReceived(_)));
        let guess = ack(&room, number, SeqNumber(number as u32 * 77_777));
        room.arrives(number, guess);
        assert!(!room.sides[number].tcp.state().is_synchronized());
    }
    assert_eq!(room.group.receivers(), 5);
    room.run_until(|room| room.done() == 5);
    assert_eq!(room.done(), 5, "{:?}", room.outcomes());
}

/// The refusal names the feature that the receiver lacks.
#[test]
fn receivers_without_sack_or_timestamps_are_refused() {
    let mut room = Room::new(group_config(), 2, 100_000);
    let no_sack = room.come(Config { sack: false, ..receiver_config() });
    let no_timestamps = room.come(Config { timestamps: false, ..receiver_config() });
    room.run();
    assert_eq!(room.sides[no_sack].refused, Some(Refusal::NoSack));
    assert_eq!(room.sides[no_timestamps].refused, Some(Refusal::NoTimestamps));
    assert!(room.receivers[no_sack].tcp.is_closed(), "it is reset");
    assert_eq!(room.done(), 2);
}

/// A receiver that resets during the stream is removed, and the others continue at once.
#[test]
fn a_reset_takes_one_receiver_out() {
    let mut room = Room::new(group_config(), 5, 1_000_000);
    room.begin();
    room.run_until(|room| room.group.progress().slowest > 50_000);
    let begun = room.now;
    room.receivers[1].tcp.abort();
    let mut reset = ack(&room, 1, SeqNumber(0));
    reset.flags = TcpFlags::RST;
    reset.seq = room.sides[1].tcp.statistics().rcv_nxt;
    room.arrives(1, reset);
    room.finish();
    assert_eq!(room.sides[1].outcome, Some(Outcome::Failed(rxo_tcp::Failure::Reset)));
    assert_eq!(room.done(), 4, "{:?}", room.outcomes());
    assert!(room.now - begun < Duration::from_secs(5));
}

/// All receivers leave while text waits: then nobody delays the group, and no position is the least.
#[test]
fn a_group_that_waits_for_nobody_goes_on() {
    crate::script::run(&[4, 41, 0, 125, 0, 40, 44, 133, 0, 0, 0, 0, 0, 0, 0, 118, 0, 1]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Whatever some receivers send, lose or delay, those that follow the rules get the whole stream.
    #[test]
    fn whatever_a_receiver_says_the_others_get_all(script in prop::collection::vec(any::<u8>(), 3..120)) {
        crate::script::run(&script);
    }
}
