//! Tests of a Linux receiver behind a coalescing worker that splits its stretch ACKs, as observed at its
//! peer, in comparison with the same receiver without coalescing.

use std::collections::{BTreeMap, BTreeSet};

use rxo::Policy;
use rxo::worker::{Reading, WorkerConfig};
use rxo_testbed::LabOptions;
use rxo_testbed::traffic::BulkConfig;
use rxo_wire::{SeqNumber, TcpFlags};

use crate::Test;
use crate::capture::{Seen, Trace, at_peer, histogram};
use crate::path::through_traced;
use crate::transfers::{totals, transfer};

pub(crate) const TESTS: &[Test] = &[
    ("split_acks_are_those_of_a_receiver_without_coalescing", split),
    ("split_acks_of_many_flows_leave_transfers_whole", many_flows),
];

const BYTES: u64 = 12_000_000;
/// A rate of some 3,500 segments a second.
const SLOW_BYTES_PER_S: u64 = 5_000_000;
const SLOW_BYTES: u64 = 1_500_000;
const LOW_WATER_BYTES: usize = 256 << 10;
/// A receive buffer whose window is less than 64 segments, so that no stretch ACK is split into more than 32
/// ACKs.
const RECEIVE_BUFFER_BYTES: usize = 32 << 10;

/// The result of one transfer to the host.
struct Ran {
    totals: Reading,
    /// The segments with data, in the order in which they arrived at the nic.
    data: Vec<Seen>,
    /// The segments that the worker sent to the peer.
    sent: Vec<Seen>,
    /// The segments that arrived at the peer.
    arrived: Vec<Seen>,
}

fn bulk(connections: usize) -> BulkConfig {
    BulkConfig {
        connections,
        bytes_per_connection: Some(BYTES / connections as u64),
        receive_buffer_bytes: Some(RECEIVE_BUFFER_BYTES),
        ..BulkConfig::default()
    }
}

fn run(name: &str, policy: Policy, ack_split: Option<u16>, config: &BulkConfig) -> Ran {
    let trace = Trace::begin(name);
    let mut arrived = Vec::new();
    let options = LabOptions { peer_core: Some(0), ..LabOptions::default() };
    let worker = WorkerConfig { ack_split, ..WorkerConfig::new(policy) };
    let ran = through_traced(options, worker, Some(trace.point()), |lab| {
        arrived = at_peer(lab.peer(), || transfer(lab, config, true));
    });
    let outcome = ran.outcome.totals.all.clone();
    if ack_split.is_none() {
        totals(ran);
    } else {
        ran.outcome.result.unwrap();
    }
    let (data, sent): (Vec<_>, _) = trace.read().into_iter().partition(|seen| seen.is_from_peer);
    Ran { totals: outcome, data, sent, arrived }
}

impl Ran {
    /// Returns the sequence number at which the stream began.
    fn base(&self) -> SeqNumber {
        self.data.iter().find(|seen| seen.payload_bytes > 0).unwrap().tcp.seq
    }

    /// Returns the ends of the segments that arrived, in bytes from the start of the stream, in order. The
    /// result includes the ends of segments that were sent again with other boundaries.
    fn boundaries(&self) -> BTreeSet<u32> {
        let base = self.base();
        let data = self.data.iter().filter(|seen| seen.payload_bytes > 0);
        data.map(|seen| (seen.tcp.seq + seen.payload_bytes - base) as u32).collect()
    }

    /// Returns the ACK numbers that arrived at the peer, in bytes from the start of the stream.
    fn acks(&self) -> impl Iterator<Item = u32> {
        let base = self.base();
        self.arrived
            .iter()
            .filter(|seen| is_pure(seen))
            .map(move |seen| (seen.tcp.ack - base) as u32)
    }

    /// Counts the ACKs at the peer by the number of segments that they acknowledge.
    fn spacing(&self) -> BTreeMap<usize, usize> {
        let boundaries = self.boundaries();
        let (mut last, mut spacing) = (0, Vec::new());
        for ack in self.acks().filter(|ack| *ack > 0) {
            if ack > last {
                spacing.push(boundaries.range(last + 1..=ack).count());
                last = ack;
            }
        }
        histogram(spacing.into_iter())
    }

    fn acks_per_segment(&self) -> f64 {
        self.acks().count() as f64 / self.boundaries().len() as f64
    }
}

fn is_pure(seen: &Seen) -> bool {
    seen.payload_bytes == 0 && seen.tcp.flags == TcpFlags::ACK
}

/// Returns the median of values with these counts.
fn median(counts: &BTreeMap<usize, usize>) -> usize {
    let half = counts.values().sum::<usize>() / 2;
    let mut below = 0;
    let middle = counts.iter().find(|(_, count)| {
        below += **count;
        below > half
    });
    middle.map_or(0, |(value, _)| *value)
}

fn most_frequent(counts: &BTreeMap<usize, usize>) -> usize {
    counts.iter().max_by_key(|(_, count)| **count).map_or(0, |(value, _)| *value)
}

fn split() {
    // The sender is slow, and the reader is woken only for much data: Linux leaves ACKs to a reader that is
    // about to read, and then acknowledges all data at once, with or without coalescing.
    let slow = BulkConfig {
        bytes_per_connection: Some(SLOW_BYTES),
        limit_bytes_per_s: Some(SLOW_BYTES_PER_S),
        receive_buffer_bytes: None,
        receive_low_water_bytes: Some(LOW_WATER_BYTES),
        ..bulk(1)
    };
    let alone = run("alone", Policy::none(), None, &slow);
    let coalesced = run("coalesced", Policy::linux_gro(), None, &bulk(1));
    let split = run("split", Policy::linux_gro(), Some(2), &bulk(1));
    let shown = [&alone, &coalesced, &split].map(|ran| (ran.acks_per_segment(), ran.spacing()));
    the_peer_gets_what_was_sent(&split);
    acks_advance_from_boundary_to_boundary(&split);
    windows_are_kept(&split);

    // There are two segments to an ACK, as from a receiver that gets every segment by itself.
    assert!(most_frequent(&shown[0].1) <= 2, "{shown:?}");
    assert!(median(&shown[1].1) > 2, "there is nothing to split: {shown:?}");
    assert_eq!((median(&shown[2].1), most_frequent(&shown[2].1)), (2, 2), "{shown:?}");
    let spacing = &shown[2].1;
    let usual = spacing.range(..=2).map(|(_, count)| count).sum::<usize>();
    let all = spacing.values().sum::<usize>();
    assert!(usual * 10 >= all * 8, "{shown:?}");

    let counters = split.totals.split.unwrap();
    assert!(counters.templates > 0 && counters.templates <= counters.stretch_acks);
    assert!(counters.expanded() <= 32 * counters.templates, "{counters:?}");
    assert_eq!(counters.frames, split.totals.host_in.frames);
    assert_eq!(split.totals.host_in.frames + counters.inserted, split.totals.nic_out.frames);
    assert_eq!(split.totals.nic_out.dropped, 0);
}

/// The ACKs that arrived at the peer are the ACKs that the worker sent, except for the last ones, sent after
/// the recording ended.
fn the_peer_gets_what_was_sent(ran: &Ran) {
    let said = |seen: &Seen| (seen.tcp.ack, seen.tcp.window, seen.tcp.timestamp);
    let sent = ran.sent.iter().take(ran.arrived.len()).map(said);
    assert!(sent.eq(ran.arrived.iter().map(said)), "in the same order");
}

fn acks_advance_from_boundary_to_boundary(ran: &Ran) {
    let boundaries = ran.boundaries();
    let end = *boundaries.last().unwrap();
    let mut last = 0;
    for ack in ran.acks() {
        assert!(ack >= last, "an ACK goes back");
        assert!(ack <= end + 1, "more is acknowledged than was sent");
        // The first ACK is that of the handshake, the last may be that of the FIN.
        let is_boundary = ack == 0 || ack == end + 1 || boundaries.contains(&ack);
        assert!(is_boundary, "{ack} is no boundary");
        last = ack;
    }
}

/// The right edge of the window never moves back by a step of the window scale.
fn windows_are_kept(ran: &Ran) {
    let syn = ran.arrived.iter().find(|seen| seen.tcp.flags.contains(TcpFlags::SYN)).unwrap();
    let mut last: Option<SeqNumber> = None;
    for seen in ran.arrived.iter().filter(|seen| is_pure(seen)) {
        let edge = seen.tcp.ack + (u32::from(seen.tcp.window) << syn.shift);
        let step = 1 << syn.shift;
        assert!(last.is_none_or(|last| last - edge < step), "a promise was taken back");
        last = Some(edge);
    }
}

fn many_flows() {
    let ran = run("many", Policy::linux_gro(), Some(2), &bulk(16));
    let counters = ran.totals.split.unwrap();
    assert!(counters.templates > 0, "{counters:?}");
    assert_eq!(ran.totals.host_in.frames + counters.inserted, ran.totals.nic_out.frames);
    assert_eq!(ran.totals.nic_out.dropped, 0);
}
