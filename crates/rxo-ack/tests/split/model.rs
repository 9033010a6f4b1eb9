//! Compares the splitter with a receiver that gets every segment separately.

use proptest::collection::vec;
use proptest::prelude::*;

use crate::world::{FULL, World, acks};

/// A receiver without coalescing. It sends an ACK for every `every` full-sized segments.
struct Receiver {
    every: u32,
    since: u32,
    echo: Option<u32>,
    /// The ACK number and TSecr of each ACK sent.
    sent: Vec<(u32, Option<u32>)>,
}

impl Receiver {
    fn new(every: u16) -> Self {
        Self { every: every.into(), since: 0, echo: None, sent: Vec::new() }
    }

    fn take(&mut self, end: u32, is_full: bool, tsval: u32) {
        let echo = *self.echo.get_or_insert(tsval);
        self.since += u32::from(is_full);
        if self.since == self.every {
            self.acknowledge(end, Some(echo));
        }
    }

    /// Sends an ACK, as a timer or the application may also trigger.
    fn acknowledge(&mut self, ack: u32, echo: Option<u32>) {
        if self.sent.last().is_none_or(|(last, _)| *last != ack) {
            self.sent.push((ack, echo));
        }
        (self.since, self.echo) = (0, None);
    }
}

/// One delivery to the host.
#[derive(Clone, Copy, Debug)]
struct Delivery {
    full: u32,
    /// The payload length of the shorter last segment; 0 if there is none.
    short: u32,
    /// `true` if the host acknowledges it together with all earlier ones.
    is_acknowledged: bool,
    tsval: u32,
}

prop_compose! {
    fn deliveries()(
        full in 1..20_u32,
        short in prop_oneof![3 => Just(0), 1 => 1..1_400_u32],
        is_acknowledged in any::<bool>(),
        tsval in 100..105_u32,
    ) -> Delivery {
        Delivery { full, short, is_acknowledged, tsval }
    }
}

/// Passes the deliveries to the splitter and to the simulated receiver, and compares the ACKs that they send.
fn compare(every: u16, base: u32, deliveries: &[Delivery]) {
    let (mut world, mut receiver) = (World::at(every, base), Receiver::new(every));
    let (mut seq, mut pending) = (base, 0);
    let mut split = Vec::new();
    for Delivery { full, short, is_acknowledged, tsval } in deliveries.iter().copied() {
        world.aggregate(seq, full * FULL + short, tsval);
        for segment in 1..=full {
            receiver.take(seq.wrapping_add(segment * FULL), true, tsval);
        }
        seq = seq.wrapping_add(full * FULL + short);
        if short > 0 {
            receiver.take(seq, short + 40 >= FULL, tsval);
        }
        pending += full + u32::from(short > 0);
        // The splitter spreads more than 32 ACKs; the simulated receiver does not.
        if is_acknowledged || pending > 40 {
            let sent = world.ack(seq);
            let inserted = sent.len() - 1;
            let echoes = sent.iter().take(inserted).map(|(ack, _, echo)| (*ack, Some(*echo)));
            split.extend(echoes);
            split.push((seq, None));
            receiver.acknowledge(seq, None);
            pending = 0;
        }
    }
    // The host has not yet acknowledged the last deliveries.
    let last = split.last().map_or(base, |(ack, _)| *ack);
    receiver.sent.retain(|(ack, _)| last.wrapping_sub(*ack) as i32 >= 0);
    for (split, received) in split.iter().zip(&receiver.sent) {
        assert_eq!(split.0, received.0);
        // The TSecr of the host's own ACK is not compared.
        assert!(split.1.is_none() || split.1 == received.1, "{split:?}, not {received:?}");
    }
    assert_eq!(split.len(), receiver.sent.len());
}

#[test]
fn pairs_stay_pairs_however_deliveries_are_cut() {
    for full in [2, 4, 8, 16, 20] {
        let delivery = Delivery { full, short: 0, is_acknowledged: true, tsval: 1 };
        let mut world = World::at(2, 0);
        let mut sent = Vec::new();
        for index in 0..5 {
            world.aggregate(index * full * FULL, full * FULL, 1);
            sent.extend(acks(&world.ack((index + 1) * full * FULL)));
        }
        let pairs: Vec<_> = (1..=5 * full / 2).map(|pair| pair * 2 * FULL).collect();
        assert_eq!(sent, pairs);
        compare(2, 0, &[delivery; 5]);
    }
}

proptest! {
    #[test]
    fn the_same_acks_leave_as_from_a_receiver_without_coalescing(
        every in 1..5_u16,
        base in prop_oneof![Just(u32::MAX - 20_000), any::<u32>()],
        deliveries in vec(deliveries(), 1..40),
    ) {
        // With `every` 1, forty segments would need more than 32 ACKs.
        compare(every.max(2), base, &deliveries);
    }
}
