//! A device on rings that a hostile driver writes.

use std::sync::Arc;

use rxo_virtqueue::{
    Base, DeviceQueue, DirtyLog, Fit, Layout, Mapping, Memory, Refused, Region, Taken,
    inflight_bytes,
};

use super::naive::{self, Naive};
use super::scene::{REGIONS, TABLES};
use super::{Scene, Script};

/// A buffer size beyond any frame in this memory.
const ROOM: usize = 0xc00;

/// Runs a script. Returns the number of its steps.
///
/// # Panics
/// If the device writes outside its areas, reads something other than the naive reader, or does not
/// terminate.
pub(crate) fn run(data: &[u8]) -> u64 {
    let mut script = Script(data);
    let scene = Scene::new(&mut script);
    let Ok(mut queue) = DeviceQueue::new(&scene.memory, &scene.config, Base::Start) else {
        return 0;
    };
    let record = Record::new(&scene);
    record.follow(&mut queue, &scene);
    let mut story = Story { scene, queue, is_fresh: false, record, may_repeat: false };
    let mut steps = 0;
    while !script.is_over() {
        story.step(&mut script);
        steps += 1;
    }
    story.scene.check_gaps();
    story.record.check();
    steps
}

/// The log of dirty pages and the record of chains in flight, which the driver also writes, in a mapping with canaries.
struct Record {
    mapping: Arc<Mapping>,
    observer: Memory,
    log: DirtyLog,
    /// `true` if chains in flight are recorded; chosen with the event index, so that scripts need no byte for it.
    has_inflight: bool,
}

impl Record {
    /// Offset and length of the log, which covers the first two regions and not the third.
    const LOG: (u64, u64) = (8, 1);
    /// The offset of the record of chains in flight.
    const INFLIGHT: u64 = 64;

    fn new(scene: &Scene) -> Self {
        let bytes = Self::INFLIGHT + inflight_bytes(scene.config.layout, scene.config.size) + 64;
        let mapping = Arc::new(Mapping::zeroed(bytes as usize));
        let mut observer = Memory::new();
        let whole = Region::new(0, 0, Arc::clone(&mapping), 0, bytes);
        observer.add(whole.expect("all of the mapping")).expect("the only region");
        let log = DirtyLog::new(Arc::clone(&mapping), Self::LOG.0, Self::LOG.1);
        let has_inflight = scene.config.event_index;
        Self { mapping, observer, log: log.expect("in the mapping"), has_inflight }
    }

    /// Makes `queue` use the log and the record. A record that the driver has spoilt is refused.
    fn follow(&self, queue: &mut DeviceQueue, scene: &Scene) -> bool {
        queue.log_to(Some(self.log.clone()), Some(scene.config.device));
        !self.has_inflight || queue.track(&self.mapping, Self::INFLIGHT).is_ok()
    }

    /// Writes into the record as the driver.
    fn put(&self, script: &mut Script) {
        let inside = self.mapping.len() as u64 - Self::INFLIGHT - 64;
        let at = Self::INFLIGHT + u64::from(script.half()) % inside;
        assert!(self.observer.write(at, &[script.byte()]));
    }

    /// Clears the log, as a front end does when it reads it. Returns the number of writes beyond it so far.
    fn clear(&self) -> u64 {
        assert!(self.observer.write(Self::LOG.0, &[0]));
        self.log.outside()
    }

    fn is_dirty(&self, page: u64) -> bool {
        let mut byte = [0];
        assert!(self.observer.read(Self::LOG.0, &mut byte));
        byte[0] >> page & 1 == 1
    }

    /// Asserts that nothing was written around the log and behind the record.
    fn check(&self) {
        let mut bytes = vec![0; self.mapping.len()];
        assert!(self.observer.read(0, &mut bytes));
        let end = bytes.len() - 64;
        let around = bytes[..8].iter().chain(&bytes[9..64]).chain(&bytes[end..]);
        assert!(around.copied().all(|byte| byte == 0));
    }
}

struct Story {
    scene: Scene,
    queue: DeviceQueue,
    /// `true` if the queue has no state beyond the contents of memory.
    is_fresh: bool,
    record: Record,
    /// `true` if the device may have chains to return again from a record that the driver has written.
    may_repeat: bool,
}

impl Story {
    fn step(&mut self, script: &mut Script) {
        let op = script.byte();
        match op % 16 {
            0 => self.put_any(script),
            1 | 2 => self.put_descriptor(script),
            3 => self.scene.put_descriptor(TABLES + u64::from(op >> 4) * 16, script, 0),
            4..=7 => self.make_available(script),
            8 | 9 => {
                self.is_fresh = op & 0x80 != 0 && self.restart();
                self.take(if op & 0x40 == 0 { ROOM } else { script.byte().into() });
                self.is_fresh = false;
            }
            10 | 11 => self.fill(script),
            12 => self.publish(),
            13 if op & 0x20 != 0 => self.record.put(script),
            13 => self.wait(op),
            14 => self.scene.toggle(1 + usize::from(op >> 7)),
            _ => self.drain(),
        }
    }

    fn put_any(&mut self, script: &mut Script) {
        let at = self.scene.address(script);
        let bytes = [script.half(), script.half()].map(u16::to_le_bytes).concat();
        self.scene.put(at, &bytes[..usize::from(script.byte() % 5)]);
    }

    fn put_descriptor(&mut self, script: &mut Script) {
        let index = u64::from(u16::from(script.byte()) % self.scene.config.size);
        self.scene.put_descriptor(self.scene.config.descriptors + index * 16, script, 0);
    }

    /// Makes a chain available as a driver does, with arbitrary contents.
    fn make_available(&mut self, script: &mut Script) {
        let (config, base) = (self.scene.config, self.queue.base());
        match config.layout {
            Layout::Split => {
                let ahead = script.byte();
                let available = (base as u16).wrapping_add((ahead % 4).into());
                let at = config.driver + 4 + u64::from(available % config.size) * 2;
                let head = u16::from(script.byte()) % (config.size + u16::from(ahead >> 7));
                self.scene.put(at, &head.to_le_bytes());
                let available = available.wrapping_add(1).to_le_bytes();
                self.scene.put(config.driver + 2, &available);
            }
            Layout::Packed => {
                let index = (base & 0x7fff) as u16 + u16::from(script.byte() % 3);
                let is_next_lap = index >= config.size;
                let index = index % config.size;
                let wrap = (base & 0x8000 != 0) != is_next_lap;
                let at = config.descriptors + u64::from(index) * 16;
                self.scene.put_descriptor(at, script, if wrap { 0x80 } else { 0x8000 });
            }
        }
    }

    /// Returns the areas in which the device may write: guest addresses and lengths.
    fn rings(&self) -> [(u64, usize); 2] {
        let config = &self.scene.config;
        let size = usize::from(config.size);
        match config.layout {
            Layout::Split => [(config.device, 6 + 8 * size), (0, 0)],
            Layout::Packed => [(config.device, 4), (config.descriptors, 16 * size)],
        }
    }

    /// Replaces the device by another one. Returns `false` if the rings cannot be located, because their
    /// region was removed.
    fn restart(&mut self) -> bool {
        let base = Base::Vring(self.queue.base());
        self.publish();
        let queue = DeviceQueue::new(&self.scene.memory, &self.scene.config, base);
        let Ok(mut queue) = queue else { return false };
        let is_made = self.record.follow(&mut queue, &self.scene);
        if is_made {
            self.queue = queue;
        }
        // A tracked queue may have chains to return again, which a naive reader does not know.
        self.may_repeat |= self.record.has_inflight;
        is_made
    }

    fn take(&mut self, room: usize) -> Taken {
        let is_known = self.is_fresh || self.scene.config.layout == Layout::Packed;
        let naive = (is_known && !self.queue.is_broken() && !self.may_repeat)
            .then(|| naive::next(&self.scene, self.queue.base(), room));
        let before = self.scene.observe();
        let counted = self.queue.invalid().total();
        let mut frame = [0; ROOM];
        let taken = self.queue.take(&self.scene.memory, &mut frame[..room]);
        assert_eq!(self.scene.changed_outside(&before, &self.rings()), 0, "it only reads");
        let is_invalid = matches!(taken, Taken::Invalid(_));
        assert_eq!(self.queue.invalid().total(), counted + u64::from(is_invalid));
        if let Some(naive) = naive {
            let found = match taken {
                Taken::Empty => Naive::Empty,
                Taken::Frame(bytes) => Naive::Frame(frame[..bytes].to_vec()),
                Taken::Invalid(_) => Naive::Invalid,
            };
            assert_eq!(found, naive);
        }
        taken
    }

    fn fill(&mut self, script: &mut Script) {
        let (reserved, written) = (script.half() % 0x400, script.half() % 0x440);
        let fit = match script.byte() % 4 {
            0 => Fit::OneChain,
            count_at => Fit::Merged { count_at: u32::from(count_at) * 5 },
        };
        let (mut expected, base) = (self.scene.observe(), self.queue.base());
        let (before, outside) = (expected.clone(), self.record.clear());
        match self.queue.reserve(&self.scene.memory, reserved.into(), fit) {
            Ok(mut writer) => {
                let first = script.byte();
                let packet: Vec<u8> = (0..written).map(|n| first.wrapping_add(n as u8)).collect();
                let filled = naive::filled(&self.scene, base, reserved.into(), &packet, fit);
                packet.chunks(100).for_each(|piece| writer.write(piece));
                let (finished, after) = (writer.finish(), self.queue.base());
                self.check_log(&before, outside);
                if self.may_repeat {
                    return;
                }
                let filled = filled.expect("a naive reader finds room, too");
                expected = filled.memory;
                assert!(finished.is_ok() || written > reserved);
                match finished {
                    Ok(buffers) => {
                        assert_eq!((buffers, after as u16), (filled.buffers, filled.base as u16));
                    }
                    Err(_) => assert_eq!(after, base, "all or nothing"),
                }
            }
            Err(refused) => {
                let is_invalid = matches!(refused, Refused::Invalid(_));
                assert!(is_invalid || self.queue.base() == base, "all or nothing");
            }
        }
        let elsewhere = self.scene.changed_outside(&expected, &self.rings());
        assert_eq!(elsewhere, 0, "it writes the packet, and nothing else");
    }

    /// Checks that a packet's pages are in the log. It covers the first two regions; the third is counted.
    fn check_log(&self, before: &[u8], outside: u64) {
        let [first, second] = self.rings();
        let region = |n: usize| (REGIONS[n].0, REGIONS[n].2);
        if self.scene.changed_outside(before, &[first, second, region(2)]) > 0 {
            assert!(self.record.is_dirty(1));
        }
        if self.scene.changed_outside(before, &[first, second, region(0), region(1)]) > 0 {
            assert!(self.record.log.outside() > outside);
        }
    }

    fn publish(&mut self) {
        let before = self.scene.observe();
        self.queue.publish();
        let notify = self.queue.needs_notify();
        assert!(!notify || !self.queue.needs_notify(), "once");
        assert_eq!(self.scene.changed_outside(&before, &self.rings()), 0);
    }

    fn wait(&mut self, op: u8) {
        let before = self.scene.observe();
        match op >> 6 {
            0 => self.queue.disable_notifications(),
            1 => {
                assert!(self.queue.backlog().is_none_or(|behind| behind <= self.scene.config.size))
            }
            _ => {
                let _ = self.queue.enable_notifications();
            }
        }
        assert_eq!(self.scene.changed_outside(&before, &self.rings()), 0);
    }

    /// Checks that an inactive driver cannot keep a device busy.
    fn drain(&mut self) {
        // The bound: the known chains, those read after them, and the fault that breaks the queue.
        // Overlapping areas could feed themselves.
        let most = 2 * usize::from(self.scene.config.size) + 1;
        let mut taken = 0;
        while self.take(ROOM) != Taken::Empty {
            taken += 1;
            if taken > most {
                assert!(!self.scene.is_proper, "more chains than the queue has descriptors");
                return;
            }
        }
    }
}
