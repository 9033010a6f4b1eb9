//! The pcap format.

use rxo_capture::{Capture, Interface, LinkType};
use rxo_frame::Instant;

use crate::files::{MICROS, MODIFIED, NANOS, ORDERS, Order, PcapFile};
use crate::read::read;

#[test]
fn both_orders_and_all_resolutions_are_read() {
    for order in ORDERS {
        for (magic, nanos) in [(MICROS, 456_000), (NANOS, 456), (MODIFIED, 456_000)] {
            let file = PcapFile::new(order, magic)
                .claiming([1_700_000_000, 456], [3, 1500], b"abc")
                .record([1_700_000_001, 0], b"");
            let outcome = read(&file.bytes);
            assert_eq!(outcome.format, "pcap");
            let records = outcome.sound();
            let [first, second] = &records[..] else { panic!("{order:?} {magic:x}: {records:?}") };
            assert_eq!(first.bytes.as_ref(), b"abc");
            assert_eq!((first.original_bytes, first.interface), (1500, 0));
            assert!(first.is_cut() && !second.is_cut());
            assert_eq!(first.at, Instant::from_nanos(1_700_000_000_000_000_000 + nanos));
            assert_eq!(second.at, Instant::from_nanos(1_700_000_001_000_000_000));
            assert!(first.options.is_empty());
        }
    }
}

#[test]
fn the_header_describes_the_one_interface() {
    // The upper half of the link type announces 4 bytes of frame check sequence.
    let file = PcapFile::with(Order::Big, MICROS, (2, 4), 96, 0x2400_0071);
    let interface = Interface { link: LinkType::LINUX_SLL, snap_bytes: Some(96), name: None };
    assert_eq!(read(&file.bytes).interfaces, [interface]);
    for no_limit in [0, 262_144, u32::MAX] {
        let file = PcapFile::with(Order::Little, MICROS, (2, 4), no_limit, 1);
        assert_eq!(read(&file.bytes).interfaces[0].snap_bytes, None);
    }
}

#[test]
fn the_header_is_kept_as_it_stands() {
    let file = PcapFile::with(Order::Big, NANOS, (2, 4), 96, 0x2400_0071);
    let bytes = Box::new(std::io::Cursor::new(file.bytes.clone()));
    let capture = Capture::from_reader("test", bytes).unwrap();
    assert_eq!(capture.pcap_header().unwrap()[..], file.bytes);
    assert!(capture.section().is_none());
}

#[test]
fn lengths_are_swapped_in_old_files() {
    for (version, lengths) in [((2, 2), [1500, 3]), ((2, 3), [1500, 3]), ((2, 3), [3, 1500])] {
        let file = PcapFile::with(Order::Little, MICROS, version, 65_535, 1);
        let records = read(&file.claiming([1, 2], lengths, b"abc").bytes).sound();
        assert_eq!((records[0].bytes.as_ref(), records[0].original_bytes), (&b"abc"[..], 1500));
    }
}

#[test]
fn another_version_is_refused() {
    let file = PcapFile::with(Order::Little, MICROS, (3, 0), 65_535, 1);
    let outcome = read(&file.bytes);
    assert_eq!(
        outcome.message(),
        "test cannot be read at byte 0: it is pcap version 3.0; convert it to version 2.4 with \
         editcap"
    );
    assert!(!outcome.error.unwrap().is_partial());
}

#[test]
fn a_packet_may_be_as_long_as_the_snap_length_says() {
    let long = vec![7; 1_000_000];
    let file = PcapFile::with(Order::Little, NANOS, (2, 4), 1_000_000, 1).record([1, 2], &long);
    assert_eq!(read(&file.bytes).sound()[0].bytes.as_ref(), long);
    let file = PcapFile::with(Order::Little, NANOS, (2, 4), 96, 1).record([1, 2], &long);
    assert_eq!(
        read(&file.bytes).message(),
        "test is damaged at byte 24: a record claims 1000000 bytes, at most 262144 are possible; \
         what stands before was read, get the file again for the rest"
    );
}
