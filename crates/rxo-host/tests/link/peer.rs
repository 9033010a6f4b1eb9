//! The other end of the link: builds frames naively, byte by byte, without the code under test.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use rxo_frame::{Frame, Instant};
use rxo_host::link::{FrameOutcome, Link, LinkConfig, Route};

pub(crate) type Mac = [u8; 6];

pub(crate) const OURS: Mac = [2, 0, 0, 0, 0, 2];
pub(crate) const PEER: Mac = [2, 0, 0, 0, 0, 9];
pub(crate) const ALL: Mac = [0xff; 6];

pub(crate) fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

pub(crate) fn at(millis: u64) -> Instant {
    Instant::from_micros(millis * 1_000)
}

/// Returns a link with 10.0.0.2/24, the gateway 10.0.0.1, and fd00::2/64.
pub(crate) fn link() -> Link {
    let addresses =
        ["10.0.0.2/24", "fd00::2/64"].map(|text| text.parse().expect("an address")).to_vec();
    let routes = vec![Route::default_by(ip("10.0.0.1"))];
    Link::new(LinkConfig { routes, ..LinkConfig::ethernet(OURS, addresses) })
        .expect("a link that can be")
}

pub(crate) fn receives(link: &mut Link, bytes: &[u8], now: Instant) -> FrameOutcome {
    link.on_frame(&Frame::new(bytes, now), now)
}

/// Passes a frame to the link and returns its answers.
pub(crate) fn answers(link: &mut Link, bytes: &[u8], now: Instant) -> Vec<Vec<u8>> {
    receives(link, bytes, now);
    out(link)
}

/// Passes each frame to a new link, which must not answer it but count it.
pub(crate) fn assert_unanswered(rows: &[Vec<u8>]) {
    for (row, frame) in rows.iter().enumerate() {
        let mut link = link();
        assert_eq!(answers(&mut link, frame, Instant::ZERO), Vec::<Vec<u8>>::new(), "row {row}");
        let counters = link.counters();
        assert_eq!(counters.ignored + counters.refused.total(), 1, "row {row}");
    }
}

pub(crate) fn out(link: &mut Link) -> Vec<Vec<u8>> {
    std::iter::from_fn(|| link.poll_transmit()).collect()
}

pub(crate) fn ethernet(to: Mac, from: Mac, kind: u16, packet: &[u8]) -> Vec<u8> {
    [&to[..], &from, &kind.to_be_bytes(), packet].concat()
}

/// Returns an ARP frame; operation 1 is a request, 2 a reply.
pub(crate) fn arp(to: Mac, operation: u16, sender: (Mac, &str), target: (Mac, &str)) -> Vec<u8> {
    let v4 = |text: &str| text.parse::<Ipv4Addr>().expect("an address").octets();
    let head = [0, 1, 8, 0, 6, 4];
    let (from, about) = (v4(sender.1), v4(target.1));
    let packet =
        [&head[..], &operation.to_be_bytes(), &sender.0, &from, &target.0, &about].concat();
    ethernet(to, sender.0, 0x0806, &packet)
}

/// Returns the Internet checksum, computed word by word as in RFC 1071.
pub(crate) fn checksum(bytes: &[u8]) -> [u8; 2] {
    let mut sum = 0_u32;
    for pair in bytes.chunks(2) {
        sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
        sum = (sum & 0xffff) + (sum >> 16);
    }
    (!(sum as u16)).to_be_bytes()
}

pub(crate) fn ipv4(protocol: u8, from: &str, to: &str, payload: &[u8]) -> Vec<u8> {
    let (from, to): (Ipv4Addr, Ipv4Addr) =
        (from.parse().expect("an address"), to.parse().expect("an address"));
    let length = (20 + payload.len() as u16).to_be_bytes();
    let mut header = [&[0x45, 0][..], &length, &[0, 0, 0x40, 0, 64, protocol, 0, 0]].concat();
    header.extend(from.octets());
    header.extend(to.octets());
    let sum = checksum(&header);
    header[10..12].copy_from_slice(&sum);
    header.extend(payload);
    header
}

pub(crate) fn ipv6(next: u8, hops: u8, from: &str, to: &str, payload: &[u8]) -> Vec<u8> {
    let (from, to): (Ipv6Addr, Ipv6Addr) =
        (from.parse().expect("an address"), to.parse().expect("an address"));
    let length = (payload.len() as u16).to_be_bytes();
    let start = [&[0x60, 0, 0, 0][..], &length, &[next, hops]].concat();
    [&start[..], &from.octets(), &to.octets(), payload].concat()
}

/// Returns an ICMP packet; `rest` are the bytes after the checksum.
pub(crate) fn icmp(from: &str, to: &str, kind: u8, code: u8, rest: &[u8]) -> Vec<u8> {
    let mut message = [&[kind, code, 0, 0][..], rest].concat();
    let sum = checksum(&message);
    message[2..4].copy_from_slice(&sum);
    ipv4(1, from, to, &message)
}

/// Returns an ICMPv6 packet with the hop limit `hops`; `rest` are the bytes after the checksum.
pub(crate) fn icmpv6(hops: u8, from: &str, to: &str, kind: (u8, u8), rest: &[u8]) -> Vec<u8> {
    let mut message = [&[kind.0, kind.1, 0, 0][..], rest].concat();
    let v6 = |text: &str| text.parse::<Ipv6Addr>().expect("an address").octets();
    let length = (message.len() as u32).to_be_bytes();
    let pseudo = [&v6(from)[..], &v6(to), &length, &[0, 0, 0, 58]].concat();
    let sum = checksum(&[&pseudo[..], &message].concat());
    message[2..4].copy_from_slice(&sum);
    ipv6(58, hops, from, to, &message)
}

/// Returns a neighbour solicitation for `target`, from the address `from` at [`PEER`], to the solicited-node
/// group.
pub(crate) fn solicitation(from: &str, target: &str, option: bool) -> Vec<u8> {
    let target_bytes = target.parse::<Ipv6Addr>().expect("an address").octets();
    let [.., a, b, c] = target_bytes;
    let group = format!("ff02::1:ff{a:02x}:{b:02x}{c:02x}");
    let mut rest = [&[0; 4][..], &target_bytes].concat();
    if option {
        rest.extend([&[1, 1][..], &PEER].concat());
    }
    let to = [0x33, 0x33, 0xff, a, b, c];
    ethernet(to, PEER, 0x86dd, &icmpv6(255, from, &group, (135, 0), &rest))
}

/// Returns a neighbour advertisement that `target` is at [`PEER`]; `flags` are router, solicited, override.
pub(crate) fn advertisement(target: &str, flags: u8) -> Vec<u8> {
    let target_bytes = target.parse::<Ipv6Addr>().expect("an address").octets();
    let rest = [&[flags, 0, 0, 0][..], &target_bytes, &[2, 1], &PEER].concat();
    ethernet(OURS, PEER, 0x86dd, &icmpv6(255, target, "fd00::2", (136, 0), &rest))
}
