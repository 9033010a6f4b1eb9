//! Computes the deliveries of a workload if every batch is coalesced as far as the rules of `linux-gro`
//! permit. Independent of the engine, which is checked against it.

use std::collections::{HashMap, HashSet};

use rxo_coalesce::{Policy, PureAckRule};
use rxo_testkit::Traffic;
use rxo_wire::{FlowKey, Parsed, SeqNumber, TcpFlags, TcpSegment, Transport};

use crate::contender::{Acks, Outcome, policy};

/// Returns the outcome of a perfect pass over `traffic`. Consecutive packets of a flow may differ only in
/// fields that a continuing sender changes, and all pure ACKs must advance.
pub(crate) fn expected(traffic: &Traffic, acks: Acks) -> Outcome {
    let packets: Vec<&[u8]> = traffic.iter().collect();
    let batches = packets.chunks(acks.batch_frames);
    let appended: usize = match acks.rule {
        PureAckRule::Bypass if policy(traffic).takes_datagrams() => {
            batches.map(appended_datagrams).sum()
        }
        PureAckRule::Bypass => batches.map(appended).sum(),
        PureAckRule::Record => batches.map(|batch| appended_acks(batch, &mut HashSet::new())).sum(),
        PureAckRule::Single => {
            // The first ACK of a flow is delivered alone, because what came before it is unknown.
            let mut alone = packets.iter().filter_map(|packet| pure_ack(packet)).collect();
            batches.map(|batch| appended_acks(batch, &mut alone)).sum()
        }
    };
    Outcome { deliveries: (packets.len() - appended) as u64, frames: traffic.len() as u64 }
}

/// The state of a held aggregate: its next sequence number and its size.
struct Held {
    next: SeqNumber,
    segments: u16,
    bytes: u32,
}

fn appended(batch: &[&[u8]]) -> usize {
    let mut held: HashMap<FlowKey, Held> = HashMap::new();
    batch.iter().filter(|packet| appends(packet, &mut held)).count()
}

/// Counts the datagrams of a batch that are appended: each at most as long as the first, and 64 per
/// aggregate.
fn appended_datagrams(batch: &[&[u8]]) -> usize {
    let mut held: HashMap<FlowKey, (u32, u32)> = HashMap::new();
    let mut joins = |packet: &&&[u8]| {
        let Ok(parsed) = rxo_wire::parse(packet) else { return false };
        let bytes = parsed.payload_bytes();
        match held.get_mut(&parsed.key) {
            Some((size, count)) if bytes <= *size => {
                *count += 1;
                if bytes < *size || *count == 64 {
                    held.remove(&parsed.key);
                }
                true
            }
            _ => {
                held.insert(parsed.key, (bytes, 1));
                false
            }
        }
    };
    batch.iter().filter(&mut joins).count()
}

/// Counts the pure ACKs of a batch that are appended. The next ACK of a flow in `alone` is not.
fn appended_acks(batch: &[&[u8]], alone: &mut HashSet<FlowKey>) -> usize {
    let mut held = HashSet::new();
    let acks = batch.iter().filter_map(|packet| pure_ack(packet));
    acks.filter(|flow| !alone.remove(flow) && !held.insert(*flow)).count()
}

fn pure_ack(packet: &[u8]) -> Option<FlowKey> {
    let parsed = rxo_wire::parse(packet).ok()?;
    (parsed.payload_bytes() == 0).then_some(parsed.key)
}

/// Returns `true` if `packet` is appended to its flow. Updates `held` with the new state of the flow.
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
    let bytes = parsed.at.end - parsed.at.network;
    held.insert(parsed.key, Held { next, segments: 1, bytes });
    false
}

/// Returns the segment if it is a candidate for coalescing; otherwise `None`.
fn candidate(parsed: &Parsed) -> Option<TcpSegment> {
    let Transport::Tcp(segment) = parsed.transport else { return None };
    let plain = segment.flags == TcpFlags::ACK
        && parsed.payload_bytes() > 0
        && parsed.ip.checksum_ok
        && !parsed.ip.has_options;
    plain.then_some(segment)
}
