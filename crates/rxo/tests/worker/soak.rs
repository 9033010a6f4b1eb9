//! Tests of arbitrary frames at arbitrary times: per flow, the output equals that of a worker that only
//! copies.

use std::collections::HashMap;

use rxo::device::Sent;
use rxo::frame::{Gso, VlanTag};
use rxo::wire::{FlowKey, parse, parse_ip};
use rxo::{ChecksumStatus, Frame, LinkKind, MemoryOptions, Policy};
use rxo_testkit::Script;

use crate::world::{Event, World};

const ROUNDS: u64 = 150;

/// The parts of a frame that are compared: its bytes and metadata.
type Seen = (Vec<u8>, ChecksumStatus, Option<Gso>, Option<VlanTag>);

#[test]
fn every_flow_is_as_a_plain_copy_would_leave_it() {
    let mut aggregates = 0;
    for round in 0..ROUNDS {
        let script = Script::from_bytes(&any_bytes(round, 2_400));
        let policies: Vec<_> =
            Policy::all().into_iter().filter(|policy| !policy.needs_records).collect();
        let policy = policies[round as usize % policies.len()];
        let link = script.setup.link;
        let world = World::with(MemoryOptions {
            link,
            mtu: 1_500,
            gso_bytes: 65_535,
            segments_udp: true,
            segments_tunnels: false,
            most_packets: 8_192,
            expands_acks: false,
        });
        // An aggregate that is sent as the frames that it stands for can be compared bit for bit.
        world.to_host.refuse_aggregates();
        for (index, frame) in script.frames().into_iter().enumerate() {
            let event = if index % 5 == 4 { Event::FromHost } else { Event::FromNic };
            world.at(frame.arrived_at, event(frame.clone()));
        }
        let ended = world.run(policy);
        assert!(ended.result.is_ok());
        aggregates += ended.totals.engine.aggregates;
        let all: Vec<_> = script.frames();
        let part = |from_host| {
            let all = all.iter().enumerate();
            let mine = all.filter(move |(index, _)| (index % 5 == 4) == from_host);
            // A frame that arrived as an aggregate cannot be sent as single frames here: it is dropped.
            let mine = mine.filter(move |(_, frame)| from_host || frame.gso.is_none());
            flows(link, mine.map(|(_, frame)| of_frame(frame)))
        };
        let what = format!("round {round}, {}", policy.name);
        assert_equal(&flows(link, ended.to_host.into_iter().map(of_sent)), &part(false), &what);
        assert_equal(&flows(link, ended.to_nic.into_iter().map(of_sent)), &part(true), &what);
    }
    assert!(aggregates > 1_000, "only {aggregates} aggregates: nothing was tested");
}

/// A flow, and the VLAN tag that the device removed from its frames: flows of different VLANs are kept apart.
type Flow = (Option<FlowKey>, Option<VlanTag>);

fn flows(link: LinkKind, frames: impl Iterator<Item = Seen>) -> HashMap<Flow, Vec<Seen>> {
    let mut flows: HashMap<_, Vec<_>> = HashMap::new();
    for seen in frames {
        flows.entry((flow(link, &seen.0), seen.3)).or_default().push(seen);
    }
    flows
}

/// Asserts equality, with a message that contains only the first difference.
fn assert_equal(seen: &HashMap<Flow, Vec<Seen>>, sent: &HashMap<Flow, Vec<Seen>>, what: &str) {
    assert_eq!(seen.len(), sent.len(), "{what}: flows");
    for (flow, sent) in sent {
        let seen = seen.get(flow).map_or(&[][..], Vec::as_slice);
        let differ = sent.iter().zip(seen).position(|(sent, seen)| sent != seen);
        assert_eq!(differ, None, "{what}: {flow:?} differs there");
        assert_eq!(seen.len(), sent.len(), "{what}: {flow:?}");
    }
}

/// Returns the flow; the addresses alone for a packet without a transport header; `None` for a frame that is
/// not IP.
fn flow(link: LinkKind, bytes: &[u8]) -> Option<FlowKey> {
    let parsed = link.read(bytes, parse, parse_ip);
    parsed.map_or_else(|unparsed| unparsed.addresses, |parsed| Some(parsed.key))
}

fn of_frame(frame: &Frame<Vec<u8>>) -> Seen {
    (frame.bytes.clone(), frame.checksum, frame.gso, frame.vlan)
}

fn of_sent(sent: Sent) -> Seen {
    (sent.bytes, sent.offload.checksum, sent.offload.gso, sent.vlan)
}

/// Returns pseudo-random bytes that are the same in every run (xorshift, Marsaglia 2003).
fn any_bytes(seed: u64, count: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 24) as u8
    };
    (0..count).map(|_| next()).collect()
}
