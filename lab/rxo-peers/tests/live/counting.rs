//! The sender that counts ACKs, against a real Linux receiver.

use std::net::Ipv4Addr;

use rxo_peers::{CountingConfig, CountingTransfer};
use rxo_testbed::{KernelGro, Lab, Result};

use crate::Test;

pub(crate) const TESTS: &[Test] = &[
    ("a_counting_sender_is_understood_by_linux", a_counting_sender_is_understood),
    ("a_counting_sender_stops_when_told", a_counting_sender_stops_when_told),
    ("a_counting_sender_mends_what_a_full_queue_loses", a_counting_sender_mends_losses),
    ("a_counting_sender_without_a_path_is_an_error", a_counting_sender_without_a_path),
];

fn start(lab: &Lab, limit_bytes: Option<u64>) -> Result<CountingTransfer> {
    let config = CountingConfig { limit_bytes, ..CountingConfig::default() };
    let (from, to) =
        (lab.peer().interface(Lab::PEER_INTERFACE), lab.host().interface(Lab::HOST_INTERFACE));
    CountingTransfer::start(&from, &to, Lab::HOST_ADDRESSES.0, config)
}

fn a_counting_sender_is_understood() {
    for gro in [KernelGro::Off, KernelGro::On] {
        let lab = Lab::direct(gro).unwrap();
        let report = start(&lab, Some(20_000_001)).unwrap().wait().unwrap();
        assert!(report.is_intact(), "{:?}", report.mismatch);
        assert_eq!(report.received_bytes, 20_000_001);
        assert!(report.counters.advancing_acks > 100, "{:?}", report.counters);
        let (first, last) = (report.record[0], report.record[report.record.len() - 1]);
        assert_eq!(first.cwnd_bytes, 10 * 1448);
        // A sender that had to wait for its core may end with less than it had.
        let most = report.record.iter().map(|point| point.cwnd_bytes).max().unwrap();
        assert!(most > first.cwnd_bytes && last.delivered_bytes > 1_000_000);
        assert!(report.record.is_sorted_by_key(|point| point.at));
    }
}

fn a_counting_sender_stops_when_told() {
    let lab = Lab::direct(KernelGro::On).unwrap();
    let transfer = start(&lab, None).unwrap();
    while transfer.received_bytes() < 1_000_000 {
        std::thread::yield_now();
    }
    let report = transfer.stop().unwrap();
    assert!(report.is_intact() && report.received_bytes >= 1_000_000, "{report:?}");
}

/// Slow start overruns a queue of a few frames before the peer's wire.
fn a_counting_sender_mends_losses() {
    let lab = Lab::direct(KernelGro::Off).unwrap();
    let rate = rxo_testbed::RateLimit::even(5_000_000, 20_000);
    lab.peer().interface(Lab::PEER_INTERFACE).limit_rate(rate).unwrap();
    let report = start(&lab, Some(3_000_000)).unwrap().wait().unwrap();
    assert!(report.is_intact(), "{:?}", report.mismatch);
    assert!(report.counters.retransmissions > 0, "{:?}", report.counters);
}

fn a_counting_sender_without_a_path() {
    let lab = Lab::direct(KernelGro::Off).unwrap();
    // Unreachable for the host, so its answers are lost.
    let address = Ipv4Addr::new(10, 99, 0, 9);
    let config = CountingConfig { address, ..CountingConfig::default() };
    let (from, to) =
        (lab.peer().interface(Lab::PEER_INTERFACE), lab.host().interface(Lab::HOST_INTERFACE));
    let error = CountingTransfer::start(&from, &to, Lab::HOST_ADDRESSES.0, config).unwrap_err();
    assert!(error.to_string().starts_with("no connection to 10.77.0.2:"), "{error}");
}
