//! Tests that the counters reveal a device that loses or invents frames without counting them.

use std::time::Duration;

use rxo::device::SourceCounters;
use rxo::device::{MemorySink, MemorySource, SinkCapabilities, SinkCounters, SourceCapabilities};
use rxo::worker::Imbalance;
use rxo::{DeviceError, Duplex, Frame, FrameSink, FrameSource, Gather, Instant, Policy};
use rxo::{Reading, Worker, WorkerConfig};

use crate::pausing::bulk;
use crate::world::{Event, World};

/// The faults of a device.
#[derive(Clone, Copy, Default)]
struct Wrongs {
    /// The number of packets of each batch that the device accepts and loses.
    forgets: usize,
    /// The number of frames that the device counts as received or sent in addition to the real ones.
    boasts: u64,
    /// `true` if every fourth packet that the device counts as sent is never sent.
    loses_behind: bool,
}

struct Wrong<D>(D, Wrongs);

impl FrameSink for Wrong<MemorySink> {
    fn capabilities(&self) -> SinkCapabilities {
        self.0.capabilities()
    }

    fn transmit<'a, G: Gather<'a>>(
        &mut self,
        batch: impl ExactSizeIterator<Item = G>,
    ) -> Result<(), DeviceError> {
        let left: Vec<G> = batch.skip(self.1.forgets).collect();
        self.0.transmit(left.into_iter())
    }

    fn counters(&self) -> SinkCounters {
        let counters = self.0.counters();
        SinkCounters { frames: counters.frames + self.1.boasts, ..counters }
    }

    fn departed(&mut self) -> Option<u64> {
        let packets = self.0.counters().packets;
        let lost = if self.1.loses_behind { packets / 4 } else { 0 };
        // The base of 1,000 stands for packets that other programs have sent before.
        Some(1_000 + packets - lost)
    }
}

impl FrameSource for Wrong<MemorySource> {
    type Buffer = Vec<u8>;

    fn capabilities(&self) -> SourceCapabilities {
        self.0.capabilities()
    }

    fn receive(
        &mut self,
        batch: &mut Vec<Frame<Vec<u8>>>,
        budget: usize,
    ) -> Result<usize, DeviceError> {
        self.0.receive(batch, budget)
    }

    fn counters(&mut self) -> SourceCounters {
        let counters = self.0.counters();
        SourceCounters { frames: counters.frames + self.1.boasts, ..counters }
    }
}

/// Returns the totals of a worker between devices with these faults: the nic's source and sink, then those of
/// the host.
fn totals(wrongs: [Wrongs; 4]) -> Reading {
    totals_of(wrongs, (40, 700, Duration::from_millis(2)))
}

/// Like [`totals`], with `count` frames in each direction, one every `apart_us`, and a check every
/// `look_every`.
fn totals_of(wrongs: [Wrongs; 4], (count, apart_us, look_every): (u32, u64, Duration)) -> Reading {
    let world = World::new();
    world.arrive(Instant::ZERO, Duration::from_micros(apart_us), count, bulk);
    for n in 0..count {
        let at = Instant::from_micros(apart_us / 2 + apart_us * u64::from(n));
        world.at(at, Event::FromHost(bulk(n, at)));
    }
    let (nic, host) = (world.nic(), world.host());
    let [nic_in, nic_out, host_in, host_out] = wrongs;
    let nic = Duplex { source: Wrong(nic.source, nic_in), sink: Wrong(nic.sink, nic_out) };
    let host = Duplex { source: Wrong(host.source, host_in), sink: Wrong(host.sink, host_out) };
    let look_every = Some(look_every);
    let config = WorkerConfig { look_every, ..WorkerConfig::new(Policy::linux_gro()) };
    let mut worker = Worker::new(nic, host, config).unwrap();
    worker.run(&mut world.clone(), world.stopping(), |_| {}).unwrap();
    worker.reading()
}

/// The number of frames, the microseconds between two frames, and the time between two checks: several frames
/// are written between two checks.
const OFTEN: (u32, u64, Duration) = (160, 250_000, Duration::from_secs(1));
const RIGHT: Wrongs = Wrongs { forgets: 0, boasts: 0, loses_behind: false };

#[test]
fn devices_that_count_everything_are_believed() {
    let totals = totals_of([RIGHT; 4], OFTEN);
    assert_eq!((totals.imbalance, totals.unsent), (Imbalance::default(), 0));
    assert!(totals.nic_in.frames == 160 && totals.nic_out.frames == 160, "{totals:?}");
}

#[test]
fn a_packet_that_is_forgotten_is_found_at_its_stage() {
    let forgetful = Wrongs { forgets: 1, ..RIGHT };
    let at_host = totals([RIGHT, RIGHT, RIGHT, forgetful]).imbalance;
    assert!(at_host.host_out > 0 && at_host.total() == at_host.host_out, "{at_host:?}");
    let at_nic = totals([RIGHT, forgetful, RIGHT, RIGHT]).imbalance;
    assert!(at_nic.nic_out > 0 && at_nic.total() == at_nic.nic_out, "{at_nic:?}");
}

#[test]
fn a_frame_that_never_was_is_found_at_its_stage() {
    let boastful = Wrongs { boasts: 3, ..RIGHT };
    let rows = [
        (0, Imbalance { nic_in: 3, ..Imbalance::default() }),
        (1, Imbalance { nic_out: 3, ..Imbalance::default() }),
        (2, Imbalance { nic_out: 3, ..Imbalance::default() }),
        (3, Imbalance { host_out: 3, ..Imbalance::default() }),
    ];
    for (device, expected) in rows {
        let mut wrongs = [RIGHT; 4];
        wrongs[device] = boastful;
        assert_eq!(totals(wrongs).imbalance, expected, "device {device}");
    }
}

#[test]
fn a_packet_that_never_leaves_is_found() {
    let lossy = Wrongs { loses_behind: true, ..RIGHT };
    let totals = totals_of([RIGHT, lossy, RIGHT, RIGHT], OFTEN);
    // The expected number is every fourth of 160 frames, without those sent in the last seconds.
    assert!((25..=40).contains(&totals.unsent), "{}", totals.unsent);
    assert_eq!(totals.imbalance, Imbalance::default());
}
