//! Tests of receivers in catch-up: the interpretation of their sequence numbers.

use alloc::vec::Vec;
use rxo_frame::{Duration, SharedBytes};
use rxo_wire::tcp::SackBlock;
use rxo_wire::{FlowKey, SeqNumber, TcpFlags};

use super::*;
use crate::{
    Config, Control, Ecn, GroupConfig, GroupSeed, Late, Repairs, Secret, Segment, SegmentOptions,
    Slow, Statistics, Transmit,
};

const NOW: Instant = Instant::from_micros(1_000_000);

fn group() -> Group {
    Group::new(GroupConfig {
        seed: GroupSeed { iss: SeqNumber(77), timestamp_offset: 5 },
        buffer_bytes: 1 << 20,
        largest_segment_bytes: 1_448,
        large_send_bytes: 64_000,
        most_receivers: 2,
        slow: Slow::Wait,
        late: Late::CatchUp,
        late_time: None,
        repairs: Repairs::Each,
        control: Control::Paper,
    })
}

fn segment_of(transmit: &Transmit<'_>) -> Segment<Vec<u8>> {
    Segment {
        seq: transmit.seq,
        ack: transmit.ack,
        flags: transmit.flags,
        window: transmit.window,
        options: SegmentOptions::read(transmit.options.as_slice()),
        payload: None,
        ecn: Ecn::NotCapable,
        arrived_at: NOW,
    }
}

/// Returns the sender's connection to a receiver that has just opened it, and the last segment of the
/// receiver.
fn opened(group: &Group) -> (Connection<Vec<u8>>, Segment<Vec<u8>>) {
    let pair = FlowKey::v4(0x0a00_0001, 0x0a00_0002, 7_000 << 16 | 40_000, 0);
    let open = |pair| Connection::open_passive(Config::default(), pair, Secret([1, 2]));
    let mut side = open(pair).expect("settings that can be");
    side.join_group(group.seed(), group.config().buffer_bytes);
    let mut receiver = open(pair.reversed()).expect("settings that can be");
    receiver.connect(NOW);
    let mut last = None;
    for _ in 0..2 {
        while let Some(transmit) = receiver.poll_transmit(NOW) {
            side.on_arrival(NOW, segment_of(&transmit).into());
            last = Some(segment_of(&transmit));
        }
        while let Some(transmit) = side.poll_transmit(NOW) {
            receiver.on_arrival(NOW, segment_of(&transmit).into());
        }
    }
    assert_eq!(side.state(), State::Established);
    (side, last.expect("an ACK"))
}

/// A receiver that misses all text catches up, even if its sequence numbers equal the group's because they
/// have wrapped.
#[test]
fn whoever_is_behind_by_all_sequence_numbers_catches_up() {
    for sent in [1, 1 << 31, 1 << 32, 3 << 32] {
        let mut group = group();
        group.nxt = sent;
        let (mut side, _) = opened(&group);
        let joined = group.join(&mut side, NOW);
        assert!(joined.is_ok(), "{joined:?}");
        assert_eq!(group.progress().catching_up, 1, "{sent} bytes");
    }
}

/// An ACK counts for text that only the group has sent, because the receiver's window reaches into that text.
#[test]
fn an_acknowledgement_of_what_only_the_group_has_sent_counts() {
    let group = group();
    let far = 1 << 30;
    let rows = [
        (60_000, 40_000, 40_000),
        (60_000, 60_000, 50_000),
        (60_000, 60_001, 0),
        (far, 60_001, 50_000),
        (far, 10_000_000, 0),
    ];
    for (sent, acked, counts) in rows {
        let (mut side, ack) = opened(&group);
        let lent = side.send_shared(&mut SharedBytes::from(alloc::vec![7; 50_000]));
        assert_eq!(lent, Ok(50_000));
        while side.poll_transmit(NOW).is_some() {}
        let before = side.statistics();
        assert!(before.snd_nxt - before.snd_una < 40_000, "the window is smaller");
        side.group_has_sent(before.snd_una + sent);
        let ack = Segment { ack: before.snd_una + acked, ..ack };
        side.on_arrival(NOW, ack.into());
        assert_eq!(side.statistics().snd_una, before.snd_una + counts, "{acked} of {sent} bytes");
    }
}

/// A receiver may have text that its connection has not been lent yet. Its window and a reset begin after
/// that text.
#[test]
fn whoever_is_ahead_of_what_was_lent_is_believed_and_reset_where_it_is() {
    let group = group();
    let (mut side, ack) = opened(&group);
    let _ = side.send_shared(&mut SharedBytes::from(alloc::vec![7; 50_000]));
    while side.poll_transmit(NOW).is_some() {}
    let before = side.statistics();
    side.group_has_sent(before.snd_una + 60_000);
    let closed = Segment { ack: before.snd_una + 60_000, window: 0, ..ack };
    side.on_arrival(NOW, closed.into());
    let after = side.statistics();
    assert_eq!(after.snd_una + after.snd_wnd, before.snd_una + 60_000, "where its window ends");
    side.abort();
    let reset = side.poll_transmit(NOW).map(|it| (it.flags, it.seq));
    let flags = TcpFlags::RST | TcpFlags::ACK;
    assert_eq!(reset, Some((flags, before.snd_una + 60_000)));
}

/// A member may be led, or left behind, in the middle of a recovery that proves spurious. The undo must not bring its former
/// congestion control back.
#[test]
fn a_spurious_recovery_does_not_undo_the_change_of_congestion_control() {
    type Change = fn(&mut Connection<Vec<u8>>);
    let later = |ms| NOW + Duration::from_millis(ms);
    let gap_before = |ack: &Segment<Vec<u8>>, una, (start, end), ms| {
        let mut gap = Segment { ack: una, arrived_at: later(ms), ..ack.clone() };
        gap.options.sack.push(SackBlock { start: una + start, end: una + end });
        gap
    };
    // Returns whether only the receiver's window limits the group, beside a loss after the undo.
    let is_led_after = |first: Change, then: Change| {
        let group = group();
        let (mut side, ack) = opened(&group);
        let _ = side.send_shared(&mut SharedBytes::from(alloc::vec![7; 50_000]));
        while side.poll_transmit(NOW).is_some() {}
        first(&mut side);
        let una = side.statistics().snd_una;
        side.on_arrival(later(1), gap_before(&ack, una, (4_000, 12_000), 1).into());
        assert!(side.poll_transmit(later(10)).is_some_and(|it| it.seq == una), "the lost segment");
        while side.poll_transmit(later(10)).is_some() {}
        then(&mut side);
        // The echo is that of the first transmission.
        let old = Segment { ack: una + 12_000, arrived_at: later(12), ..ack.clone() };
        side.on_arrival(later(12), old.into());
        let Statistics { snd_una, snd_nxt, .. } = side.statistics();
        side.sent_by_group([(snd_nxt + 9_000, later(13))], later(13));
        let sent = side.statistics().snd_nxt - snd_una;
        let gap = gap_before(&ack, snd_una, (4_000, sent as u32), 20);
        side.on_arrival(later(20), gap.into());
        side.group_edge().limit == snd_una + side.statistics().snd_wnd
    };
    let led: Change = |side| side.follow_group(true);
    assert!(is_led_after(|_| (), led), "led");
    assert!(!is_led_after(led, Connection::leave_group), "left behind");
}
