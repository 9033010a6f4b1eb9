//! Tests that pcap files are restored byte for byte, including truncated ones.

use super::*;

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
}

#[test]
fn version_2_3_has_the_lengths_in_either_order() {
    let mut file = pcap(MAGICS[0], 65_535, 1, &[]);
    file[4..8].copy_from_slice(&[2, 0, 3, 0]);
    for (number, packet) in bulk(2, 9).iter().enumerate() {
        let (bytes, whole) = (packet.bytes(), 9_000);
        let kept = bytes.len() as u32;
        let lengths = if number % 2 == 0 { [kept, whole] } else { [whole, kept] };
        for number in [7, number as u32, lengths[0], lengths[1]] {
            file.extend(number.to_le_bytes());
        }
        file.extend(bytes);
    }
    assert_eq!(round(&file, remember()).packets, 9);
    let (coalesced, _) = coalesce(&file, remember()).unwrap();
    assert!(expand(&coalesced, None).unwrap().0 == file);
}

#[test]
fn what_a_patched_libpcap_added_comes_back() {
    let mut file = pcap([0x34, 0xcd, 0xb2, 0xa1], 65_535, 1, &[]);
    for (number, packet) in bulk(2, 9).iter().enumerate() {
        let length = packet.bytes().len() as u32;
        // Eight more bytes per record: interface, protocol, kind.
        for number in [7, 1, length, length, number as u32, 0xeeee_eeee] {
            file.extend(number.to_le_bytes());
        }
        file.extend(packet.bytes());
    }
    assert_eq!(round(&file, remember()).aggregated_packets, 9);
    for length in [file.len(), file.len() - 700] {
        let (coalesced, _) = coalesce(&file[..length], remember()).unwrap();
        assert!(expand(&coalesced, None).unwrap().0 == file[..length], "{length} bytes");
    }
}

#[test]
fn fractions_of_a_second_or_more_come_back() {
    for magic in MAGICS {
        let is_nanos = magic.contains(&0x3c);
        let unit = if is_nanos { 1_000_000_000 } else { 1_000_000 };
        let records: Vec<_> = bulk(2, 40)
            .iter()
            .enumerate()
            .map(|(n, packet)| {
                let fraction = [0, 5, unit - 1, unit, unit + 7, u32::MAX][n % 6];
                (7 + n as u32, fraction, packet.bytes().len() as u32, packet.bytes())
            })
            .chain([(u32::MAX, u32::MAX, 42, arp().bytes()), (0, 0, 42, arp().bytes())])
            .collect();
        let file = pcap(magic, 65_535, 1, &records);
        assert_eq!(round(&file, remember()).aggregated_packets, 40);
        let (coalesced, _) = coalesce(&file, remember()).unwrap();
        assert!(expand(&coalesced, None).unwrap().0 == file, "{magic:02x?}");
    }
}
