//! Changes one property of a segment, chosen by number.

use crate::{Outer, Packet};

/// Type of the Home Address option, in destination options (RFC 6275 section 6.3).
const HOME_ADDRESS: u8 = 201;

/// Applies change `number` to `packet`. Numbers beyond the list change nothing.
pub(super) fn changed(packet: Packet, number: u8, value: u8) -> Packet {
    match number {
        1 | 2 => packet.psh(),
        3 => packet.fin(),
        4 => packet.fin().psh(),
        5 => packet.syn(),
        6 => packet.rst(),
        7 => packet.urg(),
        8 => packet.urgent(u16::from(value)),
        9 => packet.cwr(),
        10 => packet.ece(),
        11 => packet.no_ack(),
        12 => packet.flags(u16::from(value) << 4 | 0x10),
        13 => packet.ttl(value),
        14 => packet.tos(value),
        15 => packet.tos(3),
        16 => packet.df(value.is_multiple_of(2)),
        17 => packet.id(u16::from(value)),
        18 => packet.reserved_bit(),
        19 => packet.flow_label(u32::from(value)),
        20 => packet.window(u16::from(value)),
        21 => packet.window(0),
        22 => packet.bad_checksum(),
        23 => packet.bad_ip_checksum(),
        24 => packet.verified(),
        25 => packet.bad_checksum().verified(),
        26 | 27 => packet.partial(),
        28 => packet.fragment(0, true),
        29 => packet.fragment(u16::from(value) + 1, false),
        30 => packet.length_lie(i32::from(value as i8)),
        31 => packet.header_lie((value % 9) as i8 - 4),
        32 => packet.offset_lie((value % 9) as i8 - 4),
        33 => packet.ip_options(&[7, 4, 4, value]),
        34 => packet.extension(60, &[1, 4, 0, 0, 0, value % 2]),
        35 => packet.extension(0, &[5, 2, 0, 0]).extension(60, &[1, 12]),
        36 => packet.window_scale(value),
        37 => packet.sack(&[(1, 2), (5, u32::from(value))]),
        38 => packet.ts_in_the_middle(u32::from(value), 1),
        39 => packet.ts(u32::from(value), 1),
        40 => packet.options(&[30, value]),
        41 => packet.padded(),
        42 => packet.padded_with(value),
        43 => packet.vlan(u16::from(value)),
        44 => packet.tag(0x88a8, 0x2000),
        45 => packet.ack(u32::from(value)),
        46 => packet.ports(u16::from(value), 443),
        47 => packet.cut(usize::from(value)),
        48 => packet.extension(43, &[value % 5, value % 3]),
        49 => packet.extension(60, &[1, 0, HOME_ADDRESS, 16, value]),
        50 => packet.extension([135, 139, 140, 253][usize::from(value % 4)], &[1, value]),
        51 => packet.extension(60, &[1, value]),
        52 => packet.protocol([50, 51, 135, 4, 59, 200][usize::from(value % 6)]),
        53 => packet.ts(u32::from(value), 0),
        54 => packet.tos(3).ece(),
        55 => packet.no_checksum(),
        56 => packet.udp_length_lie(i16::from(value as i8)),
        57 if packet.is_datagram() => packet.ports(1000, [4789, 6081][usize::from(value % 2)]),
        58 if packet.is_datagram() => packet.len(0),
        59..=62 => misdescribed(packet, number, value),
        _ => packet,
    }
}

/// Applies change `number` to the headers of a tunnel. The numbers differ from those of [`changed`].
pub(super) fn changed_outer(outer: Outer, number: u8, value: u8) -> Outer {
    match number {
        84 => outer.bad_checksum(),
        85 | 86 => outer.checksum(),
        87 => outer.bad_ip_checksum(),
        88 => outer.id(u16::from(value)),
        89 => outer.df(value.is_multiple_of(2)),
        90 => outer.reserved_bit(),
        91 => outer.fragment(),
        92 => outer.ttl(value),
        93 => outer.tos(value % 4),
        94 => outer.source_port(u16::from(value)),
        95 => outer.network(u32::from(value % 3)),
        96 => outer.flags(value),
        97 => outer.options(&vec![value % 2; usize::from(value % 80)]),
        98 => outer.length_lie(i16::from(value as i8)),
        99 => outer.host(value % 2),
        100 => outer.vlan(u16::from(value % 2)),
        _ => outer,
    }
}

/// Gives the packet a wrong description of its checksum.
fn misdescribed(packet: Packet, number: u8, value: u8) -> Packet {
    let bytes = u16::from(value);
    match number {
        59 => packet.partial_elsewhere(bytes, 16),
        60 => packet.partial_elsewhere(bytes % 2 * 8, [6, 16, 0][usize::from(value % 3)]),
        61 => packet.bad_checksum().partial_elsewhere(bytes, 16),
        _ => packet.partial().partial_elsewhere(bytes, 6),
    }
}
