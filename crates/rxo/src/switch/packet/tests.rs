//! Packets after tags, SNAP headers and extension headers.

use super::*;

const MACS: [u8; 12] = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];

fn v6(next: u8, rest: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0, 0, 0, next, 64];
    packet.extend([0xfd; 32]);
    packet.extend(rest);
    packet
}

/// The expected result: the protocol of the upper layer, and `true` if it is in a fragment; or a name for any
/// other packet.
type Found = Result<(u8, bool), &'static str>;

fn protocol(packet: &[u8]) -> Found {
    let frame = [&MACS[..], &[0x86, 0xdd], packet].concat();
    match Packet::read(&frame) {
        Packet::Ip(Ip { upper: Upper::First { protocol, is_fragment, .. }, .. }) => {
            Ok((protocol, is_fragment))
        }
        Packet::Ip(_) => Err("later"),
        Packet::Malformed => Err("malformed"),
        Packet::Arp(_) | Packet::Other => Err("other"),
    }
}

#[test]
fn extension_headers_are_followed_to_the_upper_layer() {
    let options = |next| [next, 0, 1, 4, 0, 0, 0, 0];
    let fragment = |next, field: u16| {
        let [high, low] = field.to_be_bytes();
        [next, 0, high, low, 0, 0, 0, 1]
    };
    let authentication = [58, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1];
    let rows: [(u8, Vec<u8>, Found); 12] = [
        (58, vec![134], Ok((58, false))),
        (0, options(58).to_vec(), Ok((58, false))),
        (0, [options(60), options(43), options(58)].concat(), Ok((58, false))),
        (51, authentication.to_vec(), Ok((58, false))),
        // A single fragment (RFC 6946), a first one, and a later one.
        (44, fragment(58, 0).to_vec(), Ok((58, false))),
        (44, fragment(58, 1).to_vec(), Ok((58, true))),
        (44, fragment(58, 8).to_vec(), Err("later")),
        (44, [fragment(44, 0), fragment(58, 1)].concat(), Ok((58, true))),
        // The next fragment could overlap the rest of the chain, or contain it.
        (44, [fragment(60, 1), options(58)].concat(), Err("malformed")),
        (44, fragment(60, 1).to_vec(), Err("malformed")),
        (0, vec![58, 1, 0, 0, 0, 0, 0, 0], Err("malformed")),
        (0, [options(0); MOST_HEADERS_AND_MORE].concat(), Err("malformed")),
    ];
    for (next, rest, expected) in rows {
        assert_eq!(protocol(&v6(next, &rest)), expected, "{next}: {rest:?}");
    }
}

const MOST_HEADERS_AND_MORE: usize = ip::MOST_HEADERS + 1;

#[test]
fn tags_and_snap_hide_nothing() {
    let arp =
        [&[0, 1, 8, 0, 6, 4, 0, 2][..], &[2, 0, 0, 0, 0, 2], &[10, 0, 0, 1], &[0; 10]].concat();
    let is_arp = |headers: &[u8]| {
        let frame = [&MACS[..], headers, &arp].concat();
        matches!(Packet::read(&frame), Packet::Arp(arp) if arp.sender.octets() == [10, 0, 0, 1])
    };
    let snap = [0, 36, 0xaa, 0xaa, 3, 0, 0, 0, 8, 6];
    assert!(is_arp(&[8, 6]) && is_arp(&snap));
    for tag in [[0x81, 0, 0, 7], [0x88, 0xa8, 0, 0], [0x91, 0, 0, 7]] {
        assert!(is_arp(&[&tag[..], &[8, 6]].concat()));
        assert!(is_arp(&[&tag[..], &tag, &snap].concat()));
        let deep = [&tag.repeat(MOST_TAGS + 1)[..], &[8, 6]].concat();
        let frame = [&MACS[..], &deep, &arp].concat();
        assert!(matches!(Packet::read(&frame), Packet::Malformed));
    }
    assert!(!is_arp(&[8, 7]));
}

#[test]
fn an_incomplete_header_is_malformed() {
    let v4 = [&MACS[..], &[8, 0, 0x46], &[0; 22]].concat();
    let short = [&MACS[..], &[8, 0, 0x44], &[0; 19]].concat();
    let arp = [&MACS[..], &[8, 6, 0, 1, 8, 0, 6, 4], &[0; 21]].concat();
    for frame in [&v4[..], &short, &arp, &MACS[..], &[]] {
        assert!(matches!(Packet::read(frame), Packet::Malformed), "{frame:?}");
    }
    let other = [&MACS[..], &[0x88, 0xcc, 1, 2]].concat();
    assert!(matches!(Packet::read(&other), Packet::Other));
}
