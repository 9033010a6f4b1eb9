//! Everything that a device writes to its guest is in the log of dirty pages: compared with the memory before and after.

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;

use super::pair::{BUFFERS, Pair, START, all_features, writable};
use super::promises::{Op, Story, op};
use crate::{DirtyLog, Fit, Layout, Mapping, Memory, Region};

/// The pages of the pair's memory, and of the log.
const PAGES: usize = 0x100;
const LOG_BYTES: usize = (START >> 15) as usize + PAGES / 8;

/// A log, and its bytes as the front end sees them.
struct Log {
    log: DirtyLog,
    memory: Memory,
}

impl Log {
    fn new() -> Self {
        let mapping = Arc::new(Mapping::zeroed(LOG_BYTES));
        let mut memory = Memory::new();
        let whole = Region::new(0, 0, Arc::clone(&mapping), 0, LOG_BYTES as u64).unwrap();
        memory.add(whole).unwrap();
        Self { log: DirtyLog::new(mapping, 0, LOG_BYTES as u64).unwrap(), memory }
    }

    /// Returns the pages that are marked as dirty.
    fn pages(&self) -> BTreeSet<u64> {
        let mut bytes = [0_u8; LOG_BYTES];
        assert!(self.memory.read(0, &mut bytes));
        (0..8 * LOG_BYTES as u64).filter(|n| bytes[*n as usize / 8] >> (n % 8) & 1 == 1).collect()
    }
}

fn pages_of(memory: &Memory) -> Vec<[u8; 4_096]> {
    let mut pages = vec![[0; 4_096]; PAGES];
    for (n, page) in pages.iter_mut().enumerate() {
        assert!(memory.read(START + 4_096 * n as u64, page));
    }
    pages
}

/// Returns the guest pages that differ.
fn changed(before: &[[u8; 4_096]], after: &[[u8; 4_096]]) -> impl Iterator<Item = u64> {
    let differs = |n: &usize| before[*n] != after[*n];
    (0..PAGES).filter(differs).map(|n| n as u64 + START / 4_096).collect::<Vec<_>>().into_iter()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn what_a_device_writes_is_in_the_log_once_it_is_published(
        combination in 0_usize..8,
        size in prop_oneof![Just(1_u16), Just(4), Just(64), Just(512)],
        is_receive: bool,
        ops in prop::collection::vec(op(), 1..120),
    ) {
        let features = all_features().nth(combination).unwrap();
        let mut story = Story::new(features, size, is_receive);
        let log = Log::new();
        story.pair.device.log_to(Some(log.log.clone()), None);
        let mut written = BTreeSet::new();
        for op in ops.into_iter().chain([Op::DevicePublishes]) {
            let is_driver = matches!(op, Op::Post { .. } | Op::DriverPublishes | Op::DriverTakes
                | Op::DriverEnables | Op::DriverDisables);
            let before = (!is_driver).then(|| pages_of(&story.pair.memory));
            story.run(op);
            if let Some(before) = before {
                written.extend(changed(&before, &pages_of(&story.pair.memory)));
            }
            if matches!(op, Op::DevicePublishes) {
                prop_assert!(written.is_subset(&log.pages()), "{:?} {:?}", written, log.pages());
            }
        }
        prop_assert_eq!(log.log.outside(), 0);
    }
}

/// A page that was not written is not in the log. A log that marked everything would pass the first test.
#[test]
fn a_page_that_is_not_written_is_not_in_the_log() {
    for features in all_features() {
        let mut pair = Pair::new(features, 8);
        let log = Log::new();
        pair.device.log_to(Some(log.log.clone()), None);
        for n in 0..3 {
            pair.driver
                .post(&[writable(BUFFERS + 0x1000 * (2 * n + 1), 0x2000)], n as u32)
                .unwrap();
        }
        pair.driver.publish();
        let mut writer = pair.device.reserve(&pair.memory, 0x1010, Fit::OneChain).unwrap();
        writer.write(&[7; 0x1010]);
        writer.finish().unwrap();
        pair.device.publish();
        let buffers = BUFFERS / 4_096 + 1;
        let ring = START / 4_096;
        assert_eq!(log.pages().into_iter().collect::<Vec<_>>(), [ring, buffers, buffers + 1]);
    }
}

/// The front end gives the address at which the used ring is logged. It need not be in the memory.
#[test]
fn the_device_area_is_logged_where_the_front_end_wants_it() {
    for features in all_features() {
        let mut pair = Pair::new(features, 8);
        let log = Log::new();
        pair.device.log_to(Some(log.log.clone()), Some(0x5_0000));
        assert!(!pair.device.enable_notifications());
        assert_eq!(log.pages().into_iter().collect::<Vec<_>>(), [0x50]);
        pair.driver.post(&[super::pair::readable(BUFFERS, 8)], 0).unwrap();
        pair.driver.publish();
        pair.device.take(&pair.memory, &mut [0; 8]);
        pair.device.publish();
        let is_packed = features.layout == Layout::Packed;
        let ring = is_packed.then_some(START / 4_096);
        assert_eq!(log.pages(), ring.into_iter().chain([0x50]).collect());
    }
}

/// A page beyond the log is counted, and so is each write to it.
#[test]
fn a_log_that_does_not_cover_the_memory_is_counted() {
    let mut pair = Pair::new(all_features().next().unwrap(), 8);
    let mapping = Arc::new(Mapping::zeroed(LOG_BYTES));
    let log = DirtyLog::new(mapping, 0, 1).unwrap();
    pair.device.log_to(Some(log.clone()), None);
    pair.device.disable_notifications();
    assert_eq!(log.outside(), 1);
    pair.device.log_to(None, None);
    pair.device.disable_notifications();
    assert_eq!(log.outside(), 1, "no log, no count");
}
