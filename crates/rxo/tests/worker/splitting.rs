//! Tests that stretch ACKs of the host are split where the configuration requests it, and that all other
//! frames are unchanged.

use std::time::Duration;

use rxo::{Frame, Instant, Policy, WorkerConfig};
use rxo_testkit::naive::{Reading, read};
use rxo_testkit::{Packet, seg};

use crate::world::{Ended, Event, World};

const FULL: u32 = 1_448;

fn data(flow: u32, seq: u32) -> Packet {
    seg().flow(flow).seq(seq).len(FULL as usize).ts(7, 7)
}

fn ack(flow: u32, ack: u32) -> Packet {
    seg().flow(flow).reply().pure_ack().ack(ack).window(500).ts(8, 8)
}

fn after(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// Runs a worker in which `flows` flows receive `segments` segments each, and the host sends its answers
/// afterwards.
fn run(
    policy: Policy,
    flows: u32,
    segments: u32,
    answers: &[Frame<Vec<u8>>],
    ack_split: Option<u16>,
) -> Ended {
    let world = World::new();
    for flow in 0..flows {
        // The worker must know the previous ACK number of the host.
        world.at(Instant::ZERO, Event::FromNic(data(flow, 1).frame()));
        world.at(after(2), Event::FromHost(ack(flow, 1 + FULL).frame()));
        for segment in 1..=segments {
            world.at(after(2), Event::FromNic(data(flow, 1 + segment * FULL).frame()));
        }
    }
    for answer in answers {
        world.at(after(5), Event::FromHost(answer.clone()));
    }
    world.run_with(WorkerConfig { ack_split, ..WorkerConfig::new(policy) })
}

/// Returns the ACK numbers of the frames sent to the nic after the first `skip`.
fn acks(ended: &Ended, skip: usize) -> Vec<u32> {
    let segments = ended.to_nic.iter().skip(skip).map(|sent| {
        let frame = Frame::new(&sent.bytes[..], Instant::ZERO);
        match read(&frame, rxo::LinkKind::Ethernet) {
            Reading::Segment(seen) if seen.checksum_ok => seen.ack,
            other => panic!("{other:?}"),
        }
    });
    segments.collect()
}

#[test]
fn the_missing_acks_leave_before_the_hosts_own() {
    let answers = [ack(0, 1 + 9 * FULL).frame(), seg().flow(5).frame(), ack(0, 2).frame()];
    for policy in [Policy::linux_gro(), Policy::menon_2008(), Policy::none()] {
        let ended = run(policy, 1, 8, &answers, Some(2));
        let expected = [3, 5, 7, 9].map(|segments| 1 + segments * FULL);
        assert_eq!(acks(&ended, 1)[..4], expected, "{}", policy.name);
        assert_eq!(ended.to_nic.len(), 1 + 4 + 2);
        for (sent, answer) in ended.to_nic.iter().skip(4).zip(&answers) {
            assert_eq!(sent.bytes, answer.bytes, "the host's frames are as they were");
        }
        let split = ended.totals.split.unwrap();
        assert_eq!((split.templates, split.inserted, split.stretch_acks), (1, 3, 1));
        assert_eq!((split.frames, split.acks, split.acks_out()), (4, 3, 6));
        assert_eq!(split.segments, 9);
    }
}

#[test]
fn off_means_off() {
    let answers = [ack(0, 1 + 9 * FULL).frame()];
    let ended = run(Policy::linux_gro(), 1, 8, &answers, None);
    assert_eq!(acks(&ended, 1), [1 + 9 * FULL]);
    assert_eq!(ended.totals.split, None);
}

#[test]
fn more_acks_than_slots_leave_in_several_batches_and_in_order() {
    let flows = 60;
    let answers: Vec<_> = (0..flows).map(|flow| ack(flow, 1 + 65 * FULL).frame()).collect();
    let ended = run(Policy::linux_gro(), flows, 64, &answers, Some(2));
    let expected: Vec<u32> = (1..=32).map(|pair| 1 + FULL + pair * 2 * FULL).collect();
    let left = acks(&ended, flows as usize);
    assert_eq!(left.len(), 32 * flows as usize);
    assert!(left.chunks(32).all(|flow| flow == expected));
}
