//! A driver on rings that a hostile device writes, sometimes together with an honest device.

use std::collections::HashMap;

use rxo_virtqueue::{Base, DeviceQueue, DriverQueue, Fit, IndirectTables, InvalidUsed};
use rxo_virtqueue::{Layout, Segment, Taken, Used};

use super::scene::{REGIONS, TABLES};
use super::{Scene, Script};

const ENTRIES: u16 = 4;

/// Runs a script. Returns the number of its steps.
///
/// # Panics
/// If the driver writes outside its areas, returns a chain that was not posted, or does not terminate.
pub(crate) fn run(data: &[u8]) -> u64 {
    let mut script = Script(data);
    let scene = Scene::new(&mut script);
    let tables = IndirectTables { address: TABLES, entries: ENTRIES };
    let Ok(driver) = DriverQueue::new(&scene.memory, &scene.config, Some(tables)) else { return 0 };
    let Ok(device) = DeviceQueue::new(&scene.memory, &scene.config, Base::Start) else { return 0 };
    let mut story = Story { scene, driver, device, tokens: 0, in_flight: HashMap::new() };
    let mut steps = 0;
    while !script.is_over() {
        story.step(&mut script);
        steps += 1;
    }
    story.scene.check_gaps();
    steps
}

struct Story {
    scene: Scene,
    driver: DriverQueue,
    device: DeviceQueue,
    tokens: u32,
    in_flight: HashMap<u32, Chain>,
}

/// A chain that was posted.
#[derive(Clone, Copy)]
struct Chain {
    /// The number of descriptors in the ring.
    descriptors: usize,
    /// The number of bytes that the device may write.
    writable: u32,
    /// `true` if it is one segment that the device writes, so that it can be recycled.
    is_single: bool,
}

impl Story {
    fn step(&mut self, script: &mut Script) {
        let op = script.byte();
        match op % 16 {
            0 => self.put_any(script),
            1 | 2 => self.put_used(script),
            3..=6 => self.checked(|story| story.post(script)),
            7 | 8 => self.checked(|story| {
                story.take();
            }),
            9 => self.checked(Self::recycle),
            10 => self.checked(|story| {
                story.driver.publish();
                let notify = story.driver.needs_notify();
                assert!(!notify || !story.driver.needs_notify(), "once");
            }),
            11 => self.checked(|story| match op >> 7 {
                0 => story.driver.disable_notifications(),
                _ => {
                    let _ = story.driver.enable_notifications();
                }
            }),
            12 | 13 => self.honest_device(op),
            14 => self.checked(Self::drain),
            _ => self.put_used(script),
        }
    }

    /// Runs a step of the driver, and checks that it writes only its own areas.
    fn checked(&mut self, step: impl FnOnce(&mut Self)) {
        let before = self.scene.observe();
        step(self);
        let config = self.scene.config;
        let size = usize::from(config.size);
        let driver_bytes = match config.layout {
            Layout::Split => 6 + 2 * size,
            Layout::Packed => 4,
        };
        let tables = IndirectTables { address: TABLES, entries: ENTRIES }.bytes(config.size);
        let own =
            [(config.descriptors, 16 * size), (config.driver, driver_bytes), (TABLES, tables)];
        assert_eq!(self.scene.changed_outside(&before, &own), 0);
        let taken: usize = self.in_flight.values().map(|chain| chain.descriptors).sum();
        if !self.driver.is_broken() {
            assert_eq!(self.driver.free() + taken, size);
        }
    }

    fn put_any(&self, script: &mut Script) {
        let at = self.scene.address(script);
        let bytes = [script.half(), script.half()].map(u16::to_le_bytes).concat();
        self.scene.put(at, &bytes[..usize::from(script.byte() % 5)]);
    }

    /// Writes a used entry as a device does, with arbitrary contents.
    fn put_used(&self, script: &mut Script) {
        let (config, place, id) = (self.scene.config, script.byte(), script.byte());
        let (id, bytes) = (u16::from(id) % (config.size + 1), script.length());
        let place = u16::from(place) % config.size;
        match config.layout {
            Layout::Split => {
                let at = config.device + 4 + u64::from(place) * 8;
                self.scene.put(at, &u32::from(id).to_le_bytes());
                self.scene.put(at + 4, &bytes.to_le_bytes());
                let index = u16::from(script.byte() % 64);
                self.scene.put(config.device + 2, &index.to_le_bytes());
            }
            Layout::Packed => {
                let at = config.descriptors + u64::from(place) * 16 + 8;
                let flags = if script.byte() & 1 == 0 { 0x8080_u16 } else { 0 };
                self.scene.put(at, &bytes.to_le_bytes());
                self.scene.put(at + 4, &[id.to_le_bytes(), flags.to_le_bytes()].concat());
            }
        }
    }

    fn post(&mut self, script: &mut Script) {
        let (pieces, readable) = (script.byte() % 20, script.byte() % 20);
        let segment = |piece| Segment {
            address: REGIONS[2].0 + u64::from(piece) * 16,
            bytes: 16,
            is_writable: piece >= readable,
        };
        let segments: Vec<_> = (0..pieces).map(segment).collect();
        let (token, free) = (self.tokens, self.driver.free());
        self.tokens += 1;
        if self.driver.post(&segments, token).is_ok() {
            let writable = 16 * u32::from(pieces.saturating_sub(readable));
            let (descriptors, is_single) = (free - self.driver.free(), pieces == 1 && writable > 0);
            self.in_flight.insert(token, Chain { descriptors, writable, is_single });
        } else {
            assert_eq!(self.driver.free(), free, "all or nothing");
        }
    }

    /// Takes a chain back. Returns `true` if there was one.
    fn take(&mut self) -> bool {
        let taken = self.driver.take_used();
        if let Some(token) = self.returned(taken) {
            self.in_flight.remove(&token);
        }
        taken != Ok(None)
    }

    /// Takes a chain back and posts it again, if that is possible.
    fn recycle(&mut self) {
        let taken = self.driver.recycle();
        if let Some(token) = self.returned(taken).filter(|token| !self.in_flight[token].is_single) {
            self.in_flight.remove(&token);
        }
    }

    /// Checks a result of the driver. Returns the token of the chain that came back; `None` if there is none.
    fn returned(&self, taken: Result<Option<Used>, InvalidUsed>) -> Option<u32> {
        let writable = |token| {
            self.in_flight.get(&token).expect("a chain comes back that was posted").writable
        };
        match taken {
            Ok(None) => None,
            Ok(Some(used)) => {
                assert!(used.written_bytes <= writable(used.token));
                Some(used.token)
            }
            Err(InvalidUsed::TooLong { token, claimed_bytes }) => {
                assert!(claimed_bytes > writable(token));
                Some(token)
            }
            Err(InvalidUsed::UsedIndex | InvalidUsed::UnknownId { .. }) => {
                assert!(self.driver.is_broken());
                None
            }
        }
    }

    fn drain(&mut self) {
        let most = self.in_flight.len() + 1;
        for _ in 0..most {
            if !self.take() {
                return;
            }
        }
        assert!(self.driver.is_broken(), "more chains than were posted");
        assert!(!self.take());
    }

    fn honest_device(&mut self, op: u8) {
        let memory = &self.scene.memory;
        if op & 0x80 == 0 {
            let _: Taken = self.device.take(memory, &mut [0; 512]);
        } else if let Ok(mut writer) = self.device.reserve(memory, 20, Fit::Merged { count_at: 10 })
        {
            writer.write(&[op; 20]);
            writer.finish().expect("as much as was reserved");
        }
        if op & 0x40 == 0 {
            self.device.publish();
            let _ = self.device.needs_notify();
        }
    }
}
