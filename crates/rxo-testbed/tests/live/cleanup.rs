//! Tests that nothing is left behind: at the end, after a crash, and without root privileges.

use std::env;
use std::fs;
use std::os::unix::process::CommandExt;
use std::thread;
use std::time::{Duration, Instant};

use rxo_testbed::traffic::{BulkConfig, BulkTransfer};
use rxo_testbed::{KernelGro, Lab, Namespace, create_veth};

use crate::Test;
use crate::roles::{TIE, await_ready, complaint, let_orphans_end_soon, process};

pub(crate) const TESTS: &[Test] = &[
    ("fifty_labs_leave_nothing", fifty_labs_leave_nothing),
    ("a_lab_dropped_with_traffic_leaves_nothing", a_lab_dropped_with_traffic_leaves_nothing),
    ("a_killed_process_leaves_nothing", a_killed_process_leaves_nothing),
    ("a_user_without_privilege_can_have_a_lab", a_user_without_privilege_can_have_a_lab),
];

/// The veth end outside a lab disappears when the lab's namespace does, and not before.
fn fifty_labs_leave_nothing() {
    let witness = Namespace::new("witness").unwrap();
    let before = (open_files(), threads());
    for number in 0..50 {
        let gro = if number % 2 == 0 { KernelGro::On } else { KernelGro::Off };
        let lab = if number % 3 == 0 { Lab::through() } else { Lab::direct(gro) }.unwrap();
        for (end, namespace) in [("p", lab.peer()), ("h", lab.host())] {
            let here = witness.interface(&format!("{end}{number}"));
            create_veth(&here, &namespace.interface("tie0")).unwrap();
            assert!(here.exists());
        }
    }
    await_true("files closed", || open_files() <= before.0);
    await_true("threads ended", || threads() <= before.1);
    for number in 0..50 {
        await_gone(&witness, &format!("p{number}"));
        await_gone(&witness, &format!("h{number}"));
    }
}

fn a_lab_dropped_with_traffic_leaves_nothing() {
    let witness = Namespace::new("witness").unwrap();
    let before = threads();
    let lab = Lab::direct(KernelGro::On).unwrap();
    let_orphans_end_soon(&lab);
    create_veth(&witness.interface(TIE), &lab.peer().interface(TIE)).unwrap();
    let config = BulkConfig { connections: 8, ..BulkConfig::default() };
    let transfer = BulkTransfer::start(lab.peer(), lab.host(), lab.host_address(), &config);
    drop(transfer.unwrap());
    drop(lab);
    await_gone(&witness, TIE);
    await_true("threads ended", || threads() <= before);
}

fn a_killed_process_leaves_nothing() {
    let witness = Namespace::new("witness").unwrap();
    let mut child = witness.run(|| process("lab").spawn()).unwrap().unwrap();
    await_ready(&mut child);
    assert!(witness.interface(TIE).exists());
    child.kill().unwrap();
    child.wait().unwrap();
    await_gone(&witness, TIE);
}

fn a_user_without_privilege_can_have_a_lab() {
    if fs::read_to_string("/proc/self/uid_map").is_ok_and(|map| !map.contains("4294967295")) {
        // This whole program runs as such a user already (see `main`).
        let config = BulkConfig { bytes_per_connection: Some(1_000_000), ..BulkConfig::default() };
        let lab = Lab::direct(KernelGro::On).unwrap();
        let transfer = BulkTransfer::start(lab.peer(), lab.host(), lab.host_address(), &config);
        assert!(transfer.unwrap().wait().unwrap().is_intact());
        return;
    }
    let mut child = process("unprivileged").uid(NOBODY).gid(NOBODY).spawn().unwrap();
    drop(child.stdin.take());
    let worked = child.wait().unwrap().success();
    let complaint = complaint(&mut child);
    if worked {
        return;
    }
    assert_eq!(complaint.lines().count(), 1, "one line, with the remedy: {complaint}");
    assert!(complaint.contains("run as root"), "{complaint}");
    eprintln!("not tested: {}", complaint.trim());
    let none_allowed = fs::read_to_string("/proc/sys/user/max_user_namespaces")
        .is_ok_and(|limit| limit.trim() == "0");
    let ci = env::var("CI").is_ok_and(|value| value == "true");
    assert!(!ci || none_allowed, "user namespaces should work here: {complaint}");
}

/// Waits until `interface` is gone, because the kernel removes namespaces and threads in the background.
fn await_gone(witness: &Namespace, interface: &str) {
    await_true(interface, || !witness.interface(interface).exists());
}

fn await_true(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(300);
    while !condition() {
        assert!(Instant::now() < deadline, "still not: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

fn open_files() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

fn threads() -> usize {
    fs::read_dir("/proc/self/task").unwrap().count()
}

const NOBODY: u32 = 65_534;
