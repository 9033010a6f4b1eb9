//! A cast under independent losses, beside as many unicasts over the same links.

use rxo_frame::Duration;
use rxo_tcp::GroupConfig;

use crate::room::{Room, group_config, parity_config, spread_config};
use crate::unicasts::Unicasts;

/// The time that a transfer took, and the bytes that its sender's link carried.
#[derive(Clone, Copy, Debug)]
struct Cost {
    time: Duration,
    bytes: u64,
}

/// A transfer: the receivers, the bytes of the file, the lost segments per 1000 in each direction, and the
/// time that the sender's link needs for a byte.
#[derive(Clone, Copy, Debug)]
struct Case {
    receivers: u16,
    bytes: usize,
    loss: u64,
    byte_time: Duration,
}

impl Case {
    fn cast(self, config: GroupConfig) -> Cost {
        let config = GroupConfig { buffer_bytes: 4 << 20, ..config };
        let mut room = Room::new(config, 0, self.bytes);
        (room.links.loss, room.links.byte_time) = (self.loss, self.byte_time);
        room.links.lossy_from = room.now + HANDSHAKES;
        let begun = room.now;
        for number in 0..self.receivers {
            room.come(spread_config(number % 16));
        }
        room.begin();
        room.run_until(|room| room.receivers.iter().all(|it| it.read == room.stream.len()));
        let cost = Cost { time: room.now.since(begun), bytes: room.links.sent_bytes };
        room.finish();
        assert_eq!(room.done(), self.receivers.into(), "{:?}", room.outcomes());
        cost
    }

    fn unicasts(self) -> Cost {
        let mut all = Unicasts::new(self.receivers.into(), self.bytes);
        all.links.lossy_from = all.now + HANDSHAKES;
        (all.links.loss, all.links.byte_time) = (self.loss, self.byte_time);
        Cost { time: all.run(), bytes: all.links.sent_bytes }
    }
}

/// Prints how casts by parity, by repeated segments and downloads compare: `cargo test --release -p rxo-tcp --test multicast -- --ignored
/// --nocapture prints`.
#[test]
#[ignore = "prints a table, for minutes"]
fn prints_casts_beside_unicasts_under_loss() {
    println!("| loss | receivers | parity | files | group:2 | files | unicasts | files |");
    for receivers in [5, 20, 168] {
        for loss in [0, 1, 10, 30] {
            let case = Case { receivers, bytes: 10_000_000, loss, byte_time: GIGABIT };
            let costs = [case.cast(parity_config()), case.cast(group_config()), case.unicasts()];
            let cells = costs.map(|cost| {
                let files = cost.bytes as f64 / case.bytes as f64;
                format!("{:.2} s | {files:.2}", cost.time.as_secs_f64())
            });
            println!("| {} % | {receivers} | {} |", loss as f64 / 10.0, cells.join(" | "));
        }
    }
}

/// Independent losses do not multiply: a cast beats as many unicasts in time and in bytes.
#[test]
fn a_cast_beats_as_many_unicasts_at_each_loss() {
    for (receivers, loss) in [(5, 0), (5, 1), (5, 10), (5, 30), (20, 10), (20, 30)] {
        let case = Case { receivers, bytes: 4_000_000, loss, byte_time: GIGABIT };
        let unicasts = case.unicasts();
        for config in [parity_config(), group_config()] {
            let cast = case.cast(config);
            let is_less = cast.time < unicasts.time && 3 * cast.bytes < unicasts.bytes;
            assert!(is_less, "{case:?}: {cast:?}, unicasts {unicasts:?}");
        }
    }
}

/// One packet repairs a different loss at each receiver: the more receivers, the more bytes that saves.
#[test]
fn parity_packets_are_fewer_than_repeated_segments() {
    for (receivers, loss, most) in [(20, 10, 1.12), (20, 30, 1.20), (60, 10, 1.13), (60, 30, 1.22)]
    {
        let case = Case { receivers, bytes: 4_000_000, loss, byte_time: GIGABIT };
        let (parity, group) = (case.cast(parity_config()), case.cast(group_config()));
        let files = parity.bytes as f64 / case.bytes as f64;
        assert!(files < most, "{case:?}: {files} files");
        assert!(parity.bytes < group.bytes, "{case:?}: {parity:?}, repeated {group:?}");
    }
}

/// The time that a link of 1 Gbit/s needs for a byte.
const GIGABIT: Duration = Duration::from_nanos(8);
/// The time for handshakes, in which nothing is lost: their timeouts of a second would hide all others.
const HANDSHAKES: Duration = Duration::from_millis(2);
