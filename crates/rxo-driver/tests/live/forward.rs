//! Tests that join a wire and a stack with this crate alone, and run real TCP through it, in frames of
//! several slices.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rxo_device::{FrameSink, FrameSource};
use rxo_driver::{
    DeviceSink, PacketOptions, PacketSource, SubmitMode, Tap, TapKind, TapSource, wait,
};
use rxo_frame::Gather;

use crate::Test;
use crate::network::{FAR, LONG, NEAR, NEAR_ADDRESS, Pair};
use crate::packets::Pieces;

pub(crate) const TESTS: &[Test] = &[
    ("tcp_from_the_wire_reaches_the_stack_intact_io_uring", || from_wire(SubmitMode::Uring)),
    ("tcp_from_the_wire_reaches_the_stack_intact_writev", || from_wire(SubmitMode::Writev)),
    ("tcp_from_the_stack_reaches_the_wire_intact", from_stack),
];

const BYTES: usize = 20_000_000;
const STACK_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 9);

/// The two sides that are joined: the far end of the wire, and a TAP.
struct Joint {
    wire_in: PacketSource,
    wire_out: DeviceSink,
    stack_in: TapSource,
    stack_out: DeviceSink,
    gso_frames: u64,
}

impl Joint {
    fn new(tap: &Tap, mode: SubmitMode) -> Self {
        Self {
            wire_in: PacketSource::open(FAR, PacketOptions::default()).unwrap(),
            wire_out: DeviceSink::packet(FAR).unwrap(),
            stack_in: tap.source().unwrap(),
            stack_out: tap.sink(mode).unwrap(),
            gso_frames: 0,
        }
    }

    /// Forwards frames in both directions until `stop` is set.
    fn run(&mut self, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
            let fds = [self.wire_in.as_fd(), self.stack_in.as_fd()];
            wait::wait_readable(&fds, Some(Duration::from_millis(10))).unwrap();
            self.gso_frames += carry(&mut self.wire_in, &mut self.stack_out);
            self.gso_frames += carry(&mut self.stack_in, &mut self.wire_out);
        }
    }
}

/// Forwards a batch, every frame as several slices; returns the number of GSO frames among them.
fn carry(source: &mut impl FrameSource, sink: &mut impl FrameSink) -> u64 {
    let mut frames = Vec::new();
    source.receive(&mut frames, 64).unwrap();
    let pieces: Vec<_> = frames
        .iter()
        .map(|frame| {
            let offload = frame.borrowed().offload();
            Pieces { offload, vlan: frame.vlan, ..Pieces::cut(frame.bytes(), 66, 1_448) }
        })
        .collect();
    sink.transmit(pieces.iter()).unwrap();
    frames.iter().filter(|frame| frame.gso.is_some()).count() as u64
}

/// Joins wire and stack, and runs `transfer` with both networks.
fn joined(mode: SubmitMode, transfer: impl FnOnce(&Pair) + Send) {
    let pair = Pair::silent();
    // The stack behind the TAP has the address: the far end of the wire must not answer ARP for it.
    pair.far.interface(FAR).set_arp(false).unwrap();
    pair.near.interface(NEAR).add_address(NEAR_ADDRESS.into(), 24).unwrap();
    let stop = AtomicBool::new(false);
    let tap = pair.far.run(|| Tap::open("rxo0", TapKind::Tap).unwrap()).unwrap();
    pair.far.interface("rxo0").add_address(STACK_ADDRESS.into(), 24).unwrap();
    pair.far.interface("rxo0").up().unwrap();
    let carry = || {
        let mut joint = Joint::new(&tap, mode);
        joint.run(&stop);
        assert!(joint.gso_frames > 10, "{} super-packets", joint.gso_frames);
        let (out, back) = (joint.stack_out.counters(), joint.wire_out.counters());
        assert_eq!((out.dropped, out.fallbacks), (0, 0));
        assert_eq!((back.dropped, back.fallbacks), (0, 0));
        assert_eq!(joint.wire_in.counters().truncated, 0);
    };
    thread::scope(|scope| {
        let carrier = scope.spawn(|| pair.far.run(carry).unwrap());
        // Stops the forwarding thread also when the transfer fails, so that the test ends.
        let _stopper = Stopper(&stop);
        transfer(&pair);
        stop.store(true, Ordering::Relaxed);
        carrier.join().unwrap();
    });
}

struct Stopper<'a>(&'a AtomicBool);

impl Drop for Stopper<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn from_wire(mode: SubmitMode) {
    joined(mode, |pair| {
        let listener = pair.far.run(|| TcpListener::bind((STACK_ADDRESS, 0)).unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        thread::scope(|scope| {
            scope.spawn(|| pair.near.run(|| send(address)).unwrap());
            check(&listener);
        });
    });
}

fn from_stack() {
    joined(SubmitMode::Auto, |pair| {
        let listener = pair.near.run(|| TcpListener::bind((NEAR_ADDRESS, 0)).unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        thread::scope(|scope| {
            scope.spawn(|| pair.far.run(|| send(address)).unwrap());
            check(&listener);
        });
    });
}

fn send(address: SocketAddr) {
    let mut stream = TcpStream::connect_timeout(&address, LONG).unwrap();
    stream.set_write_timeout(Some(LONG)).unwrap();
    stream.write_all(&pattern()).unwrap();
}

fn check(listener: &TcpListener) {
    let (mut stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    let mut received = Vec::with_capacity(BYTES);
    stream.read_to_end(&mut received).unwrap();
    assert!(received == pattern(), "{} bytes", received.len());
}

fn pattern() -> Vec<u8> {
    (0..BYTES as u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}
