//! Reads a capture of any format and compression.

use std::fmt;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::input::Input;
use super::outline::Outline;
use super::pcap::{Pcap, Shape};
use super::pcapng::{self, PcapNg};
use super::standard::Stoppable;
use super::stream::Stream;
use super::{CaptureError, Compression, Described, Fault, Interface, Options, Record, foreign};

/// A capture file that is being read.
///
/// # Examples
/// ```no_run
/// # fn main() -> Result<(), rxo_capture::CaptureError> {
/// use rxo_capture::Capture;
///
/// let mut capture = Capture::open("trace.pcapng.zst".as_ref())?;
/// let mut records = Vec::new();
/// while capture.read_batch(&mut records, 64)? > 0 {
///     for record in records.drain(..) {
///         println!("{} bytes", record.original_bytes);
///     }
/// }
/// # Ok(())
/// # }
/// ```
pub struct Capture {
    name: String,
    stream: Stream,
    file: File,
    compression: Option<Compression>,
    file_bytes_read: Arc<AtomicU64>,
    file_bytes: Option<u64>,
    /// The number of bytes between the head of the file and the first record of this part, which are not read.
    skipped: u64,
    /// `true` if this capture is a part of a file, and the file continues after this part.
    pub(super) ends_early: bool,
    /// The error that occurred after the records of the last batch; `None` if there was none.
    failed: Option<CaptureError>,
    is_over: bool,
    cut_record: Vec<u8>,
}

enum File {
    Pcap(Pcap),
    PcapNg(PcapNg),
}

impl Capture {
    /// Opens the capture in the file at `path`. The name of the file does not matter.
    ///
    /// # Errors
    /// If the file cannot be opened, or does not begin like a capture.
    pub fn open(path: &Path) -> Result<Self, CaptureError> {
        Self::start(path.display().to_string(), Input::open(path)?, 0)
    }

    /// Reads a capture from any reader, for example standard input. `name` appears in messages.
    ///
    /// # Errors
    /// If nothing can be read, or the bytes are not a capture.
    ///
    /// # Examples
    /// ```no_run
    /// use rxo_capture::Capture;
    ///
    /// let capture = Capture::from_reader("standard input", Box::new(std::io::stdin()))?;
    /// println!("{}: {}", capture.name(), capture.format());
    /// # Ok::<(), rxo_capture::CaptureError>(())
    /// ```
    pub fn from_reader(name: &str, reader: Box<dyn Read + Send>) -> Result<Self, CaptureError> {
        Self::start(name.to_owned(), Input::new(name, reader)?, 0)
    }

    /// Reads a capture from standard input until the input ends or `stop` is set. A separate thread reads the
    /// input and ends when the input ends.
    ///
    /// # Errors
    /// The errors of [`from_reader`](Self::from_reader).
    pub fn from_stdin(stop: Arc<AtomicBool>) -> Result<Self, CaptureError> {
        Self::from_reader("-", Box::new(Stoppable::new(stop)))
    }

    pub(super) fn start(name: String, input: Input, skipped: u64) -> Result<Self, CaptureError> {
        let mut stream = Stream::new(input.bytes);
        let compression = input.compression;
        let file = begin(&mut stream).map_err(|fault| {
            CaptureError::new(&name, stream.offset(), compression, unpacked(fault, compression))
        })?;
        Ok(Self {
            name,
            stream,
            file,
            compression,
            file_bytes_read: input.file_bytes_read,
            file_bytes: input.file_bytes,
            skipped,
            ends_early: false,
            failed: None,
            is_over: false,
            cut_record: Vec::new(),
        })
    }

    /// Appends up to `most` of the next records to `into` and returns their number, which is 0 only at the end
    /// of the capture (or if `most` is 0). Allocates only if `into` must grow, or if the caller still holds
    /// records of every existing chunk.
    ///
    /// # Errors
    /// If the file is damaged or truncated. Earlier calls have returned all records before that
    /// position. Afterwards the capture is at its end.
    pub fn read_batch(
        &mut self,
        into: &mut Vec<Record>,
        most: usize,
    ) -> Result<usize, CaptureError> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let before = into.len();
        while !self.is_over && into.len() - before < most {
            match self.file.next(&mut self.stream) {
                Ok(Some(record)) => into.push(record),
                Ok(None) => self.is_over = true,
                Err(fault) => self.fail(fault),
            }
        }
        match self.failed.take() {
            Some(error) if into.len() == before => Err(error),
            later => {
                self.failed = later;
                Ok(into.len() - before)
            }
        }
    }

    #[cold]
    fn fail(&mut self, fault: Fault) {
        self.is_over = true;
        if let (File::Pcap(_), Fault::Truncated(_)) = (&self.file, &fault) {
            self.cut_record.extend_from_slice(self.stream.bytes());
        }
        let offset = self.offset();
        let fault = unpacked(fault, self.compression);
        self.failed = Some(CaptureError::new(&self.name, offset, self.compression, fault));
    }

    /// Returns the position of the next record in the file, in bytes. The value is meaningful only if the file
    /// is not compressed.
    pub(super) fn offset(&self) -> u64 {
        self.stream.offset() + self.skipped
    }

    /// Returns the name of the file, as the caller gave it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the interfaces that were described so far. Records refer to them by index. The list grows while a pcapng
    /// file is read, at most to [`limits::INTERFACES`](super::limits::INTERFACES).
    #[must_use]
    pub fn interfaces(&self) -> &[Interface] {
        match &self.file {
            File::Pcap(pcap) => std::slice::from_ref(&pcap.interface),
            File::PcapNg(pcapng) => &pcapng.interfaces,
        }
    }

    /// Returns the descriptions of sections and interfaces that were read so far, at most
    /// [`limits::DESCRIBED`](super::limits::DESCRIBED).
    #[must_use]
    pub fn described(&self) -> &[Described] {
        &self.outline().parts
    }

    /// Returns `true` if the file contains more descriptions of sections and interfaces than
    /// [`described`](Self::described) returns.
    #[must_use]
    pub fn describes_too_much(&self) -> bool {
        self.outline().is_cut
    }

    fn outline(&self) -> &Outline {
        match &self.file {
            File::Pcap(pcap) => &pcap.outline,
            File::PcapNg(pcapng) => &pcapng.outline,
        }
    }

    /// Returns the format and compression of the file.
    #[must_use]
    pub fn format(&self) -> Format {
        let is_pcapng = matches!(self.file, File::PcapNg(_));
        Format { is_pcapng, compression: self.compression }
    }

    /// Returns the bytes of a pcap file's header; `None` for pcapng.
    #[must_use]
    pub fn pcap_header(&self) -> Option<[u8; 24]> {
        match &self.file {
            File::Pcap(pcap) => Some(pcap.header),
            File::PcapNg(_) => None,
        }
    }

    /// Returns the bytes of a truncated last record in a pcap file, so that the file can be written again
    /// unchanged. The result is empty if the last record is complete, and before the end of the capture is
    /// reached.
    #[must_use]
    pub fn cut_record(&self) -> &[u8] {
        &self.cut_record
    }

    /// Returns the options of the file's first section header, which are known once the first batch was read;
    /// `None` for a pcap file.
    #[must_use]
    pub fn section(&self) -> Option<&Options> {
        match &self.file {
            File::Pcap(_) => None,
            File::PcapNg(pcapng) => Some(&pcapng.section),
        }
    }

    /// Returns the position up to which the capture was read, for a progress bar.
    #[must_use]
    pub fn position(&self) -> Position {
        Position {
            file_bytes_read: self.file_bytes_read.load(Ordering::Relaxed),
            file_bytes: self.file_bytes,
        }
    }
}

impl File {
    #[inline]
    fn next(&mut self, stream: &mut Stream) -> Result<Option<Record>, Fault> {
        match self {
            Self::Pcap(pcap) => pcap.next(stream),
            Self::PcapNg(pcapng) => pcapng.next(stream),
        }
    }
}

/// Recognizes the format of the file, and reads the header of a pcap file.
fn begin(stream: &mut Stream) -> Result<File, Fault> {
    // More than pcap's four bytes of magic number: some foreign files are recognized only by later bytes.
    stream.has(16).map_err(Fault::Read)?;
    let head = stream.bytes();
    let Some(magic) = head.first_chunk().copied() else {
        return Err(Fault::Foreign(foreign::name(head)));
    };
    match Shape::of(magic) {
        Some(shape) => Pcap::start(stream, shape).map(File::Pcap),
        None if magic == pcapng::MAGIC => Ok(File::PcapNg(PcapNg::new())),
        None => Err(Fault::Foreign(foreign::name(head.get(..16).unwrap_or(head)))),
    }
}

/// Converts a read error of the decoder into the error that the file is truncated or damaged.
fn unpacked(fault: Fault, compression: Option<Compression>) -> Fault {
    match (fault, compression) {
        (Fault::Read(error), Some(compression)) => match error.kind() {
            std::io::ErrorKind::UnexpectedEof => {
                Fault::Truncated(format!("the {compression} stream is cut off"))
            }
            std::io::ErrorKind::InvalidData => Fault::Damaged(error.to_string()),
            std::io::ErrorKind::Unsupported => Fault::Unsupported(error.to_string()),
            _ => Fault::Read(error),
        },
        (fault, _) => fault,
    }
}

impl fmt::Debug for Capture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Capture")
            .field("name", &self.name)
            .field("format", &self.format())
            .field("position", &self.position())
            .finish_non_exhaustive()
    }
}

/// The format and compression of a capture, printed as `pcap`, `pcapng`, or for example `pcapng in zstd`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// `true` for pcapng, `false` for pcap.
    pub is_pcapng: bool,
    /// The compression of the file; `None` if it is not compressed.
    pub compression: Option<Compression>,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_pcapng { "pcapng" } else { "pcap" })?;
        self.compression.map_or(Ok(()), |compression| write!(f, " in {compression}"))
    }
}

/// The progress of reading a capture, for a progress bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The number of bytes read from the file, before unpacking. Buffered bytes are included, so this number is ahead
    /// of the returned records.
    pub file_bytes_read: u64,
    /// The size of the file in bytes; `None` if it is unknown, as for a pipe.
    pub file_bytes: Option<u64>,
}
