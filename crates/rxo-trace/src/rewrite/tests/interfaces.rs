//! Tests that interfaces, link types and options of packets are restored.

use super::*;

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
        // The sender's address differs from frame to frame; the engine does not get it.
        cooked[11] = (n / 40) as u8;
        let bytes = match number {
            0 => packet.bytes(),
            1 => [&cooked[..], &packet.raw_ip().bytes()].concat(),
            2 => [&[2, 0, 0, 0][..], &packet.raw_ip().bytes()].concat(),
            _ => packet.raw_ip().bytes(),
        };
        let at = Instant::from_nanos(START_NS + u64::from(n) * 777);
        records.push((number, at, bytes.len() as u32, bytes, Vec::new()));
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
            // An option of another program that uses the example number.
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
