//! One end unwraps exactly the packets that the other end wraps.

use super::sum::Sum;
use super::train::divide;
use super::wrap::{Said, Wrapper, Wrong};
use super::{Encapsulation, TunnelOptions};

const KINDS: [Encapsulation; 5] = [
    Encapsulation::Vxlan,
    Encapsulation::Geneve,
    Encapsulation::Gre,
    Encapsulation::Fou,
    Encapsulation::Ip,
];

/// Returns the options of both ends for every kind of tunnel.
fn all() -> impl Iterator<Item = [TunnelOptions; 2]> {
    KINDS.into_iter().flat_map(|encapsulation| {
        let flags = [(false, false), (false, true), (true, false), (true, true)];
        flags.map(|(is_v6, has_checksum)| {
            let [local, remote] =
                if is_v6 { ["fd00::1", "fd00::2"] } else { ["10.0.0.1", "10.0.0.2"] }
                    .map(|address| address.parse().unwrap());
            let macs = (!is_v6).then_some([[2; 6], [4; 6]]);
            let near = TunnelOptions {
                encapsulation,
                has_checksum,
                local,
                remote,
                macs,
                sends_large: true,
            };
            [near, TunnelOptions { local: remote, remote: local, ..near }]
        })
    })
}

/// Returns an IPv4 packet with a TCP segment whose checksum is still to be completed, and the header that
/// describes it.
fn partial() -> (Vec<u8>, Vec<u8>) {
    let mut packet = vec![7; 20 + 20 + 101];
    packet[0] = 0x45;
    packet[36..38].copy_from_slice(&[0x12, 0x34]);
    let halves = [0_u16, 0, 20, 16].map(u16::to_ne_bytes).concat();
    (packet, [&[1, 0][..], &halves].concat())
}

/// Returns the wrapped packet, header and frame.
fn wrapped(near: TunnelOptions, said: &[u8], packet: &[u8]) -> Vec<u8> {
    let (said, _) = Said::split(said).unwrap();
    let mut wrapper = Wrapper::new(near);
    let (said, head) = wrapper.wrap(said, packet).unwrap();
    [&said.to_bytes()[..], head, packet].concat()
}

fn unwrapped(far: TunnelOptions, bytes: &[u8]) -> Result<Option<Vec<u8>>, Wrong> {
    let (said, frame) = Said::split(bytes).unwrap();
    let inner = Wrapper::new(far).unwrap(said, frame)?;
    Ok(inner.map(|(said, packet)| [&said.to_bytes()[..], packet].concat()))
}

#[test]
fn what_is_wrapped_comes_out_with_what_was_said_of_it() {
    let (packet, said) = partial();
    for [near, far] in all() {
        for said in [&said[..], &[0; 10]] {
            let bytes = wrapped(near, said, &packet);
            let expected = [said, &packet].concat();
            assert_eq!(unwrapped(far, &bytes), Ok(Some(expected)), "{near:?}");
        }
    }
}

/// The checksum of the outer header is right although the inner one is still to be completed.
#[test]
fn a_checksum_covers_what_will_be() {
    let (packet, said) = partial();
    for [near, far] in all().filter(|[near, _]| near.has_checksum) {
        let mut bytes = wrapped(near, &said, &packet);
        // This is the checksum as the interface below completes it.
        let start = 10 + usize::from(u16::from_ne_bytes([bytes[6], bytes[7]]));
        let checksum = !Sum::default().bytes(&bytes[start..]).fold();
        bytes[start + 16..start + 18].copy_from_slice(&checksum.to_be_bytes());
        bytes[..10].fill(0);
        unwrapped(far, &bytes).unwrap().unwrap();
    }
}

/// A change of any byte of the outer headers is detected, and with a checksum a change of any byte after
/// them.
#[test]
fn a_changed_byte_is_found() {
    let (packet, _) = partial();
    for [near, far] in all() {
        let bytes = wrapped(near, &[0; 10], &packet);
        let covers_all = near.has_checksum && near.encapsulation != Encapsulation::Ip;
        let link_bytes = if near.macs.is_some() { 14 } else { 0 };
        let headers = bytes.len() - packet.len();
        let end = if covers_all { bytes.len() } else { headers };
        for at in 10 + link_bytes..end {
            // No checksum covers the class, the label and the hop limit of IPv6. Only the kernel behind the
            // TUN detects a length field that is too small.
            let is_free = near.local.is_ipv6()
                && (matches!(at - 10, 0..4 | 7) || !covers_all && matches!(at - 10, 4 | 5));
            let mut bytes = bytes.clone();
            bytes[at] ^= 0x10;
            let found = unwrapped(far, &bytes);
            assert!(is_free || matches!(found, Ok(None) | Err(_)), "byte {at} of {near:?}");
        }
    }
}

#[test]
fn a_checksum_is_there_exactly_if_it_should_be() {
    let (packet, said) = partial();
    for [near, far] in all().filter(|[near, _]| near.encapsulation != Encapsulation::Ip) {
        let bytes = wrapped(near, &said, &packet);
        let other = TunnelOptions { has_checksum: !far.has_checksum, ..far };
        unwrapped(other, &bytes).unwrap_err();
    }
}

/// Dividing a train yields the two packets that a kernel would send, except for the inner checksums.
#[test]
fn a_train_is_divided_into_the_packets_of_the_tunnel() {
    let (packet, _) = partial();
    let is_fou = |[near, _]: &[TunnelOptions; 2]| {
        near.encapsulation == Encapsulation::Fou && near.has_checksum
    };
    for [near, far] in all().filter(is_fou) {
        let bytes = wrapped(near, &[0; 10], &packet);
        let frame = [&bytes[10..], &packet].concat();
        let is_v6 = near.local.is_ipv6();
        let udp = if is_v6 { 40 } else { 14 + 20 };
        let datagrams = divide(&frame, udp, is_v6, packet.len());
        assert_eq!(datagrams.len(), 2);
        for datagram in datagrams {
            let said = [&[0; 10][..], &datagram].concat();
            let expected = [&[0; 10][..], &packet].concat();
            assert_eq!(unwrapped(far, &said), Ok(Some(expected)));
        }
    }
}
