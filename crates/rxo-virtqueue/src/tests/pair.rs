//! A driver and a device on the same queue, in one memory.

use crate::{Base, DeviceQueue, DriverQueue, IndirectTables, Layout, Memory, QueueConfig, Segment};

/// The first guest address of the memory.
pub(super) const START: u64 = 0x10_0000;
/// The first guest address of buffers, after rings and tables.
pub(super) const BUFFERS: u64 = START + 0x4_0000;
const MEMORY_BYTES: usize = 0x10_0000;
const TABLES: u64 = START + 0x2_0000;
const TABLE_ENTRIES: u16 = 8;

/// The negotiated features.
#[derive(Clone, Copy, Debug)]
pub(super) struct Features {
    pub(super) layout: Layout,
    pub(super) event_index: bool,
    pub(super) indirect: bool,
}

/// Returns every combination of features.
pub(super) fn all_features() -> impl Iterator<Item = Features> {
    [Layout::Split, Layout::Packed].into_iter().flat_map(|layout| {
        (0..4).map(move |bits| Features {
            layout,
            event_index: bits & 1 != 0,
            indirect: bits & 2 != 0,
        })
    })
}

/// Both sides of one queue, and their memory.
pub(super) struct Pair {
    pub(super) memory: Memory,
    pub(super) config: QueueConfig,
    pub(super) driver: DriverQueue,
    pub(super) device: DeviceQueue,
}

impl Pair {
    pub(super) fn new(features: Features, size: u16) -> Self {
        let memory = Memory::zeroed(START, MEMORY_BYTES).unwrap();
        let config = QueueConfig {
            event_index: features.event_index,
            indirect: features.indirect,
            ..QueueConfig::contiguous(features.layout, size, START)
        };
        assert!(QueueConfig::bytes(features.layout, size) <= (TABLES - START) as usize);
        let tables = IndirectTables { address: TABLES, entries: TABLE_ENTRIES };
        let driver = DriverQueue::new(&memory, &config, Some(tables)).unwrap();
        let device = DeviceQueue::new(&memory, &config, Base::Start).unwrap();
        Self { memory, config, driver, device }
    }
}

/// Builds a segment that the device reads.
pub(super) fn readable(address: u64, bytes: u32) -> Segment {
    Segment { address, bytes, is_writable: false }
}

/// Builds a segment that the device writes.
pub(super) fn writable(address: u64, bytes: u32) -> Segment {
    Segment { address, bytes, is_writable: true }
}
