//! A cast under independent losses, beside as many unicasts over the same links.

use rxo_frame::Duration;
use rxo_tcp::GroupConfig;

use crate::room::{Room, group_config, spread_config};
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
        let begun = room.now;
        for number in 0..self.receivers {
            room.come(spread_config(number % 16));
        }
        room.begin();
        room.run_until(|room| room.receivers.iter().all(|it| it.read == room.stream.len()));
        let cost = Cost { time: room.now.since(begun), bytes: room.links.sent_bytes };
        if std::env::var_os("CAST_DETAILS").is_some() {
            println!("{:?} to the group, {} to one", room.to_group, room.to_one);
        }
        room.finish();
        assert_eq!(room.done(), self.receivers.into(), "{:?}", room.outcomes());
        cost
    }

    fn unicasts(self) -> Cost {
        let mut all = Unicasts::new(self.receivers.into(), self.bytes);
        (all.links.loss, all.links.byte_time) = (self.loss, self.byte_time);
        Cost { time: all.run(), bytes: all.links.sent_bytes }
    }
}

/// Prints the table of docs/cast.md: `cargo test --release -p rxo-tcp --test multicast -- --ignored
/// --nocapture prints`.
#[test]
#[ignore = "prints a table, for minutes"]
fn prints_casts_beside_unicasts_under_loss() {
    println!("| loss | receivers | cast | bytes | unicasts | bytes |");
    for receivers in [5, 20, 168] {
        for loss in [0, 1, 10, 30] {
            let byte_time = Duration::from_nanos(8);
            let case = Case { receivers, bytes: bytes(), loss, byte_time };
            let (cast, unicasts) = (case.cast(group_config()), case.unicasts());
            let of = |cost: Cost| {
                format!(
                    "{:.3} s | {:.2}",
                    cost.time.as_secs_f64(),
                    cost.bytes as f64 / bytes() as f64
                )
            };
            let loss = loss as f64 / 10.0;
            println!("| {loss} % | {receivers} | {} | {} |", of(cast), of(unicasts));
        }
    }
}

fn bytes() -> usize {
    std::env::var("CAST_BYTES").map_or(10_000_000, |it| it.parse().expect("a number"))
}
