//! Random operations of both sides. Each buffer must arrive exactly once, in order, with its bytes; a
//! notification must be sent exactly when a naive model of the rule requires one.

use std::collections::VecDeque;

use proptest::prelude::*;

use super::pair::{BUFFERS, Features, Pair, all_features, readable, writable};
use crate::{DeviceQueue, Fit, Layout, Refused, Segment, Taken, Used};

/// The memory reserved for each buffer, in bytes.
const ROOM: u64 = 0x100;

/// One operation of either side; its numbers choose sizes and pieces.
#[derive(Clone, Copy, Debug)]
pub(super) enum Op {
    Post { bytes: u8, pieces: u8 },
    DriverPublishes,
    DriverTakes,
    DriverEnables,
    DriverDisables,
    Work { bytes: u8, pieces: u8 },
    DevicePublishes,
    DeviceEnables,
    DeviceDisables,
}

pub(super) fn op() -> impl Strategy<Value = Op> {
    let sizes = (1_u8.., 1_u8..=5);
    prop_oneof![
        5 => sizes.clone().prop_map(|(bytes, pieces)| Op::Post { bytes, pieces }),
        3 => Just(Op::DriverPublishes),
        5 => Just(Op::DriverTakes),
        1 => Just(Op::DriverEnables),
        1 => Just(Op::DriverDisables),
        5 => sizes.prop_map(|(bytes, pieces)| Op::Work { bytes, pieces }),
        3 => Just(Op::DevicePublishes),
        1 => Just(Op::DeviceEnables),
        1 => Just(Op::DeviceDisables),
    ]
}

/// A chain in the model.
#[derive(Clone, Debug)]
struct Posted {
    token: u32,
    bytes: Vec<u8>,
    segments: Vec<Segment>,
    /// The steps that the notification rule counts: descriptors of a packed ring, entries of a split one.
    steps: u64,
}

/// A naive model of the notifications from one side to the other.
#[derive(Debug, Default)]
struct Notices {
    /// The number of steps written so far; `published` counts those of them that are published.
    written: u64,
    published: u64,
    /// Published steps for which `needs_notify` was not called yet.
    undecided: VecDeque<u64>,
    wish: Wish,
    /// `true` while the other side waits: it found nothing when it enabled notifications.
    is_waiting: bool,
}

/// The notification setting of the other side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Wish {
    #[default]
    Always,
    Never,
    /// Notify when the step with this number is published.
    Step(u64),
}

impl Notices {
    fn publish(&mut self) {
        self.undecided.extend(self.published..self.written);
        self.published = self.written;
    }

    /// Returns `true` if a notification is due. Step numbers repeat modulo `lap`.
    fn is_due(&mut self, lap: u64) -> bool {
        let mut undecided = std::mem::take(&mut self.undecided).into_iter();
        match self.wish {
            Wish::Always => undecided.next().is_some(),
            Wish::Never => false,
            Wish::Step(asked) => undecided.any(|step| step % lap == asked % lap),
        }
    }

    fn enable(&mut self, event_index: bool, consumed: u64, found: bool) {
        self.wish = if event_index { Wish::Step(consumed) } else { Wish::Always };
        self.is_waiting = !found;
    }

    fn disable(&mut self, features: Features) {
        // A split ring with the event index cannot disable notifications.
        if features.layout == Layout::Packed || !features.event_index {
            self.wish = Wish::Never;
            self.is_waiting = false;
        }
    }
}

/// Both sides, and the model of their expected results.
pub(super) struct Story {
    pub(super) pair: Pair,
    features: Features,
    size: u16,
    is_receive: bool,
    tokens: u32,
    posted: VecDeque<Posted>,
    available: VecDeque<Posted>,
    worked: VecDeque<Posted>,
    used: VecDeque<Posted>,
    /// The number of chains that the device has consumed, in steps; `taken` is that of the driver.
    consumed: u64,
    taken: u64,
    kicks: Notices,
    calls: Notices,
}

impl Story {
    pub(super) fn new(features: Features, size: u16, is_receive: bool) -> Self {
        let event_index = features.event_index;
        // Fresh rings request a notification for the first entry, or always.
        let fresh = || Notices {
            wish: if event_index && features.layout == Layout::Split {
                Wish::Step(0)
            } else {
                Wish::Always
            },
            ..Notices::default()
        };
        Self {
            pair: Pair::new(features, size),
            features,
            size,
            is_receive,
            tokens: 0,
            posted: VecDeque::new(),
            available: VecDeque::new(),
            worked: VecDeque::new(),
            used: VecDeque::new(),
            consumed: 0,
            taken: 0,
            kicks: fresh(),
            calls: fresh(),
        }
    }

    fn lap(&self) -> u64 {
        match self.features.layout {
            Layout::Split => 0x1_0000,
            Layout::Packed => 2 * u64::from(self.size),
        }
    }

    pub(super) fn run(&mut self, op: Op) {
        match op {
            Op::Post { bytes, pieces } => self.post(bytes, pieces),
            Op::DriverPublishes => self.driver_publishes(),
            Op::DriverTakes => self.driver_takes(),
            Op::DriverEnables => {
                let found = self.pair.driver.enable_notifications();
                assert_eq!(found, !self.used.is_empty());
                self.calls.enable(self.features.event_index, self.taken, found);
            }
            Op::DriverDisables => {
                self.pair.driver.disable_notifications();
                self.calls.disable(self.features);
            }
            Op::Work { bytes, pieces } if self.is_receive => self.fill(bytes, pieces),
            Op::Work { .. } => self.take(),
            Op::DevicePublishes => self.device_publishes(),
            Op::DeviceEnables => {
                let found = self.pair.device.enable_notifications();
                assert_eq!(found, !self.available.is_empty());
                self.kicks.enable(self.features.event_index, self.consumed, found);
            }
            Op::DeviceDisables => {
                self.pair.device.disable_notifications();
                self.kicks.disable(self.features);
            }
        }
    }

    fn post(&mut self, bytes: u8, pieces: u8) {
        let token = self.tokens;
        let at = BUFFERS + u64::from(token % 1_024) * ROOM;
        let content: Vec<u8> =
            (0..bytes).map(|i| i.wrapping_mul(3).wrapping_add(token as u8)).collect();
        let segments = segments(at, bytes, pieces, self.is_receive);
        if !self.is_receive {
            assert!(self.pair.memory.write(at, &content));
        }
        let before = self.pair.driver.free();
        let posted = self.pair.driver.post(&segments, token);
        let descriptors = before - self.pair.driver.free();
        let has_table = self.features.indirect && segments.len() <= self.size.into();
        let needed = if has_table { 1 } else { segments.len() };
        assert_eq!(posted.is_ok(), needed <= before);
        assert_eq!(descriptors, if posted.is_ok() { needed } else { 0 });
        if posted.is_ok() {
            let is_split = self.features.layout == Layout::Split;
            let steps = if is_split { 1 } else { descriptors as u64 };
            self.kicks.written += steps;
            self.posted.push_back(Posted { token, bytes: content, segments, steps });
            self.tokens += 1;
        }
    }

    fn driver_publishes(&mut self) {
        self.pair.driver.publish();
        self.available.append(&mut self.posted);
        self.kicks.publish();
        let (is_new, waits) = (!self.kicks.undecided.is_empty(), self.kicks.is_waiting);
        let due = self.kicks.is_due(self.lap());
        assert_eq!(self.pair.driver.needs_notify(), due);
        assert!(due || !(waits && is_new), "a device that waits is notified");
        self.kicks.is_waiting &= !due;
    }

    fn device_publishes(&mut self) {
        self.pair.device.publish();
        self.used.append(&mut self.worked);
        self.calls.publish();
        let (is_new, waits) = (!self.calls.undecided.is_empty(), self.calls.is_waiting);
        let due = self.calls.is_due(self.lap());
        assert_eq!(self.pair.device.needs_notify(), due);
        assert!(due || !(waits && is_new), "a driver that waits is notified");
        self.calls.is_waiting &= !due;
    }

    /// Replaces the device, which was killed. The driver gets a notification from the next one. Chains that were not
    /// published are available again.
    pub(super) fn replace_device(&mut self, device: DeviceQueue) {
        self.pair.device = device;
        let unpublished = std::mem::take(&mut self.worked);
        let steps: u64 = unpublished.iter().map(|posted| posted.steps).sum();
        for mut posted in unpublished.into_iter().rev() {
            let bytes: u32 = posted.segments.iter().map(|segment| segment.bytes).sum();
            posted.bytes = vec![0; bytes as usize];
            if !self.is_receive {
                let start = posted.segments[0].address;
                assert!(self.pair.memory.read(start, &mut posted.bytes));
            }
            self.available.push_front(posted);
        }
        self.consumed -= steps;
        self.calls.written -= steps;
        self.calls.undecided.clear();
        self.calls.is_waiting = false;
    }

    fn take(&mut self) {
        let mut frame = [0; 256];
        let taken = self.pair.device.take(&self.pair.memory, &mut frame);
        let Some(expected) = self.available.pop_front() else {
            assert_eq!(taken, Taken::Empty);
            return;
        };
        assert_eq!(taken, Taken::Frame(expected.bytes.len()));
        assert_eq!(frame[..expected.bytes.len()], expected.bytes);
        self.return_to_driver(Posted { bytes: Vec::new(), ..expected });
    }

    fn return_to_driver(&mut self, posted: Posted) {
        self.consumed += posted.steps;
        self.calls.written += posted.steps;
        self.worked.push_back(posted);
    }

    /// Sends a packet of several slices to the driver, in as many buffers as needed.
    fn fill(&mut self, bytes: u8, pieces: u8) {
        let packet: Vec<u8> = (0..u16::from(bytes) + 12).map(|i| (i * 7) as u8).collect();
        let room: usize = self.available.iter().map(|posted| posted.bytes.len()).sum();
        let fit = Fit::Merged { count_at: 10 };
        let writer = self.pair.device.reserve(&self.pair.memory, packet.len() as u32, fit);
        if room < packet.len() {
            let capacity = room as u32;
            match writer.err() {
                Some(Refused::NoBuffers) => assert_eq!(capacity, 0),
                Some(Refused::TooFew { capacity: seen, .. }) => assert_eq!(seen, capacity),
                other => panic!("{other:?}"),
            }
            return;
        }
        let mut writer = writer.unwrap();
        packet.chunks(packet.len().div_ceil(pieces.into())).for_each(|slice| writer.write(slice));
        let buffers = writer.finish().unwrap();
        let mut expected = packet;
        expected[10..12].copy_from_slice(&buffers.to_le_bytes());
        let mut rest = &expected[..];
        for _ in 0..buffers {
            let posted = self.available.pop_front().unwrap();
            let (now, later) = rest.split_at(rest.len().min(posted.bytes.len()));
            assert!(!now.is_empty(), "no buffer stays empty");
            self.return_to_driver(Posted { bytes: now.to_vec(), ..posted });
            rest = later;
        }
        assert!(rest.is_empty());
    }

    fn driver_takes(&mut self) {
        let used = self.pair.driver.take_used().unwrap();
        let Some(expected) = self.used.pop_front() else {
            assert_eq!(used, None);
            return;
        };
        let written_bytes = expected.bytes.len() as u32;
        assert_eq!(used, Some(Used { token: expected.token, written_bytes }));
        self.taken += expected.steps;
        let mut rest = &expected.bytes[..];
        for segment in &expected.segments {
            let (now, later) = rest.split_at(rest.len().min(segment.bytes as usize));
            let mut read = vec![0; now.len()];
            assert!(self.pair.memory.read(segment.address, &mut read));
            assert_eq!(read, now);
            rest = later;
        }
    }
}

/// Builds at most `pieces` segments of `bytes` bytes together, not adjacent to each other.
fn segments(at: u64, bytes: u8, pieces: u8, is_writable: bool) -> Vec<Segment> {
    let segment = if is_writable { writable } else { readable };
    // A frame that the device reads is written to memory in one piece.
    let each = bytes.div_ceil(pieces);
    let starts = (0..bytes).step_by(each.into());
    starts.map(|from| segment(at + u64::from(from), each.min(bytes - from).into())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn every_buffer_once_in_order_and_every_notification_that_was_asked_for(
        combination in 0_usize..8,
        size in prop_oneof![Just(1_u16), Just(2), Just(3), Just(4), Just(7), Just(8), Just(64)],
        is_receive: bool,
        ops in prop::collection::vec(op(), 1..500),
    ) {
        let features = all_features().nth(combination).unwrap();
        let is_split = features.layout == Layout::Split;
        let size = if is_split { size.next_power_of_two() } else { size };
        let mut story = Story::new(features, size, is_receive);
        ops.into_iter().for_each(|op| story.run(op));
        prop_assert_eq!(story.pair.device.invalid().total(), 0);
        prop_assert_eq!(story.pair.driver.invalid(), 0);
    }
}
