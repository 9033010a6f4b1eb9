//! What a workload allows: how many deliveries are left when every batch is coalesced as far as
//! the `linux-gro` rules go. Written without the engine, to check the engine by.

use std::collections::HashMap;

use rxo_coalesce::Policy;
use rxo_testkit::Traffic;
use rxo_wire::{FlowKey, Parsed, SeqNumber, TcpFlags, TcpSegment, Transport};

use crate::contender::{BATCH_FRAMES, Outcome};

/// The outcome of a perfect pass over `traffic`, whose flows differ in nothing but what a sender
/// sending on changes.
pub(crate) fn expected(traffic: &Traffic) -> Outcome {
    let packets: Vec<&[u8]> = traffic.iter().collect();
    let deliveries = packets.chunks(BATCH_FRAMES).map(deliveries).sum();
    Outcome { deliveries, frames: traffic.len() as u64 }
}

/// What is held of a flow: where it goes on, and how much it is.
struct Held {
    next: SeqNumber,
    segments: u16,
    bytes: u32,
}

fn deliveries(batch: &[&[u8]]) -> u64 {
    let mut held: HashMap<FlowKey, Held> = HashMap::new();
    let appended = batch.iter().filter(|packet| appends(packet, &mut held)).count();
    (batch.len() - appended) as u64
}

/// Whether `packet` joins what its flow holds; what the flow holds afterwards is in `held`.
fn appends(packet: &[u8], held: &mut HashMap<FlowKey, Held>) -> bool {
    let Ok(parsed) = rxo_wire::parse(packet) else {
        held.clear();
        return false;
    };
    let Some(segment) = candidate(&parsed) else {
        held.remove(&parsed.key);
        return false;
    };
    let limit = Policy::linux_gro();
    let (seq, payload) = (segment.seq, parsed.payload_bytes());
    let next = seq + payload;
    if let Some(held) = held.get_mut(&parsed.key)
        && held.next == seq
        && held.segments < limit.max_segments
        && held.bytes + payload <= limit.max_bytes
    {
        *held = Held { next, segments: held.segments + 1, bytes: held.bytes + payload };
        return true;
    }
    let bytes = parsed.end - parsed.network;
    held.insert(parsed.key, Held { next, segments: 1, bytes });
    false
}

/// A segment that may be coalesced at all.
fn candidate(parsed: &Parsed) -> Option<TcpSegment> {
    let Transport::Tcp(segment) = parsed.transport else { return None };
    let plain = segment.flags == TcpFlags::ACK
        && parsed.payload_bytes() > 0
        && parsed.ip.checksum_ok
        && !parsed.ip.has_options;
    plain.then_some(segment)
}
