//! Stories of captures: written and read, in every order, cut and damaged.

use std::io::Cursor;

use rxo_frame::Instant;

use super::*;

fn read(bytes: Vec<u8>) -> (Vec<Record>, Option<CaptureError>) {
    let mut capture = match Capture::from_reader("test", Box::new(Cursor::new(bytes))) {
        Ok(capture) => capture,
        Err(error) => return (Vec::new(), Some(error)),
    };
    let mut records = Vec::new();
    loop {
        match capture.read_batch(&mut records, 3) {
            Ok(0) => return (records, None),
            Ok(_) => {}
            Err(error) => return (records, Some(error)),
        }
    }
}

#[test]
fn what_is_written_is_read() {
    let mut writer = CaptureWriter::new(Vec::new(), "test").unwrap();
    let interface =
        Interface { link: LinkType::RAW, snap_bytes: Some(96), name: Some("eth0".to_owned()) };
    let number = writer.add_interface(&interface).unwrap();
    let packet = Packet {
        interface: number,
        at: Instant::from_nanos(1_700_000_000_123_456_789),
        original_bytes: 1500,
        pieces: &[b"head", b"", b"payload"],
        direction: Some(Direction::Out),
        comments: &["two", "comments"],
        custom: &[Custom { enterprise: 7, bytes: b"opaque" }],
    };
    writer.write(&packet).unwrap();
    let (records, error) = read(writer.finish().unwrap());
    assert!(error.is_none(), "{error:?}");
    let [record] = &records[..] else { panic!("{records:?}") };
    assert_eq!(record.bytes.as_ref(), b"headpayload");
    assert_eq!((record.original_bytes, record.at), (1500, packet.at));
    assert_eq!(record.direction(LinkType::RAW), Some(Direction::Out));
    assert_eq!(record.options.comments().collect::<Vec<_>>(), [&b"two"[..], b"comments"]);
    assert_eq!(record.options.custom(7).collect::<Vec<_>>(), [b"opaque"]);
    assert_eq!(record.options.custom(8).count(), 0);
    assert!(record.is_cut());
}
