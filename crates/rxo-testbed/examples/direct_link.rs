//! Measures a direct link with the kernel alone, with and without its own coalescing.
//!
//! `cargo run --release -p rxo-testbed --example direct_link`

use std::process::ExitCode;
use std::time::Duration;

use rxo_testbed::traffic::{BulkConfig, BulkTransfer, PingPongConfig, ping_pong};
use rxo_testbed::{CpuMeter, KernelGro, Lab, LabOptions, Result, become_root_in_user_namespace};

fn main() -> ExitCode {
    match measure() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn measure() -> Result<()> {
    become_root_in_user_namespace()?;
    println!("GRO  flows  Gbit/s  CPU s/GB  sender  receiver  ksoftirqd  frames/delivery  retrans");
    for connections in [1, 16, 64] {
        for gro in [KernelGro::Off, KernelGro::On] {
            bulk(gro, connections)?;
        }
    }
    for gro in [KernelGro::Off, KernelGro::On] {
        let lab =
            Lab::direct_with(gro, LabOptions { peer_core: Some(0), ..LabOptions::default() })?;
        let duration = Duration::from_secs(1);
        let config = PingPongConfig { duration, client_core: Some(0), server_core: Some(1) };
        let report = ping_pong(lab.peer(), lab.host(), lab.host_address(), config)?;
        let (p50, p99) = (report.quantile_us(0.5), report.quantile_us(0.99));
        println!("{gro:?}: {:.0} round trips/s, p50 {p50:.1} us, p99 {p99:.1} us", report.per_s());
    }
    Ok(())
}

fn bulk(gro: KernelGro, connections: usize) -> Result<()> {
    let lab = Lab::direct_with(gro, LabOptions { peer_core: Some(0), ..LabOptions::default() })?;
    let (sender_core, receiver_core) = (Some(0), Some(1));
    let config = BulkConfig { connections, sender_core, receiver_core, ..BulkConfig::default() };
    let transfer = BulkTransfer::start(lab.peer(), lab.host(), lab.host_address(), &config)?;
    std::thread::sleep(Duration::from_millis(300));
    let meter = CpuMeter::new()
        .threads("sender", transfer.sender_threads())
        .threads("receiver", transfer.receiver_threads());
    let frames = || lab.peer().interface(Lab::PEER_INTERFACE).counters().map(|c| c.sent_frames);
    let (frames_before, stack_before) = (frames()?, lab.host().stack_counters()?);
    let window = transfer.measure(Duration::from_secs(2), &meter)?;
    let crossed = frames()? - frames_before;
    let deliveries = lab.host().stack_counters()?.deliveries - stack_before.deliveries;
    let report = transfer.stop()?;
    assert!(report.is_intact(), "{report:?}");
    let per_gb = |part| {
        window.cpu.part(part).unwrap_or_default().as_secs_f64() * 1e9 / window.received_bytes as f64
    };
    println!(
        "{:3}  {connections:5}  {:6.1}  {:8.2}  {:6.2}  {:8.2}  {:9.2}  {:15.1}  {:7}",
        format!("{gro:?}"),
        window.gbit_per_s(),
        window.cpu_s_per_gb(),
        per_gb("sender"),
        per_gb("receiver"),
        window.cpu.ksoftirqd.as_secs_f64() * 1e9 / window.received_bytes as f64,
        crossed as f64 / deliveries as f64,
        report.retransmitted_segments,
    );
    Ok(())
}
