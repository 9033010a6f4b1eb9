//! A hostile device writes into the rings; the driver must report the fault.

use super::pair::{BUFFERS, Features, Pair, writable};
use crate::{InvalidUsed, Layout, Used};

const SIZE: u16 = 4;

fn pair(layout: Layout) -> Pair {
    let mut pair = Pair::new(Features { layout, event_index: false, indirect: false }, SIZE);
    for token in 0..2 {
        pair.driver.post(&[writable(BUFFERS, 8)], token).unwrap();
    }
    pair.driver.publish();
    pair
}

/// Writes a used entry of a split ring, and the used index.
fn split_used(pair: &Pair, entry: u64, id: u32, index: u16) {
    let at = pair.config.device + 4 + 8 * entry;
    assert!(pair.memory.write(at, &id.to_le_bytes()));
    assert!(pair.memory.write(pair.config.device + 2, &index.to_le_bytes()));
}

/// Writes a used descriptor of a packed ring, in the first lap.
fn packed_used(pair: &Pair, place: u64, id: u16) {
    let at = pair.config.descriptors + 16 * place;
    assert!(pair.memory.write(at + 12, &id.to_le_bytes()));
    assert!(pair.memory.write(at + 14, &0x8080_u16.to_le_bytes()));
}

#[test]
fn a_used_index_ahead_of_what_was_posted_breaks_the_queue() {
    for index in [3, 0x8000, 0xffff] {
        let mut pair = pair(Layout::Split);
        split_used(&pair, 0, 0, index);
        assert_eq!(pair.driver.take_used(), Err(InvalidUsed::UsedIndex));
        assert!(pair.driver.is_broken());
        assert_eq!(pair.driver.take_used(), Ok(None), "said once");
        assert!(!pair.driver.enable_notifications());
    }
}

#[test]
fn a_chain_that_the_device_does_not_have_breaks_the_queue() {
    for id in [2, 3, 4, u32::MAX] {
        let mut pair = pair(Layout::Split);
        split_used(&pair, 0, id, 1);
        assert_eq!(pair.driver.take_used(), Err(InvalidUsed::UnknownId { id }));
        assert!(pair.driver.is_broken());
    }
    for id in [2, 3, 4, u16::MAX] {
        let mut pair = pair(Layout::Packed);
        packed_used(&pair, 0, id);
        let id = u32::from(id);
        assert_eq!(pair.driver.take_used(), Err(InvalidUsed::UnknownId { id }));
        assert!(pair.driver.is_broken());
    }
}

#[test]
fn a_chain_that_comes_back_twice_breaks_the_queue() {
    let back = Ok(Some(Used { token: 1, written_bytes: 0 }));
    let mut split = pair(Layout::Split);
    split_used(&split, 0, 1, 2);
    split_used(&split, 1, 1, 2);
    assert_eq!(split.driver.take_used(), back);
    assert_eq!(split.driver.take_used(), Err(InvalidUsed::UnknownId { id: 1 }));

    let mut packed = pair(Layout::Packed);
    let at = packed.config.descriptors;
    assert!(packed.memory.write(at + 8, &0_u32.to_le_bytes()));
    assert!(packed.memory.write(at + 24, &0_u32.to_le_bytes()));
    packed_used(&packed, 0, 1);
    packed_used(&packed, 1, 1);
    assert_eq!(packed.driver.take_used(), back);
    assert_eq!(packed.driver.take_used(), Err(InvalidUsed::UnknownId { id: 1 }));
}

#[test]
fn a_device_may_return_chains_in_another_order() {
    let mut split = pair(Layout::Split);
    split_used(&split, 0, 1, 2);
    split_used(&split, 1, 0, 2);
    for token in [1, 0] {
        assert_eq!(split.driver.take_used(), Ok(Some(Used { token, written_bytes: 0 })));
    }
    assert_eq!(split.driver.free(), SIZE.into());
}

#[test]
fn nothing_is_used_before_anything_was_posted() {
    let features = Features { layout: Layout::Packed, event_index: true, indirect: false };
    let mut pair = Pair::new(features, SIZE);
    (0..u64::from(SIZE)).for_each(|place| packed_used(&pair, place, 0));
    assert_eq!(pair.driver.take_used(), Ok(None));
    assert!(!pair.driver.enable_notifications());
}
