use std::sync::Arc;

use super::*;

/// Creates two adjacent regions (0x1000..0x2000, 0x2000..0x3000) and a separate one (0x8000..0x9000).
fn three() -> Memory {
    let mut memory = Memory::new();
    for (guest, user) in [(0x2000, 0x7_2000), (0x1000, 0x9_1000), (0x8000, 0x1_8000)] {
        let mapping = Arc::new(Mapping::zeroed(0x1000));
        memory.add(Region::new(guest, user, mapping, 0, 0x1000).unwrap()).unwrap();
    }
    memory
}

#[test]
fn bytes_continue_from_region_to_region() {
    let memory = three();
    let written: Vec<u8> = (0..=255).collect();
    assert!(memory.write(0x1f80, &written));
    let mut read = [0; 256];
    assert!(memory.read(0x1f80, &mut read));
    assert_eq!(written, read);
    assert!(memory.read(0x2000, &mut read[..128]));
    assert_eq!(read[..128], written[128..]);
}

#[test]
fn nothing_outside_can_be_reached() {
    let memory = three();
    let mut byte = [0];
    for outside in [0, 0xfff, 0x3000, 0x7fff, 0x9000, u64::MAX] {
        assert!(!memory.read(outside, &mut byte) && !memory.write(outside, &byte), "{outside:#x}");
    }
    assert!(!memory.read(0x2fff, &mut [0; 2]));
    assert!(memory.read(u64::MAX, &mut []), "nothing is everywhere");
}

#[test]
fn a_front_ends_address_becomes_a_guest_address() {
    let memory = three();
    assert_eq!(memory.guest_address(0x7_2010), Some(0x2010));
    assert_eq!(memory.guest_address(0x9_1fff), Some(0x1fff));
    assert_eq!(memory.guest_address(0x2010), None);
}

#[test]
fn a_removed_region_is_gone_and_its_place_free() {
    let mut memory = three();
    assert!(memory.remove(0x2000, 0xfff).is_none());
    let removed = memory.remove(0x2000, 0x1000).unwrap();
    assert!(!memory.read(0x2000, &mut [0]));
    memory.add(removed).unwrap();
    assert!(memory.read(0x2000, &mut [0]));
}

#[test]
fn overlapping_and_impossible_regions_are_refused() {
    let mut memory = three();
    let mapping = Arc::new(Mapping::zeroed(0x1000));
    let region =
        |guest, user, offset, bytes| Region::new(guest, user, Arc::clone(&mapping), offset, bytes);
    for (guest, user) in [(0x2fff, 0), (0x0, 0x7_2fff)] {
        let overlapping = memory.add(region(guest, user, 0, 0x1000).unwrap());
        assert!(matches!(overlapping, Err(RegionError::Overlaps { .. })));
    }
    assert!(matches!(region(0, 0, 0, 0), Err(RegionError::Range { .. })));
    assert!(matches!(region(u64::MAX, 0, 0, 2), Err(RegionError::Range { .. })));
    assert!(matches!(region(0, u64::MAX, 0, 2), Err(RegionError::Range { .. })));
    assert!(matches!(region(0, 0, 1, 0x1000), Err(RegionError::Beyond { .. })));
    assert!(matches!(region(0, 0, u64::MAX, 0x1000), Err(RegionError::Beyond { .. })));
}

#[test]
fn many_regions_are_searched_as_few_are() {
    let mapping = Arc::new(Mapping::zeroed(0x1000));
    let mut memory = Memory::new();
    for index in 0..MOST_REGIONS as u64 {
        let start = 0x1000 + index * 0x200;
        memory.add(Region::new(start, start, Arc::clone(&mapping), 0, 0x100).unwrap()).unwrap();
        let is_inside = |address: u64| {
            (0..=index).any(|i| (0x1000 + i * 0x200..0x1100 + i * 0x200).contains(&address))
        };
        for address in (0..0x1400 + index * 0x200).step_by(0x40 * (1 + index as usize)) {
            assert_eq!(memory.locate(address, 1).is_some(), is_inside(address), "{address:#x}");
        }
    }
    let beyond = Region::new(0, 0, mapping, 0, 0x100).unwrap();
    assert_eq!(memory.add(beyond), Err(RegionError::TooMany));
}
