//! Files that are truncated, damaged, or not captures at all.

use rxo_capture::{Fault, limits};

use crate::files::{Clock, MICROS, ORDERS, Order, PcapFile, PcapNgFile, option};
use crate::read::{Outcome, read};

const CLOCK: Clock = Clock { resolution: Some(9), offset_s: None };

fn pcap(order: Order) -> PcapFile {
    PcapFile::new(order, MICROS).record([1, 2], b"first").record([3, 4], b"second")
}

fn pcapng(order: Order) -> PcapNgFile {
    PcapNgFile::default()
        .section(order)
        .interface(1, 0, "eth0", CLOCK)
        .enhanced(0, 1, 5, b"first", &option(order, 1, b"comment"))
        .block(0x0bad, b"unknown!")
        .simple(6, b"second")
}

/// Returns the end of each packet's record or block in the files of [`pcap`] and [`pcapng`].
fn ends(whole: &[u8]) -> Vec<usize> {
    let is_delivered = |length: &usize| read(&whole[..*length]).records.len();
    (1..=2)
        .filter_map(|count| (0..=whole.len()).find(|length| is_delivered(length) == count))
        .collect()
}

#[test]
fn a_file_cut_anywhere_gives_what_stands_before_the_cut() {
    for order in ORDERS {
        for whole in [pcap(order).bytes, pcapng(order).bytes] {
            let ends = ends(&whole);
            assert_eq!(ends.len(), 2);
            for cut in 0..whole.len() {
                let outcome = read(&whole[..cut]);
                assert_eq!(outcome.records.len(), ends.iter().filter(|end| **end <= cut).count());
                check_cut(&outcome, &whole, cut);
            }
            assert_eq!(read(&whole).sound().len(), 2);
        }
    }
}

fn check_cut(outcome: &Outcome, whole: &[u8], cut: usize) {
    let Some(error) = &outcome.error else {
        // A file may end between two blocks.
        assert!(read(&whole[..cut]).error.is_none() && cut >= 24, "{cut} of {whole:?}");
        return;
    };
    match error.fault() {
        Fault::Foreign(_) => assert!(cut < 4, "{}", outcome.message()),
        Fault::Truncated(_) => {
            assert!(error.offset() as usize <= cut);
            let line = outcome.message();
            assert!(line.contains(&format!("at byte {}: ", error.offset())), "{line}");
        }
        other => panic!("cut at {cut}: {other:?}"),
    }
    assert_eq!(error.is_partial(), error.offset() > 0);
}

#[test]
fn any_byte_may_be_anything() {
    for order in ORDERS {
        for whole in [pcap(order).bytes, pcapng(order).bytes] {
            for place in 0..whole.len() {
                for value in [0, 1, 4, 12, 0x7f, 0x80, 0xff] {
                    let mut damaged = whole.clone();
                    damaged[place] = value;
                    let outcome = read(&damaged);
                    assert!(outcome.records.len() <= 2);
                    if outcome.error.is_some() {
                        outcome.message();
                    }
                }
            }
        }
    }
}

#[test]
fn a_record_that_claims_too_much_is_named_with_its_place() {
    let file = pcap(Order::Little).claiming([5, 6], [0xffff_ffff, 60], b"");
    let outcome = read(&file.bytes);
    assert_eq!(outcome.packets(), [&b"first"[..], b"second"]);
    assert_eq!(
        outcome.message(),
        "test is damaged at byte 67: a record claims 4294967295 bytes, at most 262144 are \
         possible; what stands before was read, get the file again for the rest"
    );
    assert!(outcome.error.unwrap().is_partial());
}

/// Returns invalid blocks, and a part of the error message for each.
fn bad_blocks(order: Order) -> Vec<(PcapNgFile, &'static str)> {
    let body = [0; 32];
    let long = order.u32(limits::RECORD_BYTES as u32);
    let mut claims_packet = [0; 24];
    claims_packet[12..16].copy_from_slice(&order.u32(5));
    let mut wild_option = body.to_vec();
    wild_option[20..24].copy_from_slice(&[order.u16(1), order.u16(9)].concat());
    vec![
        (pcapng(order).claiming(6, [0, 0], &body), "a block claims 0 bytes"),
        (pcapng(order).claiming(6, [11, 11], &body), "a block claims 11 bytes"),
        (pcapng(order).claiming(9, [45, 45], &body), "a block claims 45 bytes"),
        (pcapng(order).claiming(6, [44, 48], &body), "length is 44 at its beginning, 48 at"),
        (pcapng(order).claiming(9, [44, 48], &body), "length is 44 at its beginning, 48 at"),
        (pcapng(order).claiming(6, [u32::MAX - 3; 2], &body), "at most 16777216 are possible"),
        (pcapng(order).block(6, &body[..16]), "a packet block of 20 bytes stands in a block with"),
        (pcapng(order).block(3, &[]), "a simple packet of 4 bytes stands in a block with room"),
        (pcapng(order).block(6, &claims_packet), "a packet of 5 bytes stands in a block with room"),
        (pcapng(order).block(3, &long), "a packet of 16777216 bytes stands in a block with room"),
        (pcapng(order).block(6, &wild_option), "an option of a packet leaves its block"),
        (pcapng(order).block(1, &body[..4]), "an interface description of 8 bytes stands in"),
        (pcapng(order).block(1, &wild_option[12..28]), "an option of an interface leaves"),
        (
            pcapng(order).enhanced(1, 0, 0, b"", &[]),
            "names interface 1, its section has described 1",
        ),
        (pcapng(order).enhanced(u32::MAX, 0, 0, b"", &[]), "names interface 4294967295, its"),
        (
            pcapng(order).section(order).simple(0, b""),
            "names interface 0, its section has described 0",
        ),
        (pcapng(order).block(0x0a0d_0d0a, &body), "byte order of a section is 00000000, neither"),
        (pcapng(order).block(0x0a0d_0d0a, &order.u32(0x1a2b_3c4d)), "a section header of 16 bytes"),
    ]
}

#[test]
fn a_block_that_cannot_be_is_named_with_its_place() {
    for order in ORDERS {
        let before = pcapng(order).bytes.len() as u64;
        for (file, expected) in bad_blocks(order) {
            let outcome = read(&file.bytes);
            let line = outcome.message();
            assert!(line.contains(expected), "{line} does not say: {expected}");
            assert_eq!(outcome.records.len(), 2, "{line}");
            assert!(outcome.offset() >= before, "{line}");
            assert!(line.starts_with("test is damaged at byte "), "{line}");
        }
    }
}

#[test]
fn a_block_to_skip_may_claim_what_does_not_follow() {
    let file = pcapng(Order::Big).claiming(9, [0xffff_fffc; 2], &[1; 100]);
    let outcome = read(&file.bytes);
    assert!(outcome.message().contains("a block of 4294967292 bytes is cut off"));
    assert_eq!(outcome.records.len(), 2);
}

#[test]
fn foreign_files_are_named() {
    let cases: [(&[u8], &str); 11] = [
        (b"", "it is empty; look whether the capturing program was still to write it"),
        (b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0", "it looks like a program; give"),
        (
            b"hi",
            "it looks like text; give a pcap or pcapng file, plain or in gzip, zstd, xz, lz4 or bzip2",
        ),
        (b"#!/bin/sh\nexit 0\n# and more of it\n", "it looks like text; give"),
        (b"7z\xbc\xaf\x27\x1c", "it looks like a 7z archive; unpack it first"),
        (b"PK\x03\x04\x14\0", "it looks like a zip archive; unpack"),
        (b"snoop\0\0\0\0\0\0\x02", "a snoop capture; convert it: editcap -F pcapng IN OUT"),
        (b"\x1c\x00\x01\xac\0\0", "an Ixia capture; convert it"),
        (&[0; 100], "it begins with 00000000; give a pcap or pcapng file"),
        (&[0x80], "it begins with 80; give"),
        (b"\xd4\xc3\xb2\xa0", "it begins with d4c3b2a0; give"),
    ];
    for (bytes, expected) in cases {
        let outcome = read(bytes);
        let line = outcome.message();
        assert!(line.starts_with("test is no capture: "), "{line}");
        assert!(line.contains(expected), "{line} does not say: {expected}");
        assert!(!outcome.error.unwrap().is_partial());
    }
}

#[test]
fn a_file_that_is_not_there_is_named() {
    use rxo_capture::Capture;
    let line = Capture::open("/no/such/file".as_ref()).unwrap_err().to_string();
    assert_eq!(
        line,
        "/no/such/file cannot be opened: No such file or directory (os error 2); check the path"
    );
    let line = Capture::open("/".as_ref()).unwrap_err().to_string();
    assert_eq!(line, "/ cannot be opened: Is a directory (os error 21); check the path");
}

#[test]
fn files_that_were_joined_like_texts_are_named_as_such() {
    for order in ORDERS {
        let first = pcap(order).bytes;
        let outcome = read(&[&first[..], &first].concat());
        assert_eq!(outcome.records.len(), 2);
        let begin =
            format!("test cannot be read at byte {}: another pcap file begins", first.len());
        let message = outcome.message();
        assert!(message.starts_with(&begin) && message.contains("mergecap -a"), "{message}");
    }
}
