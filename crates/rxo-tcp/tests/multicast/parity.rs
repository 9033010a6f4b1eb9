//! Repairs by parity packets: one of them repairs a different loss at each receiver.

use rxo_frame::Duration;
use rxo_tcp::GroupConfig;

use crate::room::{Room, parity_config, spread_config};

fn room(receivers: u16, bytes: usize, loss: u64) -> Room {
    let mut room = Room::new(parity_config(), 0, bytes);
    room.links.byte_time = Duration::from_nanos(8);
    (room.links.loss, room.links.lossy_from) = (loss, room.now + Duration::from_millis(2));
    (0..receivers).for_each(|number| {
        room.come(spread_config(number % 16));
    });
    room
}

#[test]
fn all_get_the_stream_whatever_is_lost() {
    for (seed, loss) in (1..=4).flat_map(|seed| [5, 30, 100].map(|loss| (seed, loss))) {
        let mut room = room(8, 700_000, loss);
        room.links.random = seed;
        room.run();
        assert_eq!(room.done(), 8, "seed {seed}, {loss} of 1000: {:?}", room.outcomes());
        assert!(room.parity_packets > 0);
    }
}

#[test]
fn without_loss_there_is_no_parity() {
    let mut room = room(8, 700_000, 0);
    room.run();
    assert_eq!((room.done(), room.parity_packets, room.to_group[1], room.to_one), (8, 0, 0, 0));
}

/// A Linux host behind `rxo cast join` knows nothing of parity packets.
#[test]
fn receivers_that_cannot_use_parity_get_the_segments() {
    let mut room = room(8, 700_000, 20);
    room.receivers[..4].iter_mut().for_each(|receiver| receiver.collector = None);
    room.run();
    assert_eq!(room.done(), 8, "{:?}", room.outcomes());
    assert!(room.to_group[1] + room.to_one > 0, "segments are repeated");
}

/// On a slow link a block takes 75 ms, longer than retransmission timers run.
#[test]
fn a_slow_link_repairs_before_timers_expire() {
    let mut room = room(5, 1_000_000, 10);
    room.links.byte_time = Duration::from_nanos(800);
    let begun = room.now;
    room.run();
    assert_eq!(room.done(), 5, "{:?}", room.outcomes());
    let time = room.now.since(begun);
    assert!(time < Duration::from_millis(1_400), "{time:?}, and the link needs 0.84 s");
}

/// A block is kept until all receivers have it, and the send buffer has room for half of one.
#[test]
fn a_buffer_smaller_than_a_block_does_not_stop_the_cast() {
    for loss in [0, 30] {
        let mut room =
            Room::new(GroupConfig { buffer_bytes: 45_000, ..parity_config() }, 0, 700_000);
        (room.links.loss, room.links.lossy_from) = (loss, room.now + Duration::from_millis(2));
        (0..8).for_each(|number| {
            room.come(spread_config(number));
        });
        room.run();
        assert_eq!(room.done(), 8, "{loss} of 1000: {:?}", room.outcomes());
        assert_eq!(room.parity_packets > 0, loss > 0);
    }
}

/// The application reads slowly, so the segments of a block are partly read, in order, and out of order.
#[test]
fn what_the_application_has_read_counts() {
    let config = GroupConfig { buffer_bytes: 300_000, ..parity_config() };
    let mut room = Room::new(config, 0, 400_000);
    (room.links.loss, room.links.lossy_from) = (40, room.now + Duration::from_millis(2));
    (0..3).for_each(|number| {
        room.come(spread_config(number));
        room.receivers[usize::from(number)].reads_at_most = 0;
    });
    room.begin();
    for part in 1..=400 {
        for number in 0..3 {
            room.receivers[number].reads_at_most = part * 1_000 + number * 77;
            room.read_again(number);
        }
        let until = room.now + Duration::from_millis(2);
        room.run_until(|room| room.now >= until || room.receivers.iter().all(|it| it.is_done));
    }
    (0..3).for_each(|number| {
        room.receivers[number].reads_at_most = usize::MAX;
        room.read_again(number);
    });
    room.finish();
    assert_eq!(room.done(), 3, "{:?}", room.outcomes());
}
