//! The sender's side: pure ACKs are aggregated on their way to a bulk sender. Asserts counts, never times.

use std::net::IpAddr;

use rxo_testbed::traffic::{BulkConfig, BulkTransfer};
use rxo_testbed::{AckRate, Lab, LabOptions, Namespace};
use serde_json::Value;

use crate::Test;
use crate::demo::demo;
use crate::process::{Rxo, run, wait_until};
use crate::report::assert_sentence;
use crate::traffic::totals;

pub(crate) const TESTS: &[Test] = &[
    ("pure_acks_are_aggregated_for_a_sender", pure_acks_are_aggregated_for_a_sender),
    ("without_the_flag_every_pure_ack_is_delivered", without_the_flag_every_ack_is_delivered),
    ("pure_acks_of_ipv6_are_aggregated_too", pure_acks_of_ipv6_are_aggregated_too),
    ("a_packet_socket_carries_aggregated_acks", a_packet_socket_carries_aggregated_acks),
    ("what_reads_no_records_is_given_none", what_reads_no_records_is_given_none),
    ("the_demo_shows_the_senders_side", the_demo_shows_the_senders_side),
];

const FLAGS: &str = "--nic packet:wire0 --host tap:rxo0";
/// A hold longer than the time between the ACKs of a slow sender's segments.
const AGGREGATE: &str = "--ack-aggregate --hold 10ms";

/// Sends 40 MB on four connections from the host through a TAP to `address` of a peer that acknowledges each
/// segment. Returns the totals, and the packets delivered to the host's IP layer meanwhile.
fn sent(flags: &str, address: IpAddr) -> (Value, u64) {
    let lab = lab();
    let (rxo, _) = Rxo::start(lab.host(), &format!("{FLAGS} {flags}"));
    lab.attach_host("rxo0").unwrap();
    let before = lab.host().stack_counters().unwrap().deliveries;
    send(&lab, address);
    let totals = totals_without_loss(rxo);
    wait_until("the TAP is gone", || !lab.host().interface("rxo0").exists());
    // The last ACKs come after the transfer, and on a busy machine there are many.
    let deliveries = lab.host().stack_counters().unwrap().deliveries - before;
    (totals, deliveries)
}

fn lab() -> Lab {
    // The peer's kernel and its reader both send ACKs; on different cores the veth reorders them, and they
    // are not aggregated.
    let (peer_core, host_core) = (Some(0), Some(0));
    let acks = AckRate::EachSegment;
    Lab::through_with(LabOptions { acks, peer_core, host_core, ..LabOptions::default() }).unwrap()
}

fn send(lab: &Lab, address: IpAddr) {
    let config = BulkConfig {
        connections: 4,
        bytes_per_connection: Some(10_000_000),
        // A rate that a busy machine can keep up with: nothing may be lost.
        limit_bytes_per_s: Some(40_000_000),
        ..BulkConfig::default()
    };
    let transfer = BulkTransfer::start(lab.host(), lab.peer(), address, &config).unwrap();
    let report = transfer.wait().unwrap();
    assert!(report.is_intact() && report.received_bytes == 40_000_000, "{report:?}");
}

fn totals_without_loss(rxo: Rxo) -> Value {
    let totals = totals(rxo);
    for (side, what) in [("nic_in", "ring_drops"), ("nic_in", "truncated"), ("host_out", "dropped")]
    {
        assert_eq!(totals[side][what], 0, "{side} {what}: {totals}");
    }
    totals
}

/// Asserts that at most a third of the ACKs are deliveries, and most were merged.
fn assert_aggregated(totals: &Value) {
    let (acks, delivered) = (number(totals, "packets"), number(totals, "deliveries"));
    assert!(acks > 2_000, "the peer hardly acknowledged: {totals}");
    assert!(delivered * 3 < acks, "{totals}");
    assert!(number(totals, "aggregated") > acks / 2, "{totals}");
    assert!(totals["acks"]["per_delivery"].as_f64().unwrap() > 3.0, "{totals}");
}

fn number(totals: &Value, what: &str) -> u64 {
    totals["acks"][what].as_u64().unwrap()
}

fn pure_acks_are_aggregated_for_a_sender() {
    let (totals, deliveries) = sent(AGGREGATE, Lab::PEER_ADDRESSES.0.into());
    assert_aggregated(&totals);
    // The kernel's count agrees, except for handshakes, ends of connections, and ARP.
    let delivered = number(&totals, "deliveries");
    assert!(deliveries.abs_diff(delivered) < 50, "{deliveries} deliveries, {totals}");
}

fn pure_acks_of_ipv6_are_aggregated_too() {
    let (totals, _) = sent(AGGREGATE, Lab::PEER_ADDRESSES.1.into());
    assert_aggregated(&totals);
}

/// The host's side is a veth here, and the host's address is on its other end.
fn a_packet_socket_carries_aggregated_acks() {
    let lab = lab();
    let outer = lab.host().interface("outer0");
    rxo_testbed::create_veth(&lab.host().interface("inner0"), &outer).unwrap();
    outer.set_arp(false).unwrap();
    lab.host().set_sysctl("net.ipv6.conf.outer0.disable_ipv6", "1").unwrap();
    outer.up().unwrap();
    lab.attach_host("inner0").unwrap();
    let flags = format!("--nic packet:wire0 --host packet:outer0 {AGGREGATE}");
    let (rxo, _) = Rxo::start(lab.host(), &flags);
    send(&lab, lab.peer_address());
    assert_aggregated(&totals_without_loss(rxo));
}

fn without_the_flag_every_ack_is_delivered() {
    let (totals, deliveries) = sent("", Lab::PEER_ADDRESSES.0.into());
    let acks = number(&totals, "packets");
    assert!(acks > 2_000, "the peer hardly acknowledged: {totals}");
    assert_eq!(
        (number(&totals, "deliveries"), number(&totals, "aggregated")),
        (acks, 0),
        "{totals}"
    );
    assert!(deliveries.abs_diff(acks) < 50, "{deliveries} deliveries, {totals}");
}

fn what_reads_no_records_is_given_none() {
    let lab = Lab::through().unwrap();
    let rows = [
        ("--ack-aggregate --policy remember", "--host tap:rxo0: policy remember does not fit"),
        ("--set pure_acks=record", "--host tap:rxo0: pure_acks=record of policy linux-gro does"),
        ("--ack-aggregate --set pure_acks=record", "--host tap:rxo0: pure_acks=record of policy"),
        ("--ack-aggregate --policy none", "--ack-aggregate does nothing with policy none"),
        ("--ack-aggregate --set keep_every=1", "--ack-aggregate does nothing with max_acks=64"),
    ];
    for (flags, message) in rows {
        let output = run(lab.host(), &format!("run {FLAGS} {flags}"));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{flags}: {said}");
        assert!(said.starts_with(&format!("rxo: {message}")), "{flags}: {said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(!lab.host().interface("rxo0").exists());
    }
    let dry = run(lab.host(), &format!("run {FLAGS} --ack-aggregate --dry-run --json"));
    let configuration: Value = serde_json::from_slice(&dry.stdout).unwrap();
    assert_eq!(configuration["settings"]["pure_acks"], "single");
}

fn the_demo_shows_the_senders_side() {
    let spreads = ["gbit_per_s", "cpu_s_per_gb", "acks_per_segment", "acks_per_delivery"];
    let per_delivery = |row: &Value| row["acks_per_delivery"]["median"].as_f64().unwrap_or(0.0);
    let report = demo("--reverse --connections 2", |row| {
        let is_measured = |spread: &&str| row[spread]["median"].as_f64().is_some_and(|it| it > 0.0);
        let least = if row["way"] == "ack-aggregate" { 1.5 } else { 0.0 };
        spreads.iter().all(is_measured) && per_delivery(row) > least
    });
    let rows = report["rows"].as_array().unwrap();
    let ways: Vec<_> = rows.iter().map(|row| row["way"].as_str().unwrap()).collect();
    assert_eq!(ways, ["kernel-gro", "no-aggregation", "ack-aggregate"]);
    for row in rows {
        assert_eq!((&row["connections"], &row["hash_ok"]), (&2.into(), &true.into()), "{row}");
        for spread in spreads {
            assert!(row[spread]["median"].as_f64().unwrap() > 0.0, "{spread}: {row}");
        }
        for count in ["acks", "ack_deliveries", "segments", "ring_drops", "wire_drops"] {
            assert!(row[count].is_u64(), "{count}: {row}");
        }
    }
    assert!(per_delivery(&rows[2]) > 1.5, "{report}");
    assert!(per_delivery(&rows[0]) < 1.1 && per_delivery(&rows[1]) < 1.1, "{report}");
    assert_sentence(&report);
    let namespace = Namespace::new("reverse").unwrap();
    let alone = run(&namespace, "demo --peer-acks 2");
    assert_eq!(alone.status.code(), Some(2), "--peer-acks is for --reverse");
}
