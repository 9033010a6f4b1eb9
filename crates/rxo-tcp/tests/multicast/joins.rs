//! The time of a cast beside its file: until all have joined, and from the last byte until all are done.

use rxo_frame::Duration;

use crate::room::{Room, parity_config, spread_config};

/// A receiver that has the SYN-ACK believes that it has joined, and says nothing more. The sender repeats the
/// SYN-ACK soon.
#[test]
fn a_lost_last_ack_of_the_handshake_costs_a_tenth_of_a_second() {
    let mut room = Room::new(parity_config(), 0, 100_000);
    let begun = room.now;
    room.come(spread_config(0));
    room.step();
    room.links.loss = 1_000;
    room.step();
    room.links.loss = 0;
    assert!(room.receivers[0].tcp.statistics().rto > Duration::ZERO && room.sides[0].id.is_none());
    room.begin();
    let time = room.now.since(begun);
    assert!(time < Duration::from_millis(120), "{time:?}");
    room.finish();
    assert_eq!(room.done(), 1);
}

/// Everything may be lost, handshakes and the last ACKs as well.
#[test]
fn twenty_join_and_settle_within_three_tenths_of_a_second() {
    for (seed, loss) in (1..=5).flat_map(|seed| [0, 10, 30].map(|loss| (seed, loss))) {
        let mut room = Room::new(parity_config(), 0, 500_000);
        (room.links.random, room.links.loss) = (seed, loss);
        let begun = room.now;
        (0..20).for_each(|number| {
            room.come(spread_config(number % 16));
        });
        room.begin();
        let joined = room.now.since(begun);
        room.run_until(|room| room.receivers.iter().all(|it| it.read == room.stream.len()));
        let read_at = room.now;
        room.finish();
        let settled = room.now.since(read_at);
        assert_eq!(room.done(), 20, "{:?}", room.outcomes());
        let most = Duration::from_millis(300);
        assert!(joined < most && settled < most, "{seed}, {loss}: {joined:?}, {settled:?}");
    }
}
