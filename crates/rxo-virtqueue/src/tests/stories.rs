//! Single frames, step by step, for every combination of features.

use super::pair::{BUFFERS, Pair, all_features, readable, writable};
use crate::{Fit, InvalidUsed, Layout, NoRoom, Refused, Taken, Used};

const MERGED: Fit = Fit::Merged { count_at: 10 };

#[test]
fn a_frame_goes_from_the_driver_to_the_device_and_its_buffer_back() {
    for features in all_features() {
        let mut pair = Pair::new(features, 8);
        assert!(pair.memory.write(BUFFERS, b"header and payload"));
        let segments = [readable(BUFFERS, 6), readable(BUFFERS + 6, 12)];
        pair.driver.post(&segments, 7).unwrap();
        let mut frame = [0; 64];
        assert_eq!(pair.device.take(&pair.memory, &mut frame), Taken::Empty, "not published");
        pair.driver.publish();
        assert!(pair.driver.needs_notify(), "{features:?}");
        assert_eq!(pair.device.take(&pair.memory, &mut frame), Taken::Frame(18));
        assert_eq!(&frame[..18], b"header and payload");
        assert_eq!(pair.driver.take_used(), Ok(None), "not published");
        pair.device.publish();
        assert!(pair.device.needs_notify());
        assert_eq!(pair.driver.take_used(), Ok(Some(Used { token: 7, written_bytes: 0 })));
        assert_eq!((pair.driver.take_used(), pair.driver.free()), (Ok(None), 8));
    }
}

#[test]
fn a_packet_fills_merged_buffers_and_says_how_many() {
    for features in all_features() {
        let mut pair = Pair::new(features, 8);
        for token in 0..4 {
            let at = BUFFERS + u64::from(token) * 0x100;
            pair.driver
                .post(&[writable(at, 9), writable(at + 0x80, 11)], token)
                .unwrap_or_else(|NoRoom| panic!("{features:?}"));
        }
        pair.driver.publish();
        let mut writer = pair.device.reserve(&pair.memory, 50, MERGED).unwrap();
        writer.write(&[1; 12]);
        writer.write(&[2; 38]);
        assert_eq!(writer.finish(), Ok(3));
        assert_eq!(pair.driver.take_used(), Ok(None), "not published");
        pair.device.publish();
        let used = [(0, 20), (1, 20), (2, 10)];
        for (token, written_bytes) in used {
            assert_eq!(pair.driver.take_used(), Ok(Some(Used { token, written_bytes })));
        }
        let mut first = [0; 9];
        assert!(pair.memory.read(BUFFERS, &mut first));
        assert_eq!(first, [1; 9]);
        assert!(pair.memory.read(BUFFERS + 0x80, &mut first));
        assert_eq!(first, [1, 3, 0, 2, 2, 2, 2, 2, 2], "num_buffers across two pieces");
    }
}

#[test]
fn a_packet_without_enough_buffers_consumes_none() {
    for features in all_features() {
        let mut pair = Pair::new(features, 8);
        for token in 0..2 {
            pair.driver.post(&[writable(BUFFERS, 30)], token).unwrap();
        }
        pair.driver.publish();
        let refused = |refused| move |result: Result<_, _>| result.err() == Some(refused);
        // With the event index, the driver has processed everything that was returned, which is nothing.
        let is_all = features.event_index && features.layout == Layout::Split;
        assert!(refused(Refused::TooFew { capacity: 60, is_all })(
            pair.device.reserve(&pair.memory, 61, MERGED).map(drop)
        ));
        assert!(refused(Refused::DoesNotFit { capacity: 30 })(
            pair.device.reserve(&pair.memory, 31, Fit::OneChain).map(drop)
        ));
        let mut writer = pair.device.reserve(&pair.memory, 60, MERGED).unwrap();
        writer.write(&[9; 61]);
        assert!(writer.finish().is_err(), "more than was reserved");
        drop(pair.device.reserve(&pair.memory, 60, MERGED).unwrap());
        pair.device.publish();
        assert_eq!(pair.driver.take_used(), Ok(None));
        let mut writer = pair.device.reserve(&pair.memory, 60, MERGED).unwrap();
        writer.write(&[9; 60]);
        assert_eq!(writer.finish(), Ok(2));
    }
}

/// A packet that is larger than all buffers that can be posted is refused: a driver whose buffers are all
/// posted posts no more before some are returned, so waiting would never end.
#[test]
fn a_packet_larger_than_all_that_can_be_posted_is_told_apart() {
    for features in all_features() {
        let mut pair = Pair::new(features, 4);
        for token in 0..4 {
            pair.driver.post(&[writable(BUFFERS, 30)], token).unwrap();
        }
        pair.driver.publish();
        let refused = pair.device.reserve(&pair.memory, 121, MERGED).map(drop);
        assert_eq!(refused.err(), Some(Refused::TooFew { capacity: 120, is_all: true }));
        pair.device.reserve(&pair.memory, 30, MERGED).unwrap().finish().unwrap();
    }
}

#[test]
fn a_driver_is_idle_when_it_has_consumed_all_and_waits() {
    for features in all_features().filter(|features| features.event_index) {
        let mut pair = Pair::new(features, 4);
        for token in 0..2 {
            pair.driver.post(&[writable(BUFFERS, 30)], token).unwrap();
        }
        pair.driver.publish();
        let too_few = |pair: &mut Pair| match pair.device.reserve(&pair.memory, 61, MERGED) {
            Err(Refused::TooFew { is_all, .. }) => is_all,
            other => panic!("{other:?}"),
        };
        let mut writer = pair.device.reserve(&pair.memory, 10, MERGED).unwrap();
        writer.write(&[0; 10]);
        writer.finish().unwrap();
        assert!(!too_few(&mut pair), "not published yet");
        pair.device.publish();
        assert!(!too_few(&mut pair), "not consumed yet");
        assert_eq!(pair.driver.take_used().unwrap().unwrap().token, 0);
        assert!(!pair.driver.enable_notifications());
        assert!(too_few(&mut pair));
    }
}

/// A driver notifies of buffers beyond those that were too few. It has already passed the first buffer, so a
/// request for that buffer would never cause a notification.
#[test]
fn a_driver_notifies_of_buffers_beyond_those_that_were_too_few() {
    for features in all_features() {
        let mut pair = Pair::new(features, 4);
        pair.driver.post(&[writable(BUFFERS, 30)], 0).unwrap();
        pair.driver.publish();
        _ = pair.driver.needs_notify();
        pair.device.disable_notifications();
        assert!(pair.device.reserve(&pair.memory, 60, MERGED).is_err());
        assert!(!pair.device.enable_notifications_of_more(), "{features:?}: none yet");
        pair.driver.post(&[writable(BUFFERS, 30)], 1).unwrap();
        pair.driver.publish();
        assert!(pair.driver.needs_notify(), "{features:?}");
        assert!(pair.device.enable_notifications_of_more(), "there is one");
        pair.device.reserve(&pair.memory, 60, MERGED).unwrap().finish().unwrap();
    }
}

#[test]
fn a_driver_does_not_believe_a_device_that_wrote_too_much() {
    for features in all_features() {
        let mut pair = Pair::new(features, 4);
        let mut lying = Pair::new(features, 4);
        // The device that answers has a ring with larger buffers than the driver posted.
        pair.driver.post(&[writable(BUFFERS, 10)], 5).unwrap();
        lying.driver.post(&[writable(BUFFERS, 20)], 5).unwrap();
        lying.driver.publish();
        let mut writer = lying.device.reserve(&lying.memory, 20, Fit::OneChain).unwrap();
        writer.write(&[0; 20]);
        writer.finish().unwrap();
        lying.device.publish();
        let mut rings = vec![0; crate::QueueConfig::bytes(features.layout, 4)];
        assert!(lying.memory.read(lying.config.descriptors, &mut rings));
        assert!(pair.memory.write(pair.config.descriptors, &rings));
        let invalid = InvalidUsed::TooLong { token: 5, claimed_bytes: 20 };
        assert_eq!(pair.driver.take_used(), Err(invalid));
        assert_eq!((pair.driver.invalid(), pair.driver.free()), (1, 4));
    }
}
