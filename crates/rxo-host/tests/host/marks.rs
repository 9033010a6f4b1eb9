//! The IP header fields that an application sets.

use std::io::{ErrorKind, Write};

use rxo_device::{MemoryLink, MemoryOptions};
use rxo_host::{HostConfig, TcpStream};
use rxo_wire::parse_ip;

use crate::world::*;

/// Removes all packets from the link, and returns hop limit and traffic class of each.
fn marks(link: &MemoryLink) -> Vec<(u8, u8)> {
    std::iter::from_fn(|| link.take())
        .map(|frame| {
            let parsed = parse_ip(&frame.bytes).expect("a packet");
            assert!(parsed.ip.checksum_ok);
            (parsed.ip.hop_limit, parsed.ip.traffic_class)
        })
        .collect()
}

fn without_ecn(options: MemoryOptions) -> World {
    World::with(options, |config: &mut HostConfig| config.tcp.ecn = false)
}

/// Returns the hop limits and traffic classes of a client's packets, after `choose` and a write of `bytes`.
fn said(at: &str, bytes: usize, choose: impl Fn(&TcpStream)) -> Vec<(u8, u8)> {
    // A device without segmentation.
    let mut world = without_ecn(MemoryOptions { gso_bytes: 0, ..options() });
    let listener = world.at_server().listen(at.parse().unwrap(), 1).unwrap();
    let (mut stream, _accepted) = world.connected(&listener);
    choose(&stream);
    stream.write_all(&pattern(bytes)).unwrap();
    world.client.turn(world.now).unwrap();
    marks(&world.there)
}

/// RFC 9293, sections 3.9.1.9 (MUST-48, SHLD-22) and 3.9.2 (MUST-49): DSCP and TTL are in every packet, also
/// in segments split from a GSO send.
#[test]
fn ttl_and_dscp_are_those_that_the_application_chose() {
    for at in [SERVER, "[fd00::2]:80"] {
        assert_eq!(said(at, 5, |_| ()), [(64, 0)]);
        let chosen = said(at, 9_000, |stream| {
            stream.set_ttl(7).unwrap();
            stream.set_dscp(46).unwrap();
            assert_eq!((stream.ttl().unwrap(), stream.dscp().unwrap()), (7, 46));
        });
        assert!(
            chosen.len() > 3 && chosen.iter().all(|marks| *marks == (7, 46 << 2)),
            "{chosen:?}"
        );
    }
}

/// DSCP can be changed at any time while the connection is open, independently at each end (RFC 9293, section
/// 3.9.1.9, SHLD-21).
#[test]
fn they_may_be_changed_whenever_one_likes() {
    let mut world = without_ecn(options());
    let listener = world.listen(1);
    let (mut stream, mut accepted) = world.connected(&listener);
    for dscp in [63, 10, 0] {
        stream.set_dscp(dscp).unwrap();
        stream.write_all(b"now").unwrap();
        accepted.write_all(b"not here").unwrap();
        world.client.turn(world.now).unwrap();
        assert_eq!(marks(&world.there)[0], (64, dscp << 2));
        world.server.turn(world.now).unwrap();
        assert_eq!(marks(&world.back)[0], (64, 0));
        world.pass(std::time::Duration::from_secs(5));
    }
}

/// Setting DSCP does not change the two ECN bits, which belong to the connection (RFC 3168, section 5).
#[test]
fn they_leave_the_ecn_bits_alone() {
    let mut world = World::with(options(), |config: &mut HostConfig| config.tcp.ecn = true);
    let listener = world.listen(1);
    let (mut stream, _accepted) = world.connected(&listener);
    stream.set_dscp(46).unwrap();
    stream.write_all(b"text").unwrap();
    world.client.turn(world.now).unwrap();
    assert_eq!(marks(&world.there), [(64, 46 << 2 | 2)]);
}

#[test]
fn what_no_header_can_say_is_refused() {
    let mut world = World::new();
    let listener = world.listen(1);
    let (stream, _accepted) = world.connected(&listener);
    for ttl in [0, 256, u32::MAX] {
        let error = stream.set_ttl(ttl).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert_eq!(error.to_string(), format!("ttl is {ttl}; choose 1 to 255"));
    }
    let error = stream.set_dscp(64).unwrap_err();
    assert_eq!(error.to_string(), "dscp is 64; choose 0 to 63");
    assert_eq!((stream.ttl().unwrap(), stream.dscp().unwrap()), (64, 0));
}
