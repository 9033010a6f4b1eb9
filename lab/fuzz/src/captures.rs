//! Checks that hold for every capture file, shared by the targets that read one.

use std::io::{self, Cursor, Read};

use rxo_capture::{
    Capture, CaptureError, CaptureWriter, Custom, Interface, LinkType, Packet, Record, limits,
};

/// Most records read from a file, because small archives may unpack to huge ones. Later records need not be
/// reached by large inputs.
const MOST_RECORDS: usize = 2_000;
const ENTERPRISE: u32 = 32_473;
/// Link types to try: null, Ethernet, raw in host byte order, raw, 802.11, loop, cooked, IPv4, IPv6, cooked
/// v2.
const LINKS: [u16; 11] = [0, 1, 12, 14, 101, 105, 108, 113, 228, 229, 276];

/// The result of reading a file.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) records: Vec<Record>,
    pub(crate) interfaces: Vec<Interface>,
    pub(crate) error: Option<CaptureError>,
}

/// Reads `file`, at most `step` bytes at a time, `batch` records at a time.
pub(crate) fn read(file: &[u8], step: usize, batch: usize) -> Outcome {
    let reader = Box::new(Steps { file: Cursor::new(file.to_vec()), step });
    let mut records = Vec::new();
    let mut capture = match Capture::from_reader("input", reader) {
        Ok(capture) => capture,
        Err(error) => return Outcome { records, interfaces: Vec::new(), error: Some(error) },
    };
    let mut error = None;
    while records.len() < MOST_RECORDS && error.is_none() {
        let most = batch.min(MOST_RECORDS - records.len());
        match capture.read_batch(&mut records, most) {
            Ok(0) => break,
            Ok(_) => {}
            Err(met) => error = Some(met),
        }
    }
    let is_over = records.len() < MOST_RECORDS;
    assert!(!is_over || matches!(capture.read_batch(&mut records, batch), Ok(0)), "no end");
    Outcome { records, interfaces: capture.interfaces().to_vec(), error }
}

struct Steps {
    file: Cursor<Vec<u8>>,
    step: usize,
}

impl Read for Steps {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let most = into.len().min(self.step);
        self.file.read(&mut into[..most])
    }
}

/// Checks the result against the limits, the interfaces and itself.
pub(crate) fn check(outcome: &Outcome) {
    assert!(outcome.interfaces.len() <= limits::INTERFACES);
    if let Some(error) = &outcome.error {
        let line = error.to_string();
        assert!(!line.contains('\n'), "more than one line: {line}");
    }
    for record in &outcome.records {
        let interface = outcome.interfaces.get(record.interface as usize).expect("described");
        let bytes = record.bytes.as_ref();
        assert!(bytes.len() <= limits::RECORD_BYTES);
        for link in LINKS.map(LinkType) {
            let Some(network) = link.network(&record.bytes) else { continue };
            assert!(link.is_known());
            assert_eq!(network.packet.as_ref(), &bytes[network.header_bytes..]);
        }
        let _ = record.direction(interface.link);
        let values = record.options.iter().map(|(_, value)| value.len() + 4).sum::<usize>();
        assert!(values <= limits::RECORD_BYTES);
    }
}

/// Checks that other step and batch sizes give the same result.
pub(crate) fn check_again(file: &[u8], outcome: &Outcome) {
    let step = 1 + file.len() % 61;
    let again = read(file, step, 1 + file.len() % 5);
    assert_eq!(again.interfaces, outcome.interfaces);
    assert_eq!(again.records.len(), outcome.records.len());
    again.records.iter().zip(&outcome.records).for_each(|(one, other)| assert_same(one, other));
    assert_eq!(again.error.map(|e| e.to_string()), outcome.error.as_ref().map(ToString::to_string));
}

/// Checks that read captures can be written, and are equal when read again.
pub(crate) fn check_written(outcome: &Outcome) {
    let file = write(outcome);
    let again = read(&file, usize::MAX, 64);
    assert!(again.error.is_none(), "{:?}", again.error);
    assert_eq!(again.interfaces.len(), outcome.interfaces.len());
    assert_eq!(again.records.len(), outcome.records.len());
    for (read, written) in again.records.iter().zip(&outcome.records) {
        assert_same(read, written);
        let values =
            |record: &Record| record.options.iter().last().map(|(_, value)| value.to_vec());
        let note = read.options.custom(ENTERPRISE).last().map(<[u8]>::to_vec);
        assert_eq!(note, values(written).map(cut));
    }
}

fn write(outcome: &Outcome) -> Vec<u8> {
    let mut writer = CaptureWriter::new(Vec::new(), "fuzz").expect("memory takes everything");
    for interface in &outcome.interfaces {
        writer.add_interface(interface).expect("the reader's limits are the writer's");
    }
    for record in &outcome.records {
        let (head, tail) = record.bytes.as_ref().split_at(record.bytes.as_ref().len() / 2);
        let last = record.options.iter().last().map(|(_, value)| cut(value.to_vec()));
        let custom: Vec<_> =
            last.iter().map(|bytes| Custom { enterprise: ENTERPRISE, bytes }).collect();
        let packet = Packet {
            interface: record.interface,
            at: record.at,
            original_bytes: record.original_bytes,
            pieces: &[head, tail],
            direction: record.options.direction(),
            comments: &[],
            custom: &custom,
        };
        writer.write(&packet).expect("what fits is written");
    }
    writer.finish().expect("memory takes everything")
}

fn cut(mut value: Vec<u8>) -> Vec<u8> {
    value.truncate(Custom::MOST_BYTES);
    value
}

fn assert_same(one: &Record, other: &Record) {
    assert_eq!(one.bytes.as_ref(), other.bytes.as_ref());
    assert_eq!((one.at, one.interface), (other.at, other.interface));
    assert_eq!(one.original_bytes, other.original_bytes);
}
