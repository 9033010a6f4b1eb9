//! Reads of a TUN: headers of every kind before packets of every kind.

use rxo_testkit::{Packet, seg, udp};

/// Returns headers that fit their packets, and for each a header that does not.
pub(super) fn reads() -> Vec<(String, Vec<u8>)> {
    let packets: [(&str, u8, Packet); 6] = [
        ("tcp4", 1, seg().raw_ip().len(900)),
        ("tcp4-timestamp", 1, seg().raw_ip().len(900).ts(1, 2).psh()),
        ("tcp4-options", 1, seg().raw_ip().len(900).ip_options(&[7, 7, 4, 0, 0, 0, 0])),
        ("tcp6", 4, seg().v6().raw_ip().len(900)),
        ("udp4", 5, udp().raw_ip().len(900)),
        ("udp6", 5, udp().v6().raw_ip().len(900)),
    ];
    let mut reads = Vec::new();
    for (name, kind, packet) in packets {
        let bytes = packet.bytes();
        let (start, offset) = (if packet.bytes()[0] >> 4 == 4 { 20 } else { 40 }, 16);
        let offset = if kind == 5 { 6 } else { offset };
        let plain = read(0, 0, (start, offset), &bytes);
        reads.push((name.to_owned(), read(kind, 400, (start, offset), &bytes)));
        reads.push((format!("{name}-whole"), plain));
        reads.push((format!("{name}-other"), read(kind ^ 5, 400, (start, offset), &bytes)));
        reads.push((format!("{name}-far"), read(0, 0, (u16::MAX, offset), &bytes)));
    }
    reads
}

fn read(kind: u8, size: u16, (start, offset): (u16, u16), packet: &[u8]) -> Vec<u8> {
    let mut bytes = vec![1, kind, 0, 0];
    for half in [size, start, offset] {
        bytes.extend(half.to_ne_bytes());
    }
    bytes.extend_from_slice(packet);
    bytes
}
