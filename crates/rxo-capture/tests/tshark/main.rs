//! Compares with tshark: it lists the same packets, and reads our files
//! without complaint.
//!
//! Needs the Debian package `tshark`. Without it the tests count as ignored, and fail if `CI=true`, so
//! nothing is skipped silently. The test with captures from elsewhere prints a message if they are missing;
//! no other test depends on them.
#![allow(clippy::unwrap_used, reason = "tests, which the lint does not see without the harness")]

#[path = "../files/mod.rs"]
mod files;
mod program;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};
use rxo_capture::{Capture, CaptureWriter, Custom, Direction, Interface, LinkType, Packet, Record};
use rxo_frame::Instant;

use self::files::{Clock, MICROS, MODIFIED, NANOS, ORDERS, Order, PcapFile, PcapNgFile, option};
use self::program::Line;

const TESTS: [(&str, fn()); 5] = [
    ("pcap_files_hold_what_tshark_lists", pcap_files),
    ("pcapng_files_hold_what_tshark_lists", pcapng_files),
    ("written_files_please_tshark", written_files),
    ("converted_files_hold_the_same_packets", converted_files),
    ("captures_from_elsewhere_hold_what_tshark_lists", captures_from_elsewhere),
];

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let is_there = program::is_installed();
    let is_ci = std::env::var("CI").is_ok_and(|value| value == "true");
    if !is_there {
        eprintln!(
            "captures were not read beside {0}: it is not installed; \
             `sudo apt-get install -y {0}` adds it",
            program::PROGRAM
        );
    }
    let trial = |(name, test): (&str, fn())| {
        let run = move || {
            test();
            Ok(())
        };
        Trial::test(name, run).with_ignored_flag(!is_there && !is_ci)
    };
    libtest_mimic::run(&arguments, TESTS.into_iter().map(trial).collect()).exit_code()
}

/// A folder that is removed after the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("rxo-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, bytes: &[u8]) -> PathBuf {
        let path = self.0.join("capture");
        fs::write(&path, bytes).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Returns the records of a file, and the error message that ended reading, if any.
fn read(path: &Path) -> (Vec<Record>, Option<String>) {
    let mut capture = match Capture::open(path) {
        Ok(capture) => capture,
        Err(error) => return (Vec::new(), Some(error.to_string())),
    };
    let mut records = Vec::new();
    loop {
        match capture.read_batch(&mut records, 64) {
            Ok(0) => return (records, None),
            Ok(_) => {}
            Err(error) => return (records, Some(error.to_string())),
        }
    }
}

/// Reads `path` with both readers. The results must be equal, up to the same end.
#[track_caller]
fn check(path: &Path) -> Vec<Record> {
    let (records, error) = read(path);
    let (lines, complaints) = program::list(path);
    assert_eq!(error.is_some(), !complaints.is_empty(), "{error:?}, but tshark: {complaints}");
    assert_eq!(records.len(), lines.len(), "{}", path.display());
    for (number, (record, line)) in records.iter().zip(&lines).enumerate() {
        assert_eq!(seen(record, line), *line, "packet {} of {}", number + 1, path.display());
    }
    records
}

/// Converts `record` to tshark's form. Fields that tshark does not list are taken from `line`.
fn seen(record: &Record, line: &Line) -> Line {
    let comments = record.options.comments().map(|comment| String::from_utf8_lossy(comment));
    Line {
        at: line.at.map(|_| record.at.as_nanos()),
        original_bytes: record.original_bytes,
        kept_bytes: record.bytes.as_ref().len(),
        interface: line.interface.map(|_| record.interface),
        comments: comments.collect::<Vec<_>>().join(","),
    }
}

const PACKET: [u8; 60] = [7; 60];

fn pcap_files() {
    let folder = Folder::new("pcap");
    for order in ORDERS {
        for magic in [MICROS, NANOS, MODIFIED] {
            let file = PcapFile::new(order, magic)
                .record([1_700_000_000, 999_999], &PACKET)
                .claiming([1_700_000_001, 1], [20, 1514], &PACKET[..20]);
            assert_eq!(check(&folder.file(&file.bytes)).len(), 2);
            for cut in [file.bytes.len() - 1, file.bytes.len() - 30] {
                assert_eq!(check(&folder.file(&file.bytes[..cut])).len(), 1);
            }
        }
    }
}

fn pcapng_files() {
    let folder = Folder::new("pcapng");
    for order in ORDERS {
        let mut file = PcapNgFile::default().section(order);
        let clocks = [None, Some(9), Some(3), Some(0), Some(0x80 | 20), Some(0x80 | 30)];
        for resolution in clocks {
            file = file.interface(1, 0, "eth", Clock { resolution, offset_s: None });
        }
        file = file.interface(101, 0, "raw", Clock { resolution: Some(6), offset_s: Some(1_000) });
        for interface in 0..7 {
            let comment = option(order, 1, b"a comment");
            file = file.enhanced(interface, 123_456_789, 100, &PACKET, &comment);
        }
        let file = file
            .obsolete(1, 5_000_000_000, &PACKET)
            .block(0x0bee, b"unknown!")
            .simple(60, &PACKET)
            .enhanced(0, 7_000_001, 60, &PACKET, &[]);
        assert_eq!(check(&folder.file(&file.bytes)).len(), 10);
        for cut in [1, 40, 91] {
            assert_eq!(check(&folder.file(&file.bytes[..file.bytes.len() - cut])).len(), 9);
        }
        let wild = file.clone().claiming(6, [44, 48], &[0; 32]);
        assert_eq!(check(&folder.file(&wild.bytes)).len(), 10);
        // tshark numbers the interfaces of each section anew, so only a section without interfaces
        // before it is comparable.
        let second = PcapNgFile::default().section(Order::Big).block(0x0bee, b"").section(order);
        let second = second.interface(1, 0, "", Clock::default()).enhanced(0, 7, 60, &PACKET, &[]);
        assert_eq!(check(&folder.file(&second.bytes)).len(), 1);
    }
}

fn written_files() {
    let folder = Folder::new("written");
    let mut writer = CaptureWriter::new(Vec::new(), "a test").unwrap();
    for (link, snap_bytes, name) in
        [(LinkType::ETHERNET, None, Some("eth0")), (LinkType::RAW, Some(96), None)]
    {
        let name = name.map(str::to_owned);
        writer.add_interface(&Interface { link, snap_bytes, name }).unwrap();
    }
    let long = [0x5a; Custom::MOST_BYTES];
    for number in 0..200_u32 {
        let length = number as usize * 7 % 61;
        let custom = [
            Custom { enterprise: 32_473, bytes: &long[..number as usize] },
            Custom { enterprise: 32_473, bytes: &long },
        ];
        let comment = format!("packet {number}");
        let packet = Packet {
            interface: number % 2,
            at: Instant::from_nanos(1_700_000_000_000_000_000 + u64::from(number) * 1_000_000_001),
            original_bytes: 60 + number,
            pieces: &[&PACKET[..length / 3], &PACKET[length / 3..length]],
            direction: [None, Some(Direction::In), Some(Direction::Out)][number as usize % 3],
            comments: &[&comment, "the second"][..number as usize % 3],
            custom: &custom[..number as usize % 3],
        };
        writer.write(&packet).unwrap();
    }
    let records = check(&folder.file(&writer.finish().unwrap()));
    assert_eq!(records.len(), 200);
}

fn converted_files() {
    let folder = Folder::new("converted");
    let mut file = PcapFile::new(Order::Little, MICROS);
    for number in 0..3_000 {
        let packet = vec![number as u8; number as usize % 1_515];
        file = file.claiming([number, number], [packet.len() as u32, 1_514], &packet);
    }
    let path = folder.file(&file.bytes);
    assert_eq!(check(&path).len(), 3_000);
    check_converted(&path, &folder);
}

/// Checks that every format to which editcap can convert `path` has the same contents.
fn check_converted(path: &Path, folder: &Folder) {
    let (records, _) = read(path);
    for format in ["pcap", "nsecpcap", "modpcap", "pcapng"] {
        let (converted, error) = read(&program::convert(path, format, &folder.0));
        assert!(error.is_none(), "{format}: {error:?}");
        assert_eq!(converted.len(), records.len(), "{format} of {}", path.display());
        for (one, other) in converted.iter().zip(&records) {
            assert_eq!(one.bytes.as_ref(), other.bytes.as_ref(), "{format}");
            assert_eq!((one.at, one.original_bytes), (other.at, other.original_bytes), "{format}");
        }
    }
}

/// Captures from elsewhere, which are not part of the project.
const ELSEWHERE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/captures");

fn captures_from_elsewhere() {
    let Ok(entries) = fs::read_dir(ELSEWHERE) else {
        eprintln!("captures from elsewhere were not read: there is no {ELSEWHERE}");
        return;
    };
    let folder = Folder::new("elsewhere");
    let paths = entries.map(|entry| entry.unwrap().path());
    let captures = paths.filter(|path| path.extension().is_some_and(|kind| kind == "gz"));
    let mut files = 0;
    for path in captures {
        assert!(!check(&path).is_empty(), "{} is empty", path.display());
        check_converted(&path, &folder);
        files += 1;
    }
    assert!(files > 0, "there are no captures in {ELSEWHERE}");
}
