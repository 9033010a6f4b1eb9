//! Tests that captures are restored under all policies, poll rules and checksum modes.

use super::*;

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
fn pure_acks_that_the_policy_aggregates_stay_single_and_are_counted() {
    let packets: Vec<Packet> = (0..70).map(|n| seg().pure_ack().ack(100 + 1_000 * n)).collect();
    for policy in Policy::all() {
        let figures = round(&ethernet(&packets), settings(policy));
        assert_eq!((figures.deliveries, figures.aggregates), (70, 0), "{}", policy.name);
        assert_eq!(
            figures.single_acks > 1,
            policy.pure_acks != PureAckRule::Bypass,
            "{}",
            policy.name
        );
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
    // One byte each, and every field different.
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
