//! Tests with many laps of a ring, for 16-bit indices and wrap counters, and with devices that stop and are
//! replaced by others.

use super::pair::{BUFFERS, Features, Pair, all_features, readable};
use crate::{Base, DeviceQueue, Layout, Taken, Used};

/// Sends the frames `numbers` one at a time, each a chain of one to three segments.
fn exchange(pair: &mut Pair, numbers: std::ops::Range<u32>) {
    for number in numbers {
        let bytes = number.to_le_bytes();
        assert!(pair.memory.write(BUFFERS, &bytes));
        let halves = [readable(BUFFERS, 2), readable(BUFFERS + 2, 1), readable(BUFFERS + 3, 1)];
        let whole = [readable(BUFFERS, 4)];
        let segments = if number % 3 == 0 { &halves[..] } else { &whole[..] };
        pair.driver.post(segments, number).unwrap();
        pair.driver.publish();
        let mut frame = [0; 4];
        assert_eq!(pair.device.take(&pair.memory, &mut frame), Taken::Frame(4));
        assert_eq!(frame, bytes);
        pair.device.publish();
        assert_eq!(pair.driver.take_used(), Ok(Some(Used { token: number, written_bytes: 0 })));
    }
}

/// Returns the number of frames for more than one lap of the indices, or for many laps of a packed ring.
fn frames(features: Features) -> u32 {
    match features.layout {
        Layout::Split => 70_000,
        Layout::Packed => 5_000,
    }
}

#[test]
fn indices_and_wrap_counters_wrap() {
    for features in all_features() {
        exchange(&mut Pair::new(features, 4), 0..frames(features));
    }
    for layout_size in [3, 5, 7] {
        let features = Features { layout: Layout::Packed, event_index: true, indirect: false };
        exchange(&mut Pair::new(features, layout_size), 0..5_000);
    }
}

#[test]
fn notifications_are_right_while_the_indices_wrap() {
    for features in all_features().filter(|features| features.event_index) {
        let mut pair = Pair::new(features, 8);
        for number in 0..frames(features) / 2 {
            assert!(!pair.device.enable_notifications());
            pair.driver.post(&[readable(BUFFERS, 1)], number).unwrap();
            pair.driver.publish();
            assert!(pair.driver.needs_notify(), "{number}: the device waits");
            assert!(!pair.driver.needs_notify(), "once");
            pair.driver.post(&[readable(BUFFERS, 1)], number).unwrap();
            pair.driver.publish();
            assert!(!pair.driver.needs_notify(), "{number}: the device is at work");
            for _ in 0..2 {
                assert_eq!(pair.device.take(&pair.memory, &mut [0; 4]), Taken::Frame(1));
                pair.device.publish();
                assert!(pair.driver.take_used().unwrap().is_some());
            }
        }
    }
}

#[test]
fn another_device_continues_where_one_stopped() {
    for features in all_features() {
        let mut pair = Pair::new(features, 4);
        for round in 0..40 {
            exchange(&mut pair, round * 7..round * 7 + 7);
            let base = Base::Vring(pair.device.base());
            pair.device = DeviceQueue::new(&pair.memory, &pair.config, base).unwrap();
        }
    }
}

#[test]
fn a_device_can_tell_whether_the_driver_has_consumed_all() {
    for features in all_features() {
        let mut pair = Pair::new(features, 8);
        exchange(&mut pair, 0..29);
        assert!(!pair.driver.enable_notifications());
        let backlog = |behind| features.event_index.then_some(behind);
        assert_eq!(pair.device.backlog(), backlog(0), "{features:?}");
        for token in 0..3 {
            pair.driver.post(&[readable(BUFFERS, 1)], token).unwrap();
            pair.driver.publish();
            assert_eq!(pair.device.take(&pair.memory, &mut [0; 4]), Taken::Frame(1));
        }
        assert_eq!(pair.device.backlog(), backlog(0), "not published");
        pair.device.publish();
        assert_eq!(pair.device.backlog(), backlog(3));
        while pair.driver.take_used().unwrap().is_some() {}
        assert!(!pair.driver.enable_notifications());
        assert_eq!(pair.device.backlog(), backlog(0));
    }
}
