//! Capture files: every block, every byte order, and damage.

use std::io::Write;

use bzip2::write::BzEncoder;
use flate2::write::GzEncoder;
use lz4_flex::frame::{FrameEncoder, FrameInfo};
use lzma_rust2::{XzOptions, XzWriter};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use rxo_testkit::seg;

#[path = "../../../../crates/rxo-capture/tests/files/mod.rs"]
mod files;

use files::{Clock, MICROS, MODIFIED, NANOS, ORDERS, Order, PcapFile, PcapNgFile, option};

type Files = Vec<(String, Vec<u8>)>;

pub(super) fn pcap() -> Files {
    let mut seeds = Vec::new();
    let packet = seg().ts(1, 2).bytes();
    for order in ORDERS {
        for (name, magic) in [("micros", MICROS), ("nanos", NANOS), ("modified", MODIFIED)] {
            let file = PcapFile::new(order, magic)
                .record([1, 2], &packet)
                .claiming([3, 4], [20, 1500], &packet[..20])
                .record([5, 6], b"");
            seeds.push((format!("{name}-{order:?}"), file.bytes));
        }
        let old = PcapFile::with(order, MICROS, (2, 2), 96, 113).claiming([1, 2], [9, 3], b"abc");
        seeds.push((format!("old-{order:?}"), old.bytes));
        let wild = PcapFile::new(order, MICROS).claiming([1, 2], [u32::MAX, 3], b"abc");
        seeds.push((format!("wild-{order:?}"), wild.bytes));
    }
    let mut cut = PcapFile::new(Order::Little, MICROS).record([1, 2], &packet).bytes;
    cut.truncate(60);
    seeds.push(("cut".to_owned(), cut));
    seeds.push(("text".to_owned(), b"no capture".to_vec()));
    seeds
}

pub(super) fn pcapng() -> Files {
    let mut seeds = Vec::new();
    for order in ORDERS {
        for (name, file) in [
            ("packets", packets(order)),
            ("clocks", clocks(order)),
            ("sections", packets(order).section(Order::Big).block(9, b"skip")),
            ("option-wild", start(order).enhanced(0, 1, 0, b"", &option(order, 1, b"abcd")[..4])),
            ("interface-unknown", start(order).enhanced(7, 1, 0, b"", &[])),
            ("lengths-differ", start(order).claiming(6, [44, 48], &[0; 32])),
            ("length-wild", start(order).claiming(9, [u32::MAX - 3; 2], &[0; 32])),
        ] {
            seeds.push((format!("{name}-{order:?}"), file.bytes));
        }
    }
    seeds
}

fn start(order: Order) -> PcapNgFile {
    PcapNgFile::default().section(order).interface(1, 96, "eth0", Clock::default())
}

fn packets(order: Order) -> PcapNgFile {
    let packet = seg().ts(1, 2).bytes();
    let custom = [&order.u32(7)[..], b"opaque"].concat();
    let options = [
        option(order, 1, b"comment"),
        option(order, 2, &order.u32(2)),
        option(order, 19_373, &custom),
        vec![0; 4],
    ];
    start(order)
        .enhanced(0, 1, 1500, &packet, &options.concat())
        .simple(3, b"abc")
        .obsolete(0, 2, b"old")
        .block(5, b"statistics!!")
}

fn clocks(order: Order) -> PcapNgFile {
    let resolutions = [0, 3, 9, 12, 0x7f, 0x80, 0x94, 0xff].into_iter().enumerate();
    resolutions.fold(start(order), |file, (number, resolution)| {
        let clock = Clock { resolution: Some(resolution), offset_s: Some(number as i64 - 4) };
        let file = file.interface(113, 0, "", clock);
        file.enhanced(number as u32 + 1, 1 << (number * 9), 4, b"tick", &[])
    })
}

pub(super) fn packed() -> Files {
    let mut seeds = Vec::new();
    let plain = [("pcap", pcap().swap_remove(0).1), ("pcapng", packets(Order::Little).bytes)];
    for (name, plain) in plain {
        for (packer, pack) in PACKERS {
            let packed = pack(&plain);
            let parts = plain.chunks(40).flat_map(pack).collect();
            seeds.push((format!("{name}-{packer}-cut"), packed[..packed.len() - 5].to_vec()));
            seeds.push((format!("{name}-{packer}"), packed));
            seeds.push((format!("{name}-{packer}-parts"), parts));
        }
    }
    let skip = [&[0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"abc"].concat();
    seeds.push(("zstd-skip".to_owned(), [skip, zstd(b"text")].concat()));
    seeds.push(("gzip-padding".to_owned(), [gzip(b""), vec![0; 9], b"more".to_vec()].concat()));
    seeds
}

type Packer = (&'static str, fn(&[u8]) -> Vec<u8>);

const PACKERS: [Packer; 5] =
    [("gzip", gzip), ("zstd", zstd), ("bzip2", bzip2), ("lz4", lz4), ("xz", xz)];

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("memory takes everything");
    encoder.finish().expect("memory takes everything")
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    compress_to_vec(bytes, CompressionLevel::Fastest)
}

fn bzip2(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    encoder.write_all(bytes).expect("memory takes everything");
    encoder.finish().expect("memory takes everything")
}

fn lz4(bytes: &[u8]) -> Vec<u8> {
    let info = FrameInfo::new().content_checksum(true);
    let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
    encoder.write_all(bytes).expect("memory takes everything");
    encoder.finish().expect("memory takes everything")
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    let options = XzOptions::with_preset(0);
    let mut encoder = XzWriter::new(Vec::new(), options).expect("a preset is valid");
    encoder.write_all(bytes).expect("memory takes everything");
    encoder.finish().expect("memory takes everything")
}
