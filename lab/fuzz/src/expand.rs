//! Target `expand`: captures that claim to be coalesced, and captures that must be restored exactly.

use std::io::Cursor;

use rxo_capture::{Capture, Described, Interface, Record};
use rxo_coalesce::Policy;
use rxo_trace::rewrite::{Coalescer, Expander, RewriteError, Settings};
use rxo_trace::study::{ChecksumMode, Point, PollRule};
use rxo_trace::verify::{Comparison, Limits, Side};

/// Most records of an input, to bound the time of a run.
const MOST_RECORDS: usize = 2_000;
/// Records per batch, few, so that inputs of moderate length have several batches.
const BATCH_RECORDS: usize = 16;

/// Expands `data` if it is a coalesced capture. Any other capture is coalesced and then must be restored
/// exactly.
///
/// # Panics
/// If the restored capture differs from the original.
pub fn run(data: &[u8]) {
    let Some((records, interfaces)) = read(data) else { return };
    if records.len() >= MOST_RECORDS {
        return;
    }
    _ = expand(data);
    let policies = Policy::all();
    let policy = policies[data.len() % policies.len()];
    let point = Point { policy, poll: PollRule::Packets(1 + data.len() as u32 % 40) };
    let settings = Settings { point, checksums: ChecksumMode::Auto, seed: 1 };
    match coalesce(data, settings) {
        Ok(coalesced) => {
            let expanded = expand(&coalesced).expect("what was coalesced can be expanded");
            let Some((after, same)) = read(&expanded) else {
                // The input is damaged before its first record.
                assert!(records.is_empty() && interfaces.is_empty() && expanded.is_empty());
                return;
            };
            assert_eq!((interfaces.len(), records.len()), (same.len(), after.len()));
            records.iter().zip(&after).for_each(check);
            assert_eq!(around(data), around(&expanded));
            compare(&records, &after, &interfaces);
            tamper(data, coalesced, &expanded);
        }
        Err(RewriteError::AlreadyCoalesced | RewriteError::DescribesTooMuch) => {}
        // A packet may have options of the maximum length, which leaves no space for another option.
        Err(RewriteError::Write(_)) => {}
        Err(error) => panic!("{error}"),
    }
}

/// Makes a coalesced capture from segments of three flows, for the corpus.
///
/// # Panics
/// If the capture cannot be coalesced.
#[must_use]
pub fn sample(capture: &[u8], policy: Policy) -> Vec<u8> {
    let point = Point { policy, poll: PollRule::Packets(20) };
    let settings = Settings { point, checksums: ChecksumMode::Auto, seed: 1 };
    coalesce(capture, settings).expect("the sample is sound")
}

/// Changes one byte of the coalesced capture, selected by the input's last bytes. If it is then still
/// restored completely, the result must be unchanged.
fn tamper(data: &[u8], mut coalesced: Vec<u8>, expanded: &[u8]) {
    let chosen = data.last_chunk().map_or(7, |bytes| u64::from_le_bytes(*bytes));
    let chosen = chosen.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let place = (chosen >> 32) as usize % coalesced.len();
    coalesced[place] ^= 1 << (chosen % 8);
    let is_whole = open(&coalesced).is_some_and(|mut capture| {
        let mut records = Vec::new();
        std::iter::repeat_with(|| capture.read_batch(&mut records, BATCH_RECORDS))
            .find(|read| !matches!(read, Ok(1..)))
            .is_some_and(|read| read.is_ok())
    });
    if let (true, Some(file)) = (is_whole, expand(&coalesced)) {
        assert!(file == expanded, "byte {place} was changed, and something else is given back");
    }
}

/// Returns the content of a capture besides its records.
fn around(data: &[u8]) -> Option<(Option<[u8; 24]>, Vec<Described>)> {
    let (mut capture, mut records) = (open(data)?, Vec::new());
    while capture.read_batch(&mut records, BATCH_RECORDS).is_ok_and(|read| read > 0) {}
    Some((capture.pcap_header(), capture.described().to_vec()))
}

fn check((before, after): (&Record, &Record)) {
    assert_eq!(before.bytes.as_ref(), after.bytes.as_ref());
    assert_eq!((before.at, before.interface), (after.at, after.interface));
    assert_eq!((before.ticks, before.head.as_ref()), (after.ticks, after.head.as_ref()));
    assert_eq!(before.original_bytes, after.original_bytes);
    let options = |record: &Record| {
        let mut all = Vec::new();
        record.options.each_little_endian(|code, value| all.push((code, value)));
        all
    };
    assert_eq!(options(before), options(after));
}

fn compare(before: &[Record], after: &[Record], interfaces: &[Interface]) {
    let mut comparison = Comparison::new(Limits::default());
    for (side, records) in [(Side::A, before), (Side::B, after)] {
        for record in records {
            comparison.push(side, record, interfaces[record.interface as usize].link);
        }
        comparison.end(side);
    }
    assert!(comparison.finish().equal);
}

fn open(data: &[u8]) -> Option<Capture> {
    Capture::from_reader("input", Box::new(Cursor::new(data.to_vec()))).ok()
}

fn read(data: &[u8]) -> Option<(Vec<Record>, Vec<Interface>)> {
    let (mut capture, mut records) = (open(data)?, Vec::new());
    while records.len() < MOST_RECORDS
        && capture.read_batch(&mut records, BATCH_RECORDS).is_ok_and(|read| read > 0)
    {}
    Some((records, capture.interfaces().to_vec()))
}

fn coalesce(data: &[u8], settings: Settings) -> Result<Vec<u8>, RewriteError> {
    let Some(mut capture) = open(data) else { return Err(RewriteError::AlreadyCoalesced) };
    let mut batch = Vec::new();
    let mut more = capture.read_batch(&mut batch, BATCH_RECORDS).is_ok_and(|read| read > 0);
    let mut file = Vec::new();
    let mut coalescer = Coalescer::new(&capture, &mut file, settings)?;
    while more {
        coalescer.take(&capture, &mut batch)?;
        more = capture.read_batch(&mut batch, BATCH_RECORDS).is_ok_and(|read| read > 0);
    }
    coalescer.finish(&capture, false)?;
    Ok(file)
}

fn expand(data: &[u8]) -> Option<Vec<u8>> {
    let (mut capture, mut batch) = (open(data)?, Vec::new());
    let mut read = capture.read_batch(&mut batch, BATCH_RECORDS);
    let mut file = Vec::new();
    let mut expander = Expander::new(&capture, &mut file, None).ok()?;
    let finished = loop {
        match read {
            Ok(0) => break expander.finish(),
            Ok(_) => expander.take(&mut batch).ok()?,
            Err(error) => break expander.finish_partial(Some(&error)),
        }
        read = capture.read_batch(&mut batch, BATCH_RECORDS);
    };
    finished.ok().map(|_| file)
}
