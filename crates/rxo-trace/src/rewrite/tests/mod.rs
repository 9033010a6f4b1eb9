//! Tests with whole captures in memory, which are coalesced, expanded and compared.

mod clocks;
mod holes;
mod interfaces;
mod pcap;
mod policies;
mod random;
mod refusals;
mod tampering;
mod verified;

use std::io::Cursor;

use rxo_capture::{
    Capture, CaptureError, CaptureWriter, Described, Interface, LinkType, Packet as Written,
    Record, put_option,
};
use rxo_coalesce::{Policy, PureAckRule, TunnelRule};
use rxo_frame::Instant;
use rxo_testkit::script::scripts;
use rxo_testkit::{Outer, Packet, Random, arp, geneve, seg, udp, vxlan};
use rxo_wire::{parse, parse_ip};

use super::*;
use crate::study::{ChecksumMode, Point};
use crate::verify::{Comparison, ComparisonResult, Kind, Limits, Side};

const START_NS: u64 = 1_700_000_000_000_000_000;

fn open(file: &[u8]) -> Capture {
    Capture::from_reader("test", Box::new(Cursor::new(file.to_vec()))).unwrap()
}

/// Reads every record, and the error that ended reading.
fn read(file: &[u8]) -> (Vec<Record>, Vec<Interface>, Option<CaptureError>) {
    let (mut capture, mut records) = (open(file), Vec::new());
    let error = loop {
        match capture.read_batch(&mut records, 7) {
            Ok(0) => break None,
            Ok(_) => {}
            Err(error) => break Some(error),
        }
    };
    (records, capture.interfaces().to_vec(), error)
}

fn settings(policy: Policy) -> Settings {
    let point = Point { policy, poll: "packets:64".parse().unwrap() };
    Settings { point, checksums: ChecksumMode::Verify, seed: 1 }
}

fn remember() -> Settings {
    settings(Policy::by_name("remember").unwrap())
}

fn coalesce(file: &[u8], settings: Settings) -> Result<(Vec<u8>, Coalesced), RewriteError> {
    let (mut capture, mut batch) = (open(file), Vec::new());
    let mut more = capture.read_batch(&mut batch, 50).is_ok_and(|count| count > 0);
    let mut file = Vec::new();
    let mut coalescer = Coalescer::new(&capture, &mut file, settings)?;
    while more {
        coalescer.take(&capture, &mut batch)?;
        more = capture.read_batch(&mut batch, 50).is_ok_and(|count| count > 0);
    }
    coalescer.take(&capture, &mut batch)?;
    let figures = coalescer.finish(&capture, false)?;
    Ok((file, figures))
}

fn expand(file: &[u8], format: Option<FileFormat>) -> Result<(Vec<u8>, Expanded), RewriteError> {
    let (mut capture, mut batch) = (open(file), Vec::new());
    let mut read = capture.read_batch(&mut batch, 50);
    let mut given = Vec::new();
    let mut expander = Expander::new(&capture, &mut given, format)?;
    let figures = loop {
        match read {
            Ok(0) => break expander.finish()?,
            Ok(_) => expander.take(&mut batch)?,
            Err(error) => break expander.finish_partial(Some(&error))?,
        }
        read = capture.read_batch(&mut batch, 50);
    };
    Ok((given, figures))
}

fn compare(a: &[u8], b: &[u8]) -> ComparisonResult {
    let mut comparison = Comparison::new(Limits::default());
    let files = [read(a), read(b)];
    let mut rest = [files[0].0.iter(), files[1].0.iter()];
    while let Some(side) = comparison.next_side() {
        let index = usize::from(side == Side::B);
        match rest[index].next() {
            Some(record) => {
                let link = files[index].1[record.interface as usize].link;
                comparison.push(side, record, link);
            }
            None => comparison.end(side),
        }
    }
    comparison.finish()
}

/// A record of a made-up capture: interface, time, length on the wire, bytes, options.
type Plain = (u32, Instant, u32, Vec<u8>, Vec<(u16, Vec<u8>)>);

fn plain(record: &Record) -> Plain {
    let mut options = Vec::new();
    record.options.each_little_endian(|code, value| options.push((code, value)));
    let Record { interface, at, original_bytes, .. } = *record;
    (interface, at, original_bytes, record.bytes.as_ref().to_vec(), options)
}

/// Returns all properties of a record that a file of its format can express.
fn whole(record: &Record) -> (Plain, Option<u64>, Vec<u8>) {
    (plain(record), record.ticks, record.head.as_ref().to_vec())
}

/// Returns the contents of a capture besides records: header, sections, interfaces.
fn around(file: &[u8]) -> (Option<[u8; 24]>, Vec<Described>) {
    let (mut capture, mut records) = (open(file), Vec::new());
    while capture.read_batch(&mut records, 1_000).is_ok_and(|count| count > 0) {}
    (capture.pcap_header(), capture.described().to_vec())
}

/// Coalesces and expands a capture, and checks all invariants. Returns the result of coalescing.
fn round(file: &[u8], settings: Settings) -> Coalesced {
    let (coalesced, figures) = coalesce(file, settings).unwrap();
    let (expanded, given) = expand(&coalesced, None).unwrap();
    let ((before, interfaces, _), (after, same_interfaces, error)) = (read(file), read(&expanded));
    assert!(error.is_none(), "{error:?}");
    assert_eq!(before.len() as u64, given.originals);
    for (number, (before, after)) in before.iter().zip(&after).enumerate() {
        assert_eq!(whole(before), whole(after), "record {number}");
    }
    assert_eq!(before.len(), after.len());
    assert_eq!(interfaces, same_interfaces);
    assert_eq!(around(file), around(&expanded));
    let whole = figures.packets - figures.aggregated_packets + figures.aggregates;
    assert_eq!((figures.packets, figures.deliveries), (before.len() as u64, whole));
    if settings.checksums != ChecksumMode::Trust {
        let verdict = compare(file, &coalesced);
        assert!(verdict.equal, "{verdict:?}");
    }
    assert!(compare(file, &expanded).equal);
    check_aggregates(&coalesced, figures.aggregates);
    figures
}

/// Checks that every aggregate is a packet with right checksums and a comment.
fn check_aggregates(coalesced: &[u8], expected: u64) {
    let (records, interfaces, error) = read(coalesced);
    assert!(error.is_none(), "{error:?}");
    let mut found = 0;
    for record in &records {
        let Some(comment) = record.options.comments().next() else { continue };
        let Some(said) = String::from_utf8_lossy(comment).strip_prefix("rxo: ").map(str::to_owned)
        else {
            continue;
        };
        found += 1;
        assert!(said.contains(" segments, ") && said.contains("flushed: "), "{said}");
        let network = interfaces[record.interface as usize].link.network(&record.bytes).unwrap();
        let bytes = network.packet.as_ref();
        let parsed = network.link.read(bytes, parse, parse_ip);
        let parsed = parsed.unwrap();
        assert!(parsed.at.end as usize == bytes.len());
        assert!(merged::has_right_checksums(bytes, &parsed));
        assert_eq!(record.original_bytes as usize, record.bytes.as_ref().len());
    }
    assert_eq!(found, expected);
}

/// Makes a pcapng file of records on interfaces.
fn pcapng(interfaces: &[Interface], records: &[Plain]) -> Vec<u8> {
    let mut writer = CaptureWriter::new(Vec::new(), "a test").unwrap();
    for interface in interfaces {
        writer.add_interface(interface).unwrap();
    }
    for (interface, at, original_bytes, bytes, options) in records {
        let packet = Written {
            interface: *interface,
            at: *at,
            original_bytes: *original_bytes,
            pieces: &[bytes],
            direction: None,
            comments: &[],
            custom: &[],
        };
        let mut list = Vec::new();
        options.iter().for_each(|(code, value)| put_option(&mut list, *code, value));
        writer.write_with(&packet, &list).unwrap();
    }
    writer.finish().unwrap()
}

fn interface(link: LinkType) -> Interface {
    Interface { link, snap_bytes: None, name: None }
}

/// Makes a pcapng file of frames that are a microsecond apart.
fn ethernet(packets: &[Packet]) -> Vec<u8> {
    let record = |(number, packet): (usize, &Packet)| -> Plain {
        let bytes = packet.bytes();
        let at = Instant::from_nanos(START_NS + 1_000 * number as u64);
        (0, at, bytes.len() as u32, bytes, Vec::new())
    };
    let records: Vec<Plain> = packets.iter().enumerate().map(record).collect();
    pcapng(&[interface(LinkType::ETHERNET)], &records)
}

/// Returns `count` segments of flow `flow`.
fn bulk(flow: u32, count: u32) -> Vec<Packet> {
    let packet = |n: u32| seg().flow(flow).seq(1 + 1_448 * n).len(1_448).id(n as u16).ts(n / 9, 3);
    (0..count).map(packet).collect()
}

/// Makes a pcap file with a header of its own.
fn pcap(
    magic: [u8; 4],
    snap_bytes: u32,
    link: u32,
    records: &[(u32, u32, u32, Vec<u8>)],
) -> Vec<u8> {
    let number = |number: u32| {
        if magic[0] == 0xa1 { number.to_be_bytes() } else { number.to_le_bytes() }
    };
    let mut file = magic.to_vec();
    let version: [u8; 4] = if magic[0] == 0xa1 { [0, 2, 0, 4] } else { [2, 0, 4, 0] };
    file.extend(version);
    // Zone and accuracy: programs never set them, and they must still be kept.
    for value in [7_200, 5, snap_bytes, link] {
        file.extend(number(value));
    }
    for (seconds, fraction, original_bytes, bytes) in records {
        for value in [*seconds, *fraction, bytes.len() as u32, *original_bytes] {
            file.extend(number(value));
        }
        file.extend_from_slice(bytes);
    }
    file
}

const MAGICS: [[u8; 4]; 4] = [
    [0xd4, 0xc3, 0xb2, 0xa1],
    [0x4d, 0x3c, 0xb2, 0xa1],
    [0xa1, 0xb2, 0xc3, 0xd4],
    [0xa1, 0xb2, 0x3c, 0x4d],
];

/// Returns the offset of the end of each block.
fn block_ends(file: &[u8]) -> Vec<usize> {
    let (mut at, mut ends) = (0, Vec::new());
    while at < file.len() {
        at += u32::from_le_bytes(file[at + 4..at + 8].try_into().unwrap()) as usize;
        ends.push(at);
    }
    ends
}
