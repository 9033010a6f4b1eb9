//! The pcapng format.

use rxo_capture::{Capture, Direction, Interface, LinkType};
use rxo_frame::Instant;

use crate::files::{Clock, ORDERS, Order, PcapNgFile, option};
use crate::read::read;

const DEFAULT: Clock = Clock { resolution: None, offset_s: None };

fn start(order: Order) -> PcapNgFile {
    PcapNgFile::default().section(order).interface(1, 0, "", DEFAULT)
}

#[test]
fn interfaces_have_their_own_link_snap_length_name_and_clock() {
    for order in ORDERS {
        let clocks = [
            (Clock { resolution: None, offset_s: None }, 5_000_000),
            (Clock { resolution: Some(9), offset_s: None }, 5_000_000_000),
            (Clock { resolution: Some(0x8a), offset_s: Some(-3) }, 8 << 10),
            (Clock { resolution: Some(3), offset_s: Some(4) }, 1_000),
        ];
        let mut file = PcapNgFile::default().section(order);
        for (number, (clock, _)) in clocks.iter().enumerate() {
            file = file.interface(101 + number as u16, number as u32, &"x".repeat(number), *clock);
        }
        for (number, (_, ticks)) in clocks.iter().enumerate() {
            file = file.enhanced(number as u32, *ticks, 9, &[number as u8], &[]);
        }
        let outcome = read(&file.bytes);
        let expected = (0..4).map(|number| Interface {
            link: LinkType(101 + number),
            snap_bytes: (number > 0).then_some(number.into()),
            name: (number > 0).then(|| "x".repeat(number.into())),
        });
        assert_eq!(outcome.interfaces, expected.collect::<Vec<_>>());
        for (number, record) in outcome.sound().iter().enumerate() {
            assert_eq!(record.at, Instant::from_nanos(5_000_000_000), "{order:?} {number}");
            assert_eq!(record.interface as usize, number);
            assert_eq!(record.bytes.as_ref(), [number as u8]);
        }
    }
}

#[test]
fn every_section_has_its_order_and_its_interfaces() {
    let file = start(Order::Big)
        .enhanced(0, 1, 1, b"a", &[])
        .section(Order::Little)
        .interface(101, 0, "", DEFAULT)
        .interface(113, 0, "", DEFAULT)
        .enhanced(1, 2, 1, b"b", &[])
        .enhanced(0, 3, 1, b"c", &[]);
    let records = read(&file.bytes).sound();
    let seen: Vec<_> = records.iter().map(|record| (record.interface, record.at)).collect();
    let micros = Instant::from_micros;
    assert_eq!(seen, [(0, micros(1)), (2, micros(2)), (1, micros(3))]);
}

#[test]
fn all_three_packet_blocks_are_read() {
    for order in ORDERS {
        let file = start(order)
            .enhanced(0, 1 << 33, 7, b"enhanced", &[])
            .simple(6, b"simple")
            .obsolete(0, 5, b"obsolete");
        let outcome = read(&file.bytes);
        assert_eq!(outcome.packets(), [&b"enhanced"[..], b"simple", b"obsolete"]);
        let records = outcome.sound();
        assert_eq!(records[0].at, Instant::from_micros(1 << 33));
        assert_eq!(records[1].at, records[0].at, "a simple packet has no time of its own");
        assert_eq!(records[2].at, Instant::from_micros(5));
        assert_eq!(records[2].original_bytes, 8);
    }
}

#[test]
fn a_simple_packet_is_cut_by_the_snap_length() {
    let file = PcapNgFile::default().section(Order::Little).interface(1, 5, "", DEFAULT);
    let records = read(&file.simple(1500, b"12345").bytes).sound();
    assert_eq!((records[0].bytes.as_ref(), records[0].original_bytes), (&b"12345"[..], 1500));
    assert!(records[0].is_cut());
}

#[test]
fn other_blocks_are_skipped_whatever_their_length() {
    let secrets = vec![0xee; 3_000_000];
    for order in ORDERS {
        let file = start(order)
            .block(0x0bad, &[])
            .block(10, &secrets)
            .enhanced(0, 1, 1, b"a", &[])
            .block(5, &[1, 2, 3, 4]);
        assert_eq!(read(&file.bytes).sound().len(), 1);
    }
}

#[test]
fn options_of_a_packet_are_kept_in_both_orders() {
    for order in ORDERS {
        let mut options = option(order, 1, b"first");
        options.extend(option(order, 2, &order.u32(2)));
        let seven = order.u32(7);
        options.extend(option(order, 2989, &[&seven[..], b"copied"].concat()));
        options.extend(option(order, 1, b""));
        options.extend(option(order, 19373, &[&seven[..], b"not copied"].concat()));
        options.extend(option(order, 19373, b"bad"));
        options.extend([0; 4]);
        let records = read(&start(order).enhanced(0, 1, 3, b"abc", &options).bytes).sound();
        let [record] = &records[..] else { panic!("{records:?}") };
        let options = &record.options;
        assert_eq!(record.bytes.as_ref(), b"abc");
        assert_eq!(options.comments().collect::<Vec<_>>(), [&b"first"[..], b""]);
        assert_eq!(options.custom(7).collect::<Vec<_>>(), [&b"copied"[..], b"not copied"]);
        assert_eq!(options.iter().count(), 6);
        assert_eq!(record.direction(LinkType::ETHERNET), Some(Direction::Out));
    }
}

#[test]
fn options_are_the_same_in_both_orders_once_turned() {
    let turned = ORDERS.map(|order| {
        let seven = order.u32(7);
        let options = [
            option(order, 1, b"comment"),
            option(order, 2, &order.u32(2)),
            option(order, 4, &order.u64(9)),
            option(order, 19_373, &[&seven[..], b"opaque"].concat()),
            option(order, 2_988, b"bad"),
            option(order, 0x8001, b"local"),
        ];
        let records = read(&start(order).enhanced(0, 1, 0, b"", &options.concat()).bytes).sound();
        let mut turned = Vec::new();
        records[0].options.each_little_endian(|code, value| turned.push((code, value)));
        turned
    });
    assert_eq!(turned[0], turned[1]);
    assert_eq!(turned[0].len(), 6);
}

#[test]
fn the_first_section_says_what_the_file_is() {
    for order in ORDERS {
        let section = |text: &[u8]| {
            let fixed = [&order.u32(0x1a2b_3c4d)[..], &order.u16(1), &order.u16(0), &[0xff; 8]];
            [fixed.concat(), option(order, 1, text)].concat()
        };
        // This sets the byte order of the blocks that follow.
        let file = PcapNgFile::default().section(order);
        let file = PcapNgFile { bytes: Vec::new(), ..file }
            .block(0x0a0d_0d0a, &section(b"first"))
            .interface(1, 0, "", DEFAULT)
            .block(0x0a0d_0d0a, &section(b"second"))
            .interface(1, 0, "", DEFAULT)
            .enhanced(0, 1, 0, b"", &[]);
        let bytes = Box::new(std::io::Cursor::new(file.bytes));
        let mut capture = Capture::from_reader("test", bytes).unwrap();
        assert_eq!(capture.read_batch(&mut Vec::new(), 9).unwrap(), 1);
        assert!(capture.pcap_header().is_none());
        let comments: Vec<_> = capture.section().unwrap().comments().collect();
        assert_eq!(comments, [b"first"]);
    }
}

#[test]
fn an_option_list_needs_no_end() {
    let comment = option(Order::Little, 1, b"abcd");
    let records = read(&start(Order::Little).enhanced(0, 1, 0, b"", &comment).bytes).sound();
    assert_eq!(records[0].options.comments().collect::<Vec<_>>(), [b"abcd"]);
}

#[test]
fn another_version_is_refused() {
    let mut file = start(Order::Little);
    file.bytes[12] = 2;
    assert!(read(&file.bytes).message().contains("a section is pcapng version 2.0; convert"));
}
