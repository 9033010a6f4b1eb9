//! Tests of tracing: packets that pass are in the file, and the traffic is not disturbed.

use std::io::{self, Cursor, Write};
use std::time::Duration;

use rxo_capture::{Capture, LinkType, Record};
use rxo_device::middleware::{Direction, PacketLog, TracedSink, TracedSource};
use rxo_device::{FrameSink, FrameSource, MemoryLink, MemoryOptions};
use rxo_frame::{Frame, Instant, LinkKind, VlanTag};

use super::{Tracer, TracerCounters};

const EPOCH: Duration = Duration::from_secs(1_000_000_000);

fn frame(bytes: &[u8], nanos: u64) -> Frame<Vec<u8>> {
    Frame::new(bytes.to_vec(), Instant::from_nanos(nanos))
}

/// Returns the interfaces and records of a finished file.
fn read(file: Vec<u8>) -> (Capture, Vec<Record>) {
    let mut capture = Capture::from_reader("traced", Box::new(Cursor::new(file))).unwrap();
    let mut all = Vec::new();
    loop {
        let mut records = Vec::new();
        if capture.read_batch(&mut records, 64).unwrap() == 0 {
            return (capture, all);
        }
        all.append(&mut records);
    }
}

#[test]
fn both_directions_are_written_with_names_and_times() {
    let tracer = Tracer::new(Vec::new(), "a test", EPOCH).unwrap();
    let point = tracer.point("eth1", LinkKind::Ethernet).unwrap();
    let link = MemoryLink::new(MemoryOptions::default());
    let mut source = TracedSource::new(link.source(), point.clone());
    let back = MemoryLink::new(MemoryOptions::default());
    let mut sink = TracedSink::new(back.sink(), point, || Instant::from_nanos(70));

    link.push(&frame(b"fourteen bytes", 7));
    let mut batch = vec![frame(b"not from here", 0)];
    assert_eq!(source.receive(&mut batch, 8).unwrap(), 1);
    let tag = VlanTag { tpid: 0x8100.try_into().unwrap(), tci: 5 };
    batch[1].vlan = Some(tag);
    sink.transmit(batch[1..].iter().map(Frame::borrowed)).unwrap();
    assert_eq!(back.take().unwrap().bytes, b"fourteen bytes");

    assert_eq!(tracer.counters(), TracerCounters { written: 2, unwritten: 0 });
    let (capture, records) = read(tracer.finish().unwrap());
    assert_eq!(capture.interfaces()[0].name.as_deref(), Some("eth1"));
    let seen: Vec<_> = records
        .iter()
        .map(|record| {
            let direction = record.direction(LinkType::ETHERNET);
            (record.at.as_nanos(), direction, record.bytes.as_ref().to_vec())
        })
        .collect();
    let second = 1_000_000_000_000_000_000;
    let expected = [
        (second + 7, Some(rxo_capture::Direction::In), b"fourteen bytes".to_vec()),
        (
            second + 70,
            Some(rxo_capture::Direction::Out),
            b"fourteen byt\x81\x00\x00\x05es".to_vec(),
        ),
    ];
    assert_eq!(seen, expected);
}

/// A disk with this many bytes of free space.
struct Disk(usize);

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0 < bytes.len() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.0 -= bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_told_once_and_the_traffic_goes_on() {
    let tracer = Tracer::new(Disk(100_000), "a test", EPOCH).unwrap();
    let point = tracer.point("eth1", LinkKind::Ethernet).unwrap();
    let link = MemoryLink::new(MemoryOptions::default());
    let mut sink = TracedSink::new(link.sink(), point, || Instant::ZERO);
    let frames: Vec<_> = (0..200).map(|index| frame(&[index; 1_500], 0)).collect();
    for chunk in frames.chunks(50) {
        sink.transmit(chunk.iter().map(Frame::borrowed)).unwrap();
    }
    assert_eq!(link.take_all().len(), 200);
    let TracerCounters { written, unwritten } = tracer.counters();
    assert!(written > 0 && unwritten > 0 && written + unwritten == 200, "{written} {unwritten}");
    let notice = tracer.take_notice().unwrap();
    assert!(notice.starts_with("packets are missing in the capture: "), "{notice}");
    assert_eq!(tracer.take_notice(), None);
    assert!(tracer.finish().is_err());
}

#[test]
fn a_packet_too_long_for_the_format_is_missing_alone() {
    let tracer = Tracer::new(Vec::new(), "a test", EPOCH).unwrap();
    let point = tracer.point("tun0", LinkKind::RawIp).unwrap();
    let huge = frame(&vec![0; rxo_capture::limits::RECORD_BYTES + 1], 0);
    point.log(huge.borrowed(), Direction::In, Instant::ZERO);
    point.log(frame(b"small", 0).borrowed(), Direction::In, Instant::ZERO);
    assert_eq!(tracer.counters(), TracerCounters { written: 1, unwritten: 1 });
    assert!(tracer.take_notice().is_some());
    let (capture, records) = read(tracer.finish().unwrap());
    assert_eq!(capture.interfaces()[0].link, LinkType::RAW);
    assert_eq!(records.len(), 1);
    assert!(tracer.finish().is_err(), "it is finished");
}
