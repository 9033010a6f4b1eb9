//! Tests that transfers arrive complete, in both directions, and as aggregates where the policy provides for
//! it.

use std::time::Duration;

use rxo::Policy;
use rxo::worker::{Reading, WorkerConfig};
use rxo_testbed::traffic::{BulkConfig, BulkTransfer, PingPongConfig, ping_pong};
use rxo_testbed::{Lab, LabOptions, Offload};

use crate::Test;
use crate::path::{Ran, through};

pub(crate) const TESTS: &[Test] = &[
    ("one_flow_to_the_host_coalesced", || to_host(Policy::linux_gro(), 1)),
    ("sixteen_flows_to_the_host_coalesced", || to_host(Policy::linux_gro(), 16)),
    ("one_flow_to_the_host_as_it_is", || to_host(Policy::none(), 1)),
    ("sixteen_flows_to_the_host_as_they_are", || to_host(Policy::none(), 16)),
    ("one_flow_from_the_host", || from_host(Policy::linux_gro(), 1)),
    ("sixteen_flows_from_the_host", || from_host(Policy::linux_gro(), 16)),
    ("one_flow_from_the_host_as_it_is", || from_host(Policy::none(), 1)),
    ("every_policy_a_tap_can_carry_leaves_a_transfer_whole", every_policy),
    ("full_checksums_are_verified_and_merged", full_checksums),
    ("nothing_is_lost_at_a_paced_rate", paced),
    ("request_and_response_goes_on", request_and_response),
    ("packets_over_64_kib_leave_a_transfer_whole", giant_packets),
];

const TOTAL_BYTES: u64 = 64_000_000;

fn bulk(connections: usize, total_bytes: u64) -> BulkConfig {
    let bytes_per_connection = Some(total_bytes / connections as u64);
    BulkConfig { connections, bytes_per_connection, ..BulkConfig::default() }
}

/// Runs the transfer `config` from the peer to the host, or from the host to the peer.
pub(crate) fn transfer(lab: &Lab, config: &BulkConfig, to_host: bool) {
    let transfer = if to_host {
        BulkTransfer::start(lab.peer(), lab.host(), lab.host_address(), config)
    } else {
        BulkTransfer::start(lab.host(), lab.peer(), lab.peer_address(), config)
    };
    let report = transfer.unwrap().wait().unwrap();
    assert!(report.is_intact(), "{report:?}");
}

fn run(policy: Policy, config: &BulkConfig, to_host: bool) -> Reading {
    let ran = through(LabOptions::default(), WorkerConfig::new(policy), |lab| {
        transfer(lab, config, to_host);
    });
    totals(ran)
}

/// Returns the totals of a run that was stopped, and asserts that no frame that the worker received was lost.
pub(crate) fn totals(ran: Ran) -> Reading {
    let totals = ran.outcome.totals.all;
    ran.outcome.result.unwrap();
    assert_eq!((totals.host_out.dropped, totals.host_out.fallbacks), (0, 0));
    assert_eq!((totals.nic_out.dropped, totals.nic_out.fallbacks), (0, 0));
    assert_eq!((totals.nic_in.truncated, totals.host_in.truncated), (0, 0));
    assert_eq!(totals.nic_in.frames, totals.host_out.frames + totals.overload);
    assert_eq!(totals.nic_in.frames, totals.engine.frames + totals.overload);
    assert!(totals.cpu > Duration::ZERO && totals.cpu <= totals.elapsed + Duration::from_millis(5));
    assert!(ran.reports > 0 || totals.elapsed < Duration::from_millis(100));
    totals
}

/// BIG TCP: the peer's stack sends packets whose length field is zero, because they are too long for it.
fn giant_packets() {
    let config = WorkerConfig::new(Policy::linux_gro());
    let ran = through(LabOptions::default(), config, |lab| {
        let peer = lab.peer().interface(Lab::PEER_INTERFACE);
        peer.set_offload(Offload::GenericSegmentation, true).unwrap();
        peer.set_offload(Offload::TransmitSegmentation, true).unwrap();
        peer.set_large_send_bytes(200_000).unwrap();
        transfer(lab, &bulk(1, TOTAL_BYTES), true);
    });
    let totals = totals(ran);
    let mean_bytes = totals.nic_in.bytes / totals.nic_in.frames;
    assert!(mean_bytes > 20_000, "they came one by one: {mean_bytes} bytes each");
}

fn to_host(policy: Policy, connections: usize) {
    let totals = run(policy, &bulk(connections, TOTAL_BYTES), true);
    assert!(totals.nic_in.frames >= TOTAL_BYTES / 1_448);
    let per_delivery = totals.engine.frames_per_delivery();
    if !policy.coalesce {
        assert_eq!(totals.engine.aggregates, 0);
    } else if connections == 1 {
        assert!(per_delivery > 8.0, "{per_delivery} frames in a delivery");
    } else {
        assert!(per_delivery > 2.0, "{per_delivery} frames in a delivery");
    }
}

fn from_host(policy: Policy, connections: usize) {
    let totals = run(policy, &bulk(connections, TOTAL_BYTES), false);
    assert!(totals.host_in.bytes > TOTAL_BYTES);
    assert_eq!(totals.host_in.frames, totals.nic_out.frames);
}

fn every_policy() {
    for policy in Policy::all().into_iter().filter(|policy| !policy.needs_records) {
        run(policy, &bulk(4, 8_000_000), true);
    }
}

fn full_checksums() {
    let options = LabOptions { partial_checksums: false, ..LabOptions::default() };
    let ran = through(options, WorkerConfig::new(Policy::linux_gro()), |lab| {
        transfer(lab, &bulk(1, TOTAL_BYTES), true);
    });
    let totals = totals(ran);
    assert!(totals.engine.aggregates > 0);
}

/// At 10 MB/s, 7,000 frames arrive per second: the ring can store the frames of a second in which the worker
/// does not run.
fn paced() {
    let limit_bytes_per_s = Some(10_000_000);
    let config = BulkConfig { limit_bytes_per_s, ..bulk(4, 10_000_000) };
    for policy in [Policy::linux_gro(), Policy::none()] {
        let totals = run(policy, &config, true);
        assert_eq!((totals.nic_in.ring_drops, totals.host_in.ring_drops), (0, 0));
    }
}

fn request_and_response() {
    let ran = through(LabOptions::default(), WorkerConfig::new(Policy::linux_gro()), |lab| {
        // On a busy machine the first exchange may last longer than a short measurement.
        let mut exchanges = [300, 10_000, 30_000].into_iter().map(|millis| {
            let duration = Duration::from_millis(millis);
            let config = PingPongConfig { duration, client_core: None, server_core: None };
            ping_pong(lab.peer(), lab.host(), lab.host_address(), config).unwrap().exchanges
        });
        assert!(exchanges.any(|exchanges| exchanges > 1));
    });
    let totals = totals(ran);
    assert_eq!(totals.engine.aggregates, 0, "single bytes, one at a time: nothing to coalesce");
}
