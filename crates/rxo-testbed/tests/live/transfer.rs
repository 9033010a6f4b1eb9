//! Tests that transfers over real TCP arrive complete, and that wrong bytes are found.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::thread;
use std::time::Duration;

use rxo_testbed::traffic::{
    BulkConfig, BulkReport, BulkTransfer, Outgoing, Pattern, PingPongConfig, exchange, ping_pong,
};
use rxo_testbed::{KernelGro, Lab, LabOptions, Result};

use crate::Test;

pub(crate) const TESTS: &[Test] = &[
    ("a_kernel_senders_window_is_told", a_kernel_senders_window_is_told),
    ("one_connection_arrives_whole", one_connection_arrives_whole),
    ("sixteen_connections_arrive_whole", sixteen_connections_arrive_whole),
    ("four_hundred_connections_arrive_whole", four_hundred_connections_arrive_whole),
    ("ipv6_arrives_whole", ipv6_arrives_whole),
    ("a_transfer_until_stopped_arrives_whole", a_transfer_until_stopped_arrives_whole),
    ("a_wrong_byte_is_found", a_wrong_byte_is_found),
    ("an_interface_limit_holds", an_interface_limit_holds),
    ("a_socket_limit_holds", a_socket_limit_holds),
    ("small_buffers_arrive_whole", small_buffers_arrive_whole),
    ("what_cannot_be_is_refused_by_name", what_cannot_be_is_refused_by_name),
    ("no_path_is_an_error_not_a_hang", no_path_is_an_error_not_a_hang),
    ("ping_pong_counts_round_trips", ping_pong_counts_round_trips),
    ("senders_alone_say_what_they_sent", senders_alone),
    ("an_exchange_with_whoever_answers", exchange_alone),
];

fn config(connections: usize, bytes_per_connection: u64) -> BulkConfig {
    let bytes_per_connection = Some(bytes_per_connection);
    BulkConfig { connections, bytes_per_connection, ..BulkConfig::default() }
}

fn transfer(lab: &Lab, config: &BulkConfig) -> Result<BulkReport> {
    BulkTransfer::start(lab.peer(), lab.host(), lab.host_address(), config)?.wait()
}

fn arrives_whole(connections: usize, bytes: u64, gro: KernelGro) {
    let lab = Lab::direct(gro).unwrap();
    let report = transfer(&lab, &config(connections, bytes)).unwrap();
    assert_eq!(report.mismatch, None);
    assert_eq!(report.sent_bytes, bytes * connections as u64);
    assert_eq!(report.received_bytes, report.sent_bytes);
    assert_eq!(report.connections, connections);
    assert!(report.is_intact());
    // Each frame carries at most 1448 bytes: frames of the wire's MTU cross it, not the sender's
    // GSO packets.
    let frames = lab.peer().interface(Lab::PEER_INTERFACE).counters().unwrap().sent_frames;
    assert!(frames >= report.sent_bytes / 1448, "{frames} frames");
}

fn one_connection_arrives_whole() {
    arrives_whole(1, 100_000_001, KernelGro::Off);
    arrives_whole(1, 100_000_001, KernelGro::On);
}

fn sixteen_connections_arrive_whole() {
    arrives_whole(16, 5_000_011, KernelGro::Off);
    arrives_whole(16, 5_000_011, KernelGro::On);
}

fn four_hundred_connections_arrive_whole() {
    arrives_whole(400, 100_003, KernelGro::On);
}

fn ipv6_arrives_whole() {
    let lab = Lab::direct(KernelGro::On).unwrap();
    let address = Lab::HOST_ADDRESSES.1.into();
    let transfer = BulkTransfer::start(lab.peer(), lab.host(), address, &config(4, 10_000_000));
    assert!(transfer.unwrap().wait().unwrap().is_intact());
}

fn a_transfer_until_stopped_arrives_whole() {
    let lab = Lab::direct(KernelGro::On).unwrap();
    let config = BulkConfig { connections: 3, threads_per_side: 2, ..BulkConfig::default() };
    let transfer =
        BulkTransfer::start(lab.peer(), lab.host(), lab.host_address(), &config).unwrap();
    while transfer.received_bytes() < 1_000_000 {
        std::thread::yield_now();
    }
    let report = transfer.stop().unwrap();
    assert!(report.is_intact(), "{report:?}");
    assert!(report.received_bytes >= 1_000_000);
}

fn a_wrong_byte_is_found() {
    let lab = Lab::direct(KernelGro::On).unwrap();
    let wrong = BulkConfig { wrong_byte_at: Some(1_234_567), ..config(2, 3_000_000) };
    let report = transfer(&lab, &wrong).unwrap();
    let mismatch = report.mismatch.unwrap();
    assert_eq!(mismatch.offset, 1_234_567);
    assert_eq!(mismatch.expected ^ mismatch.received, 1);
    assert_eq!(report.received_bytes, report.sent_bytes);
    assert!(!report.is_intact());
}

/// The transfer sends 8 MB at 40 MB/s; the bucket lets 256 KiB pass at once, so it takes at least 0.19 s.
fn an_interface_limit_holds() {
    let options = LabOptions { limit_bytes_per_s: Some(40_000_000), ..LabOptions::default() };
    let lab = Lab::direct_with(KernelGro::On, options).unwrap();
    let report = transfer(&lab, &config(2, 4_000_000)).unwrap();
    assert!(report.is_intact());
    assert!(report.duration > Duration::from_millis(180), "{:?}", report.duration);
}

/// Limits the rate at the sockets. Pacing begins after the first window.
fn a_socket_limit_holds() {
    let lab = Lab::direct(KernelGro::On).unwrap();
    let config = BulkConfig { limit_bytes_per_s: Some(40_000_000), ..config(2, 4_000_000) };
    let report = transfer(&lab, &config).unwrap();
    assert!(report.is_intact());
    assert!(report.duration > Duration::from_millis(150), "{:?}", report.duration);
}

fn small_buffers_arrive_whole() {
    let lab = Lab::direct(KernelGro::On).unwrap();
    let (send_buffer_bytes, receive_buffer_bytes) = (Some(16 * 1024), Some(8 * 1024));
    let config = BulkConfig { send_buffer_bytes, receive_buffer_bytes, ..config(20, 200_000) };
    assert!(transfer(&lab, &config).unwrap().is_intact());
}

fn what_cannot_be_is_refused_by_name() {
    let lab = Lab::direct(KernelGro::Off).unwrap();
    let good = config(1, 1000);
    let none = || Some("no-such".to_owned());
    let refusals = [
        (BulkConfig { connections: 0, ..good.clone() }, "0 connections: choose 1 to 400"),
        (BulkConfig { connections: 401, ..good.clone() }, "401 connections"),
        (BulkConfig { threads_per_side: 0, ..good.clone() }, "0 threads per side"),
        (BulkConfig { write_bytes: 0, ..good.clone() }, "writes of 0 bytes: choose 1 to 131072"),
        (BulkConfig { bytes_per_connection: None, ..good.clone() }, "bytes_per_connection"),
        (BulkConfig { congestion_control: none(), ..good.clone() }, "congestion control no-such"),
        (BulkConfig { sender_core: Some(1023), ..good.clone() }, "lab-send on core 1023"),
        (BulkConfig { receiver_core: Some(5000), ..good.clone() }, "lab-receive on core 5000"),
    ];
    for (config, expected) in refusals {
        let error = transfer(&lab, &config).unwrap_err().to_string();
        assert!(error.contains(expected) && !error.contains('\n'), "{error}");
    }
    assert!(transfer(&lab, &good).unwrap().is_intact());
}

fn no_path_is_an_error_not_a_hang() {
    let lab = Lab::direct(KernelGro::Off).unwrap();
    lab.peer().interface(Lab::PEER_INTERFACE).down().unwrap();
    let error = transfer(&lab, &config(1, 1)).unwrap_err().to_string();
    assert!(error.starts_with("no connection to 10.77.0.2:"), "{error}");
    assert!(!error.contains('\n'));
}

fn ping_pong_counts_round_trips() {
    let lab = Lab::direct(KernelGro::Off).unwrap();
    let report = |duration| {
        let config = PingPongConfig { duration, client_core: Some(0), server_core: Some(1) };
        let report = ping_pong(lab.peer(), lab.host(), lab.host_address(), config).unwrap();
        assert!(report.duration >= duration);
        report
    };
    // On a busy machine the first exchange may take all of a short time.
    let mut reports = [300, 3_000, 30_000].into_iter().map(Duration::from_millis).map(report);
    let report = reports.find(|report| report.exchanges > 1).expect("exchanges in 30 s");
    assert!(report.quantile_us(0.5) > 1.0 && report.quantile_us(0.5) <= report.quantile_us(0.99));
    // The exchanges do not overlap: the mean lies between the shortest and the longest, kept to three digits.
    let mean_us = 1e6 / report.per_s();
    assert!(report.quantile_us(0.0) <= mean_us * 1.01, "{mean_us}");
    assert!(report.quantile_us(1.0) >= mean_us * 0.99, "{mean_us}");
}

/// Returns a listening socket in the host's namespace, and its address.
fn listener(lab: &Lab) -> (TcpListener, SocketAddr) {
    let bind = || TcpListener::bind((lab.host_address(), 0)).unwrap();
    let listener = lab.host().run(bind).unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

fn senders_alone() {
    let lab = Lab::direct(KernelGro::On).unwrap();
    let (listener, address) = listener(&lab);
    let receiver = thread::spawn(move || {
        let read = |_| {
            let (mut stream, peer) = listener.accept().unwrap();
            thread::spawn(move || {
                let mut bytes = Vec::new();
                stream.read_to_end(&mut bytes).unwrap();
                assert_eq!(Pattern::of_port(peer.port()).check(0, &bytes), Ok(()));
                (peer.port(), bytes.len() as u64)
            })
        };
        let threads: Vec<_> = (0..3).map(read).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    let config = BulkConfig { connections: 3, ..BulkConfig::default() };
    let outgoing = Outgoing::start(lab.peer(), address, &config).unwrap();
    assert_eq!(outgoing.threads().len(), 1);
    while lab.host().interface(Lab::HOST_INTERFACE).counters().unwrap().received_frames < 100 {
        thread::sleep(Duration::from_millis(5));
    }
    let mut sent = outgoing.stop().unwrap().connections;
    let mut received = receiver.join().unwrap();
    sent.sort_unstable();
    received.sort_unstable();
    assert_eq!(sent, received);
    assert!(sent.iter().any(|(_, bytes)| *bytes > 10_000), "{sent:?}");
}

fn exchange_alone() {
    let lab = Lab::direct(KernelGro::On).unwrap();
    let (listener, address) = listener(&lab);
    let answering = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let (mut byte, mut exchanges) = ([0], 0);
        while stream.read(&mut byte).unwrap() > 0 {
            stream.write_all(&byte).unwrap();
            exchanges += 1;
        }
        exchanges
    });
    let config =
        PingPongConfig { duration: Duration::from_secs(1), client_core: None, server_core: None };
    let report = exchange(lab.peer(), address, config).unwrap();
    assert_eq!(report.exchanges, answering.join().unwrap());
    assert!(report.exchanges > 0);
}

fn a_kernel_senders_window_is_told() {
    let lab = Lab::direct(KernelGro::On).unwrap();
    let config = BulkConfig { connections: 2, ..BulkConfig::default() };
    let transfer =
        BulkTransfer::start(lab.peer(), lab.host(), lab.host_address(), &config).unwrap();
    while transfer.received_bytes() < 1_000_000 {
        std::thread::yield_now();
    }
    let mut window = transfer.window().unwrap();
    assert!(window.at > Duration::ZERO, "{window:?}");
    // The last acknowledgements may still be on the way, and a timeout makes a window small for a while.
    while window.delivered_bytes < 1_000_000 || window.cwnd_bytes < 2 * 10 * 1448 {
        assert!(window.at < Duration::from_secs(60), "{window:?}");
        std::thread::yield_now();
        window = transfer.window().unwrap();
    }
    assert!(transfer.stop().unwrap().is_intact());
}
