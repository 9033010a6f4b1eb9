//! Flow keys distinguish flows, and their hash spreads them.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use rxo_wire::tunnel::Tunnel;
use rxo_wire::{FlowHasher, FlowKey, parse, parse_ip};

use crate::packets::Shape;

fn ports(source: u16, destination: u16) -> u32 {
    u32::from(source) << 16 | u32::from(destination)
}

#[test]
fn a_key_gives_back_what_it_was_made_of() {
    let v4 = FlowKey::v4(0xc000_0201, 0x7f00_0001, ports(5, 65_535), 0);
    assert_eq!(v4.source(), IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)));
    assert_eq!(v4.destination(), IpAddr::V4(Ipv4Addr::LOCALHOST));
    assert_eq!((v4.source_port(), v4.destination_port()), (5, 65_535));
    let mut addresses = [0; 32];
    addresses[0] = 0xfe;
    addresses[1] = 0x80;
    addresses[15] = 1;
    addresses[31] = 2;
    let v6 = FlowKey::v6(&addresses, ports(1, 2), 0);
    assert_eq!(v6.source(), IpAddr::V6(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1)));
    assert_eq!(v6.destination(), IpAddr::V6(Ipv6Addr::new(0, 0, 0, 0, 0, 0, 0, 2)));
    assert_eq!(format!("{v4:?}"), "192.0.2.1:5 > 127.0.0.1:65535");
}

#[test]
fn the_other_direction_has_ends_changed_and_vlans_kept() {
    for (key, other) in [
        (FlowKey::v4(1, 2, ports(3, 4), 5), FlowKey::v4(2, 1, ports(4, 3), 5)),
        (
            FlowKey::v6(&[[1; 16], [2; 16]].concat().try_into().unwrap(), ports(3, 4), 0),
            FlowKey::v6(&[[2; 16], [1; 16]].concat().try_into().unwrap(), ports(4, 3), 0),
        ),
    ] {
        assert_eq!(key.reversed(), other);
        assert_eq!(key.reversed().reversed(), key);
        assert_eq!(key.on_device_vlan(7).reversed(), other.on_device_vlan(7));
    }
}

#[test]
fn a_tag_names_the_same_flow_wherever_it_is() {
    let tagged = |tags: &[u16]| {
        let tags = tags.iter().map(|tci| (0x8100, *tci)).collect();
        parse(&Shape { tags, ..Shape::default() }.frame()).unwrap().key
    };
    assert_eq!(tagged(&[]).on_device_vlan(7).with_tag_in_bytes(), tagged(&[7]));
    assert_eq!(tagged(&[8]).on_device_vlan(7).with_tag_in_bytes(), tagged(&[7, 8]));
    assert_eq!(tagged(&[7]).with_tag_in_bytes(), tagged(&[7]));
}

#[test]
fn each_part_of_a_key_tells_flows_apart() {
    let key = |shape: Shape| parse(&shape.frame()).unwrap().key;
    let base = key(Shape::default());
    let tags = |tags: &[u16]| Shape {
        tags: tags.iter().map(|tci| (0x8100, *tci)).collect(),
        ..Shape::default()
    };
    let mut others = HashSet::from([
        base,
        key(Shape { ports: (443, 40_000), ..Shape::default() }),
        key(Shape { ports: (40_001, 443), ..Shape::default() }),
        key(Shape { ports: (40_000, 442), ..Shape::default() }),
        key(Shape { is_v6: true, ..Shape::default() }),
        FlowKey::v4(0xc000_0202, 0xc633_6402, ports(40_000, 443), 0),
        FlowKey::v4(0xc000_0201, 0xc633_6403, ports(40_000, 443), 0),
        base.on_device_vlan(0),
        base.on_device_vlan(1),
        base.on_device_vlan(4095),
    ]);
    for stack in [&[0][..], &[1], &[2], &[0, 0], &[0, 1], &[1, 0], &[1, 2], &[2, 1]] {
        others.insert(key(tags(stack)));
    }
    assert_eq!(others.len(), 18);
    // Fields that do not identify a flow.
    assert_eq!(base, key(Shape { seq: 9, hop_limit: 1, padding: 9, ..Shape::default() }));
    assert_eq!(key(tags(&[0x0001])), key(tags(&[0xf001])), "priority");
    assert_eq!(base, parse_ip(&Shape::default().packet()).unwrap().key, "the link layer");
}

#[test]
fn a_tag_that_the_device_took_is_told_from_one_in_the_bytes() {
    let key = |tci| {
        let tags = vec![(0x8100, tci)];
        parse(&Shape { tags, ..Shape::default() }.frame()).unwrap().key
    };
    let mut keys = HashSet::new();
    for device in 0..128 {
        for tag in 0..128 {
            assert!(keys.insert(key(tag).on_device_vlan(device)), "{device}, then {tag}");
        }
    }
}

#[test]
fn addresses_compare_without_ports_but_with_vlans() {
    let key = |vlan| FlowKey::v4(1, 2, ports(3, 4), vlan);
    assert!(key(0).has_addresses_of(&FlowKey::v4(1, 2, 0, 0)));
    assert!(!key(0).has_addresses_of(&FlowKey::v4(2, 1, ports(3, 4), 0)));
    assert!(!key(0).has_addresses_of(&key(1 << 24)));
    assert!(!key(0).has_addresses_of(&key(0).on_device_vlan(7)));
}

#[test]
fn a_seed_decides_the_hash_and_is_not_shown() {
    let key = FlowKey::v4(1, 2, ports(3, 4), 0);
    assert_eq!(FlowHasher::new(1).hash(&key), FlowHasher::new(1).hash(&key));
    assert_ne!(FlowHasher::new(1).hash(&key), FlowHasher::new(2).hash(&key));
    assert_eq!(format!("{:?}", FlowHasher::new(1)), "FlowHasher");
}

/// Flows that differ in one small number, as from a load generator, must not share buckets more often than by
/// chance: the average is 8 per bucket, and 30 is 8 standard deviations more.
#[test]
fn sequential_flows_spread_over_a_table() {
    const BUCKETS: usize = 2048;
    let sequences: [fn(u32) -> FlowKey; 5] = [
        |n| FlowKey::v4(0x0a00_0001, 0x0a00_0002, n << 16 | 443, 0),
        |n| FlowKey::v4(0x0a00_0001, 0x0a00_0002, 443 << 16 | n, 0),
        |n| FlowKey::v4(0x0a00_0001, 0x0a00_0002, (10_000 + n) << 16 | (5_000 + n / 64), 0),
        |n| FlowKey::v4(0x0a00_0000 + n, 0x0a00_0002, ports(80, 443), 0),
        |n| FlowKey::v4(0x0a00_0000 + n, 0x0a00_0000 + n, ports(80, 443), 1 << 24 | (n & 0xfff)),
    ];
    for (index, sequence) in sequences.iter().enumerate() {
        for seed in 0..24 {
            let hasher = FlowHasher::new(seed);
            for shift in [0, 53] {
                let mut buckets = [0_u32; BUCKETS];
                for n in 0..8 * BUCKETS as u32 {
                    buckets[(hasher.hash(&sequence(n)).0 >> shift) as usize % BUCKETS] += 1;
                }
                let fullest = buckets.iter().max().copied().unwrap_or_default();
                assert!(
                    fullest <= 30,
                    "sequence {index}, seed {seed}, from bit {shift}: {fullest}"
                );
            }
        }
    }
}

#[test]
fn a_flow_inside_a_tunnel_is_one_of_its_network_whatever_the_vlans() {
    let key = FlowKey::v4(1, 2, ports(1_000, 443), 1 << 24 | 7);
    let (vxlan, geneve) = (key.in_tunnel(Tunnel::Vxlan, 7), key.in_tunnel(Tunnel::Geneve, 7));
    assert!(!key.is_in_tunnel() && vxlan.is_in_tunnel() && geneve.is_in_tunnel());
    assert!(!key.on_device_vlan(0xfff).is_in_tunnel());
    let untagged = FlowKey::v4(1, 2, ports(1_000, 443), 0);
    assert_eq!(untagged.in_tunnel(Tunnel::Vxlan, 7), vxlan);
    for other in [key, geneve, key.in_tunnel(Tunnel::Vxlan, 8), vxlan.reversed()] {
        assert_ne!(vxlan, other);
    }
    assert_eq!(
        (vxlan.source_port(), vxlan.address_sum().fold()),
        (1_000, key.address_sum().fold())
    );
    assert_eq!(FlowKey::from_bytes(&vxlan.to_bytes()), vxlan);
    assert_eq!(vxlan.reversed().reversed(), vxlan);
}
