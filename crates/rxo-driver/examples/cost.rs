//! Measures the cost of receiving and sending through packet sockets and TAP interfaces on this machine, in
//! private networks of its own: `cargo run --release -p rxo-driver --example cost`. The figures are medians
//! of several rounds. Ratios between the figures also hold on other machines; the figures themselves do not.
#![allow(clippy::unwrap_used, reason = "a measurement that cannot run has nothing to say")]

use std::num::NonZeroU16;
use std::os::fd::AsFd;
use std::time::Duration;

use rxo_device::{FrameSink, FrameSource};
use rxo_driver::{DeviceSink, PacketOptions, PacketSource, SubmitMode, Tap, TapKind, clock, wait};
use rxo_frame::{ChecksumStatus, Frame, Gather, Gso, GsoKind, Instant, Offload, VlanTag};
use rxo_testbed::{Namespace, create_veth};

const ROUNDS: usize = 15;
const PAYLOAD_BYTES: usize = 1_448;
const HEADER_BYTES: usize = 66;

fn main() {
    rxo_testbed::become_root_in_user_namespace().unwrap();
    let lab = Namespace::new("cost").unwrap();
    lab.run(|| {
        ring(&lab);
        one_million_a_second();
        tap();
        packet_sink(&lab);
    })
    .unwrap();
}

fn ring(lab: &Namespace) {
    create_veth(&lab.interface("near0"), &lab.interface("far0")).unwrap();
    lab.interface("near0").up().unwrap();
    lab.interface("far0").up().unwrap();
    let mut sink = DeviceSink::packet("near0").unwrap();
    let frame = frame(1);
    for slots in [1_024, 4_096, 8_192, 16_384] {
        let options = PacketOptions { ring_slots: slots, ..PacketOptions::default() };
        let mut source = PacketSource::open("far0", options).unwrap();
        let full = median(|| {
            for _ in 0..slots / 64 {
                sink.transmit((0..64).map(|_| &frame)).unwrap();
            }
            drain_ns(&mut source, slots)
        });
        let prompt = median(|| in_step(&mut sink, &mut source, &frame, slots / 64).0);
        let send = median(|| in_step(&mut sink, &mut source, &frame, slots / 64).1);
        println!(
            "ring of {slots} slots, ns a frame, headers read: {prompt:.0} when read after every \
             64 frames (which cost {send:.0} to send into it), {full:.0} when all slots were full"
        );
    }
}

/// Sends and receives batches of 64 frames in turn. Returns the time that sending and receiving took per
/// frame.
fn in_step(
    sink: &mut DeviceSink,
    source: &mut PacketSource,
    frame: &Packet,
    batches: u32,
) -> (f64, f64) {
    let (mut receive_ns, mut send_ns) = (0.0, 0.0);
    for _ in 0..batches {
        let began_at = clock::now();
        sink.transmit((0..64).map(|_| frame)).unwrap();
        send_ns += clock::now().since(began_at).as_nanos() as f64 / 64.0;
        receive_ns += drain_ns(source, 64);
    }
    (receive_ns / f64::from(batches), send_ns / f64::from(batches))
}

/// Sends a million frames a second for two seconds in one thread, and reads them in the calling thread like a
/// worker loop that pauses 100 µs after every batch of at least 8.
fn one_million_a_second() {
    const FRAMES: u64 = 2_000_000;
    wait::use_precise_timers();
    for slots in [2_048, 4_096, 8_192, 16_384] {
        let options = PacketOptions { ring_slots: slots, ..PacketOptions::default() };
        let mut source = PacketSource::open("far0", options).unwrap();
        let mut batch = Vec::with_capacity(256);
        std::thread::scope(|scope| {
            let sender = scope.spawn(|| send_evenly(FRAMES, 1_000_000));
            while !sender.is_finished() || source.receive(&mut batch, 256).unwrap() > 0 {
                let count = source.receive(&mut batch, 256).unwrap();
                batch.clear();
                if count >= 8 {
                    wait::pause(Duration::from_micros(100));
                } else if count == 0 {
                    let most = Duration::from_millis(1);
                    wait::wait_readable(&[source.as_fd()], Some(most)).unwrap();
                }
            }
            let rate = sender.join().unwrap();
            let counters = source.counters();
            println!(
                "ring of {slots} slots, {rate:.2} million frames a second, 100 us pauses: \
                 {} of {FRAMES} lost",
                counters.ring_drops
            );
        });
    }
}

/// Sends frames in evenly spaced batches of 32; returns the rate reached, in millions of frames a second.
fn send_evenly(frames: u64, per_s: u64) -> f64 {
    let mut sink = DeviceSink::packet("near0").unwrap();
    let frame = frame(1);
    let began_at = clock::now();
    for batch in 0..frames / 32 {
        let due_ns = batch * 32 * 1_000_000_000 / per_s;
        while clock::now().since(began_at) < Duration::from_nanos(due_ns) {
            std::hint::spin_loop();
        }
        sink.transmit((0..32).map(|_| &frame)).unwrap();
    }
    frames as f64 * 1e3 / clock::now().since(began_at).as_nanos() as f64
}

/// Receives `frames` frames, in batches of 64; returns the mean time per frame, in ns.
fn drain_ns(source: &mut PacketSource, frames: u32) -> f64 {
    let mut batch = Vec::with_capacity(64);
    let (mut received, mut sum) = (0, 0);
    let began_at = clock::now();
    while received < frames {
        received += source.receive(&mut batch, 64).unwrap() as u32;
        sum += batch.drain(..).map(|frame| headers_sum(frame.bytes())).sum::<u64>();
    }
    std::hint::black_box(sum);
    clock::now().since(began_at).as_nanos() as f64 / f64::from(frames)
}

/// Reads the bytes of a frame that an engine reads: its headers.
fn headers_sum(bytes: &[u8]) -> u64 {
    bytes[..HEADER_BYTES].iter().map(|&byte| u64::from(byte)).sum()
}

fn tap() {
    let tap = Tap::open("cost0", TapKind::Tap).unwrap();
    tap.interface().set_up(true).unwrap();
    for mode in [SubmitMode::Writev, SubmitMode::Uring] {
        let mut sink: DeviceSink = tap.sink(mode).unwrap();
        for segments in [1, 8, 16, 44] {
            let ns = send_cost(&mut sink, segments);
            println!("tap, {mode:?}, {segments} pieces: {ns:.0} ns a packet");
        }
    }
}

fn packet_sink(lab: &Namespace) {
    create_veth(&lab.interface("out0"), &lab.interface("in0")).unwrap();
    lab.interface("out0").up().unwrap();
    lab.interface("in0").up().unwrap();
    let mut sink = DeviceSink::packet("out0").unwrap();
    for segments in [1, 8, 16, 44] {
        let ns = send_cost(&mut sink, segments);
        println!("packet socket, {segments} pieces: {ns:.0} ns a packet");
    }
}

fn send_cost(sink: &mut impl FrameSink, segments: usize) -> f64 {
    let frame = frame(segments);
    let ns = median(|| {
        let began_at = clock::now();
        for _ in 0..8 {
            sink.transmit((0..64).map(|_| &frame)).unwrap();
        }
        clock::now().since(began_at).as_nanos() as f64 / 512.0
    });
    assert_eq!(sink.counters().dropped + sink.counters().fallbacks, 0);
    ns
}

fn median(mut round: impl FnMut() -> f64) -> f64 {
    let mut times: Vec<_> = (0..ROUNDS).map(|_| round()).collect();
    times.sort_by(f64::total_cmp);
    times[ROUNDS / 2]
}

/// A packet as slices: a header, and one slice of payload per segment.
struct Packet {
    header: Vec<u8>,
    payloads: Vec<Vec<u8>>,
}

/// Creates a TCP aggregate addressed to another host, so that the stack drops it at once.
fn frame(segments: usize) -> Packet {
    let mut header = vec![0; HEADER_BYTES];
    header[..12].copy_from_slice(&[2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 1]);
    header[12] = 8;
    header[14] = 0x45;
    let total = (HEADER_BYTES - 14 + segments * PAYLOAD_BYTES) as u16;
    header[16..18].copy_from_slice(&total.to_be_bytes());
    header[22..24].copy_from_slice(&[64, 6]);
    header[46] = 8 << 4;
    Packet { header, payloads: vec![vec![0x5a; PAYLOAD_BYTES]; segments] }
}

impl<'a> Gather<'a> for &'a Packet {
    fn offload(self) -> Offload {
        let size = NonZeroU16::new(PAYLOAD_BYTES as u16);
        let size = size.filter(|_| self.payloads.len() > 1);
        Offload {
            checksum: ChecksumStatus::Partial { start: 34, offset: 16 },
            gso: size.map(|size| Gso::new(GsoKind::TcpV4, size)),
            header_bytes: HEADER_BYTES as u16,
        }
    }

    fn vlan(self) -> Option<VlanTag> {
        None
    }

    fn byte_len(self) -> usize {
        HEADER_BYTES + self.payloads.len() * PAYLOAD_BYTES
    }

    fn for_each_slice(self, mut visit: impl FnMut(&'a [u8])) {
        visit(&self.header);
        self.payloads.iter().for_each(|payload| visit(payload));
    }

    fn frame_count(self) -> usize {
        1
    }

    fn for_each_frame(self, mut visit: impl FnMut(Frame<&'a [u8]>)) {
        visit(Frame::new(&self.header, Instant::ZERO));
    }
}
