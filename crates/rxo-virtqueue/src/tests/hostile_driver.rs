//! A hostile driver writes into the rings; the device must report the fault.

use std::sync::Arc;

use proptest::prelude::*;

use super::pair::{BUFFERS, START};
use crate::{
    Base, ConfigError, DeviceQueue, Fit, InvalidChain, Layout, Mapping, Memory, QueueConfig,
    Refused, Region, Taken,
};

const SIZE: u16 = 4;
const NEXT: u16 = 1;
const WRITE: u16 = 2;
const INDIRECT: u16 = 4;
/// The address of indirect tables.
const TABLE: u64 = START + 0x1000;
/// The address after the last byte of memory.
const END: u64 = START + 0x10_0000;

/// A descriptor: address, bytes, flags, and next descriptor or buffer id.
type Raw = (u64, u32, u16, u16);

struct Hostile {
    memory: Memory,
    config: QueueConfig,
    device: DeviceQueue,
    /// The number of chains made available; for a packed ring, of descriptors.
    available: u16,
}

impl Hostile {
    fn new(layout: Layout, indirect: bool) -> Self {
        let memory = Memory::zeroed(START, (END - START) as usize).unwrap();
        let config = QueueConfig { indirect, ..QueueConfig::contiguous(layout, SIZE, START) };
        let device = DeviceQueue::new(&memory, &config, Base::Start).unwrap();
        Self { memory, config, device, available: 0 }
    }

    fn put(&self, at: u64, bytes: &[u8]) {
        assert!(self.memory.write(at, bytes));
    }

    fn table(&self, at: u64, entries: &[Raw]) {
        for (index, &(address, bytes, flags, link)) in entries.iter().enumerate() {
            let at = at + index as u64 * 16;
            self.put(at, &address.to_le_bytes());
            self.put(at + 8, &bytes.to_le_bytes());
            let (first, second) = match self.config.layout {
                Layout::Split => (flags, link),
                Layout::Packed => (link, flags),
            };
            self.put(at + 12, &first.to_le_bytes());
            self.put(at + 14, &second.to_le_bytes());
        }
    }

    /// Makes a chain of these descriptors available, written to the beginning of a split table or to the next
    /// slots of a packed ring.
    fn chain(&mut self, descriptors: &[Raw]) {
        match self.config.layout {
            Layout::Split => {
                self.table(self.config.descriptors, descriptors);
                self.head(0);
            }
            Layout::Packed => {
                for &(address, bytes, flags, link) in descriptors {
                    let lap = self.available / SIZE;
                    let bits = if lap.is_multiple_of(2) { 0x80 } else { 0x8000 };
                    let at = self.config.descriptors + u64::from(self.available % SIZE) * 16;
                    self.table(at, &[(address, bytes, flags | bits, link)]);
                    self.available += 1;
                }
            }
        }
    }

    /// Makes the chain that begins with descriptor `head` of a split ring available.
    fn head(&mut self, head: u16) {
        let entry = self.config.driver + 4 + 2 * u64::from(self.available % SIZE);
        self.put(entry, &head.to_le_bytes());
        self.available += 1;
        self.put(self.config.driver + 2, &self.available.to_le_bytes());
    }

    fn take(&mut self) -> Taken {
        self.device.take(&self.memory, &mut [0; 64])
    }

    fn used_index(&mut self) -> u16 {
        self.device.publish();
        let mut index = [0; 2];
        assert!(self.memory.read(self.config.device + 2, &mut index));
        u16::from_le_bytes(index)
    }
}

/// Each chain is valid, has capacity for one byte, and as many descriptors as the queue. Reading all of them
/// for one packet would take long.
#[test]
fn one_packet_costs_a_bounded_number_of_descriptors() {
    const MANY: u16 = 1_024;
    let mut hostile = Hostile::new(Layout::Split, false);
    hostile.config = QueueConfig::contiguous(Layout::Split, MANY, START);
    hostile.device = DeviceQueue::new(&hostile.memory, &hostile.config, Base::Start).unwrap();
    let readable = (1..MANY).map(|next| (BUFFERS, 1, NEXT, next));
    let chain: Vec<Raw> = readable.chain([(BUFFERS, 1, WRITE, 0)]).collect();
    hostile.table(hostile.config.descriptors, &chain);
    hostile.put(hostile.config.driver + 2, &MANY.to_le_bytes());
    let fit = Fit::Merged { count_at: 10 };
    let refused = hostile.device.reserve(&hostile.memory, 1_514, fit).unwrap_err();
    assert_eq!(refused, Refused::Invalid(InvalidChain::TooLong));
    let capacity = hostile.device.reserve(&hostile.memory, 4, fit).map(|_| ());
    assert_eq!(capacity, Ok(()), "each chain is valid");
}

/// A valid chain of one descriptor.
const VALID: Raw = (BUFFERS, 9, 0, 0);

/// Returns chains, the contents of their indirect tables, `true` if `VIRTIO_F_INDIRECT_DESC` must be
/// negotiated, and the rule that each breaks.
fn invalid_chains() -> Vec<(Vec<Raw>, Vec<Raw>, bool, InvalidChain)> {
    use InvalidChain as I;
    let plain = |chain: &[Raw], kind| (chain.to_vec(), Vec::new(), false, kind);
    let table = |bytes, flags| (TABLE, bytes, flags | INDIRECT, 0);
    let indirect =
        |bytes, entries: &[Raw], kind| (vec![table(bytes, 0)], entries.to_vec(), true, kind);
    let five: Vec<Raw> = (1..=5).map(|next| (BUFFERS, 1, NEXT, next)).collect();
    vec![
        plain(&[(BUFFERS, 0, 0, 0)], I::ZeroLength),
        plain(&[(BUFFERS, 9, NEXT, 1), (BUFFERS, 0, 0, 0)], I::ZeroLength),
        plain(&[(END, 1, 0, 0)], I::OutsideMemory),
        plain(&[(END - 1, 2, 0, 0)], I::OutsideMemory),
        plain(&[(START - 1, 1, 0, 0)], I::OutsideMemory),
        plain(&[(u64::MAX, 2, 0, 0)], I::OutsideMemory),
        plain(&[(START, u32::MAX, 0, 0)], I::OutsideMemory),
        plain(&[(END, u32::MAX, NEXT | WRITE, 1), (END, 1, WRITE, 0)], I::TooManyBytes),
        plain(&[(BUFFERS, 1, NEXT | WRITE, 1), (BUFFERS, 1, 0, 0)], I::ReadableAfterWritable),
        plain(&[(BUFFERS, 1, WRITE, 0)], I::NothingReadable),
        plain(&[(BUFFERS, 65, 0, 0)], I::FrameTooLarge),
        plain(&[table(16, 0)], I::IndirectNotNegotiated),
        (vec![table(16, NEXT), VALID], vec![VALID], true, I::IndirectChained),
        indirect(0, &[], I::IndirectLength),
        indirect(17, &[], I::IndirectLength),
        indirect(16, &[(TABLE, 16, INDIRECT, 0)], I::IndirectNested),
        indirect(16, &[(BUFFERS, 0, 0, 0)], I::ZeroLength),
        indirect(16, &[(END, 1, 0, 0)], I::OutsideMemory),
        indirect(80, &five, I::TooLong),
        (vec![(END - 8, 16, INDIRECT, 0)], vec![], true, I::IndirectOutside),
        (vec![(u64::MAX - 7, 16, INDIRECT, 0)], vec![], true, I::IndirectOutside),
    ]
}

#[test]
fn an_invalid_chain_is_counted_and_returned_and_the_next_one_is_taken() {
    for layout in [Layout::Split, Layout::Packed] {
        for (chain, table, negotiated, kind) in invalid_chains() {
            let mut hostile = Hostile::new(layout, negotiated);
            hostile.table(TABLE, &table);
            hostile.chain(&chain);
            assert_eq!(hostile.take(), Taken::Invalid(kind), "{layout:?} {chain:?}");
            assert_eq!(hostile.take(), Taken::Empty);
            assert_eq!(hostile.device.invalid().of(kind), 1);
            if layout == Layout::Split {
                assert_eq!(hostile.used_index(), 1, "{kind:?} is returned");
            }
            hostile.chain(&[VALID]);
            assert_eq!(hostile.take(), Taken::Frame(9), "{layout:?} after {kind:?}");
            assert!(!hostile.device.is_broken());
        }
    }
}

#[test]
fn a_loop_ends_after_as_many_descriptors_as_the_queue_has() {
    let mut hostile = Hostile::new(Layout::Split, true);
    hostile.chain(&[(BUFFERS, 1, NEXT, 1), (BUFFERS, 1, NEXT, 0)]);
    assert_eq!(hostile.take(), Taken::Invalid(InvalidChain::TooLong));
    hostile.table(TABLE, &[(BUFFERS, 1, NEXT, 0)]);
    hostile.chain(&[(TABLE, 16, INDIRECT, 0)]);
    assert_eq!(hostile.take(), Taken::Invalid(InvalidChain::TooLong));
    hostile.table(TABLE, &[(BUFFERS, 1, NEXT, 1)]);
    hostile.chain(&[(TABLE, 16, INDIRECT, 0)]);
    assert_eq!(hostile.take(), Taken::Invalid(InvalidChain::DescriptorIndex));
}

#[test]
fn descriptors_outside_the_table_are_counted() {
    let mut hostile = Hostile::new(Layout::Split, false);
    hostile.head(SIZE);
    assert_eq!(hostile.take(), Taken::Invalid(InvalidChain::DescriptorIndex));
    assert_eq!(hostile.used_index(), 0, "there is nothing to return");
    hostile.chain(&[(BUFFERS, 1, NEXT, SIZE)]);
    assert_eq!(hostile.take(), Taken::Invalid(InvalidChain::DescriptorIndex));
    assert_eq!(hostile.used_index(), 1);
}

#[test]
fn an_available_index_that_jumps_breaks_the_queue() {
    for jump in [SIZE + 1, 0x8000, 0xffff] {
        let mut hostile = Hostile::new(Layout::Split, false);
        hostile.put(hostile.config.driver + 2, &jump.to_le_bytes());
        assert!(!hostile.device.is_broken());
        assert_eq!(hostile.take(), Taken::Invalid(InvalidChain::AvailableIndex));
        assert!(hostile.device.is_broken());
        assert_eq!(hostile.take(), Taken::Empty, "said once");
        assert!(!hostile.device.enable_notifications(), "nothing to come");
    }
}

#[test]
fn an_available_index_that_goes_back_breaks_the_queue() {
    let mut hostile = Hostile::new(Layout::Split, false);
    hostile.chain(&[(BUFFERS, 8, WRITE, 0)]);
    (0..2).for_each(|_| hostile.head(0));
    // Three buffers are available, which is too few.
    let fit = Fit::Merged { count_at: 10 };
    let refused = hostile.device.reserve(&hostile.memory, 32, fit).err();
    assert_eq!(refused, Some(Refused::TooFew { capacity: 24, is_all: false }));
    hostile.put(hostile.config.driver + 2, &1_u16.to_le_bytes());
    let refused = hostile.device.reserve(&hostile.memory, 32, fit).err();
    assert_eq!(refused, Some(Refused::Invalid(InvalidChain::AvailableIndex)));
    assert!(hostile.device.is_broken());
}

#[test]
fn a_packed_chain_without_an_end_breaks_the_queue() {
    let mut hostile = Hostile::new(Layout::Packed, false);
    hostile.chain(&[(BUFFERS, 1, NEXT, 0); 4]);
    assert_eq!(hostile.take(), Taken::Invalid(InvalidChain::TooLong));
    assert!(hostile.device.is_broken());
    assert_eq!(hostile.take(), Taken::Empty);
}

#[test]
fn an_invalid_buffer_returns_those_gathered_before_it_empty() {
    for layout in [Layout::Split, Layout::Packed] {
        for (invalid, kind) in [
            ((END, 8, WRITE, 0), InvalidChain::OutsideMemory),
            ((BUFFERS, 8, 0, 0), InvalidChain::NothingWritable),
        ] {
            let mut hostile = Hostile::new(layout, false);
            hostile.chain(&[(BUFFERS, 8, WRITE, 0)]);
            if layout == Layout::Split {
                hostile.table(hostile.config.descriptors + 16, &[invalid]);
                hostile.head(1);
            } else {
                hostile.chain(&[invalid]);
            }
            let fit = Fit::Merged { count_at: 10 };
            let refused = hostile.device.reserve(&hostile.memory, 16, fit).err();
            assert_eq!(refused, Some(Refused::Invalid(kind)));
            let refused = hostile.device.reserve(&hostile.memory, 16, fit).err();
            assert_eq!(refused, Some(Refused::NoBuffers));
            assert_eq!(hostile.device.invalid().total(), 1);
            if layout == Layout::Split {
                assert_eq!(hostile.used_index(), 2);
            }
        }
    }
}

#[test]
fn memory_that_is_removed_is_outside_from_the_next_call_on() {
    let mut hostile = Hostile::new(Layout::Split, false);
    hostile.chain(&[VALID]);
    hostile.memory.remove(START, END - START).unwrap();
    assert_eq!(hostile.take(), Taken::Invalid(InvalidChain::OutsideMemory));
    let config = QueueConfig::contiguous(Layout::Split, SIZE, START);
    let refused = DeviceQueue::new(&hostile.memory, &config, Base::Start);
    assert!(matches!(refused, Err(ConfigError::Area { .. })));
}

#[test]
fn impossible_queues_are_refused() {
    let memory = Memory::zeroed(START, 0x10_0000).unwrap();
    let make = |config: QueueConfig, base| DeviceQueue::new(&memory, &config, base).err();
    for (layout, size) in
        [(Layout::Split, 0), (Layout::Split, 3), (Layout::Packed, 0), (Layout::Packed, 0x8001)]
    {
        let config = QueueConfig::contiguous(layout, size, START);
        assert_eq!(make(config, Base::Start), Some(ConfigError::Size { layout, size }));
    }
    let config = QueueConfig::contiguous(Layout::Packed, SIZE, START);
    assert_eq!(make(config, Base::Vring(4)), Some(ConfigError::Base { base: 4 }));
    for unaligned in [
        QueueConfig { descriptors: START + 8, ..config },
        QueueConfig { driver: START + 2, ..config },
        QueueConfig { device: END - 2, ..config },
        QueueConfig { descriptors: END - 16, ..config },
    ] {
        assert!(matches!(make(unaligned, Base::Start), Some(ConfigError::Area { .. })));
    }
}

/// Generates any descriptor; most are single writable buffers.
fn raw() -> impl Strategy<Value = Raw> {
    let addresses =
        prop_oneof![8 => BUFFERS..BUFFERS + 0x1000, 1 => END - 64..END, 1 => TABLE..END + 0x2000];
    let bytes =
        prop_oneof![8 => 1..128_u32, 1 => Just(0), 1 => 0x800..0x2000_u32, 1 => any::<u32>()];
    let flags = prop_oneof![8 => Just(WRITE), 3 => 0..8_u16, 1 => any::<u16>()];
    (addresses, bytes, flags, 0..6_u16)
}

/// Returns the result of writing a packet of `bytes` as text.
fn outcome(reserved: Result<crate::Writer<'_>, Refused>, bytes: u32) -> String {
    let filled = reserved.map(|mut writer| {
        writer.write(&vec![7; bytes as usize]);
        writer.finish()
    });
    format!("{filled:?}")
}

proptest! {
    /// Compares single buffers with the rules for all chains.
    #[test]
    fn single_buffers_are_reserved_as_the_rules_would(
        is_packed: bool,
        raws in prop::collection::vec(raw(), 1..=4),
        heads in prop::collection::vec(0..6_u16, 1..=4),
        (bytes, is_merged) in (1..300_u32, any::<bool>()),
    ) {
        let layout = if is_packed { Layout::Packed } else { Layout::Split };
        let fit = if is_merged { Fit::Merged { count_at: 0 } } else { Fit::OneChain };
        let [mut fast, mut slow] = [(); 2].map(|()| {
            let mut hostile = Hostile::new(layout, true);
            // Buffers may span into this second region.
            let next = Region::new(END, END, Arc::new(Mapping::zeroed(0x1000)), 0, 0x1000);
            hostile.memory.add(next.unwrap()).unwrap();
            if is_packed {
                hostile.chain(&raws);
            } else {
                hostile.table(hostile.config.descriptors, &raws);
                heads.iter().for_each(|head| hostile.head(*head));
            }
            hostile
        });
        for _ in 0..4 {
            let one = outcome(fast.device.reserve(&fast.memory, bytes, fit), bytes);
            let other = outcome(slow.device.reserve_by_rules(&slow.memory, bytes, fit), bytes);
            prop_assert_eq!(one, other);
        }
        prop_assert_eq!(fast.device.invalid(), slow.device.invalid());
        let [one, other] = [fast, slow].map(|mut hostile| {
            hostile.device.publish();
            let mut all = vec![0; (END - START) as usize + 0x1000];
            assert!(hostile.memory.read(START, &mut all));
            all
        });
        prop_assert!(one == other, "another memory");
    }
}
