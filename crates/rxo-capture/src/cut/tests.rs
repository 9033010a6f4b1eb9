use std::path::PathBuf;

use rxo_frame::Instant;

use super::*;
use crate::{CaptureWriter, Interface, LinkType, Packet};

/// A temporary file, which is removed when dropped.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        _ = std::fs::remove_file(&self.0);
    }
}

/// Returns a pcap file whose packets contain a pcap file, with a pause before each packet in `pauses`.
fn pcap(name: &str, packets: u32, pauses: &[u32]) -> Temporary {
    let mut bytes = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    bytes.extend([0, 0, 4, 0, 1, 0, 0, 0]);
    let mut micros = 0_u32;
    for number in 0..packets {
        micros += if pauses.contains(&number) { 900 } else { 10 };
        let record = |length: u32| [1_u32, micros, length, length].map(u32::to_le_bytes).concat();
        let inner = record(100).repeat(6);
        bytes.extend(record(inner.len() as u32 + 1));
        bytes.extend(inner);
        bytes.push(number as u8);
    }
    let path = std::env::temp_dir().join(format!("rxo-cut-{name}-{}", std::process::id()));
    std::fs::write(&path, bytes).unwrap();
    Temporary(path)
}

fn count(path: &Path, from: u64, to: u64) -> usize {
    let mut capture = Capture::open_between(path, from, to).unwrap();
    let mut records = Vec::new();
    while capture.read_batch(&mut records, 1_000).unwrap() > 0 {}
    records.len()
}

#[test]
fn a_cut_is_a_record_after_the_longest_pause() {
    let file = pcap("pause", 9_000, &[10, 5_000, 8_000]);
    let each = 16 + 97;
    let cut = |near| Capture::cut(&file.0, near, u64::MAX).unwrap().unwrap();
    assert_eq!(cut(0), 0);
    assert_eq!(cut(1), 24 + 10 * each);
    assert_eq!(cut(24 + 11 * each - 5), 24 + 5_000 * each);
    // All pauses are equal, and the one before the first record does not count.
    assert_eq!(cut(24 + 8_001 * each), 24 + 8_002 * each);
    let length = 24 + 9_000 * each;
    assert_eq!(cut(length), length);
    let middle = cut(length / 2);
    assert_eq!(count(&file.0, 0, middle) + count(&file.0, middle, length), 9_000);
}

#[test]
fn parts_have_all_packets_once() {
    let path = std::env::temp_dir().join(format!("rxo-cut-ng-{}", std::process::id()));
    let file = Temporary(path);
    write_pcapng(&file.0);
    let length = std::fs::metadata(&file.0).unwrap().len();
    for parts in [2, 3, 7] {
        let cuts: Vec<u64> = (0..parts)
            .map(|part| {
                Capture::cut(&file.0, length * part / parts, length / parts / 2).unwrap().unwrap()
            })
            .chain([length])
            .collect();
        assert!(cuts.is_sorted(), "{cuts:?}");
        let all: usize = cuts.windows(2).map(|cut| count(&file.0, cut[0], cut[1])).sum();
        assert_eq!(all, 4_000);
    }
}

fn write_pcapng(path: &Path) {
    let mut writer = CaptureWriter::new(File::create(path).unwrap(), "test").unwrap();
    let interface = Interface { link: LinkType::ETHERNET, snap_bytes: None, name: None };
    let interface = writer.add_interface(&interface).unwrap();
    for number in 0..4_000_u64 {
        let bytes = vec![number as u8; 60 + (number % 300) as usize];
        let packet = Packet {
            interface,
            at: Instant::from_micros(number * (1 + number % 5)),
            original_bytes: bytes.len() as u32,
            pieces: &[&bytes],
            direction: None,
            comments: &[],
            custom: &[],
        };
        writer.write(&packet).unwrap();
    }
    writer.finish().unwrap();
}

#[test]
fn a_compressed_file_is_one_part() {
    let path = std::env::temp_dir().join(format!("rxo-cut-gz-{}", std::process::id()));
    let file = Temporary(path);
    std::fs::write(&file.0, [0x1f, 0x8b, 8, 0].repeat(20)).unwrap();
    assert_eq!(Capture::cut(&file.0, 10, 10).unwrap(), None);
}
