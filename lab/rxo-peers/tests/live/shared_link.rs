//! Many senders on one slower link.

use std::time::Duration;

use rxo_peers::{SharedLink, SharedLinkOptions};
use rxo_testbed::traffic::{BulkConfig, BulkReport, BulkTransfer};
use rxo_testbed::{InterfaceCounters, Namespace};

use crate::Test;

pub(crate) const TESTS: &[Test] = &[
    ("senders_share_a_link_at_its_rate", senders_share_a_link_at_its_rate),
    ("payloads_written_one_at_a_time_arrive_whole", payloads_arrive_whole),
    ("frames_have_no_timestamps_unless_asked", frames_have_no_timestamps_unless_asked),
    ("no_senders_or_too_many_are_refused", no_senders_or_too_many_are_refused),
];

fn options(senders: usize) -> SharedLinkOptions {
    let bytes_per_s = 25_000_000;
    let (timestamps, core) = (false, Some(0));
    SharedLinkOptions { senders, mtu: 1500, bytes_per_s, burst_frames: 2, timestamps, core }
}

fn transfer(network: &SharedLink, config: &BulkConfig) -> BulkReport {
    let senders: Vec<&Namespace> = network.senders().collect();
    let (receiver, address) = (network.receiver(), network.receiver_address());
    let transfer = BulkTransfer::start_from_all(&senders, receiver, address, config).unwrap();
    transfer.wait().unwrap()
}

fn counters(network: &SharedLink) -> InterfaceCounters {
    network.receiver().interface(SharedLink::RECEIVER_INTERFACE).counters().unwrap()
}

fn frames_received(network: &SharedLink) -> u64 {
    counters(network).received_frames
}

/// The senders send 6 MB at 25 MB/s, without headers.
fn senders_share_a_link_at_its_rate() {
    let network = SharedLink::new(options(3)).unwrap();
    let bytes_per_connection = Some(2_000_000);
    let config = BulkConfig { connections: 3, bytes_per_connection, ..BulkConfig::default() };
    let report = transfer(&network, &config);
    assert!(report.is_intact(), "{report:?}");
    assert!(report.duration > Duration::from_millis(230), "{:?}", report.duration);
    // Frames have the size of the wire's frames, whatever the senders wrote at once.
    assert!(frames_received(&network) >= 6_000_000 / 1_460);
}

/// Each payload is sent as a whole and segmented by itself: five full segments and a short one.
fn payloads_arrive_whole() {
    let network = SharedLink::new(options(4)).unwrap();
    let (payload_bytes, payloads) = (8_192, 50);
    let config = BulkConfig {
        connections: 4,
        bytes_per_connection: Some(payload_bytes as u64 * payloads),
        write_bytes: payload_bytes,
        one_write_at_a_time: true,
        ..BulkConfig::default()
    };
    let before = frames_received(&network);
    let report = transfer(&network, &config);
    assert!(report.is_intact(), "{report:?}");
    let data_frames = 4 * payloads * 6;
    let frames = frames_received(&network) - before;
    // The rest are handshakes, FINs, ARP, and retransmissions on a busy machine.
    let most = data_frames + 60 + report.retransmitted_segments;
    assert!((data_frames..most).contains(&frames), "{frames} frames, {report:?}");
}

/// With timestamps the headers of each frame have 12 bytes more.
fn frames_have_no_timestamps_unless_asked() {
    let bytes = 5 * 1_448 * 1_460;
    let header_bytes = |timestamps| {
        let network = SharedLink::new(SharedLinkOptions { timestamps, ..options(1) }).unwrap();
        let config = BulkConfig { bytes_per_connection: Some(bytes), ..BulkConfig::default() };
        let repeated = transfer(&network, &config).retransmitted_segments;
        let received = counters(&network);
        (received.received_bytes - bytes - repeated * 1_448) / received.received_frames
    };
    // Ethernet, IP and TCP are 54 bytes. A few frames are no segments, and segments sent again may be short.
    let (without, with) = (header_bytes(false), header_bytes(true));
    assert!((52..60).contains(&without), "{without} bytes");
    assert!((64..72).contains(&with), "{with} bytes");
}

fn no_senders_or_too_many_are_refused() {
    for senders in [0, 251] {
        let error = SharedLink::new(options(senders)).unwrap_err().to_string();
        assert_eq!(error, format!("{senders} sending hosts: choose 1 to 250"));
    }
}
