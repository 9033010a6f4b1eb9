//! Many senders on one slower link.

use std::time::Duration;

use rxo_lab::traffic::{BulkConfig, BulkReport, BulkTransfer};
use rxo_lab::{Namespace, SharedLink, SharedLinkOptions};

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

fn frames_received(network: &SharedLink) -> u64 {
    let interface = network.receiver().interface(SharedLink::RECEIVER_INTERFACE);
    interface.counters().unwrap().received_frames
}

/// 6 MB at 25 MB/s, headers not counted.
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
    // Plus handshakes, FINs, ARP, and what a busy machine makes a sender repeat.
    let most = data_frames + 60 + report.retransmitted_segments;
    assert!((data_frames..most).contains(&frames), "{frames} frames, {report:?}");
}

/// With timestamps, the largest segment is 12 bytes shorter.
fn frames_have_no_timestamps_unless_asked() {
    let frames = |timestamps| {
        let network = SharedLink::new(SharedLinkOptions { timestamps, ..options(1) }).unwrap();
        let bytes_per_connection = Some(5 * 1_448 * 1_460);
        let config = BulkConfig { bytes_per_connection, ..BulkConfig::default() };
        let repeated = transfer(&network, &config).retransmitted_segments;
        (frames_received(&network), repeated)
    };
    let ((without, repeated), (with, also_repeated)) = (frames(false), frames(true));
    // Less than 60 beside the data: handshake, end, ARP, and probes of a reader that has to wait for its core.
    assert!((7_240..7_300 + repeated).contains(&without), "{without}");
    assert!((7_300..7_360 + also_repeated).contains(&with), "{with}");
}

fn no_senders_or_too_many_are_refused() {
    for senders in [0, 251] {
        let error = SharedLink::new(options(senders)).unwrap_err().to_string();
        assert_eq!(error, format!("{senders} sending hosts: choose 1 to 250"));
    }
}
