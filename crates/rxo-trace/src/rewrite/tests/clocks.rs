//! Restores times that nanoseconds cannot express, packets without a time, and all properties of sections and
//! interfaces.

use rxo_capture::Part;

use super::*;

/// Makes a pcapng file from blocks of type and body, in little-endian order.
fn blocks(blocks: &[(u32, Vec<u8>)]) -> Vec<u8> {
    let mut file = Vec::new();
    for (kind, body) in blocks {
        let length = 12 + body.len().next_multiple_of(4) as u32;
        file.extend(kind.to_le_bytes());
        file.extend(length.to_le_bytes());
        file.extend(body);
        file.resize(file.len().next_multiple_of(4), 0);
        file.extend(length.to_le_bytes());
    }
    file
}

fn section(options: &[(u16, &[u8])]) -> (u32, Vec<u8>) {
    let mut body = 0x1a2b_3c4d_u32.to_le_bytes().to_vec();
    body.extend([1, 0, 0, 0]);
    body.extend((-1_i64).to_le_bytes());
    (0x0a0d_0d0a, with_options(body, options))
}

fn described(link: u16, snap_bytes: u32, options: &[(u16, &[u8])]) -> (u32, Vec<u8>) {
    let mut body = link.to_le_bytes().to_vec();
    body.extend([0, 0]);
    body.extend(snap_bytes.to_le_bytes());
    (1, with_options(body, options))
}

fn enhanced(interface: u32, ticks: u64, packet: &[u8]) -> (u32, Vec<u8>) {
    let length = packet.len() as u32;
    let numbers = [interface, (ticks >> 32) as u32, ticks as u32, length, length];
    let mut body: Vec<u8> = numbers.into_iter().flat_map(u32::to_le_bytes).collect();
    body.extend(packet);
    (6, body)
}

fn simple(packet: &[u8]) -> (u32, Vec<u8>) {
    let mut body = (packet.len() as u32).to_le_bytes().to_vec();
    body.extend(packet);
    (3, body)
}

fn with_options(mut body: Vec<u8>, options: &[(u16, &[u8])]) -> Vec<u8> {
    options.iter().for_each(|(code, value)| put_option(&mut body, *code, value));
    if !options.is_empty() {
        body.extend([0; 4]);
    }
    body
}

/// Coalesces and expands. A little-endian file without other blocks must come back unchanged.
fn comes_back(file: &[u8]) -> Coalesced {
    let figures = round(file, remember());
    let (coalesced, _) = coalesce(file, remember()).unwrap();
    assert!(expand(&coalesced, None).unwrap().0 == file);
    figures
}

#[test]
fn snap_lengths_come_back_as_they_were() {
    for snap_bytes in [0, 1, 96, 65_535, 262_143, 262_144, 262_145, u32::MAX] {
        let mut parts = vec![section(&[]), described(1, snap_bytes, &[])];
        parts.extend(bulk(1, 4).iter().map(|packet| enhanced(0, 1, &packet.bytes())));
        comes_back(&blocks(&parts));
    }
}

#[test]
fn times_of_any_resolution_and_offset_come_back() {
    let far = [0, 1, 999, 1_000_001, 1 << 40, u64::MAX / 2, u64::MAX - 1, u64::MAX];
    for resolution in [0, 3, 6, 7, 9, 10, 12, 19, 127, 0x80, 0x8a, 0x94, 0x9e, 0xa0, 0xbf, 0xff] {
        for offset_s in [0_i64, 1_700_000_000, -5, i64::MAX, i64::MIN] {
            let options: [(u16, &[u8]); 2] = [(9, &[resolution]), (14, &offset_s.to_le_bytes())];
            let mut parts = vec![section(&[]), described(1, 0, &options)];
            for (n, packet) in bulk(1, 16).iter().enumerate() {
                parts.push(enhanced(0, far[n % far.len()].wrapping_sub(n as u64), &packet.bytes()));
            }
            let file = blocks(&parts);
            comes_back(&file);
            let (coalesced, _) = coalesce(&file, remember()).unwrap();
            if let Ok((pcap, _)) = expand(&coalesced, Some(FileFormat::Pcap)) {
                // The comparison applies only if a pcap file can represent the capture.
                let times = |file: &[u8]| read(file).0.iter().map(|r| r.at).collect::<Vec<_>>();
                assert_eq!(times(&file), times(&pcap), "{resolution} {offset_s}");
            }
        }
    }
}

#[test]
fn packets_without_a_time_come_back_without_one() {
    let mut parts = vec![section(&[]), described(1, 1_000, &[]), described(1, 0, &[])];
    for (n, packet) in bulk(1, 30).iter().enumerate() {
        let bytes = packet.clone().len(500).seq(1 + 500 * n as u32).bytes();
        parts.push(if n % 3 == 0 { simple(&bytes) } else { enhanced(0, 7 + n as u64, &bytes) });
        parts.push(simple(&arp().bytes()));
    }
    let file = blocks(&parts);
    assert_eq!(comes_back(&file).aggregated_packets, 30);
    let (coalesced, _) = coalesce(&file, remember()).unwrap();
    let error = expand(&coalesced, Some(FileFormat::Pcap)).unwrap_err().to_string();
    assert!(error.contains("several interfaces"), "{error}");
    let file = blocks(&[section(&[]), described(1, 0, &[]), simple(&arp().bytes())]);
    let (coalesced, _) = coalesce(&file, remember()).unwrap();
    let error = expand(&coalesced, Some(FileFormat::Pcap)).unwrap_err().to_string();
    assert!(error.contains("packets without a time; write .pcapng"), "{error}");
}

#[test]
fn sections_and_all_that_interfaces_say_come_back() {
    let name = [0xff, 0xfe, b'x'];
    let parts = [
        section(&[(1, b"a comment"), (2, b"a machine"), (4, b"dumpcap")]),
        described(1, 262_144, &[(2, &name), (3, b"the uplink"), (8, &[1; 8]), (11, b"\0tcp")]),
        enhanced(0, 5, &bulk(1, 1)[0].bytes()),
        section(&[]),
        section(&[(4, b"another")]),
        described(101, 0, &[(9, &[9])]),
        described(1, 0, &[]),
        simple(&seg().raw_ip().bytes()),
        enhanced(1, 6, &arp().bytes()),
        section(&[(1, b"nothing follows")]),
        described(1, 0, &[(1, b"nobody came")]),
    ];
    comes_back(&blocks(&parts));
    for count in 1..parts.len() {
        comes_back(&blocks(&parts[..count]));
    }
}

#[test]
fn what_a_big_endian_file_says_comes_back() {
    let turned = |numbers: &[u32]| -> Vec<u8> {
        numbers.iter().flat_map(|number| number.to_be_bytes()).collect()
    };
    let mut file = Vec::new();
    let mut block = |kind: u32, body: &[u8]| {
        let length = (12 + body.len() as u32).to_be_bytes();
        file.extend([&kind.to_be_bytes()[..], &length, body, &length].concat());
    };
    block(0x0a0d_0d0a, &turned(&[0x1a2b_3c4d, 1 << 16, u32::MAX, u32::MAX]));
    // Speed 2^32 + 5, microseconds with an offset of -2 s, zone 7.
    let speed = [turned(&[8 << 16 | 8, 1, 5]), turned(&[14 << 16 | 8, u32::MAX, u32::MAX - 1])];
    let rest = [turned(&[10 << 16 | 4, 7]), turned(&[0])];
    block(1, &[turned(&[1 << 16, 96]), speed.concat(), rest.concat()].concat());
    let packet = arp().bytes();
    let padded = [&packet[..], &[0; 3][..packet.len().next_multiple_of(4) - packet.len()]].concat();
    let length = packet.len() as u32;
    block(6, &[turned(&[0, 0, 5_000_000, length, length]), padded].concat());
    assert_eq!(read(&file).0[0].at.as_nanos(), 3_000_000_000);
    round(&file, remember());
    let [_, Described { part: Part::Interface { options, .. }, .. }] = &around(&file).1[..] else {
        panic!()
    };
    let (mut speed, mut zone) = (Vec::new(), Vec::new());
    put_option(&mut speed, 8, &((1_u64 << 32) + 5).to_le_bytes());
    put_option(&mut zone, 10, &7_u32.to_le_bytes());
    assert!(options.starts_with(&speed) && options.ends_with(&zone), "{options:02x?}");
}
