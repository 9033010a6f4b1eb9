//! The meter's readings are plausible, and assigned to the right user.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rxo_lab::traffic::{BulkConfig, BulkTransfer};
use rxo_lab::{CpuMeter, KernelGro, Lab, pin_to_core, thread_id};

use crate::Test;
use crate::roles::{await_ready, process};

pub(crate) const TESTS: &[Test] = &[
    ("a_transfer_costs_both_sides", a_transfer_costs_both_sides),
    ("a_pinned_thread_stays_and_is_counted", a_pinned_thread_stays_and_is_counted),
    ("threads_outside_a_part_are_the_rest", threads_outside_a_part_are_the_rest),
    ("another_process_is_counted", another_process_is_counted),
    ("a_thread_that_ended_is_an_error", a_thread_that_ended_is_an_error),
];

fn a_transfer_costs_both_sides() {
    let lab = Lab::direct(KernelGro::Off).unwrap();
    let config =
        BulkConfig { sender_core: Some(0), receiver_core: Some(1), ..BulkConfig::default() };
    let transfer =
        BulkTransfer::start(lab.peer(), lab.host(), lab.host_address(), &config).unwrap();
    let meter = CpuMeter::new()
        .threads("sender", transfer.sender_threads())
        .threads("receiver", transfer.receiver_threads());
    let window = transfer.measure(Duration::from_millis(500), &meter).unwrap();
    transfer.stop().unwrap();
    let (sender, receiver) =
        (window.cpu.part("sender").unwrap(), window.cpu.part("receiver").unwrap());
    assert!(sender > Duration::from_millis(5), "{window:?}");
    assert!(receiver > Duration::from_millis(5), "{window:?}");
    // One thread on one core each.
    let most = window.duration + Duration::from_millis(20);
    assert!(sender <= most && receiver <= most, "{window:?}");
    assert!(window.cpu.total() >= sender + receiver);
    assert!(window.gbit_per_s() > 0.1 && window.cpu_s_per_gb() < 50.0, "{window:?}");
    assert_eq!(window.cpu.part("nobody"), None);
}

fn a_pinned_thread_stays_and_is_counted() {
    let (tell, hear) = mpsc::channel();
    let (stop, stopped) = mpsc::channel::<()>();
    let thread = thread::spawn(move || {
        pin_to_core(0).unwrap();
        tell.send(thread_id()).unwrap();
        spin_for(Duration::from_millis(200));
        stopped.recv().unwrap_err();
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        assert!(status.contains("Cpus_allowed_list:\t0\n"), "{status}");
        pin_to_core(4000).unwrap_err().to_string()
    });
    let meter = CpuMeter::new().threads("spinner", vec![hear.recv().unwrap()]);
    let before = meter.read().unwrap();
    thread::sleep(Duration::from_millis(150));
    let used = meter.read().unwrap().since(&before);
    drop(stop);
    assert!(used.part("spinner").unwrap() > Duration::from_millis(20), "{used:?}");
    let error = thread.join().unwrap();
    assert!(error.contains("on core 4000"), "{error}");
}

fn threads_outside_a_part_are_the_rest() {
    let meter = CpuMeter::new().threads("nobody", Vec::new());
    let before = meter.read().unwrap();
    thread::spawn(|| spin_for(Duration::from_millis(200))).join().unwrap();
    let used = meter.read().unwrap().since(&before);
    // The thread has ended and still counts. Others may have used the core meanwhile.
    assert!(used.rest > Duration::from_millis(30), "{used:?}");
    assert!(used.rest < Duration::from_millis(400), "{used:?}");
    assert_eq!(used.part("nobody"), Some(Duration::ZERO));
}

fn another_process_is_counted() {
    let mut child = process("spin").spawn().unwrap();
    await_ready(&mut child);
    let meter = CpuMeter::new().process("child", child.id());
    let before = meter.read().unwrap();
    thread::sleep(Duration::from_millis(300));
    let used = meter.read().unwrap().since(&before);
    drop(child.stdin.take());
    child.wait().unwrap();
    assert!(used.part("child").unwrap() > Duration::from_millis(30), "{used:?}");
    assert!(used.rest < Duration::from_millis(100), "{used:?}");
    let error = meter.read().unwrap_err().to_string();
    assert!(error.contains("(child) has ended"), "{error}");
}

fn a_thread_that_ended_is_an_error() {
    let (tell, hear) = mpsc::channel();
    thread::spawn(move || {
        let link = std::fs::read_link("/proc/thread-self").unwrap();
        tell.send(link.file_name().unwrap().to_str().unwrap().parse().unwrap()).unwrap();
    })
    .join()
    .unwrap();
    let error = CpuMeter::new().threads("gone", vec![hear.recv().unwrap()]).read().unwrap_err();
    assert!(error.to_string().contains("(gone) has ended"), "{error}");
}

fn spin_for(duration: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < duration {
        std::hint::spin_loop();
    }
}
