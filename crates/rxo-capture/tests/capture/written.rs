//! Tests the writer of captures.

use std::io::Cursor;

use rxo_capture::{
    Capture, CaptureWriter, Custom, Direction, Interface, LinkType, Packet, WriteError, limits,
    put_option,
};
use rxo_frame::Instant;

use crate::read::read;

const INTERFACE: Interface = Interface { link: LinkType::ETHERNET, snap_bytes: None, name: None };

const PACKET: Packet<'_> = Packet {
    interface: 0,
    at: Instant::from_nanos(1_700_000_000_123_456_789),
    original_bytes: 1500,
    pieces: &[b"head", b"", b"payload"],
    direction: None,
    comments: &[],
    custom: &[],
};

fn writer() -> CaptureWriter<Vec<u8>> {
    let mut writer = CaptureWriter::new(Vec::new(), "a test").expect("memory takes everything");
    assert_eq!(writer.add_interface(&INTERFACE).expect("memory takes everything"), 0);
    writer
}

#[test]
fn what_is_written_is_read() {
    let mut writer = writer();
    let second =
        Interface { link: LinkType::RAW, snap_bytes: Some(96), name: Some("eth0".to_owned()) };
    assert_eq!(writer.add_interface(&second).unwrap(), 1);
    let packet = Packet {
        interface: 1,
        direction: Some(Direction::Out),
        comments: &["two", "comments"],
        custom: &[
            Custom { enterprise: 7, bytes: b"opaque" },
            Custom { enterprise: 7, bytes: &[0xff; Custom::MOST_BYTES] },
        ],
        ..PACKET
    };
    writer.write(&packet).unwrap();
    writer.write(&PACKET).unwrap();
    let outcome = read(&writer.finish().unwrap());
    assert_eq!(
        (&outcome.interfaces[..], &outcome.format[..]),
        (&[INTERFACE, second][..], "pcapng")
    );
    let records = outcome.sound();
    let [record, bare] = &records[..] else { panic!("{records:?}") };
    assert_eq!(record.bytes.as_ref(), b"headpayload");
    assert_eq!((record.original_bytes, record.at, record.interface), (1500, packet.at, 1));
    assert_eq!(record.direction(LinkType::RAW), Some(Direction::Out));
    assert_eq!(record.options.comments().collect::<Vec<_>>(), [&b"two"[..], b"comments"]);
    let custom: Vec<_> = record.options.custom(7).collect();
    assert_eq!(custom, [&b"opaque"[..], &[0xff; Custom::MOST_BYTES]]);
    assert_eq!(record.options.custom(8).count(), 0);
    assert!(record.is_cut() && bare.options.is_empty());
}

#[test]
fn a_file_says_of_itself_what_it_was_told() {
    let custom = [Custom { enterprise: 7, bytes: b"opaque" }];
    let mut writer =
        CaptureWriter::with_section(Vec::new(), "a test", &["a comment"], &custom).unwrap();
    writer.add_interface(&INTERFACE).unwrap();
    let mut options = Vec::new();
    put_option(&mut options, 4, &9_u64.to_le_bytes());
    put_option(&mut options, 1, b"copied");
    writer.write_with(&Packet { comments: &["own"], ..PACKET }, &options).unwrap();
    let bytes = Box::new(Cursor::new(writer.finish().unwrap()));
    let mut capture = Capture::from_reader("test", bytes).unwrap();
    let mut records = Vec::new();
    assert_eq!(capture.read_batch(&mut records, 9).unwrap(), 1);
    let section = capture.section().unwrap();
    assert_eq!(section.comments().collect::<Vec<_>>(), [b"a comment"]);
    assert_eq!(section.custom(7).collect::<Vec<_>>(), [b"opaque"]);
    let comments: Vec<_> = records[0].options.comments().collect();
    assert_eq!(comments, [&b"copied"[..], b"own"]);
    let found = records[0].options.iter().next().unwrap();
    assert_eq!(found, (4, &9_u64.to_le_bytes()[..]));
}

#[test]
fn what_does_not_fit_is_refused_and_leaves_nothing() {
    let mut writer = writer();
    let long = "x".repeat(65_536);
    let custom = Custom { enterprise: 7, bytes: &[0; Custom::MOST_BYTES + 1] };
    let mut line = |packet: Packet<'_>| writer.write(&packet).unwrap_err().to_string();
    let too_long =
        "an option of 65536 bytes does not fit into pcapng, which allows 65535; split it";
    assert_eq!(line(Packet { comments: &[&long], ..PACKET }), too_long);
    assert_eq!(line(Packet { custom: &[custom], ..PACKET }), too_long);
    assert_eq!(line(Packet { interface: 1, ..PACKET }), "interface 1 was not added to the capture");
    let huge = vec![0; limits::RECORD_BYTES];
    assert_eq!(
        line(Packet { pieces: &[&huge], ..PACKET }),
        "a block of 16777248 bytes is longer than the 16777216 that are read back"
    );
    let name = Some(long.clone());
    let refused = writer.add_interface(&Interface { name, ..INTERFACE });
    assert!(matches!(refused, Err(WriteError::OptionTooLong(65_536))));
    writer.write(&PACKET).unwrap();
    assert_eq!(read(&writer.finish().unwrap()).sound().len(), 1);
    assert!(CaptureWriter::new(Vec::new(), &long).is_err());
}

#[test]
fn interfaces_have_a_limit_on_both_sides() {
    let mut writer = writer();
    for number in 1..limits::INTERFACES as u32 {
        assert_eq!(writer.add_interface(&INTERFACE).unwrap(), number);
    }
    assert!(matches!(writer.add_interface(&INTERFACE), Err(WriteError::TooManyInterfaces)));
    writer.write(&Packet { interface: 65_535, ..PACKET }).unwrap();
    let mut bytes = writer.finish().unwrap();
    assert_eq!(read(&bytes).sound().len(), 1);
    bytes.extend([1, 0, 0, 0, 20, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 20, 0, 0, 0]);
    let line = read(&bytes).message();
    assert!(line.contains("more than 65536 interfaces; split it with editcap"), "{line}");
}

#[test]
fn a_full_disk_is_reported() {
    let mut disk = [0; 100];
    let mut full = CaptureWriter::new(&mut disk[..], "a test").unwrap();
    full.add_interface(&INTERFACE).unwrap();
    let written = (0..10_000).try_for_each(|_| full.write(&PACKET));
    assert!(matches!(written, Err(WriteError::Io(_))));
    drop(full);
    let mut late = CaptureWriter::new(&mut disk[..], "a test").unwrap();
    late.add_interface(&INTERFACE).unwrap();
    late.write(&PACKET).unwrap();
    assert!(matches!(late.finish(), Err(WriteError::Io(_))));
}
