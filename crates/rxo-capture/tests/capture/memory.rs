//! Chunks are shared while a record holds them, and reused afterwards.

use std::collections::HashSet;
use std::io::Cursor;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rxo_capture::{Batches, Capture, Record, limits};

use crate::files::{Clock, MICROS, Order, PcapFile, PcapNgFile, option};
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

/// Returns the memory that records keep, in bytes, if none shares its chunk.
fn kept_bytes(records: &[Record]) -> usize {
    records.iter().map(|record| record.bytes.chunk().0).sum()
}

fn pcapng() -> PcapNgFile {
    PcapNgFile::default().section(Order::Little).interface(1, 0, "", Clock::default())
}

/// A packet after much skipped data keeps little memory. Here each packet follows a skipped block that almost
/// fills a chunk, or does not fit into one. A few kilobytes of zstd can contain a gigabyte of such blocks.
#[test]
fn few_bytes_of_much_keep_little() {
    for skipped_bytes in [limits::CHUNK_BYTES - 300, 3 * limits::CHUNK_BYTES] {
        let blocks = |file: PcapNgFile, n: u32| {
            file.block(0x0bad, &vec![0; skipped_bytes]).enhanced(
                0,
                n.into(),
                60,
                &[n as u8; 60],
                &[],
            )
        };
        let records = read(&(0..300).fold(pcapng(), blocks).bytes).sound();
        assert_eq!(records.len(), 300);
        assert!((0..300).all(|n| records[n].bytes.as_ref() == [n as u8; 60]));
        let kept = kept_bytes(&records);
        assert!(kept < 4 * limits::CHUNK_BYTES, "{kept} bytes for 300 packets");
    }
}

/// A long record has its own chunk; the records after it do not keep that chunk.
#[test]
fn a_short_record_keeps_no_long_chunk() {
    let long = option(Order::Little, 1, &[7; 60_000]).repeat(20);
    let pair = |file: PcapNgFile, n: u32| {
        file.enhanced(0, n.into(), 4, &[1; 4], &long).enhanced(0, n.into(), 60, &[2; 60], &[])
    };
    let records = read(&(0..20).fold(pcapng(), pair).bytes).sound();
    let short: Vec<Record> = records.into_iter().skip(1).step_by(2).collect();
    assert_eq!((short.len(), short[0].bytes.as_ref().len()), (20, 60));
    let kept = short.iter().map(|record| record.bytes.chunk().0).max();
    assert!(kept <= Some(limits::CHUNK_BYTES), "{kept:?}");
}

/// Options count as bytes of a batch, including those after the option that ends the list.
#[test]
fn a_batch_of_packets_with_long_options_is_short() {
    let comments = option(Order::Little, 1, &[7; 60_000]).repeat(20);
    let junk = [vec![0; 4], comments.clone()].concat();
    for (options, most) in [(comments, 16), (junk, 60)] {
        let one = |file: PcapNgFile, n: u32| file.enhanced(0, n.into(), 4, &[1; 4], &options);
        let file = (0..60).fold(pcapng(), one).bytes;
        let capture = Capture::from_reader("test", Box::new(Cursor::new(file))).unwrap();
        let mut batches = Batches::new(capture, Arc::new(AtomicBool::new(false)));
        _ = batches.step();
        let (count, kept) = (batches.records.len(), kept_bytes(&batches.records));
        assert!(count <= most && kept < 40 << 20, "{count} records keep {kept} bytes");
    }
}
