//! Repeats one operation of a device, for an instruction counter:
//!
//! ```sh
//! cargo build --release -p rxo-virtqueue --example ring_cost
//! for frames in 10000 20000; do
//!   valgrind --tool=callgrind --callgrind-out-file=/dev/null \
//!     target/release/examples/ring_cost split take $frames
//! done
//! ```
//!
//! The difference, divided by 10,000, is the cost of a frame of 60 bytes. The rings are `split` or `packed`.
//! `take` copies a frame from the driver, `fill` copies one to the driver; each publishes and calls
//! `needs_notify`.

use std::error::Error;

use rxo_virtqueue::{Base, DeviceQueue, DriverQueue, Fit, Layout, Memory, QueueConfig};
use rxo_virtqueue::{Segment, Taken};

const SIZE: u16 = 32_768;
const START: u64 = 0x10_0000;
const BUFFERS: u64 = START + 0x20_0000;
const FRAME: [u8; 60] = [7; 60];

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [layout, operation, frames] = &arguments[..] else {
        return Err("give split or packed, take or fill, and a number up to 32768".into());
    };
    let layout = if layout == "packed" { Layout::Packed } else { Layout::Split };
    let (is_take, frames) = (operation == "take", frames.parse::<u32>()?);
    let memory = Memory::zeroed(START, 0x80_0000)?;
    let mut config = QueueConfig::contiguous(layout, SIZE, START);
    config.event_index = true;
    let mut driver = DriverQueue::new(&memory, &config, None)?;
    let mut device = DeviceQueue::new(&memory, &config, Base::Start)?;
    let is_writable = !is_take;
    for token in 0..SIZE.into() {
        let address = BUFFERS + u64::from(token % 1_024) * 64;
        driver.post(&[Segment { address, bytes: 60, is_writable }], token)?;
    }
    driver.publish();
    let notifications = if is_take {
        take(&mut device, &memory, frames)
    } else {
        fill(&mut device, &memory, frames)?
    };
    println!("{frames} frames, {notifications} notifications");
    Ok(())
}

fn take(device: &mut DeviceQueue, memory: &Memory, frames: u32) -> u32 {
    let mut frame = [0; 2_048];
    let mut notifications = 0;
    for _ in 0..frames {
        if device.take(memory, &mut frame) != Taken::Frame(FRAME.len()) {
            break;
        }
        device.publish();
        notifications += u32::from(device.needs_notify());
    }
    notifications
}

fn fill(device: &mut DeviceQueue, memory: &Memory, frames: u32) -> Result<u32, Box<dyn Error>> {
    let mut notifications = 0;
    for _ in 0..frames {
        let fit = Fit::Merged { count_at: 10 };
        let mut writer =
            device.reserve(memory, 60, fit).map_err(|refused| format!("{refused:?}"))?;
        writer.write(&FRAME[..12]);
        writer.write(&FRAME[12..]);
        writer.finish()?;
        device.publish();
        notifications += u32::from(device.needs_notify());
    }
    Ok(notifications)
}
