//! Generated traffic as records, and studies of records.

use rxo_capture::{Interface, LinkType, Record};
use rxo_coalesce::Policy;
use rxo_frame::Instant;
use rxo_testkit::{Packet, Random, Workload, workload};
use rxo_trace::report::Report;
use rxo_trace::study::{ChecksumMode, Point, Settings, Study};

/// Returns traffic of this kind, in bursts.
pub(crate) fn generated(kind: Workload, packets: usize) -> Vec<Record> {
    let mut random = Random::new(11);
    let mut at_ns = 1_000_000_000;
    let packets = workload(kind, packets, 5);
    packets
        .into_iter()
        .map(|bytes| {
            at_ns +=
                if random.below(40) == 0 { random.below(2_000_000) } else { random.below(3_000) };
            record(bytes, at_ns)
        })
        .collect()
}

pub(crate) fn record(bytes: Vec<u8>, at_ns: u64) -> Record {
    Record {
        original_bytes: bytes.len() as u32,
        bytes: bytes.into(),
        at: Instant::from_nanos(at_ns),
        ..Record::default()
    }
}

/// Returns records for these packets, at intervals of a microsecond.
pub(crate) fn records(packets: &[Packet]) -> Vec<Record> {
    let times = (1..).map(|micros| micros * 1_000);
    packets.iter().zip(times).map(|(packet, at_ns)| record(packet.bytes(), at_ns)).collect()
}

pub(crate) fn ethernet() -> Vec<Interface> {
    vec![Interface { link: LinkType::ETHERNET, snap_bytes: None, name: None }]
}

pub(crate) fn point(policy: &str, poll: &str) -> Point {
    Point { policy: Policy::by_name(policy).unwrap(), poll: poll.parse().unwrap() }
}

/// The seed of all engines: it determines which flows share a bucket.
pub(crate) const SEED: u64 = 1;

/// Settings with this point only, under which no checksum counts as right that is not.
pub(crate) fn settings(point: Point) -> Settings {
    let checksums = ChecksumMode::Verify;
    Settings { advise: false, checksums, seed: SEED, ..Settings::new(point) }
}

/// Studies records in batches of an odd size.
pub(crate) fn study(settings: Settings, interfaces: &[Interface], records: &[Record]) -> Report {
    let mut study = Study::new(settings).unwrap();
    study.begin_source("generated");
    for batch in records.chunks(777) {
        study.take(interfaces, &mut batch.to_vec());
    }
    study.end_source("none", None);
    study.finish(None)
}
