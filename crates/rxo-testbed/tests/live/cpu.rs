//! Tests that the meter's readings are plausible, and assigned to the right user of the processor.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rxo_testbed::traffic::{BulkConfig, BulkTransfer, Window};
use rxo_testbed::{CpuMeter, CpuUse, KernelGro, Lab, pin_to_core, thread_id};

use crate::Test;
use crate::roles::{await_ready, process};

pub(crate) const TESTS: &[Test] = &[
    ("a_transfer_costs_both_sides", a_transfer_costs_both_sides),
    ("a_pinned_thread_stays_and_is_counted", a_pinned_thread_stays_and_is_counted),
    ("threads_outside_a_part_are_the_rest", threads_outside_a_part_are_the_rest),
    ("another_process_is_counted", another_process_is_counted),
    ("a_thread_that_ended_is_an_error", a_thread_that_ended_is_an_error),
    ("a_window_lasts_until_enough_has_arrived", a_window_lasts_until_enough_has_arrived),
];

fn a_window_lasts_until_enough_has_arrived() {
    let lab = Lab::direct(KernelGro::Off).unwrap();
    // Within a millisecond hardly anything arrives.
    let config = BulkConfig { limit_bytes_per_s: Some(20_000_000), ..BulkConfig::default() };
    let transfer =
        BulkTransfer::start(lab.peer(), lab.host(), lab.host_address(), &config).unwrap();
    let (short, least) = (Duration::from_millis(1), 4_000_000);
    let window = transfer.measure_at_least(short, least, &CpuMeter::new()).unwrap();
    assert!(window.received_bytes >= least && window.duration > short, "{window:?}");
    transfer.stop().unwrap();
}

fn a_transfer_costs_both_sides() {
    let lab = Lab::direct(KernelGro::Off).unwrap();
    let config =
        BulkConfig { sender_core: Some(0), receiver_core: Some(1), ..BulkConfig::default() };
    let transfer =
        BulkTransfer::start(lab.peer(), lab.host(), lab.host_address(), &config).unwrap();
    let meter = CpuMeter::new()
        .threads("sender", transfer.sender_threads())
        .threads("receiver", transfer.receiver_threads());
    let part = |window: &Window, name| window.cpu.part(name).unwrap();
    let some = Duration::from_millis(5);
    let started = Instant::now();
    let (window, took) = loop {
        let begin = Instant::now();
        let window = transfer.measure(Duration::from_millis(500), &meter).unwrap();
        if part(&window, "sender") > some && part(&window, "receiver") > some {
            break (window, begin.elapsed());
        }
        // On a busy machine this takes longer.
        assert!(started.elapsed() < LONG, "{window:?}");
    };
    transfer.stop().unwrap();
    let (sender, receiver) = (part(&window, "sender"), part(&window, "receiver"));
    // One thread on one core each.
    assert!(sender <= took && receiver <= took, "{window:?} in {took:?}");
    assert!(window.cpu.total() >= sender + receiver);
    assert!(window.gbit_per_s() > 0.0 && window.cpu_s_per_gb() > 0.0, "{window:?}");
    assert_eq!(window.cpu.part("nobody"), None);
}

fn a_pinned_thread_stays_and_is_counted() {
    let (tell, hear) = mpsc::channel();
    let (stop, stopped) = mpsc::channel::<()>();
    let thread = thread::spawn(move || {
        pin_to_core(0).unwrap();
        tell.send(thread_id()).unwrap();
        while stopped.try_recv() == Err(mpsc::TryRecvError::Empty) {
            std::hint::spin_loop();
        }
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        assert!(status.contains("Cpus_allowed_list:\t0\n"), "{status}");
        pin_to_core(4000).unwrap_err().to_string()
    });
    let meter = CpuMeter::new().threads("spinner", vec![hear.recv().unwrap()]);
    await_use(&meter, "spinner", Duration::from_millis(20));
    drop(stop);
    let error = thread.join().unwrap();
    assert!(error.contains("on core 4000"), "{error}");
}

fn threads_outside_a_part_are_the_rest() {
    let meter = CpuMeter::new().threads("nobody", Vec::new());
    let before = meter.read().unwrap();
    thread::spawn(|| use_core_for(Duration::from_millis(50))).join().unwrap();
    let used = meter.read().unwrap().since(&before);
    // The thread has ended, and its time still counts.
    assert!(used.rest > Duration::from_millis(30), "{used:?}");
    assert!(used.rest < Duration::from_millis(400), "{used:?}");
    assert_eq!(used.part("nobody"), Some(Duration::ZERO));
}

fn another_process_is_counted() {
    let mut child = process("spin").spawn().unwrap();
    await_ready(&mut child);
    let meter = CpuMeter::new().process("child", child.id());
    let used = await_use(&meter, "child", Duration::from_millis(30));
    drop(child.stdin.take());
    child.wait().unwrap();
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

/// Waits until `part` has used more than `time` of the processor. Returns the use until then.
fn await_use(meter: &CpuMeter, part: &str, time: Duration) -> CpuUse {
    let (begin, before) = (Instant::now(), meter.read().unwrap());
    loop {
        thread::sleep(Duration::from_millis(50));
        let used = meter.read().unwrap().since(&before);
        if used.part(part).unwrap() > time {
            return used;
        }
        assert!(begin.elapsed() < LONG, "{used:?}");
    }
}

/// Spins until the calling thread has used `time` of the processor, not counting the time of other threads.
fn use_core_for(time: Duration) {
    let meter = CpuMeter::new().threads("this", vec![thread_id()]);
    let before = meter.read().unwrap();
    while meter.read().unwrap().since(&before).part("this").unwrap() < time {
        std::hint::spin_loop();
    }
}

/// The longest time for which a busy machine may keep a thread from its core.
const LONG: Duration = Duration::from_secs(60);
