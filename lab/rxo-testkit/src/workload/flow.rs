//! Flows that keep their position and make their next packet.

use std::collections::HashMap;

use super::plan::{Turn, What};
use crate::{Packet, seg, udp};

/// Payload of a full segment with timestamps at an MTU of 1500, in bytes.
const SEGMENT_BYTES: u32 = 1448;
/// Bytes acknowledged by each pure ACK: two segments.
const ACKED_BYTES: u32 = 2 * SEGMENT_BYTES;
const TIMESTAMP: u32 = 0x1234_5678;

#[derive(Clone, Copy)]
struct Place {
    seq: u32,
    ack: u32,
    id: u16,
}

/// All flows of a workload. Each starts at its own position.
pub(super) struct Flows {
    places: HashMap<u32, Place>,
}

impl Flows {
    pub(super) fn new() -> Self {
        Self { places: HashMap::new() }
    }

    /// Makes the packet of `turn` and moves its flow forward.
    pub(super) fn next(&mut self, turn: Turn) -> Vec<u8> {
        let flow = turn.flow;
        let place = self.places.entry(flow).or_insert_with(|| start(flow));
        let packet = match turn.what {
            What::Data => advance(data(flow, *place), place),
            What::DataV6 => advance(data(flow, *place).v6(), place),
            What::PureAck => pure_ack(flow, place),
            What::Datagram(bytes) => advance(datagram(flow, *place, bytes), place),
            What::Bypass(reason) => advance(bypassing(data(flow, *place), reason), place),
            What::Ahead => data(flow, after(*place, 1)),
            What::Behind => {
                let behind = data(flow, *place);
                *place = after(*place, 2);
                behind
            }
        };
        packet.bytes()
    }
}

fn start(flow: u32) -> Place {
    let spread = flow.wrapping_mul(0x9e37_79b1);
    Place { seq: spread, ack: spread.rotate_left(16), id: (spread >> 8) as u16 }
}

fn after(place: Place, segments: u32) -> Place {
    Place {
        seq: place.seq.wrapping_add(segments * SEGMENT_BYTES),
        id: place.id.wrapping_add(segments as u16),
        ..place
    }
}

fn advance(packet: Packet, place: &mut Place) -> Packet {
    *place = after(*place, 1);
    packet
}

fn data(flow: u32, place: Place) -> Packet {
    header(flow, place).len(SEGMENT_BYTES as usize)
}

fn datagram(flow: u32, place: Place, bytes: usize) -> Packet {
    udp().flow(flow).ttl(64).seq(place.seq).id(place.id).len(bytes)
}

fn header(flow: u32, place: Place) -> Packet {
    seg()
        .flow(flow)
        .ttl(64)
        .seq(place.seq)
        .ack(place.ack)
        .id(place.id)
        .window(501)
        .ts(TIMESTAMP, !TIMESTAMP)
}

fn pure_ack(flow: u32, place: &mut Place) -> Packet {
    place.ack = place.ack.wrapping_add(ACKED_BYTES);
    place.id = place.id.wrapping_add(1);
    header(flow, *place).pure_ack()
}

/// Changes `packet` in one of twelve ways, so that nothing coalesces it.
fn bypassing(packet: Packet, reason: u32) -> Packet {
    match reason % 12 {
        0 => packet.syn(),
        1 => packet.fin().urg(),
        2 => packet.rst(),
        3 => packet.cwr(),
        4 => packet.ip_options(&[1]),
        5 => packet.fragment(0, true),
        6 => packet.length_lie(4000),
        7 => packet.no_ack(),
        8 => packet.sack(&[(1, 2)]).pure_ack(),
        9 => packet.urg(),
        10 => packet.bad_ip_checksum(),
        _ => udp().len(SEGMENT_BYTES as usize),
    }
}
