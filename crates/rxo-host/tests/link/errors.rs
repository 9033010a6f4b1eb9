//! ICMP errors about segments, and errors of configuration.

use rxo_frame::LinkKind;
use rxo_host::link::{FrameOutcome, Link, LinkConfig, PacketTooBig, Resolve, Unreachable};
use rxo_wire::{FlowKey, SeqNumber};

use crate::peer::*;

/// The start of a TCP segment from port 5000 to port 80 with sequence number 77.
const SEGMENT: [u8; 8] = [0x13, 0x88, 0, 80, 0, 0, 0, 77];

fn pair() -> FlowKey {
    FlowKey::v4(0x0a00_0002, 0x0102_0304, 0x1388_0050, 0)
}

/// Returns an ICMP error of a router about a packet from 10.0.0.2 to 1.2.3.4; `word` is its second word.
fn error(kind: u8, code: u8, word: u32, quoted: &[u8]) -> Vec<u8> {
    let rest = [&word.to_be_bytes()[..], quoted].concat();
    ethernet(OURS, PEER, 0x0800, &icmp("10.0.0.1", "10.0.0.2", kind, code, &rest))
}

fn quoted() -> Vec<u8> {
    let mut packet = ipv4(6, "10.0.0.2", "1.2.3.4", &SEGMENT);
    // The length field of the original packet; only its start is quoted.
    packet[2..4].copy_from_slice(&1500_u16.to_be_bytes());
    packet
}

fn heard(frame: &[u8]) -> FrameOutcome {
    receives(&mut link(), frame, at(0))
}

/// RFC 1191, section 4: the MTU of the next link; section 7.1: an estimate if an old router does not report
/// it.
#[test]
fn a_packet_too_big_names_its_connection() {
    let too_big =
        |mtu| FrameOutcome::TooBig(PacketTooBig { pair: pair(), seq: SeqNumber(77), mtu });
    assert_eq!(heard(&error(3, 4, 1_400, &quoted())), too_big(1_400));
    assert_eq!(heard(&error(3, 4, 0, &quoted())), too_big(1_492));
}

/// IPv6 has a message of its own for packets that are too big (RFC 4443, section 3.2).
#[test]
fn ipv6_has_an_error_of_its_own_for_it() {
    let mut packet = ipv6(6, 64, "fd00::2", "2001:db8::1", &SEGMENT);
    packet[4..6].copy_from_slice(&1460_u16.to_be_bytes());
    let rest = [&1_380_u32.to_be_bytes()[..], &packet].concat();
    let frame = ethernet(OURS, PEER, 0x86dd, &icmpv6(64, "fd00::1", "fd00::2", (2, 0), &rest));
    let FrameOutcome::TooBig(too_big) = heard(&frame) else { panic!("not heard") };
    assert_eq!((too_big.mtu, too_big.seq), (1_380, SeqNumber(77)));
    assert_eq!(too_big.pair.source(), ip("fd00::2"));
    assert_eq!(too_big.pair.destination(), ip("2001:db8::1"));
    assert_eq!((too_big.pair.source_port(), too_big.pair.destination_port()), (5000, 80));
}

/// RFC 9293, section 3.9.2.2: an ICMP error names its connection, and is hard or soft.
#[test]
fn an_unreachable_peer_is_named() {
    let unreachable = |is_hard| {
        FrameOutcome::Unreachable(Unreachable { pair: pair(), seq: SeqNumber(77), is_hard })
    };
    for (kind, code, is_hard) in
        [(3, 0, false), (3, 1, false), (3, 2, true), (3, 3, true), (3, 5, false), (3, 13, false)]
            .into_iter()
            .chain([(11, 0, false), (12, 0, false)])
    {
        assert_eq!(heard(&error(kind, code, 0, &quoted())), unreachable(is_hard), "{kind} {code}");
    }
}

/// RFC 9293, section 3.9.2.2 (MUST-55); RFC 5927, section 6.2: source quench messages are ignored.
#[test]
fn source_quench_is_ignored() {
    assert_eq!(heard(&error(4, 0, 0, &quoted())), FrameOutcome::Nothing);
}

#[test]
fn an_error_about_nothing_of_ours_is_nothing() {
    let foreign = ipv4(6, "10.0.0.3", "1.2.3.4", &SEGMENT);
    let udp = ipv4(17, "10.0.0.2", "1.2.3.4", &SEGMENT);
    let short = &quoted()[..27];
    let fragment = {
        let mut packet = quoted();
        packet[7] = 1;
        packet
    };
    for quoted in [&foreign[..], &udp, short, &fragment, &[]] {
        assert_eq!(heard(&error(3, 4, 1_400, quoted)), FrameOutcome::Nothing);
    }
    let mut wrong = error(3, 4, 1_400, &quoted());
    *wrong.last_mut().unwrap() ^= 1;
    assert_eq!(heard(&wrong), FrameOutcome::Nothing);
}

#[test]
fn a_link_that_cannot_be_is_refused_in_one_line() {
    let config = || LinkConfig::ethernet(OURS, vec!["10.0.0.2/24".parse().unwrap()]);
    let said = |config| Link::new(config).unwrap_err().to_string();
    let mac = [1, 0, 0, 0, 0, 1];
    let remedy = "choose one like 02:00:00:00:00:01";
    assert_eq!(
        said(LinkConfig { mac, ..config() }),
        format!("01:00:00:00:00:01 is no device's address; {remedy}")
    );
    let few = LinkConfig { neighbours: 3, ..config() };
    assert_eq!(said(few), "room for 3 neighbours is too little; choose at least 4");
}

/// Without Ethernet there are no neighbours to resolve.
#[test]
fn a_tunnel_needs_no_neighbours() {
    let addresses = vec!["10.0.0.2/24".parse().unwrap()];
    let config = LinkConfig { kind: LinkKind::RawIp, ..LinkConfig::ethernet([0; 6], addresses) };
    let mut link = Link::new(config).unwrap();
    assert_eq!(link.resolve(ip("10.0.0.9"), at(0)), Resolve::Resolved([0; 6]));
    assert_eq!(link.resolve(ip("10.1.0.9"), at(0)), Resolve::NoRoute);
    let ping = icmp("10.0.0.9", "10.0.0.2", 8, 0, &[7; 12]);
    assert_eq!(answers(&mut link, &ping, at(0)), [icmp("10.0.0.2", "10.0.0.9", 0, 0, &[7; 12])]);
    link.announce();
    assert_eq!(out(&mut link), Vec::<Vec<u8>>::new());
}
