//! Tests of a device that is killed at any moment, and of the next device, which returns the chains that the
//! first one did not return.

use std::sync::Arc;

use proptest::prelude::*;

use super::pair::{BUFFERS, Pair, all_features, readable, writable};
use super::promises::{Story, op};
use crate::{
    Base, DeviceQueue, InflightError, Layout, Mapping, Memory, Region, Segment, Taken, Used,
    inflight_bytes,
};

/// The record of a queue, at an offset in its mapping, and its bytes as the front end sees them.
struct Record {
    mapping: Arc<Mapping>,
    memory: Memory,
}

const OFFSET: u64 = 64;

impl Record {
    fn new(layout: Layout, size: u16) -> Self {
        let bytes = OFFSET + inflight_bytes(layout, size);
        let mapping = Arc::new(Mapping::zeroed(bytes as usize));
        let mut memory = Memory::new();
        memory.add(Region::new(0, 0, Arc::clone(&mapping), 0, bytes).unwrap()).unwrap();
        Self { mapping, memory }
    }

    /// Makes the next device of the pair's queue. The base that the front end gives is wrong after a kill.
    fn device(&self, pair: &Pair, base: u32) -> Result<DeviceQueue, InflightError> {
        let mut device = DeviceQueue::new(&pair.memory, &pair.config, Base::Vring(base)).unwrap();
        device.track(&self.mapping, OFFSET).map(|()| device)
    }

    fn set(&self, at: u64, bytes: &[u8]) {
        assert!(self.memory.write(OFFSET + at, bytes));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn every_buffer_is_returned_once_although_devices_are_killed(
        combination in 0_usize..8,
        size in prop_oneof![Just(1_u16), Just(2), Just(3), Just(4), Just(8), Just(64)],
        is_receive: bool,
        ops in prop::collection::vec(prop_oneof![9 => op().prop_map(Some), 1 => Just(None)], 1..400),
    ) {
        let features = all_features().nth(combination).unwrap();
        let size = if features.layout == Layout::Split { size.next_power_of_two() } else { size };
        let mut story = Story::new(features, size, is_receive);
        let record = Record::new(features.layout, size);
        story.pair.device.track(&record.mapping, OFFSET).unwrap();
        for op in ops {
            match op {
                Some(op) => story.run(op),
                // Not even the base is known.
                None => {
                    let device = record.device(&story.pair, 0).unwrap();
                    story.replace_device(device);
                }
            }
        }
        prop_assert_eq!(story.pair.device.invalid().total(), 0);
    }

    /// Any record is refused, or followed within its limits: the record is memory of the front end and may
    /// have any content.
    #[test]
    fn any_record_is_refused_or_followed_within_the_memory(
        is_packed: bool,
        size in prop_oneof![Just(1_u16), Just(4), Just(8)],
        writes in prop::collection::vec((0_usize..300, any::<u8>()), 0..40),
        states in prop::collection::vec((0_u16..9, 0_u16..9, 0_u16..9, 0_u64..4, 0_u16..8), 0..9),
    ) {
        let features = all_features().nth(if is_packed { 7 } else { 3 }).unwrap();
        let mut pair = Pair::new(features, size);
        let record = Record::new(features.layout, size);
        let first = record.device(&pair, 0x8000_8000).unwrap();
        drop(first);
        for (n, (next, last, count, counter, flags)) in states.into_iter().enumerate().take(size.into()) {
            let (header, each) = if is_packed { (32, 32) } else { (16, 16) };
            let at = header + each * n as u64;
            let buffer = BUFFERS + 64 * n as u64;
            if is_packed {
                let halves = [1, next, last, count].map(u16::to_ne_bytes).concat();
                record.set(at, &halves);
                record.set(at + 16, &[n as u16, flags].map(u16::to_ne_bytes).concat());
                record.set(at + 20, &64_u32.to_ne_bytes());
                record.set(at + 24, &buffer.to_ne_bytes());
            } else {
                record.set(at, &1_u16.to_ne_bytes());
                record.set(at + 6, &next.to_ne_bytes());
            }
            record.set(at + 8, &counter.to_ne_bytes());
        }
        let bytes = inflight_bytes(features.layout, size) as usize;
        writes.iter().for_each(|(at, byte)| record.set((at % bytes) as u64, &[*byte]));
        if let Ok(device) = record.device(&pair, 0) {
            pair.device = device;
            // Each chain is taken once, and a ring without end is broken.
            for _ in 0..=size {
                let _ = pair.device.take(&pair.memory, &mut [0; 512]);
            }
            pair.device.publish();
            prop_assert!(pair.device.is_broken() || pair.device.take(&pair.memory, &mut [0; 512]) == Taken::Empty);
        }
    }
}

/// A device of another program may return chains in any order, so that the chains in flight are not the last
/// ones.
#[test]
fn chains_of_a_device_with_another_order_are_returned_in_theirs() {
    for features in all_features().filter(|features| features.layout == Layout::Split) {
        let mut pair = Pair::new(features, 8);
        let record = Record::new(Layout::Split, 8);
        drop(record.device(&pair, 0).unwrap());
        let posted: Vec<Segment> =
            (0..4).map(|n| readable(BUFFERS + 64 * n, 1 + n as u32)).collect();
        posted
            .iter()
            .zip(0..)
            .for_each(|(segment, token)| pair.driver.post(&[*segment], token).unwrap());
        pair.driver.publish();
        // The other device returned the chains 1 and 3 first; it took 2 before 0.
        let heads: Vec<u16> = (0..4).map(|n| head(&pair, n)).collect();
        for (n, counter) in [(0, 9_u64), (2, 8)] {
            let at = 16 + 16 * u64::from(heads[n]);
            record.set(at, &1_u16.to_ne_bytes());
            record.set(at + 8, &counter.to_ne_bytes());
        }
        let used = pair.config.device;
        for (slot, n) in [(0, 1), (1, 3)] {
            assert!(pair.memory.write(used + 4 + 8 * slot, &u32::from(heads[n]).to_le_bytes()));
        }
        assert!(pair.memory.write(used + 2, &2_u16.to_le_bytes()));
        record.set(14, &2_u16.to_ne_bytes());
        pair.device = record.device(&pair, 0).unwrap();
        let frames = [(); 3].map(|()| pair.device.take(&pair.memory, &mut [0; 64]));
        assert_eq!(frames, [Taken::Frame(3), Taken::Frame(1), Taken::Empty]);
        pair.device.publish();
        let taken: Vec<u32> =
            std::iter::from_fn(|| pair.driver.take_used().unwrap().map(|used: Used| used.token))
                .collect();
        assert_eq!(taken, [1, 3, 2, 0]);
        // The ring continues to work.
        pair.driver.post(&[writable(BUFFERS, 9)], 7).unwrap();
        pair.driver.publish();
        assert!(pair.device.reserve(&pair.memory, 9, crate::Fit::OneChain).is_ok());
    }
}

/// Returns the head of the available entry `n`.
fn head(pair: &Pair, n: u64) -> u16 {
    let mut bytes = [0; 2];
    assert!(pair.memory.read(pair.config.driver + 4 + 2 * n, &mut bytes));
    u16::from_le_bytes(bytes)
}

/// A batch that the driver has already got is not returned again: the device was killed between writing the
/// used index and recording it.
#[test]
fn a_batch_that_the_driver_has_is_not_returned_again() {
    for features in all_features().filter(|features| features.layout == Layout::Split) {
        let mut pair = Pair::new(features, 8);
        let record = Record::new(Layout::Split, 8);
        pair.device = record.device(&pair, 0).unwrap();
        (0..3).for_each(|n| pair.driver.post(&[readable(BUFFERS, 5)], n).unwrap());
        pair.driver.publish();
        (0..2).for_each(|_| _ = pair.device.take(&pair.memory, &mut [0; 64]));
        let mut before = vec![0; 16 + 8 * 16];
        assert!(record.memory.read(OFFSET, &mut before));
        pair.device.publish();
        record.set(0, &before);
        pair.device = record.device(&pair, 0).unwrap();
        assert_eq!(pair.device.take(&pair.memory, &mut [0; 64]), Taken::Frame(5));
        assert_eq!(pair.device.take(&pair.memory, &mut [0; 64]), Taken::Empty);
    }
}

#[test]
fn a_record_of_something_else_is_refused() {
    for layout in [Layout::Split, Layout::Packed] {
        let features = all_features().find(|features| features.layout == layout).unwrap();
        let pair = Pair::new(features, 8);
        let record = Record::new(layout, 8);
        drop(record.device(&pair, 0x8000_8000).unwrap());
        record.set(8, &2_u16.to_ne_bytes());
        assert_eq!(record.device(&pair, 0).err(), Some(InflightError::Version(2)));
        record.set(8, &[1_u16, 4].map(u16::to_ne_bytes).concat());
        let wrong = InflightError::Size { recorded: 4, size: 8 };
        assert_eq!(record.device(&pair, 0).err(), Some(wrong));
        let mut device = DeviceQueue::new(&pair.memory, &pair.config, Base::Start).unwrap();
        for offset in [128, 68, u64::MAX] {
            assert_eq!(
                device.track(&record.mapping, offset),
                Err(InflightError::Region),
                "{offset}"
            );
        }
    }
}
