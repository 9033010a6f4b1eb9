//! Tests `virtio:PATH` against the device side of another program: a vhost port of DPDK's `testpmd`, which
//! sends each frame back, or forwards it through a second port.
//!
//! Requires the program `dpdk-testpmd` (Debian: `dpdk-dev`); `cargo xtask test --guests` runs these tests.
//! They require neither huge pages nor a network card.
#![allow(clippy::unwrap_used, reason = "a test")]

#[allow(dead_code, reason = "the unit tests use the rest")]
#[path = "../../src/virtio_net/samples.rs"]
mod samples;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs};

use rxo_device::{FrameSink, FrameSource};
use rxo_driver::wait::{Interest, WaitList, pause};
use rxo_driver::{Device, DeviceBuf, DeviceName, DeviceOptions};
use rxo_frame::Frame;
use rxo_wire::checksum::{Summer, verify_transport};
use rxo_wire::parse;
use rxo_wire::segmentation::{Checksums, segment};

use samples::{large, large_v6, tcp, tcp_v6};

/// Maximum time for which a test waits; no machine is so slow.
const TIMEOUT: Duration = Duration::from_secs(120);
const SHORT: Duration = Duration::from_millis(1);
/// The number of frames sent and not yet received at a time, fewer than any ring has entries.
const WINDOW: usize = 32;
const FRAMES: usize = 5_000;

#[test]
fn frames_come_back_from_testpmd_also_after_it_was_killed() {
    let folder = Folder::new("loop");
    let socket = folder.0.join("pmd.sock");
    let testpmd = Testpmd::start(&[&socket], "");
    let mut device = [open(&socket)];
    all_come_back(&mut device, FRAMES);
    drop(testpmd);
    _ = fs::remove_file(&socket);
    let _testpmd = Testpmd::start(&[&socket], "");
    all_come_back(&mut device, FRAMES);
}

/// GSO frames pass uncut from one port to another, in mergeable buffers on both sides. With
/// `legacy-ol-flags`, a port sets on a received frame the flags that sending it requires. Without that option
/// a port sets the flags of a network card: `io` passes them on unchanged, so the other port sends a large
/// frame without a header that marks it as GSO.
#[test]
fn gso_frames_pass_whole_from_one_port_of_testpmd_to_another() {
    let folder = Folder::new("paired");
    let sockets = ["0.sock", "1.sock"].map(|name| folder.0.join(name));
    let [first, second] = sockets.each_ref();
    let _testpmd = Testpmd::start(&[first, second], ",tso=1,legacy-ol-flags=1");
    let mut devices = [open(first), open(second)];
    reaches(&mut devices);
    for payload in [1_001, 2_500, 20_000, 60_000] {
        let (v4, v6) = (tcp(payload), tcp_v6(payload));
        for frame in [large(&v4), large_v6(&v6)] {
            devices[0].sink.transmit([frame].into_iter()).unwrap();
            let came = next(&mut devices);
            assert_eq!((came.gso, came.checksum), (frame.gso, frame.checksum), "{payload}");
            assert!(segments(&came.borrowed()) == segments(&frame), "{payload}");
        }
    }
    assert_eq!(devices[0].sink.counters().packets, devices[0].sink.counters().frames);
}

/// Cuts a GSO frame into its segments as on the wire. The frame's own bytes are not compared: the checksum
/// seed from `testpmd` lacks the length, as some network cards require it.
fn segments(frame: &Frame<&[u8]>) -> Vec<Vec<u8>> {
    let (parsed, size) = (parse(frame.bytes).unwrap(), frame.gso.unwrap().size);
    let complete = Checksums::Complete(Summer::detect());
    let mut segments = segment(frame.bytes, &parsed, size, complete).unwrap();
    let (mut all, mut bytes) = (Vec::new(), [0; 2_048]);
    while let Some(length) = segments.next_into(&mut bytes).unwrap() {
        assert!(verify_transport(
            &parse(&bytes[..length]).unwrap(),
            &bytes[..length],
            Summer::detect()
        ));
        all.push(bytes[..length].to_vec());
    }
    all
}

/// Every frame of every size comes back unchanged, in order.
fn all_come_back(devices: &mut [Device], count: usize) {
    reaches(devices);
    let (mut sent, mut came, begun) = (0, 0, Instant::now());
    while came < count {
        assert!(begun.elapsed() < TIMEOUT, "{came} of {count} frames came back");
        while sent < count && sent - came < WINDOW && !devices[0].sink.is_blocked() {
            send(&mut devices[0], &frame(sent));
            sent += 1;
        }
        for got in turn(devices).iter().filter(|got| got.bytes() != MARK) {
            assert_eq!(got.bytes(), frame(came), "frame {came}");
            came += 1;
        }
    }
}

/// Sends marker frames through the first device until one arrives at the last: the other side may still be
/// starting. More markers may arrive afterwards.
fn reaches(devices: &mut [Device]) {
    let begun = Instant::now();
    loop {
        assert!(begun.elapsed() < TIMEOUT, "nothing comes back");
        if !devices[0].sink.is_blocked() {
            send(&mut devices[0], &MARK);
        }
        let came = turn(devices);
        assert!(came.iter().all(|got| got.bytes() == MARK));
        if !came.is_empty() {
            return;
        }
    }
}

/// Returns the next frame that is not a marker.
fn next(devices: &mut [Device]) -> Frame<DeviceBuf> {
    let begun = Instant::now();
    loop {
        assert!(begun.elapsed() < TIMEOUT, "nothing comes");
        let came = turn(devices).into_iter().find(|got| got.bytes() != MARK);
        if let Some(came) = came {
            return came;
        }
    }
}

/// Lets all devices work, and waits briefly. Returns the frames that arrived at the last device.
fn turn(devices: &mut [Device]) -> Vec<Frame<DeviceBuf>> {
    let mut came = Vec::new();
    for device in devices.iter_mut() {
        came.clear();
        device.sink.resume().unwrap();
        device.source.receive(&mut came, 64).unwrap();
    }
    devices.last().into_iter().for_each(wait);
    came
}

const MARK: [u8; 60] = [0xff; 60];

/// Creates the `n`-th frame, of 60 to 1,514 bytes, with the EtherType for local experiments (IEEE 802).
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
            Err(error) => assert!(begun.elapsed() < TIMEOUT, "{error}"),
        }
        pause(SHORT);
    }
}

/// A running `testpmd`. Dropping the value kills it.
struct Testpmd(Child);

impl Testpmd {
    /// Starts `testpmd` with a port on each of `sockets`, opened with `arguments`. A single port sends frames
    /// back; two ports forward to each other.
    fn start(sockets: &[&Path], arguments: &str) -> Self {
        let topology = if sockets.len() == 1 { "loop" } else { "paired" };
        let mut command = Command::new("dpdk-testpmd");
        // Forwards in one thread beside the main thread, on a processor that this process may use.
        command.args(["--no-huge", "-m", "128", "--no-pci", "--no-shconf", "--no-telemetry"]);
        let processor = allowed_processor();
        let lcores = format!("0@{processor},1@{processor}");
        command.args(["--lcores", &lcores]);
        for (n, socket) in sockets.iter().enumerate() {
            let port = format!("net_vhost{n},iface={},queues=1{arguments}", socket.display());
            command.args(["--vdev", &port]);
        }
        command.args(["--", "--forward-mode=io", "--auto-start"]);
        command.arg(format!("--port-topology={topology}"));
        command.args(["--no-flush-rx", "--total-num-mbufs=4096"]);
        // The files that `testpmd` leaves in its folder are deleted with the folder of the test.
        command.envs(sockets[0].parent().map(|folder| ("RUNTIME_DIRECTORY", folder)));
        // `testpmd` ends when its standard input ends.
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        match command.spawn() {
            Ok(child) => Self(child),
            Err(error) => panic!("cannot run dpdk-testpmd ({error}): install the package dpdk-dev"),
        }
    }
}

/// Returns the first processor that this process may use.
fn allowed_processor() -> u32 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    list.trim().split(['-', ',']).next().unwrap().parse().unwrap()
}

impl Drop for Testpmd {
    fn drop(&mut self) {
        // The process may have ended by itself.
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("rxo-testpmd-{name}-{}", std::process::id());
        let folder = env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.0);
    }
}
