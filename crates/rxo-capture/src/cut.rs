//! Cuts a capture file into parts that are read independently, without reading the records before them.
//!
//! A capture file has no index. The caller passes an approximate position, such as the middle of the file. From
//! there, the search finds the first position from which a mebibyte of bytes can be a chain of records. Among
//! the records of the next mebibytes, it chooses the one after the longest pause in traffic. Every caller gets
//! the same cut for the same arguments. If the chosen bytes only look like a record, the part before the cut
//! ends within a real record and is reported as damaged, so the error is noticed.

use std::fs::File;
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::path::Path;

use super::input::Input;
use super::limits::{PACKET_BYTES, RECORD_BYTES};
use super::pcap::{FILE_HEADER_BYTES, Shape};
use super::pcapng::{self, block};
use super::{Capture, CaptureError, Compression, Fault};

/// The number of bytes that must form a chain of records before a position counts as the start of a record.
const CHAIN_BYTES: usize = 1 << 20;
/// The number of bytes that are searched for a chain of records. No packet is longer, so this range contains
/// the start of a record even if it begins within a packet.
const SEARCHED_BYTES: usize = PACKET_BYTES as usize + 64;
/// The number of bytes that are searched for the longest pause between records.
const PAUSE_BYTES: u64 = 8 << 20;

impl Capture {
    /// Finds the best position to cut the file at `path`, at or after byte `near`: the start of the record that
    /// follows the longest pause in the next `within` bytes (at most 8 MiB). Returns the file's length if no
    /// record follows, and `None` if the file is compressed and cannot be cut.
    ///
    /// # Errors
    /// If the file cannot be read, or is not a capture.
    ///
    /// # Examples
    /// Cuts a capture into two halves, which two threads can read:
    /// ```no_run
    /// use rxo_capture::Capture;
    ///
    /// let path = "trace.pcap".as_ref();
    /// let length = std::fs::metadata(path)?.len();
    /// let middle = Capture::cut(path, length / 2, length / 4)?.ok_or("it is compressed")?;
    /// let first = Capture::open_between(path, 0, middle)?;
    /// let second = Capture::open_between(path, middle, length)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn cut(path: &Path, near: u64, within: u64) -> Result<Option<u64>, CaptureError> {
        let failed = |error| CaptureError::new(&path.display().to_string(), near, None, error);
        let read = |error| failed(Fault::Read(error));
        let mut file = File::open(path).map_err(|error| failed(Fault::Open(error)))?;
        let head = head(&mut file).map_err(read)?;
        let Some(head) = head else { return Ok(None) };
        let length = file.metadata().map_err(read)?.len();
        if near == 0 {
            return Ok(Some(0));
        }
        let from = near.max(head.bytes.len() as u64);
        let from = from.next_multiple_of(head.form.step() as u64);
        match head.form.find(&mut file, from).map_err(read)? {
            Some(start) => Self::pause(path, start, within.min(PAUSE_BYTES)).map(Some),
            None => Ok(Some(length)),
        }
    }

    /// Opens the part of the file at `path` from byte `from` up to byte `to`. Each of the two must be a result
    /// of [`cut`](Self::cut), 0, or the file's length.
    ///
    /// # Errors
    /// If the file cannot be read, or is not a capture.
    pub fn open_between(path: &Path, from: u64, to: u64) -> Result<Self, CaptureError> {
        let name = path.display().to_string();
        let failed = |error| CaptureError::new(&name, from, None, Fault::Open(error));
        let mut file = File::open(path).map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        let to = to.min(length);
        let head = head(&mut file).map_err(failed)?.map(|head| head.bytes).unwrap_or_default();
        let from = from.max(head.len() as u64);
        file.seek(SeekFrom::Start(from)).map_err(failed)?;
        let skipped = from - head.len() as u64;
        let bytes = Cursor::new(head).chain(file.take(to.saturating_sub(from)));
        let mut input = Input::new(&name, Box::new(bytes))?;
        input.file_bytes = Some(to - skipped.min(to));
        let mut capture = Self::start(name, input, skipped)?;
        capture.ends_early = to < length;
        Ok(capture)
    }

    /// Returns the position of the record after the longest pause, among the records that begin within
    /// `within` bytes from `start`.
    fn pause(path: &Path, start: u64, within: u64) -> Result<u64, CaptureError> {
        let mut capture = Self::open_between(path, start, u64::MAX)?;
        let mut records = Vec::with_capacity(1);
        let (mut best, mut longest_ns, mut last) = (start, 0, None);
        while capture.offset() - start.min(capture.offset()) <= within {
            let at = capture.offset().max(start);
            records.clear();
            if capture.read_batch(&mut records, 1).unwrap_or_default() == 0 {
                break;
            }
            let Some(record) = records.first() else { break };
            let pause_ns = last.map_or(0, |last| record.at.nanos_since(last));
            if pause_ns > longest_ns {
                (best, longest_ns) = (at, pause_ns);
            }
            last = Some(record.at);
        }
        Ok(best)
    }

    /// Returns `true` if this part of a file describes an interface or a section after its first packet.
    /// Readers of later parts of the file do not see these descriptions.
    #[must_use]
    pub fn describes_later(&self) -> bool {
        self.ends_early && self.described().iter().any(|described| described.records_before > 0)
    }
}

/// The head of a capture file: the bytes before the first record, and the format that these bytes determine.
struct Head {
    bytes: Vec<u8>,
    form: Form,
}

/// The format of records, as the head of the file determines it.
enum Form {
    Pcap(Shape),
    PcapNg { is_big_endian: bool },
}

/// Reads the head of a capture file; `None` if the file is compressed.
fn head(file: &mut File) -> io::Result<Option<Head>> {
    let mut bytes = vec![0; FILE_HEADER_BYTES];
    let magic = match file.read_exact(&mut bytes) {
        Ok(()) => bytes.first_chunk().copied().unwrap_or_default(),
        // The file is too short for any capture. Opening it reports the error.
        Err(_) => return Ok(None),
    };
    if Compression::of(&bytes).is_some() {
        return Ok(None);
    }
    if let Some(shape) = Shape::of(magic) {
        return Ok(Some(Head { bytes, form: Form::Pcap(shape) }));
    }
    let Ok(is_big_endian) = block::section_order(&bytes) else { return Ok(None) };
    if magic != pcapng::MAGIC {
        return Ok(None);
    }
    let mut end = 0;
    loop {
        let mut start = [0; 8];
        file.seek(SeekFrom::Start(end))?;
        if file.read_exact(&mut start).is_err() {
            break;
        }
        let (kind, length) = block::head(&start, is_big_endian);
        let is_head = !pcapng::is_packet(kind) && (12..=RECORD_BYTES as u32).contains(&length);
        if !is_head || end > RECORD_BYTES as u64 {
            break;
        }
        end += u64::from(length);
    }
    bytes.clear();
    file.seek(SeekFrom::Start(0))?;
    file.take(end).read_to_end(&mut bytes)?;
    Ok(Some(Head { bytes, form: Form::PcapNg { is_big_endian } }))
}

impl Form {
    /// Returns the alignment of records in a file of this format, in bytes.
    const fn step(&self) -> usize {
        match self {
            Self::Pcap(_) => 1,
            Self::PcapNg { .. } => 4,
        }
    }

    /// Returns the first position, at or after `from`, at which a long chain of records begins; `None` if
    /// there is none.
    fn find(&self, file: &mut File, from: u64) -> io::Result<Option<u64>> {
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        let wanted = SEARCHED_BYTES + CHAIN_BYTES;
        file.take(wanted as u64 + 1).read_to_end(&mut bytes)?;
        let is_at_end = bytes.len() <= wanted;
        let starts = (0..bytes.len().min(SEARCHED_BYTES)).step_by(self.step());
        let found = starts.into_iter().find(|start| self.is_chain(&bytes[*start..], is_at_end));
        Ok(found.map(|start| from + start as u64))
    }

    /// Returns `true` if all of `bytes`, or their first mebibyte, forms a chain of records.
    fn is_chain(&self, bytes: &[u8], is_at_end: bool) -> bool {
        let mut at = 0;
        while at < CHAIN_BYTES {
            let rest = &bytes[at..];
            match self.length(rest) {
                Some(length) => at += length,
                None => return is_at_end && rest.is_empty() && at > 0,
            }
            if at > bytes.len() {
                return !is_at_end;
            }
        }
        true
    }

    /// Returns the length in bytes of the record at the start of `bytes`; `None` if `bytes` cannot begin with a
    /// record.
    fn length(&self, bytes: &[u8]) -> Option<usize> {
        match self {
            Self::Pcap(shape) => shape.record_bytes(bytes),
            Self::PcapNg { is_big_endian } => {
                let (kind, length) = block::head(bytes.get(..12)?, *is_big_endian);
                let length = length as usize;
                let is_possible = length >= 12
                    && length.is_multiple_of(4)
                    && length <= RECORD_BYTES
                    && pcapng::is_known(kind);
                let end = bytes.get(..length).and_then(|block| block.last_chunk::<4>());
                let agrees =
                    end.is_none_or(|end| block::number(end, 0, *is_big_endian) as usize == length);
                (is_possible && agrees).then_some(length)
            }
        }
    }
}

#[cfg(test)]
mod tests;
