//! Whole captures in memory: coalesced, expanded, compared.

use std::io::Cursor;

use proptest::prelude::*;
use rxo_coalesce::Policy;
use rxo_device::capture::{
    Capture, CaptureError, CaptureWriter, Interface, LinkType, Packet as Written, Record,
};
use rxo_frame::{Instant, LinkKind};
use rxo_testkit::script::scripts;
use rxo_testkit::{Packet, Random, arp, seg, udp};
use rxo_wire::checksum::{Summer, verify_transport};
use rxo_wire::{parse, parse_ip};

use super::digest::PacketOptions;
use super::*;
use crate::study::{ChecksumMode, Point};
use crate::verify::{Comparison, Limits, Side, Verdict};

const START_NS: u64 = 1_700_000_000_000_000_000;

fn open(file: &[u8]) -> Capture {
    Capture::from_reader("test", Box::new(Cursor::new(file.to_vec()))).unwrap()
}

/// Every record, and why not all of them.
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
    let mut coalescer = Coalescer::new(&capture, Vec::new(), settings)?;
    while more {
        coalescer.take(capture.interfaces(), &mut batch)?;
        more = capture.read_batch(&mut batch, 50).is_ok_and(|count| count > 0);
    }
    coalescer.take(capture.interfaces(), &mut batch)?;
    coalescer.finish(&capture, false)
}

fn expand(file: &[u8], format: Option<FileFormat>) -> Result<(Vec<u8>, Expanded), RewriteError> {
    let (mut capture, mut batch) = (open(file), Vec::new());
    let mut read = capture.read_batch(&mut batch, 50);
    let mut expander = Expander::new(&capture, Vec::new(), format)?;
    loop {
        match read {
            Ok(0) => return expander.finish(capture.interfaces()),
            Ok(_) => expander.take(capture.interfaces(), &mut batch)?,
            Err(_) => return expander.finish_partial(),
        }
        read = capture.read_batch(&mut batch, 50);
    }
}

fn compare(a: &[u8], b: &[u8]) -> Verdict {
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

/// A record as it can be compared.
type Plain = (u32, Instant, u32, Vec<u8>, PacketOptions);

fn plain(record: &Record) -> Plain {
    let mut options = PacketOptions::new();
    record.options.each_little_endian(|code, value| options.push((code, value)));
    let Record { interface, at, original_bytes, .. } = *record;
    (interface, at, original_bytes, record.bytes.as_ref().to_vec(), options)
}

/// Coalesces, expands, and checks everything that must hold. Says what became of it.
fn round(file: &[u8], settings: Settings) -> Coalesced {
    let (coalesced, figures) = coalesce(file, settings).unwrap();
    let (expanded, given) = expand(&coalesced, None).unwrap();
    let ((before, interfaces, _), (after, same_interfaces, error)) = (read(file), read(&expanded));
    assert!(error.is_none(), "{error:?}");
    assert_eq!(before.len() as u64, given.originals);
    for (number, (before, after)) in before.iter().zip(&after).enumerate() {
        assert_eq!(plain(before), plain(after), "record {number}");
    }
    assert_eq!(before.len(), after.len());
    assert_eq!(interfaces, same_interfaces);
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

/// Every aggregate is a packet whose checksums are right, and says what it is.
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
        let parsed = match network.link {
            LinkKind::Ethernet => parse(bytes),
            LinkKind::RawIp => parse_ip(bytes),
        };
        let parsed = parsed.unwrap();
        assert!(parsed.ip.checksum_ok && parsed.end as usize == bytes.len());
        assert!(verify_transport(&parsed, bytes, Summer::detect()));
        assert_eq!(record.original_bytes as usize, record.bytes.as_ref().len());
    }
    assert_eq!(found, expected);
}

/// A pcapng file of records on interfaces.
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
        writer.write_with(&packet, options).unwrap();
    }
    writer.finish().unwrap()
}

fn interface(link: LinkType) -> Interface {
    Interface { link, snap_bytes: None, name: None }
}

/// Frames one after the other, a microsecond apart.
fn ethernet(packets: &[Packet]) -> Vec<u8> {
    let record = |(number, packet): (usize, &Packet)| -> Plain {
        let bytes = packet.bytes();
        let at = Instant::from_nanos(START_NS + 1_000 * number as u64);
        (0, at, bytes.len() as u32, bytes, PacketOptions::new())
    };
    let records: Vec<Plain> = packets.iter().enumerate().map(record).collect();
    pcapng(&[interface(LinkType::ETHERNET)], &records)
}

/// `count` segments of flow `flow`.
fn bulk(flow: u32, count: u32) -> Vec<Packet> {
    let packet = |n: u32| seg().flow(flow).seq(1 + 1_448 * n).len(1_448).id(n as u16).ts(n / 9, 3);
    (0..count).map(packet).collect()
}

/// A pcap file with a header of one's own.
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
    // Zone and accuracy: nobody fills them in, so nobody may lose them.
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

#[test]
fn a_bulk_transfer_is_coalesced_and_comes_back() {
    let figures = round(&ethernet(&bulk(1, 200)), remember());
    assert_eq!((figures.packets, figures.aggregated_packets), (200, 200));
    assert_eq!(figures.deliveries, 7, "polls of 64, at most 65,535 bytes");
    let share = figures.remembered_bytes as f64 / figures.captured_bytes as f64;
    assert!(share < 0.003, "{share}");
}

#[test]
fn every_policy_comes_back_from_mixed_traffic() {
    let mut packets = Vec::new();
    for n in 0..40 {
        let data = seg().flow(n % 3).seq(1 + 100 * (n / 3)).id((n / 3) as u16).ack(5 + n);
        packets.push(if n % 7 == 6 { data.clone().psh() } else { data.clone() });
        packets.push(data.v6().window(n as u16));
        packets.push(seg().flow(9).pure_ack().ack(100 + n).padded_with(n as u8));
        packets.push(seg().flow(4).vlan(7).seq(1 + 10 * n).len(10).id(n as u16).padded());
        packets.extend((n % 10 == 0).then(arp));
        packets.extend((n % 9 == 0).then(|| udp().flow(n)));
        packets.extend((n % 11 == 0).then(|| seg().flow(1).fragment(n as u16, true)));
        packets.extend((n % 13 == 0).then(|| seg().flow(2).seq(1 + 100 * (n / 3)).bad_checksum()));
    }
    let file = ethernet(&packets);
    for policy in Policy::all() {
        let figures = round(&file, settings(policy));
        assert_eq!(figures.aggregates > 0, policy.coalesce, "{}", policy.name);
    }
}

#[test]
fn every_kind_of_poll_and_hold_comes_back() {
    let (mut packets, mut random) = (Vec::new(), Random::new(5));
    let mut next = [0_u32; 8];
    for _ in 0..600 {
        let flow = random.next() as usize % 8;
        packets.push(bulk(flow as u32, next[flow] + 1).pop().unwrap());
        next[flow] += 1;
    }
    let file = ethernet(&packets);
    for poll in ["packets:1", "packets:20", "packets:4096", "time:30us", "host:2us"] {
        for hold in ["end-of-poll", "polls:3", "packets:50", "70us", "100ms"] {
            let mut policy = Policy::by_name("remember").unwrap();
            policy.set("hold", hold).unwrap();
            policy.set("max_hold", "100ms").unwrap();
            let point = Point { policy, poll: poll.parse().unwrap() };
            round(&file, Settings { point, ..remember() });
        }
    }
}

#[test]
fn a_pcap_file_comes_back_byte_for_byte() {
    let snap = 1_000;
    for magic in MAGICS {
        let records: Vec<_> = bulk(1, 30)
            .iter()
            .enumerate()
            .map(|(n, packet)| {
                let bytes = packet.clone().len(600 + n * 30).seq(1).bytes();
                let (kept, whole) = (bytes.len().min(snap), bytes.len() as u32);
                (1_700_000_000 + n as u32, 999_999 - n as u32, whole, bytes[..kept].to_vec())
            })
            .chain(
                bulk(2, 40)
                    .iter()
                    .map(|packet| (1_700_000_100, 1, packet.bytes().len() as u32, packet.bytes())),
            )
            .collect();
        let file = pcap(magic, 65_535, 0x1000_0001, &records);
        let figures = round(&file, remember());
        assert_eq!(figures.aggregated_packets, 40, "packets that were cut pass");
        let (coalesced, _) = coalesce(&file, remember()).unwrap();
        assert_eq!(expand(&coalesced, None).unwrap().0, file);
        assert_eq!(expand(&coalesced, Some(FileFormat::Pcap)).unwrap().0, file);
        let (other, _) = expand(&coalesced, Some(FileFormat::PcapNg)).unwrap();
        assert!(!read(&file).0.iter().map(plain).ne(read(&other).0.iter().map(plain)));
    }
}

#[test]
fn a_pcap_file_that_is_cut_comes_back_cut() {
    let records: Vec<_> = bulk(2, 40)
        .iter()
        .map(|packet| (7, 1, packet.bytes().len() as u32, packet.bytes()))
        .collect();
    let file = pcap(MAGICS[0], 65_535, 1, &records);
    for length in [24, 25, 40, 1_000, file.len() / 2, file.len() - 1] {
        let (coalesced, _) = coalesce(&file[..length], remember()).unwrap();
        assert_eq!(expand(&coalesced, None).unwrap().0, &file[..length], "{length} bytes");
    }
}

#[test]
fn pcap_files_of_odd_versions_come_back() {
    let records: Vec<_> = bulk(2, 9)
        .iter()
        .map(|packet| (7, 1, packet.bytes().len() as u32, packet.bytes()))
        .collect();
    for version in [[2, 0, 2, 0], [2, 0, 3, 0], [2, 0, 0, 1], [2, 0, 2, 32]] {
        let mut file = pcap(MAGICS[0], 65_535, 1, &records);
        file[4..8].copy_from_slice(&version);
        let (coalesced, _) = coalesce(&file, remember()).unwrap();
        assert!(expand(&coalesced, None).unwrap().0 == file, "{version:?}");
    }
    // Of a patched libpcap: eight bytes more a record, which nobody reads.
    let mut file = pcap([0x34, 0xcd, 0xb2, 0xa1], 65_535, 1, &[]);
    for (_, _, length, bytes) in &records {
        for number in [7, 1, *length, *length, 0xeeee_eeee, 0xeeee_eeee] {
            file.extend(number.to_le_bytes());
        }
        file.extend(bytes);
    }
    assert_eq!(round(&file, remember()).packets, 9);
    file.truncate(file.len() - 700);
    assert_eq!(round(&file, remember()).packets, 8);
}

#[test]
fn files_without_packets_come_back() {
    for magic in MAGICS {
        let file = pcap(magic, 96, 113, &[]);
        let (coalesced, _) = coalesce(&file, remember()).unwrap();
        assert_eq!(expand(&coalesced, None).unwrap().0, file);
    }
    let described = Interface { snap_bytes: Some(96), ..interface(LinkType::RAW) };
    for interfaces in [vec![], vec![described.clone()], vec![described; 3]] {
        round(&pcapng(&interfaces, &[]), remember());
    }
}

#[test]
fn several_interfaces_of_several_kinds_come_back() {
    const COOKED: [u8; 16] = [0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0, 8, 0];
    let links =
        [LinkType::ETHERNET, LinkType::LINUX_SLL, LinkType::NULL, LinkType::RAW, LinkType(147)];
    let interfaces: Vec<Interface> = links
        .iter()
        .enumerate()
        .map(|(n, link)| Interface {
            link: *link,
            snap_bytes: (n % 2 == 0).then_some(9_000 + n as u32),
            name: (n > 1).then(|| format!("eth{n}")),
        })
        .collect();
    let mut records: Vec<Plain> = Vec::new();
    for n in 0..300_u32 {
        let number = n % 5;
        let packet = seg().seq(1 + 500 * (n / 5)).len(500).id((n / 5) as u16);
        let mut cooked = COOKED;
        // The sender's address differs from frame to frame: the engine is not shown it.
        cooked[11] = (n / 40) as u8;
        let bytes = match number {
            0 => packet.bytes(),
            1 => [&cooked[..], &packet.raw_ip().bytes()].concat(),
            2 => [&[2, 0, 0, 0][..], &packet.raw_ip().bytes()].concat(),
            _ => packet.raw_ip().bytes(),
        };
        let at = Instant::from_nanos(START_NS + u64::from(n) * 777);
        records.push((number, at, bytes.len() as u32, bytes, PacketOptions::new()));
    }
    let figures = round(&pcapng(&interfaces, &records), remember());
    assert_eq!(figures.aggregated_packets, 240, "all but those of an unknown kind");
    let (coalesced, _) = coalesce(&pcapng(&interfaces, &records), remember()).unwrap();
    let error = expand(&coalesced, Some(FileFormat::Pcap)).unwrap_err();
    assert!(error.to_string().contains("several interfaces; write .pcapng"), "{error}");
}

#[test]
fn options_of_packets_come_back() {
    let mut records: Vec<Plain> = Vec::new();
    for (n, packet) in bulk(1, 20).iter().enumerate() {
        let at = Instant::from_nanos(START_NS + n as u64);
        let options = match n % 4 {
            0 => vec![(1, b"seen".to_vec()), (2, vec![1, 0, 0, 0])],
            // Of somebody else who took the number for examples.
            1 => vec![(19_373, [&ENTERPRISE.to_le_bytes()[..], b"mine"].concat())],
            _ => Vec::new(),
        };
        records.push((0, at, packet.bytes().len() as u32, packet.bytes(), options));
        records.push((0, at, 42, arp().bytes(), vec![(1, b"who has".to_vec())]));
    }
    let file = pcapng(&[interface(LinkType::ETHERNET)], &records);
    let figures = round(&file, remember());
    assert_eq!(figures.aggregated_packets, 20);
}

#[test]
fn wrong_checksums_pass_and_trusted_ones_come_back() {
    let mut packets = bulk(1, 30);
    for n in [3, 4, 17] {
        packets[n] = packets[n].clone().bad_checksum();
    }
    let file = ethernet(&packets);
    assert_eq!(round(&file, remember()).aggregated_packets, 27);
    let trusting = Settings { checksums: ChecksumMode::Trust, ..remember() };
    assert_eq!(round(&file, trusting).aggregated_packets, 30);
    let seeds: Vec<Packet> = bulk(1, 30).into_iter().map(Packet::partial).collect();
    assert_eq!(round(&ethernet(&seeds), remember()).aggregated_packets, 0);
    let partial = Settings { checksums: ChecksumMode::Partial, ..remember() };
    assert_eq!(round(&ethernet(&seeds), partial).aggregated_packets, 30);
}

#[test]
fn a_note_too_long_for_one_option_rides_in_several() {
    // One byte each, and everything about them different.
    let packets: Vec<Packet> = (0..30_000_u32)
        .map(|n| {
            let odd = n.wrapping_mul(2_654_435_761);
            seg().seq(1 + n).len(1).id(n as u16).window(odd as u16).ack(n * 3).ts(n * 5, odd)
        })
        .collect();
    let mut policy = Policy::by_name("remember").unwrap();
    policy.set("max_segments", "65535").unwrap();
    policy.set("hold", "packets:30000").unwrap();
    policy.set("max_hold", "100ms").unwrap();
    let point = Point { policy, poll: "packets:30000".parse().unwrap() };
    let figures = round(&ethernet(&packets), Settings { point, ..remember() });
    assert_eq!(figures.aggregates, 1);
    assert!(figures.remembered_bytes > 2 * 65_536, "{}", figures.remembered_bytes);
}

#[test]
fn a_packet_that_waits_for_too_many_others_is_delivered_early() {
    let quiet = bulk(1, 3);
    let busy = arp().bytes();
    let at = Instant::from_nanos(START_NS);
    let plain = |number, bytes: Vec<u8>| (number, at, bytes.len() as u32, bytes, Vec::new());
    let mut records: Vec<Plain> = vec![plain(0, quiet[0].bytes()), plain(0, quiet[1].bytes())];
    records.extend((0..MOST_RECORDS + 10).map(|_| plain(1, busy.clone())));
    records.push(plain(0, quiet[2].bytes()));
    let file = pcapng(&vec![interface(LinkType::ETHERNET); 2], &records);
    let (coalesced, figures) = coalesce(&file, remember()).unwrap();
    assert_eq!((figures.early_flushes, figures.aggregated_packets), (1, 2));
    let (expanded, _) = expand(&coalesced, None).unwrap();
    assert!(read(&expanded).0.iter().map(self::plain).eq(records));
}

#[test]
fn what_was_coalesced_is_not_coalesced_again() {
    let (coalesced, _) = coalesce(&ethernet(&bulk(1, 30)), remember()).unwrap();
    let error = coalesce(&coalesced, remember()).unwrap_err();
    assert!(matches!(error, RewriteError::AlreadyCoalesced), "{error}");
    // Also when another program has written the section anew.
    let (records, interfaces, _) = read(&coalesced);
    let records: Vec<Plain> = records.iter().map(plain).collect();
    let error = coalesce(&pcapng(&interfaces, &records), remember()).unwrap_err();
    assert!(matches!(error, RewriteError::AlreadyCoalesced), "{error}");
}

#[test]
fn what_was_not_coalesced_cannot_be_expanded() {
    let foreign = [ethernet(&bulk(1, 3)), pcap(MAGICS[0], 0, 1, &[]), pcapng(&[], &[])];
    for file in foreign {
        let error = expand(&file, None).unwrap_err();
        assert!(matches!(error, RewriteError::NotCoalesced), "{error}");
    }
}

#[test]
fn what_is_missing_is_noticed() {
    let (coalesced, _) = coalesce(&ethernet(&bulk(1, 300)), remember()).unwrap();
    let (whole, _, _) = read(&coalesced);
    let ends = block_ends(&coalesced);
    for (number, end) in ends.iter().enumerate().skip(2) {
        let result = expand(&coalesced[..*end], None);
        let is_whole = number + 1 == ends.len();
        assert_eq!(result.is_ok(), is_whole, "{number} of {} blocks", ends.len());
    }
    assert_eq!(whole.len(), ends.len() - 2);
    // A packet in the middle.
    let gap = [&coalesced[..ends[3]], &coalesced[ends[4]..]].concat();
    let error = expand(&gap, None).unwrap_err();
    assert!(matches!(error, RewriteError::Changed(_) | RewriteError::Packet { .. }), "{error}");
}

#[test]
fn of_a_file_cut_within_a_block_what_stands_before_is_given() {
    let file = ethernet(&bulk(1, 300));
    let (coalesced, _) = coalesce(&file, remember()).unwrap();
    let (expanded, figures) = expand(&coalesced[..coalesced.len() - 5], None).unwrap();
    let (before, after) = (read(&file).0, read(&expanded).0);
    assert!(figures.originals > 200 && figures.originals < 300, "{figures:?}");
    assert!(before.iter().map(plain).take(after.len()).eq(after.iter().map(plain)));
}

/// Where each block ends.
fn block_ends(file: &[u8]) -> Vec<usize> {
    let (mut at, mut ends) = (0, Vec::new());
    while at < file.len() {
        at += u32::from_le_bytes(file[at + 4..at + 8].try_into().unwrap()) as usize;
        ends.push(at);
    }
    ends
}

/// Times that go on, stand, jump, and now and then go back.
fn times() -> impl Strategy<Value = Vec<i64>> {
    prop::collection::vec(prop_oneof![5 => 0..50_000_i64, 1 => -2_000_000..2_000_000_i64], 1..50)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn any_capture_comes_back(
        script in scripts(100),
        times in times(),
        policy in 0..11_usize,
        poll in prop::sample::select(vec!["packets:1", "packets:7", "packets:64", "time:20us", "host:3us"]),
        checksums in prop::sample::select(vec![ChecksumMode::Verify, ChecksumMode::Partial, ChecksumMode::Trust]),
        snaps in prop::collection::vec(prop_oneof![4 => Just(usize::MAX), 1 => 0..200_usize], 1..20),
        interfaces in 1..4_u32,
    ) {
        let link = match script.setup.link {
            LinkKind::Ethernet => LinkType::ETHERNET,
            LinkKind::RawIp => LinkType::RAW,
        };
        let mut at = START_NS;
        let mut records: Vec<Plain> = Vec::new();
        for (number, frame) in script.frames().into_iter().enumerate() {
            at = at.wrapping_add_signed(times[number % times.len()]);
            let bytes = frame.bytes();
            let kept = bytes.len().min(snaps[number % snaps.len()]);
            let number = (number as u32 / 5) % interfaces;
            let whole = bytes.len() as u32;
            let record = (number, Instant::from_nanos(at), whole, bytes[..kept].to_vec(), Vec::new());
            records.push(record);
        }
        let described = vec![interface(link); interfaces as usize];
        let policy = Policy::all()[policy % Policy::all().len()];
        let point = Point { policy, poll: poll.parse().unwrap() };
        round(&pcapng(&described, &records), Settings { point, checksums, seed: 3 });
    }

    #[test]
    fn a_changed_file_gives_an_error_or_what_was_written(
        at: prop::sample::Index,
        by in 1_u8..,
    ) {
        let mut packets = bulk(1, 12);
        packets.extend([arp(), seg().flow(3).pure_ack()]);
        let file = ethernet(&packets);
        let (mut coalesced, _) = coalesce(&file, remember()).unwrap();
        let at = at.index(coalesced.len());
        coalesced[at] = coalesced[at].wrapping_add(by);
        if Capture::from_reader("x", Box::new(Cursor::new(coalesced.clone()))).is_err() {
            return Ok(());
        }
        if let Ok((expanded, _)) = expand(&coalesced, None) {
            // Of a file that ends early some may be missing, but none is another.
            let mut before = read(&file).0.into_iter().map(|record| plain(&record));
            for after in &read(&expanded).0 {
                prop_assert!(before.any(|before| before == plain(after)));
            }
        }
    }

    #[test]
    fn any_bytes_after_a_section_of_ours_are_an_error_or_records(bytes: Vec<u8>) {
        let (coalesced, _) = coalesce(&ethernet(&bulk(1, 12)), remember()).unwrap();
        for end in block_ends(&coalesced) {
            let mut file = coalesced[..end].to_vec();
            file.extend_from_slice(&bytes);
            _ = expand(&file, None);
        }
    }
}
