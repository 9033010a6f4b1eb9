//! The time and the bytes of a file for many receivers: by a cast, and by as many downloads, on a link of 1 Gbit/s.

use rxo_frame::Duration;
use rxo_tcp::GroupConfig;

use super::room::{FOR_EVER, Room, spread_config};
use super::unicasts::Unicasts;

/// A transfer: the receivers, the bytes of the file, and the lost segments per 1000 in each direction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) receivers: u16,
    pub(crate) bytes: usize,
    pub(crate) loss: u64,
    /// The receiver of a cast that stops for ever after a quarter of the file; `None` if all run.
    pub(crate) stops: Option<u16>,
}

/// The cost of a transfer to the receivers that do not stop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    /// The time from the first SYN until each receiver has the file.
    pub(crate) time: Duration,
    /// The bytes that the sender's link has carried by then.
    pub(crate) bytes: u64,
    /// The time for joins before the first byte, and for farewells after the last.
    pub(crate) around: Duration,
}

impl Case {
    pub(crate) fn cast(self, config: GroupConfig) -> Cost {
        let config = GroupConfig { buffer_bytes: 4 << 20, ..config };
        let mut room = Room::new(config, 0, self.bytes);
        (room.links.loss, room.links.byte_time) = (self.loss, GIGABIT);
        room.links.lossy_from = room.now + HANDSHAKES;
        let begun = room.now;
        for number in 0..self.receivers {
            room.come(spread_config(number % 16));
        }
        room.begin();
        let joined = room.now;
        let stopped = self.stops.map(usize::from);
        if let Some(stopped) = stopped {
            let quarter = self.bytes as u64 / 4;
            room.run_until(|room| room.group.progress().sent >= quarter);
            room.receivers[stopped].absent_until = FOR_EVER;
        }
        let runs = |number: &usize| Some(*number) != stopped;
        let running = (0..usize::from(self.receivers)).filter(runs);
        let has_all = |room: &Room| running.clone().all(|it| room.receivers[it].read == self.bytes);
        room.run_until(has_all);
        assert!(has_all(&room), "{self:?}: {:?}", room.outcomes());
        let (arrived, bytes) = (room.now, room.links.sent_bytes);
        if stopped.is_none() {
            room.finish();
            assert_eq!(room.done(), usize::from(self.receivers), "{:?}", room.outcomes());
        }
        let around = joined.since(begun) + room.now.since(arrived);
        Cost { time: arrived.since(begun), bytes, around }
    }

    pub(crate) fn unicasts(self) -> Cost {
        let mut all = Unicasts::new(self.receivers.into(), self.bytes);
        all.links.lossy_from = all.now + HANDSHAKES;
        (all.links.loss, all.links.byte_time) = (self.loss, GIGABIT);
        Cost { time: all.run(), bytes: all.links.sent_bytes, around: Duration::ZERO }
    }
}

/// The time that a link of 1 Gbit/s needs for a byte.
const GIGABIT: Duration = Duration::from_nanos(8);
/// The time for handshakes, in which nothing is lost: their timeouts of a second would hide all others.
const HANDSHAKES: Duration = Duration::from_millis(2);
