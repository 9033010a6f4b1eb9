//! Tests of a TAP with several queues: each connection of the host comes out of one queue, the one that the
//! same connection has on a packet socket's interface. They need the right to load programs (`CAP_BPF`), which
//! a user namespace does not give.

use std::net::{Ipv4Addr, UdpSocket};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use rxo_device::{FrameSink, FrameSource};
use rxo_driver::{Device, DeviceHandle, DeviceName, DeviceOptions, DeviceSink};
use rxo_frame::Frame;
use rxo_wire::{FlowKey, shard_of};

use crate::Test;
use crate::fanout::{key, reversed, v4, v6};
use crate::network::{LONG, quiet_namespace, stay_on_one_core};
use crate::packets::{numbered, plain};

pub(crate) const TESTS: &[Test] = &[
    ("each_connection_comes_out_of_its_queue_of_a_tap", each_to_its_queue),
    ("a_persistent_tap_must_have_queues_and_gets_its_steering_back", persistent),
    ("a_tap_with_queues_is_for_one_process", locked),
    ("no_packet_comes_out_of_a_queue_that_was_chosen_before_the_rule", unsteered),
];

const QUEUES: u32 = 3;

fn attach(name: &str) -> Result<Box<dyn DeviceHandle>, String> {
    let name: DeviceName = name.parse().unwrap();
    name.attach_queues(QUEUES).map_err(|error| error.to_string())
}

fn open(handle: &dyn DeviceHandle) -> Vec<Device> {
    let options = DeviceOptions { bring_up: true, ..DeviceOptions::default() };
    handle.open_queues(options).unwrap()
}

/// Receives `count` frames.
fn receive(device: &mut Device, count: usize) -> Vec<Vec<u8>> {
    let (mut received, mut batch, begun) = (Vec::new(), Vec::<Frame<_>>::new(), Instant::now());
    while received.len() < count {
        assert!(begun.elapsed() < LONG, "{} of {count}", received.len());
        device.source.receive(&mut batch, 64).unwrap();
        received.extend(batch.drain(..).map(|frame| frame.bytes().to_vec()));
    }
    received
}

fn each_to_its_queue() {
    let host = quiet_namespace("host");
    let test = || {
        stay_on_one_core();
        let handle = attach("tap:rxo0").unwrap();
        let mut devices = open(&*handle);
        let kinds: [fn(u16) -> Vec<u8>; 3] = [|port| v4(port, 0), |port| v4(port, 3), v6];
        let frames = (40_000..40_100).flat_map(|port| kinds.map(|kind| kind(port)));
        let frames: Vec<_> = frames.flat_map(|frame| [reversed(frame.clone()), frame]).collect();
        DeviceSink::packet("rxo0").unwrap().transmit(plain(&frames)).unwrap();
        for (queue, device) in devices.iter_mut().enumerate() {
            let is_its = |frame: &&Vec<u8>| shard_of(&key(frame), QUEUES) as usize == queue;
            let expected: Vec<_> = frames.iter().filter(is_its).cloned().collect();
            assert!(expected.len() > frames.len() / 5, "{} of {}", expected.len(), frames.len());
            assert_eq!(receive(device, expected.len()), expected, "queue {queue}");
        }
        let others: Vec<_> = (0..20).map(|number| numbered(number, 60)).collect();
        DeviceSink::packet("rxo0").unwrap().transmit(plain(&others)).unwrap();
        assert_eq!(receive(&mut devices[0], others.len()), others);
        let lost: u64 = devices.iter_mut().map(|it| it.source.counters().ring_drops).sum();
        assert_eq!(lost, 0);
    };
    host.run(test).unwrap();
}

fn ip(line: &str) {
    assert!(Command::new("ip").args(line.split(' ')).status().unwrap().success(), "ip {line}");
}

fn persistent() {
    let host = quiet_namespace("host");
    let test = || {
        ip("tuntap add one0 mode tap");
        let said = attach("tap:one0").unwrap_err();
        assert!(said.contains("has one queue; make it with `ip tuntap add one0"), "{said}");
        ip("tuntap add many0 mode tap multi_queue");
        drop(attach("tap:many0").unwrap());
        drop(attach("tap:many0").unwrap());
        ip("link del many0");
    };
    host.run(test).unwrap();
}

fn locked() {
    let host = quiet_namespace("host");
    let test = || {
        let first = attach("tap:rxo0").unwrap();
        let said = attach("tap:rxo0").unwrap_err();
        assert!(said.contains("another program serves `rxo0`"), "{said}");
        drop(first);
        attach("tap:rxo0").unwrap();
    };
    host.run(test).unwrap();
}

/// Stops the senders of a test, also if it panics.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The stack sends while the queues of an interface that is up are opened one after the other.
fn unsteered() {
    let host = quiet_namespace("host");
    let test = || {
        ip("tuntap add many0 mode tun multi_queue");
        ip("addr add 10.9.0.1/24 dev many0");
        ip("link set many0 up");
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let socket = UdpSocket::bind("10.9.0.1:9").unwrap();
                while !is_over.load(Ordering::Relaxed) {
                    // Nobody reads in between, so the system may refuse.
                    (2..250)
                        .for_each(|to| _ = socket.send_to(b"?", (Ipv4Addr::new(10, 9, 0, to), 9)));
                }
            });
            let _over = Over(&is_over);
            for round in 0..50 {
                let handle = attach("tun:many0").unwrap();
                for (queue, device) in open(&*handle).iter_mut().enumerate() {
                    for packet in receive(device, 20) {
                        let word =
                            |at: usize| u32::from_be_bytes(packet[at..at + 4].try_into().unwrap());
                        let its = shard_of(&FlowKey::v4(word(12), word(16), 0, 0), QUEUES);
                        assert_eq!(its as usize, queue, "round {round}: {packet:?}");
                    }
                }
            }
        });
    };
    host.run(test).unwrap();
}
