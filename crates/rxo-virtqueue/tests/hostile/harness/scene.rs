//! Three regions in one mapping, with gaps that must not be accessed, and the writes of the other side.

use std::ops::Range;
use std::sync::Arc;

use rxo_virtqueue::{Layout, Mapping, Memory, QueueConfig, Region};

/// The length of the mapping, in bytes.
pub(crate) const MAPPED: usize = 0x1000;
/// The regions: guest address, offset in the mapping, length. The second follows the first in guest
/// addresses, but not in the mapping.
pub(crate) const REGIONS: [(u64, usize, usize); 3] =
    [(0x1000, 0x80, 0xa00), (0x1a00, 0xb00, 0x200), (0x8000, 0xd80, 0x200)];
/// The guest address of indirect tables.
pub(crate) const TABLES: u64 = 0x1400;
/// The content of the gaps.
const CANARY: u8 = 0xc5;

/// A script: bytes that encode decisions. Behind the end all bytes are zero.
pub(crate) struct Script<'a>(pub(crate) &'a [u8]);

impl Script<'_> {
    pub(crate) fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    pub(crate) fn half(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    pub(crate) fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns a length, often at a limit.
    pub(crate) fn length(&mut self) -> u32 {
        let byte = self.byte();
        match byte % 16 {
            0 => 0,
            1 => 0x200,
            2 => 0x201,
            3 => 0xc00,
            4 => u32::MAX - u32::from(byte >> 4),
            5 => 16 * u32::from(byte >> 4),
            _ => 1 + u32::from(byte >> 2),
        }
    }
}

/// The memory, and the addresses of the queue in it.
pub(crate) struct Scene {
    pub(crate) memory: Memory,
    pub(crate) config: QueueConfig,
    /// The whole mapping at address zero, gaps included.
    observer: Memory,
    mapping: Arc<Mapping>,
    pub(crate) present: [bool; 3],
    /// `true` if the areas of the queue do not overlap.
    pub(crate) is_proper: bool,
}

impl Scene {
    /// Chooses layout and size of the ring, and usually valid addresses for it.
    pub(crate) fn new(script: &mut Script) -> Self {
        let mapping = Arc::new(Mapping::zeroed(MAPPED));
        let mut observer = Memory::new();
        let whole = Region::new(0, 0, Arc::clone(&mapping), 0, MAPPED as u64)
            .expect("a region of the mapping");
        observer.add(whole).expect("the only region");
        for gap in gaps() {
            assert!(observer.write(gap.start as u64, &vec![CANARY; gap.len()]));
        }
        let (flags, size) = (script.byte(), script.byte());
        let (layout, size) = match flags & 1 {
            0 => (Layout::Split, 1 << (size % 5)),
            _ => (Layout::Packed, 1 + u16::from(size % 16)),
        };
        let mut config = QueueConfig {
            event_index: flags & 2 != 0,
            indirect: flags & 4 != 0,
            ..QueueConfig::contiguous(layout, size, REGIONS[0].0)
        };
        let mut scene = Self {
            memory: Memory::new(),
            config,
            observer,
            mapping,
            present: [false; 3],
            is_proper: true,
        };
        (0..3).for_each(|index| scene.toggle(index));
        if flags >> 3 == 31 {
            config.driver = scene.address(script);
            config.device = scene.address(script);
            (scene.config, scene.is_proper) = (config, false);
        }
        scene
    }

    /// Adds or removes a region.
    pub(crate) fn toggle(&mut self, index: usize) {
        let (guest, offset, bytes) = REGIONS[index];
        let (offset, bytes) = (offset as u64, bytes as u64);
        if self.present[index] {
            self.memory.remove(guest, bytes).expect("present");
        } else {
            let region = Region::new(guest, guest, Arc::clone(&self.mapping), offset, bytes);
            self.memory.add(region.expect("in the mapping")).expect("absent");
        }
        self.present[index] = !self.present[index];
    }

    /// Returns an address, often near the end of an area.
    pub(crate) fn address(&self, script: &mut Script) -> u64 {
        let (anchor, near) = (script.byte(), script.byte());
        let config = &self.config;
        let anchor = match anchor % 12 {
            0 => config.descriptors,
            1 => config.driver,
            2 => config.device,
            3 => TABLES,
            4 => REGIONS[1].0 - 16,
            5 => REGIONS[1].0 + 0x200 - 16,
            6 => REGIONS[2].0 + 0x200 - 16,
            7 => u64::MAX - 15,
            8 => REGIONS[0].0 - 16,
            _ => REGIONS[2].0,
        };
        anchor.wrapping_add(u64::from(near))
    }

    /// Writes as the other side, if the address is inside a region.
    pub(crate) fn put(&self, at: u64, bytes: &[u8]) {
        // A refused write leaves the old bytes, which is just as good for the test.
        let _ = self.memory.write(at, bytes);
    }

    /// Writes a descriptor at `at` as the other side, in the layout of the ring.
    pub(crate) fn put_descriptor(&self, at: u64, script: &mut Script, more_flags: u16) {
        let address = self.address(script);
        let bytes = script.length();
        let flags = u16::from(script.byte() & 7) | more_flags;
        let link = u16::from(script.byte() % 18);
        let (first, second) = match self.config.layout {
            Layout::Split => (flags, link),
            Layout::Packed => (link, flags),
        };
        self.put(at, &address.to_le_bytes());
        self.put(at + 8, &bytes.to_le_bytes());
        self.put(at + 12, &[first.to_le_bytes(), second.to_le_bytes()].concat());
    }

    /// Returns all bytes of the mapping.
    pub(crate) fn observe(&self) -> Vec<u8> {
        let mut bytes = vec![0; MAPPED];
        assert!(self.observer.read(0, &mut bytes));
        bytes
    }

    /// Counts the bytes that differ from `before` outside `areas`, which are guest addresses and lengths.
    pub(crate) fn changed_outside(&self, before: &[u8], areas: &[(u64, usize)]) -> usize {
        let after = self.observe();
        if before == after {
            return 0;
        }
        let ranges: Vec<_> = areas.iter().filter_map(|&(at, bytes)| place(at, bytes)).collect();
        let is_changed = |&at: &usize| before[at] != after[at];
        let is_outside = |at: &usize| !ranges.iter().any(|range| range.contains(at));
        (0..MAPPED).filter(is_changed).filter(is_outside).count()
    }

    /// Asserts that nothing was written between the regions.
    pub(crate) fn check_gaps(&self) {
        let bytes = self.observe();
        assert!(gaps().all(|gap| bytes[gap].iter().all(|&byte| byte == CANARY)));
    }
}

fn gaps() -> impl Iterator<Item = Range<usize>> {
    let starts = [0].into_iter().chain(REGIONS.map(|(_, offset, bytes)| offset + bytes));
    let ends = REGIONS.map(|(_, offset, _)| offset).into_iter().chain([MAPPED]);
    starts.zip(ends).map(|(start, end)| start..end)
}

/// Returns the range in the mapping of an area of a queue, which is inside one region.
fn place(at: u64, bytes: usize) -> Option<Range<usize>> {
    REGIONS.iter().find_map(|&(guest, offset, length)| {
        let inside = usize::try_from(at.checked_sub(guest)?).ok()?;
        (inside < length).then(|| offset + inside..offset + inside + bytes)
    })
}
