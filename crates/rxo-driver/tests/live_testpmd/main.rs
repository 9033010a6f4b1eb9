//! `virtio:PATH` against another's device side: a vhost port of DPDK's `testpmd`, which sends back what it
//! gets.
//!
//! Needs the program `dpdk-testpmd` (Debian: `dpdk`); `cargo xtask test --guests` runs it. No huge pages and
//! no card.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs};

use rxo_device::{FrameSink, FrameSource};
use rxo_driver::wait::{Interest, WaitList, pause};
use rxo_driver::{Device, DeviceName, DeviceOptions};
use rxo_frame::Frame;

/// Longer than any machine takes.
const PATIENCE: Duration = Duration::from_secs(120);
const SHORT: Duration = Duration::from_millis(1);
/// Frames under way at a time, fewer than any ring has entries.
const WINDOW: usize = 32;
const FRAMES: usize = 5_000;

#[test]
fn frames_come_back_from_testpmd_also_after_it_was_killed() {
    let folder = Folder::new();
    let socket = folder.0.join("pmd.sock");
    let testpmd = Testpmd::start(&socket);
    let mut device = open(&socket);
    all_come_back(&mut device, FRAMES);
    drop(testpmd);
    _ = fs::remove_file(&socket);
    let _testpmd = Testpmd::start(&socket);
    all_come_back(&mut device, FRAMES);
}

/// Every frame of every size comes back as it was, in order.
fn all_come_back(device: &mut Device, count: usize) {
    reaches(device);
    let (mut sent, mut came, begun) = (0, 0, Instant::now());
    let mut batch = Vec::new();
    while came < count {
        assert!(begun.elapsed() < PATIENCE, "{came} of {count} frames came back");
        while sent < count && sent - came < WINDOW && !device.sink.is_blocked() {
            send(device, &frame(sent));
            sent += 1;
        }
        device.sink.resume().unwrap();
        device.source.receive(&mut batch, 64).unwrap();
        for got in batch.drain(..).filter(|got| got.bytes() != MARK) {
            assert_eq!(got.bytes(), frame(came), "frame {came}");
            came += 1;
        }
        wait(device);
    }
}

/// Sends marks until one comes back: the other side may be starting. Other marks may follow.
fn reaches(device: &mut Device) {
    let (mut batch, begun) = (Vec::new(), Instant::now());
    while batch.is_empty() {
        assert!(begun.elapsed() < PATIENCE, "nothing comes back");
        if !device.sink.is_blocked() {
            send(device, &MARK);
        }
        device.sink.resume().unwrap();
        device.source.receive(&mut batch, 64).unwrap();
        wait(device);
    }
    assert!(batch.iter().all(|got| got.bytes() == MARK));
}

const MARK: [u8; 60] = [0xff; 60];

/// The `n`-th frame: of local experiments (IEEE 802), 60 to 1,514 bytes.
fn frame(n: usize) -> Vec<u8> {
    let mut bytes = vec![n as u8; 60 + n * 7 % 1_455];
    bytes[..6].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
    bytes[12..14].copy_from_slice(&[0x88, 0xb5]);
    bytes[14..22].copy_from_slice(&(n as u64).to_le_bytes());
    bytes
}

fn send(device: &mut Device, bytes: &[u8]) {
    let frame = Frame::new(bytes, rxo_frame::Instant::ZERO);
    device.sink.transmit([frame].into_iter()).unwrap();
}

fn wait(device: &Device) {
    let mut list = WaitList::new();
    list.add(Some(&device.source), Interest::Readable);
    list.wait(Some(SHORT)).unwrap();
}

/// Opens the device as soon as `testpmd` listens.
fn open(socket: &Path) -> Device {
    let name: DeviceName = format!("virtio:{}", socket.display()).parse().unwrap();
    let begun = Instant::now();
    loop {
        match Device::open(&name, DeviceOptions::default()) {
            Ok(device) => return device,
            Err(error) => assert!(begun.elapsed() < PATIENCE, "{error}"),
        }
        pause(SHORT);
    }
}

/// A running `testpmd`. Dropping it kills it.
struct Testpmd(Child);

impl Testpmd {
    fn start(socket: &Path) -> Self {
        let port = format!("net_vhost0,iface={},queues=1", socket.display());
        let mut command = Command::new("dpdk-testpmd");
        // One thread that forwards beside the main one, on a processor that this process may use.
        command.args(["--no-huge", "-m", "128", "--no-pci", "--no-shconf", "--no-telemetry"]);
        let processor = allowed_processor();
        let lcores = format!("0@{processor},1@{processor}");
        command.args(["--lcores", &lcores, "--vdev", &port, "--"]);
        command.args(["--forward-mode=io", "--port-topology=loop", "--auto-start"]);
        command.args(["--no-flush-rx", "--total-num-mbufs=4096"]);
        // What it leaves in its folder goes with ours.
        command.envs(socket.parent().map(|folder| ("RUNTIME_DIRECTORY", folder)));
        // It ends when its standard input does.
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        match command.spawn() {
            Ok(child) => Self(child),
            Err(error) => panic!("cannot run dpdk-testpmd ({error}): install the package dpdk"),
        }
    }
}

/// The first processor that this process may use.
fn allowed_processor() -> u32 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    list.trim().split(['-', ',']).next().unwrap().parse().unwrap()
}

impl Drop for Testpmd {
    fn drop(&mut self) {
        // It may have ended by itself.
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let folder = env::temp_dir().join(format!("rxo-testpmd-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.0);
    }
}
