//! The pcap format: a header of 24 bytes, then records of 16 bytes and a packet
//! (draft-ietf-opsawg-pcap).
//!
//! Supports the usual magic numbers in both byte orders, with microseconds and nanoseconds, and the magic
//! number of the patched libpcap ("modified"), whose record headers have 8 more bytes. Files of libpcap before
//! 0.4 (version 2.2 and older, some of 2.3) have the two length fields of a record swapped.

use super::limits::{PACKET_BYTES, RECORD_BYTES};
use super::outline::{Outline, Part};
use super::stream::Stream;
use super::{Clock, Fault, Interface, LinkType, Options, Record, SharedBytes};

pub(super) const FILE_HEADER_BYTES: usize = 24;
const RECORD_HEADER_BYTES: usize = 16;
const MODIFIED_RECORD_HEADER_BYTES: usize = 24;

/// The state of reading a pcap file: the contents of its header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pcap {
    shape: Shape,
    /// The minor version of the format, which determines whether the lengths of records are swapped.
    minor: u16,
    longest: u32,
    clock: Clock,
    pub(super) interface: Interface,
    pub(super) outline: Outline,
    /// The bytes of the file's header.
    pub(super) header: [u8; FILE_HEADER_BYTES],
}

/// The format of a pcap file, determined by its magic number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    is_big_endian: bool,
    nanos_each: u64,
    header_bytes: usize,
}

impl Shape {
    /// Returns the pcap format with the magic number `magic`; `None` if no pcap format has this number.
    pub(super) fn of(magic: [u8; 4]) -> Option<Self> {
        let little = u32::from_le_bytes(magic);
        let big = u32::from_be_bytes(magic);
        Self::named(little, false).or_else(|| Self::named(big, true))
    }

    fn named(magic: u32, is_big_endian: bool) -> Option<Self> {
        let (nanos_each, header_bytes) = match magic {
            0xa1b2_c3d4 => (1_000, RECORD_HEADER_BYTES),
            0xa1b2_3c4d => (1, RECORD_HEADER_BYTES),
            0xa1b2_cd34 => (1_000, MODIFIED_RECORD_HEADER_BYTES),
            _ => return None,
        };
        Some(Self { is_big_endian, nanos_each, header_bytes })
    }

    /// Returns the length in bytes of the record at the start of `bytes`; `None` if `bytes` cannot begin with a
    /// record. Records without bytes are refused, because a run of zeros would look like a series of them.
    pub(super) fn record_bytes(self, bytes: &[u8]) -> Option<usize> {
        let header = bytes.get(..self.header_bytes)?;
        let (fraction, kept) = (self.number(header, 4), self.number(header, 8));
        let original = self.number(header, 12);
        let is_time = u64::from(fraction) * self.nanos_each < 1_000_000_000;
        let is_length = |bytes| (1..=PACKET_BYTES).contains(&bytes);
        let is_possible = is_time && is_length(kept) && is_length(original);
        is_possible.then_some(self.header_bytes + kept as usize)
    }

    fn number(self, bytes: &[u8], at: usize) -> u32 {
        let bytes =
            bytes.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or_default();
        if self.is_big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
    }

    /// Returns the two 16-bit numbers at offset `at`, in the file's byte order.
    fn shorts(self, bytes: &[u8], at: usize) -> (u16, u16) {
        let both = self.number(bytes, at);
        let (high, low) = ((both >> 16) as u16, both as u16);
        if self.is_big_endian { (high, low) } else { (low, high) }
    }
}

impl Pcap {
    /// Reads the header of a pcap file whose format is `shape`.
    pub(super) fn start(stream: &mut Stream, shape: Shape) -> Result<Self, Fault> {
        if !stream.has(FILE_HEADER_BYTES).map_err(Fault::Read)? {
            return Err(Fault::Truncated("a pcap header has 24 bytes".to_owned()));
        }
        let header = stream.bytes();
        let (major, minor) = shape.shorts(header, 4);
        if major != 2 {
            return Err(Fault::Unsupported(format!(
                "it is pcap version {major}.{minor}; convert it to version 2.4 with editcap"
            )));
        }
        let snap_bytes = shape.number(header, 16);
        // The upper half states whether frames end with a check sequence. The engine ignores bytes after the
        // IP packet anyway.
        let link = LinkType(shape.number(header, 20) as u16);
        let whole = header.first_chunk().copied().unwrap_or_default();
        stream.consume(FILE_HEADER_BYTES);
        let clock = Clock::pcap(shape.nanos_each);
        let kept = if (1..PACKET_BYTES).contains(&snap_bytes) { Some(snap_bytes) } else { None };
        Ok(Self {
            shape,
            minor,
            longest: snap_bytes.clamp(PACKET_BYTES, RECORD_BYTES as u32),
            clock,
            outline: Outline::of_one(Part::Interface { link, snap_bytes, options: Vec::new() }),
            interface: Interface { link, snap_bytes: kept, name: None },
            header: whole,
        })
    }

    /// Reads the next record; `None` at the end of the file.
    #[inline]
    pub(super) fn next(&self, stream: &mut Stream) -> Result<Option<Record>, Fault> {
        let header_bytes = self.shape.header_bytes;
        if !stream.has(header_bytes).map_err(Fault::Read)? {
            return end(stream);
        }
        let header = self.header(stream.bytes());
        let whole = header_bytes + header.kept_bytes as usize;
        if header.kept_bytes == 0 && stream.bytes().starts_with(&self.header[..8]) {
            return Err(Fault::Unsupported(ANOTHER_FILE.to_owned()));
        }
        if header.kept_bytes > self.longest {
            return Err(self.too_long(header.kept_bytes));
        }
        if !stream.has(whole).map_err(Fault::Read)? {
            return Err(cut_short(stream, whole));
        }
        let record = Record {
            bytes: stream.share(header_bytes..whole),
            original_bytes: header.original_bytes,
            interface: 0,
            at: self.clock.instant(header.ticks),
            ticks: Some(header.ticks),
            head: if self.has_extra_fields() {
                stream.share(0..header_bytes)
            } else {
                SharedBytes::default()
            },
            options: Options::default(),
        };
        stream.consume(whole);
        Ok(Some(record))
    }

    #[inline]
    fn header(&self, bytes: &[u8]) -> RecordHeader {
        let number = |at| self.shape.number(bytes, at);
        let ticks = u64::from(number(0)) << 32 | u64::from(number(4));
        let (kept_bytes, original_bytes) = self.in_order(number(8), number(12));
        RecordHeader { ticks, kept_bytes, original_bytes }
    }

    /// Returns `true` if the header of a record must be kept to write the record again, because its time and
    /// lengths are not enough for that: the two length fields may be swapped, or the patched libpcap added
    /// fields.
    #[inline]
    fn has_extra_fields(&self) -> bool {
        self.minor == 3 || self.shape.header_bytes == MODIFIED_RECORD_HEADER_BYTES
    }

    /// Returns the captured length and the length on the wire from the two length fields of a record. Old
    /// files have these fields swapped; version 2.3 exists in both forms.
    #[inline]
    fn in_order(&self, first: u32, second: u32) -> (u32, u32) {
        let is_swapped = self.minor < 3 || self.minor == 3 && first > second;
        if is_swapped { (second, first) } else { (first, second) }
    }

    #[cold]
    fn too_long(&self, bytes: u32) -> Fault {
        let longest = self.longest;
        Fault::Damaged(format!("a record claims {bytes} bytes, at most {longest} are possible"))
    }
}

/// The error for files that were joined like texts: the header of the second one stands where a record should.
const ANOTHER_FILE: &str = "another pcap file begins there, as after `cat`; give each file by its name, or join them with \
                            mergecap -a -w OUT FILE...";

struct RecordHeader {
    ticks: u64,
    kept_bytes: u32,
    original_bytes: u32,
}

#[cold]
fn end(stream: &Stream) -> Result<Option<Record>, Fault> {
    match stream.bytes().len() {
        0 => Ok(None),
        left => Err(Fault::Truncated(format!("a record begins, but only {left} bytes follow"))),
    }
}

#[cold]
fn cut_short(stream: &Stream, whole: usize) -> Fault {
    let left = stream.bytes().len();
    Fault::Truncated(format!("a record of {whole} bytes begins, but only {left} follow"))
}
