//! Records the segments that passed at the nic, and those that arrived at the peer.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rxo::capture::Capture;
use rxo::driver::{PacketOptions, PacketSource};
use rxo::tracer::{TracePoint, Tracer};
use rxo::{FrameSource, LinkKind};
use rxo_testbed::{Lab, Namespace};
use rxo_wire::{Parsed, TcpSegment, Transport, parse};

use crate::path::Stopper;

/// A trace file that is removed at the end.
pub(crate) struct Trace {
    path: PathBuf,
    tracer: Tracer<File>,
}

impl Trace {
    pub(crate) fn begin(name: &str) -> Self {
        let file = format!("rxo-live-{name}-{}.pcapng", std::process::id());
        let path = std::env::temp_dir().join(file);
        let tracer = Tracer::new(File::create(&path).unwrap(), "rxo", Duration::ZERO).unwrap();
        Self { path, tracer }
    }

    pub(crate) fn point(&self) -> TracePoint<File> {
        self.tracer.point("nic", LinkKind::Ethernet).unwrap()
    }

    /// Returns all recorded segments, in order.
    pub(crate) fn read(self) -> Vec<Seen> {
        self.tracer.finish().unwrap();
        assert_eq!(self.tracer.counters().unwritten, 0);
        let mut capture = Capture::open(&self.path).unwrap();
        let (mut batch, mut seen) = (Vec::new(), Vec::new());
        while capture.read_batch(&mut batch, 64).unwrap() > 0 {
            seen.extend(batch.drain(..).filter_map(|record| Seen::of(record.bytes.as_ref())));
        }
        seen
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        _ = std::fs::remove_file(&self.path);
    }
}

/// A recorded segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    /// `true` if the segment is from the peer, which sends the data.
    pub(crate) is_from_peer: bool,
    pub(crate) tcp: TcpSegment,
    pub(crate) payload_bytes: u32,
    /// The window scale in a SYN.
    pub(crate) shift: u8,
}

impl Seen {
    fn of(bytes: &[u8]) -> Option<Self> {
        let parsed: Parsed = parse(bytes).ok()?;
        let Transport::Tcp(tcp) = parsed.transport else { return None };
        let is_from_peer = parsed.key.source() == std::net::IpAddr::from(Lab::PEER_ADDRESSES.0);
        let options = &bytes[parsed.at.tcp_options()];
        let scale = rxo_wire::tcp::Options::new(options).flatten().find_map(|option| {
            let is_scale = option.kind == rxo_wire::tcp::OptionKind::WindowScale;
            is_scale.then(|| option.data[0])
        });
        let payload_bytes = parsed.payload_bytes();
        Some(Self { is_from_peer, tcp, payload_bytes, shift: scale.unwrap_or(0) })
    }
}

/// Records the segments that arrive at the peer while `traffic` runs.
pub(crate) fn at_peer(peer: &Namespace, traffic: impl FnOnce()) -> Vec<Seen> {
    let (stop, is_open) = (AtomicBool::new(false), Barrier::new(2));
    thread::scope(|scope| {
        let reader = scope.spawn(|| peer.run(|| read_until(&stop, &is_open)).unwrap());
        is_open.wait();
        // Stops the recording also when the traffic fails, so that the test ends.
        let stopper = Stopper(&stop);
        traffic();
        drop(stopper);
        reader.join().unwrap()
    })
}

fn read_until(stop: &AtomicBool, is_open: &Barrier) -> Vec<Seen> {
    let opened = PacketSource::open(Lab::PEER_INTERFACE, PacketOptions::default());
    is_open.wait();
    let mut source = opened.unwrap();
    let (mut batch, mut seen) = (Vec::new(), Vec::new());
    loop {
        // The flag is read before the source is emptied, so that all frames that arrived before it was set
        // are recorded.
        let was_last = stop.load(Ordering::Relaxed);
        while source.receive(&mut batch, 256).unwrap() > 0 {
            seen.extend(batch.drain(..).filter_map(|frame| Seen::of(frame.bytes())));
        }
        if was_last {
            assert_eq!(source.counters().ring_drops, 0);
            return seen;
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// Returns the number of occurrences of each value.
pub(crate) fn histogram(values: impl Iterator<Item = usize>) -> BTreeMap<usize, usize> {
    let mut counts = BTreeMap::new();
    values.for_each(|value| *counts.entry(value).or_default() += 1);
    counts
}
