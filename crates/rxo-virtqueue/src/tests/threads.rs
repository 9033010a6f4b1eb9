//! Two threads on one queue: published chains are seen whole, and no thread waits for ever.

use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use super::pair::{BUFFERS, Pair, all_features, readable, writable};
use crate::{DeviceQueue, DriverQueue, Fit, Memory, Refused, Taken};

/// The number of frames in each run, which does not depend on the machine's speed.
const FRAMES: u32 = 20_000;
const SIZE: u16 = 16;
/// A timeout longer than any pause of a machine.
const TIMEOUT: Duration = Duration::from_secs(120);

/// A simulated notification, like an eventfd between processes.
#[derive(Default)]
struct Doorbell {
    rang: Mutex<bool>,
    changed: Condvar,
}

impl Doorbell {
    fn ring(&self) {
        *self.rang.lock().unwrap() = true;
        self.changed.notify_one();
    }

    fn wait(&self) {
        let rang = self.rang.lock().unwrap();
        let (mut rang, waited) =
            self.changed.wait_timeout_while(rang, TIMEOUT, |rang| !*rang).unwrap();
        assert!(!waited.timed_out(), "a notification was lost");
        *rang = false;
    }
}

/// Returns the content of frame `number`, longer than a single store.
fn content(number: u32) -> [u8; 48] {
    let mut bytes = [number as u8; 48];
    bytes[..4].copy_from_slice(&number.to_le_bytes());
    bytes
}

fn at(number: u32) -> u64 {
    BUFFERS + u64::from(number % 64) * 64
}

#[derive(Default)]
struct Bells {
    kick: Doorbell,
    call: Doorbell,
}

/// Sends all frames, as many at once as there are free descriptors.
fn send(mut driver: DriverQueue, memory: &Memory, bells: &Bells) {
    let (mut next, mut returned) = (0, 0);
    while returned < FRAMES {
        while next < FRAMES && driver.free() >= 2 {
            assert!(memory.write(at(next), &content(next)));
            let segments = [readable(at(next), 20), readable(at(next) + 20, 28)];
            driver.post(&segments, next).unwrap();
            next += 1;
        }
        driver.publish();
        if driver.needs_notify() {
            bells.kick.ring();
        }
        let before = returned;
        while let Some(used) = driver.take_used().unwrap() {
            assert_eq!(used.token, returned);
            returned += 1;
        }
        if returned == before && !driver.enable_notifications() {
            bells.call.wait();
        }
    }
}

/// Receives all frames, and publishes every third time.
fn receive(mut device: DeviceQueue, memory: &Memory, bells: &Bells) {
    let mut frame = [0; 64];
    let mut next = 0;
    while next < FRAMES {
        match device.take(memory, &mut frame) {
            Taken::Frame(bytes) => {
                assert_eq!((bytes, &frame[..48]), (48, &content(next)[..]));
                next += 1;
                if !next.is_multiple_of(3) {
                    continue;
                }
            }
            Taken::Empty => {}
            Taken::Invalid(kind) => panic!("{kind:?}"),
        }
        device.publish();
        if device.needs_notify() {
            bells.call.ring();
        }
        if next.is_multiple_of(3) && next < FRAMES {
            continue;
        }
        if next < FRAMES && !device.enable_notifications() {
            bells.kick.wait();
        }
    }
    device.publish();
    if device.needs_notify() {
        bells.call.ring();
    }
}

#[test]
fn a_driver_sends_and_a_device_on_another_thread_takes() {
    for features in all_features() {
        let Pair { memory, driver, device, .. } = Pair::new(features, SIZE);
        let bells = Arc::new(Bells::default());
        thread::scope(|scope| {
            scope.spawn(|| receive(device, &memory, &bells));
            send(driver, &memory, &bells);
        });
    }
}

/// Sends packets that fill two or three buffers.
fn fill(mut device: DeviceQueue, memory: &Memory, bells: &Bells) {
    let mut next = 0;
    while next < FRAMES {
        let copies = 2 + next % 2;
        match device.reserve(memory, 48 * copies, Fit::Merged { count_at: 10 }) {
            Ok(mut writer) => {
                (0..copies).for_each(|_| writer.write(&content(next)));
                assert_eq!(u32::from(writer.finish().unwrap()), copies);
                device.publish();
                next += 1;
                if device.needs_notify() {
                    bells.call.ring();
                }
            }
            Err(Refused::NoBuffers | Refused::TooFew { .. }) => {
                if !device.enable_notifications_of_more() {
                    bells.kick.wait();
                }
            }
            Err(refused) => panic!("{refused:?}"),
        }
    }
}

/// Posts buffers of 48 bytes and reads the packets from them. When the first buffer of a packet is visible,
/// all must be.
fn collect(mut driver: DriverQueue, memory: &Memory, bells: &Bells) {
    let (mut posted, mut packets) = (0, 0);
    while packets < FRAMES {
        while driver.free() > 0 {
            driver.post(&[writable(at(posted), 48)], posted).unwrap();
            posted += 1;
        }
        driver.publish();
        if driver.needs_notify() {
            bells.kick.ring();
        }
        let Some(first) = driver.take_used().unwrap() else {
            if !driver.enable_notifications() {
                bells.call.wait();
            }
            continue;
        };
        let mut bytes = [0; 48];
        assert!(memory.read(at(first.token), &mut bytes));
        let buffers = 2 + packets % 2;
        let mut expected = content(packets);
        expected[10..12].copy_from_slice(&(buffers as u16).to_le_bytes());
        assert_eq!(bytes, expected);
        for _ in 1..buffers {
            let more = driver.take_used().unwrap().expect("published with the first");
            assert!(memory.read(at(more.token), &mut bytes));
            assert_eq!(bytes, content(packets));
        }
        packets += 1;
    }
}

#[test]
fn a_device_fills_merged_buffers_and_a_driver_on_another_thread_reads_them() {
    for features in all_features() {
        let Pair { memory, driver, device, .. } = Pair::new(features, SIZE);
        let bells = Bells::default();
        thread::scope(|scope| {
            scope.spawn(|| fill(device, &memory, &bells));
            collect(driver, &memory, &bells);
        });
    }
}
