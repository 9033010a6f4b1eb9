//! Chunks are shared while a record holds them, and reused afterwards.

use std::collections::HashSet;
use std::io::Cursor;

use rxo_capture::{Capture, Record, limits};

use crate::files::{MICROS, Order, PcapFile};
use crate::read::{Dribble, read, read_from};

fn file(packets: u32, bytes: usize) -> Vec<u8> {
    let add = |file: PcapFile, number: u32| file.record([number, 0], &vec![number as u8; bytes]);
    (0..packets).fold(PcapFile::new(Order::Little, MICROS), add).bytes
}

/// Adds the places of the chunks that `records` were read into, derived from their addresses.
fn places(records: &[Record], places: &mut HashSet<usize>) {
    let chunk = |record: &Record| record.bytes.as_ref().as_ptr() as usize / limits::CHUNK_BYTES;
    places.extend(records.iter().map(chunk));
}

#[test]
fn chunks_come_back_when_no_record_is_held() {
    let mut capture =
        Capture::from_reader("test", Box::new(Cursor::new(file(20_000, 1_000)))).unwrap();
    let (mut records, mut seen) = (Vec::new(), HashSet::new());
    while capture.read_batch(&mut records, 64).unwrap() > 0 {
        places(&records, &mut seen);
        records.clear();
    }
    // 20 MB were read: two chunks in turn, each of which touches two places.
    assert!(seen.len() <= 4, "{} chunks for what fits into two", seen.len());
}

#[test]
fn a_held_record_never_changes() {
    for size in [0, 1, 60, 1_514, 65_000] {
        let bytes = file(300, size);
        for reader in [1, 100, limits::CHUNK_BYTES] {
            if reader == 1 && size > 60 {
                continue;
            }
            let dribble = Dribble(Cursor::new(bytes.clone()), reader);
            let records = read_from(Box::new(dribble), 1).sound();
            assert_eq!(records.len(), 300);
            for (number, record) in records.iter().enumerate() {
                assert_eq!(record.bytes.as_ref(), vec![number as u8; size]);
            }
        }
    }
}

#[test]
fn a_record_longer_than_a_chunk_is_read_whole() {
    let long = vec![9; limits::RECORD_BYTES];
    let file = PcapFile::with(Order::Little, MICROS, (2, 4), u32::MAX, 1)
        .record([0, 0], b"before")
        .record([0, 0], &long)
        .record([0, 0], b"behind");
    let outcome = read(&file.bytes);
    assert_eq!(outcome.packets(), [&b"before"[..], &long, b"behind"]);
    let file = PcapFile::with(Order::Little, MICROS, (2, 4), u32::MAX, 1)
        .record([0, 0], &vec![9; limits::RECORD_BYTES + 1]);
    assert!(read(&file.bytes).message().contains("at most 16777216 are possible"));
}

#[test]
fn a_detached_record_keeps_no_chunk() {
    let records = read(&file(3, 100)).sound();
    let kept = records[1].bytes.detached();
    drop(records);
    assert_eq!(kept.as_ref(), [1; 100]);
}
