//! A comparison with a coalesced file detects every change, including changes that only a note shows.

use super::*;

/// Returns segments whose headers differ as far as the policies allow, so that they are merged and only the
/// notes contain the differences.
fn segments() -> Vec<Packet> {
    (0..12_u32)
        .map(|n| {
            let data = seg().seq(1 + 100 * n).len(100).id(n as u16).ts(5, 3);
            if n == 11 { data.psh() } else { data }
        })
        .collect()
}

#[test]
fn what_only_a_note_says_is_compared() {
    type Change = (&'static str, fn(Packet) -> Packet);
    let changes: [Change; 5] = [
        ("ack", |packet| packet.ack(77)),
        ("window", |packet| packet.window(4_321)),
        ("timestamp", |packet| packet.ts(6, 3)),
        ("psh", Packet::psh),
        ("payload", |packet| packet.stream(9)),
    ];
    for policy in Policy::all() {
        let packets = segments();
        let (coalesced, _) = coalesce(&ethernet(&packets), settings(policy)).unwrap();
        let verdict = compare(&ethernet(&packets), &coalesced);
        assert!(verdict.equal && verdict.forgotten_segments == 0, "{}: {verdict:?}", policy.name);
        for (name, change) in &changes {
            // The last one has PSH.
            for number in 0..packets.len() - 1 {
                let mut changed = packets.clone();
                changed[number] = change(changed[number].clone());
                let verdict = compare(&ethernet(&changed), &coalesced);
                let there = compare(&coalesced, &ethernet(&changed));
                let is_found = !verdict.equal && !there.equal;
                assert!(is_found, "{}: {name} of segment {number}", policy.name);
                assert_eq!(verdict.differences[0].packet_a, Some(number as u64 + 1));
            }
        }
    }
}

#[test]
fn coalesced_datagrams_are_compared_one_by_one() {
    let mut policy = Policy::linux_gro();
    policy.set("udp", "equal").unwrap();
    let packets: Vec<Packet> =
        (0..9).map(|n| udp().id(n).stream(n.into()).len(if n == 8 { 70 } else { 300 })).collect();
    let (coalesced, figures) = coalesce(&ethernet(&packets), settings(policy)).unwrap();
    assert_eq!((figures.packets, figures.deliveries), (9, 1));
    let verdict = compare(&ethernet(&packets), &coalesced);
    assert!(verdict.equal && verdict.forgotten_segments == 0, "{verdict:?}");
    for number in 0..packets.len() {
        let mut changed = packets.clone();
        changed[number] = changed[number].clone().stream(99);
        for verdict in
            [compare(&ethernet(&changed), &coalesced), compare(&coalesced, &ethernet(&changed))]
        {
            assert_eq!(verdict.differences[0].kind, Kind::Packet, "datagram {number}");
        }
        let fewer = [&packets[..number], &packets[number + 1..]].concat();
        assert!(!compare(&ethernet(&fewer), &coalesced).equal, "without {number}");
    }
}

/// Returns segments inside `outer` with consecutive IDs.
fn inside(outer: &Outer) -> Vec<Packet> {
    let within = |(n, packet): (usize, Packet)| packet.within(outer.clone().id(7 + n as u16));
    segments().into_iter().enumerate().map(within).collect()
}

#[test]
fn coalesced_segments_in_tunnels_are_compared_one_by_one() {
    let policy = Policy { tunnels: TunnelRule::On, ..Policy::linux_gro() };
    for outer in [vxlan(), vxlan().checksum(), geneve().v6().checksum()] {
        let packets = inside(&outer);
        let (coalesced, figures) = coalesce(&ethernet(&packets), settings(policy)).unwrap();
        assert_eq!((figures.packets, figures.deliveries), (12, 1));
        round(&ethernet(&packets), settings(policy));
        let verdict = compare(&ethernet(&packets), &coalesced);
        assert!(verdict.equal && verdict.forgotten_segments == 0, "{verdict:?}");
        for number in 0..packets.len() {
            let mut changed = packets.clone();
            changed[number] = changed[number].clone().stream(99);
            assert!(!compare(&ethernet(&changed), &coalesced).equal, "segment {number}");
        }
    }
}

#[test]
fn two_coalesced_files_are_compared_by_their_notes() {
    let [mut a, mut b] = [segments(), segments()];
    a[4] = a[4].clone().window(9);
    b[4] = b[4].clone().window(10);
    let coalesced = [&a, &b].map(|packets| coalesce(&ethernet(packets), remember()).unwrap().0);
    assert!(compare(&coalesced[0], &coalesced[0]).equal);
    let verdict = compare(&coalesced[0], &coalesced[1]);
    assert_eq!(verdict.differences.len(), 1, "{verdict:?}");
    assert_eq!(verdict.differences[0].kind, Kind::Window);
}

#[test]
fn a_note_that_does_not_fit_its_packet_is_a_difference() {
    let file = ethernet(&segments());
    let (coalesced, _) = coalesce(&file, remember()).unwrap();
    let [_, _, start, ..] = block_ends(&coalesced)[..] else { panic!() };
    let start = start.min(block_ends(&coalesced)[1]);
    let mut found = 0;
    for at in start..coalesced.len() {
        let mut changed = coalesced.clone();
        changed[at] ^= 0x10;
        if Capture::from_reader("x", Box::new(Cursor::new(changed.clone()))).is_err()
            || read(&changed).2.is_some()
        {
            continue;
        }
        let verdict = compare(&file, &changed);
        found += verdict.differences.iter().filter(|found| found.kind == Kind::Note).count();
    }
    assert!(found > 50, "{found}");
}

#[test]
fn without_a_note_what_is_forgotten_is_counted() {
    let packets = segments();
    let mut merged = packets.clone();
    merged.truncate(1);
    merged[0] = packets[11].clone().seq(1).len(1_200).id(0);
    let verdict = compare(&ethernet(&packets), &ethernet(&merged));
    assert!(verdict.equal, "{verdict:?}");
    assert_eq!(verdict.forgotten_segments, 11);
}
