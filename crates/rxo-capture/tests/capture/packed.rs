//! Compressed captures.

use std::io::{Cursor, Read, Write};
use std::sync::mpsc;
use std::time::Duration;

use bzip2::write::BzEncoder;
use flate2::write::GzEncoder;
use lz4_flex::frame::{BlockSize, FrameEncoder, FrameInfo};
use lzma_rust2::{XzOptions, XzWriter};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use rxo_capture::{Capture, Fault};

use crate::files::{MICROS, Order, PcapFile};
use crate::read::{Dribble, read, read_from};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("memory takes everything");
    encoder.finish().expect("memory takes everything")
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    compress_to_vec(bytes, CompressionLevel::Fastest)
}

fn bzip2(bytes: &[u8]) -> Vec<u8> {
    // The smallest blocks: each is unpacked whole or not at all.
    let mut encoder = BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    encoder.write_all(bytes).expect("memory takes everything");
    encoder.finish().expect("memory takes everything")
}

fn lz4(bytes: &[u8]) -> Vec<u8> {
    let info = FrameInfo::new().block_size(BlockSize::Max64KB).content_checksum(true);
    let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
    encoder.write_all(bytes).expect("memory takes everything");
    encoder.finish().expect("memory takes everything")
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    let options = XzOptions::with_preset(1);
    let mut encoder = XzWriter::new(Vec::new(), options).expect("a preset is valid");
    encoder.write_all(bytes).expect("memory takes everything");
    encoder.finish().expect("memory takes everything")
}

type Packer = (&'static str, fn(&[u8]) -> Vec<u8>);

const PACKERS: [Packer; 5] =
    [("gzip", gzip), ("zstd", zstd), ("bzip2", bzip2), ("lz4", lz4), ("xz", xz)];

#[test]
fn a_file_cut_within_its_magic_number_is_cut_and_not_foreign() {
    for (name, pack) in PACKERS {
        let packed = pack(b"");
        for bytes in 2..4 {
            let line = read(&packed[..bytes]).message();
            assert!(line.contains(&format!("the {name} stream is cut off")), "{line}");
        }
    }
}

/// Returns a file of packets that do not compress well.
fn file(packets: u32) -> Vec<u8> {
    let mut state = 1_u64;
    let mut noise = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    };
    let mut file = PcapFile::new(Order::Little, MICROS);
    for number in 0..packets {
        let packet: Vec<u8> = (0..number % 1500).map(|_| noise()).collect();
        file = file.record([number, 0], &packet);
    }
    file.bytes
}

#[test]
fn packed_files_hold_what_plain_ones_do() {
    let plain = file(2_000);
    let records = read(&plain).sound();
    assert_eq!(records.len(), 2_000);
    for (name, pack) in PACKERS {
        let outcome = read(&pack(&plain));
        assert_eq!(outcome.format, format!("pcap in {name}"));
        for (packed, plain) in outcome.sound().iter().zip(&records) {
            assert_eq!((packed.bytes.as_ref(), packed.at), (plain.bytes.as_ref(), plain.at));
        }
    }
}

#[test]
fn a_file_may_be_packed_in_parts() {
    let plain = file(300);
    for (_, pack) in PACKERS {
        let parts: Vec<u8> = plain.chunks(1_000).flat_map(pack).collect();
        assert_eq!(read(&parts).sound().len(), 300);
        let slowly = Dribble(Cursor::new([parts, pack(b"")].concat()), 3);
        assert_eq!(read_from(Box::new(slowly), 1).sound().len(), 300);
    }
}

#[test]
fn zstd_frames_to_be_skipped_are_skipped() {
    let skippable = [&[0x5a, 0x2a, 0x4d, 0x18, 5, 0, 0, 0][..], b"notes"].concat();
    let whole = [&skippable[..], &zstd(&file(3)), &skippable].concat();
    assert_eq!(read(&whole).sound().len(), 3);
    let outcome = read(&whole[..whole.len() - 1]);
    assert_eq!(outcome.records.len(), 3);
    assert!(outcome.message().contains("of what zstd unpacks: the zstd stream is cut off"));
}

#[test]
fn lz4_frames_to_be_skipped_are_skipped() {
    let skippable = [&[0x5a, 0x2a, 0x4d, 0x18, 5, 0, 0, 0][..], b"notes"].concat();
    let whole = [&lz4(&file(3))[..], &skippable, &lz4(&[]), &skippable].concat();
    assert_eq!(read(&whole).sound().len(), 3);
    let outcome = read(&whole[..whole.len() - 1]);
    assert_eq!(outcome.records.len(), 3);
    assert!(outcome.message().contains("of what lz4 unpacks: the lz4 stream is cut off"));
}

#[test]
fn an_xz_dictionary_beyond_the_limit_is_refused() {
    let mut options = XzOptions::with_preset(1);
    options.lzma_options.dict_size = 256 * 1024 * 1024;
    let mut encoder = XzWriter::new(Vec::new(), options).expect("the size is valid");
    encoder.write_all(&file(3)).expect("memory takes everything");
    let line = read(&encoder.finish().expect("memory takes everything")).message();
    assert!(line.contains("xz needs more than 134217728 bytes"), "{line}");
    assert!(line.contains("unpack it first: xz -d"), "{line}");
}

#[test]
fn zeros_behind_gzip_are_padding_and_anything_else_is_damage() {
    let packed = gzip(&file(3));
    assert_eq!(read(&[&packed[..], &[0; 512]].concat()).sound().len(), 3);
    let outcome = read(&[&packed[..], b"more"].concat());
    assert_eq!(outcome.records.len(), 3);
    assert!(outcome.message().contains("something other than gzip follows the last member"));
}

#[test]
fn a_packed_file_cut_anywhere_gives_what_can_be_unpacked() {
    let plain = file(200);
    for (name, pack) in PACKERS {
        let parts: Vec<u8> = plain.chunks(2_000).flat_map(pack).collect();
        let mut delivered = 0;
        for cut in (0..parts.len()).step_by(61) {
            let outcome = read(&parts[..cut]);
            assert!(outcome.records.len() >= delivered, "{name} cut at {cut}");
            delivered = outcome.records.len();
            if let Some(error) = &outcome.error {
                let is_cut = matches!(error.fault(), Fault::Truncated(_) | Fault::Foreign(_));
                assert!(is_cut, "{name} cut at {cut}: {error}");
            }
        }
        assert!(delivered >= 185, "{name}: only {delivered}");
    }
}

#[test]
fn what_was_unpacked_is_given_before_the_error() {
    let plain = file(1_000);
    for (name, pack) in PACKERS {
        let packed = pack(&plain);
        let outcome = read(&packed[..packed.len() - 9]);
        assert!(outcome.records.len() > 700, "{name}: only {} records", outcome.records.len());
        let line = outcome.message();
        assert!(line.contains(&format!(" of what {name} unpacks: ")), "{line}");
    }
}

#[test]
fn a_zstd_window_is_given_before_the_error() {
    let plain = file(300);
    for checksum_flag in [0, 4] {
        // The frame has magic, flags, and a window of 1 MiB, which the decoder keeps while more input may
        // come.
        let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, checksum_flag, 0x50];
        for block in plain.chunks(1_000) {
            // The block is stored, has this length, and is not the last.
            frame.extend(&(block.len() as u32 * 8).to_le_bytes()[..3]);
            frame.extend(block);
        }
        let outcome = read(&frame);
        assert_eq!(outcome.records.len(), 300);
        assert!(outcome.message().contains("the zstd stream is cut off"));
        let outcome = read(&frame[..frame.len() - 1_000]);
        assert!((290..300).contains(&outcome.records.len()), "{} records", outcome.records.len());
    }
}

#[test]
fn what_stands_before_damage_to_gzip_is_given() {
    let plain = file(20);
    let length = (plain.len() as u16).to_le_bytes();
    // The file has a member's header, a stored block, and a block of an invalid type.
    let mut packed = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff, 0];
    packed.extend(length);
    packed.extend(length.map(|byte| !byte));
    packed.extend(&plain);
    packed.extend([7; 9]);
    let outcome = read(&packed);
    assert_eq!(outcome.records.len(), 20);
    assert!(outcome.message().contains("a member cannot be unpacked on"));
}

#[test]
fn any_byte_of_a_packed_file_may_be_anything() {
    let plain = file(40);
    let whole = read(&plain).sound();
    for (_, pack) in PACKERS {
        let packed = pack(&plain);
        for place in
            (0..packed.len()).step_by(97).chain(0..30).chain(packed.len() - 12..packed.len())
        {
            for value in [0, 1, 0x80, 0xff] {
                let mut damaged = packed.clone();
                damaged[place] = value;
                let outcome = read(&damaged);
                assert!(outcome.records.len() <= whole.len() || outcome.error.is_some());
            }
        }
    }
}

#[test]
fn a_wrong_checksum_is_damage() {
    for (name, pack) in PACKERS {
        let mut packed = pack(&file(3));
        let behind = match name {
            "gzip" | "bzip2" => 6,
            // Behind the checksum of the block come the index and the footer.
            "xz" => 24 + 8,
            _ => 1,
        };
        let last = packed.len() - behind;
        packed[last] ^= 1;
        let outcome = read(&packed);
        // The decoder of xz keeps what it unpacks in the step that finds damage.
        let is_given = outcome.records.len() == 3 || name == "xz";
        assert!(is_given, "{name}: {} records", outcome.records.len());
        assert!(matches!(outcome.error.unwrap().fault(), Fault::Damaged(_)), "{name}");
    }
}

#[test]
fn what_is_in_the_archive_may_be_foreign() {
    for (_, pack) in PACKERS {
        assert!(read(&pack(b"some text")).message().contains("it looks like text"));
        assert!(read(&pack(b"")).message().contains("it is empty"));
        let twice = read(&pack(&pack(&file(1))));
        assert!(twice.message().contains("inside what was unpacked already; unpack it first"));
    }
}

#[test]
fn zstd_that_needs_too_much_is_refused_with_the_way_out() {
    // The frame has magic, no flags, a window of 1 TiB, and an empty last block.
    let window = [0x28, 0xb5, 0x2f, 0xfd, 0, 0xf0, 1, 0, 0];
    assert_eq!(
        read(&window).message(),
        "test cannot be read at byte 0 of what zstd unpacks: zstd needs a window of 1099511627776 \
         bytes, more than 134217728; unpack it first: zstd -d --long=31"
    );
    // The frame has magic, a dictionary number of one byte, a window of 1 MiB, dictionary 7, and an empty
    // last block.
    let dictionary = [0x28, 0xb5, 0x2f, 0xfd, 1, 0x50, 7, 1, 0, 0];
    let line = read(&dictionary).message();
    assert!(line.ends_with("zstd needs dictionary 7; unpack it first: zstd -d -D DICTIONARY"));
}

/// Sends a message when it is dropped.
struct Watched<R>(R, mpsc::Sender<()>);

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        self.0.read(into)
    }
}

impl<R> Drop for Watched<R> {
    fn drop(&mut self) {
        let _ = self.1.send(());
    }
}

#[test]
fn a_reader_dropped_half_way_ends_its_thread() {
    for (_, pack) in PACKERS {
        let (sender, dropped) = mpsc::channel();
        let packed = Cursor::new(pack(&file(4_000)));
        let mut capture = Capture::from_reader("test", Box::new(Watched(packed, sender))).unwrap();
        assert_eq!(capture.read_batch(&mut Vec::new(), 1).unwrap(), 1);
        assert!(dropped.try_recv().is_err(), "the file was small enough to be read at once");
        drop(capture);
        dropped.recv_timeout(Duration::from_secs(60)).expect("the thread ends");
    }
}

#[test]
fn an_endless_archive_is_read_in_bounded_memory_until_somebody_stops() {
    let member = gzip(&file(1_000));
    let endless = std::io::Cursor::new(member.clone())
        .chain(Repeat { bytes: gzip(&vec![0; 1 << 20]), at: 0 });
    let mut capture = Capture::from_reader("test", Box::new(endless)).unwrap();
    let mut records = Vec::new();
    for _ in 0..20_000 {
        records.clear();
        assert!(capture.read_batch(&mut records, 64).unwrap() > 0);
    }
    assert_eq!(capture.position().file_bytes, None);
    assert!(capture.position().file_bytes_read >= member.len() as u64);
}

/// A reader that repeats the same bytes forever.
struct Repeat {
    bytes: Vec<u8>,
    at: usize,
}

impl Read for Repeat {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        if self.at == self.bytes.len() {
            self.at = 0;
        }
        let count = (&self.bytes[self.at..]).read(into)?;
        self.at += count;
        Ok(count)
    }
}
