//! The file given back: pcapng, or pcap under the header that it had.

use std::io::{BufWriter, Write};

use rxo_device::capture::{CaptureWriter, Interface, LinkType, Packet, WriteError};

use super::RewriteError;
use super::order::Given;
use super::origin::Origin;

/// A format of capture files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFormat {
    /// The old one: one kind of link, no options.
    Pcap,
    /// The next generation.
    PcapNg,
}

/// The file being written.
#[derive(Debug)]
pub(super) enum Original<W: Write> {
    Pcap(Box<PcapFile<W>>),
    PcapNg(Box<CaptureWriter<W>>),
}

impl<W: Write> Original<W> {
    /// Begins it, in `format` or the one that it had.
    pub(super) fn begin(
        output: W,
        origin: &Origin,
        format: Option<FileFormat>,
    ) -> Result<Self, RewriteError> {
        let had = if origin.pcap_header.is_some() { FileFormat::Pcap } else { FileFormat::PcapNg };
        Ok(match format.unwrap_or(had) {
            FileFormat::Pcap => Self::Pcap(Box::new(PcapFile::new(output, origin.pcap_header))),
            FileFormat::PcapNg => Self::PcapNg(Box::new(CaptureWriter::new(output, APPLICATION)?)),
        })
    }

    /// Describes the next interface.
    pub(super) fn add_interface(&mut self, interface: &Interface) -> Result<(), RewriteError> {
        match self {
            Self::Pcap(file) => file.add_interface(interface),
            Self::PcapNg(writer) => Ok(writer.add_interface(interface).map(drop)?),
        }
    }

    /// Writes the next record.
    pub(super) fn write(&mut self, record: &Given) -> Result<(), RewriteError> {
        match self {
            Self::Pcap(file) => file.write(record),
            Self::PcapNg(writer) => {
                let packet = Packet {
                    interface: record.interface,
                    at: record.at,
                    original_bytes: record.original_bytes,
                    pieces: &[&record.bytes],
                    direction: None,
                    comments: &[],
                    custom: &[],
                };
                Ok(writer.write_with(&packet, &record.options)?)
            }
        }
    }

    /// Writes what the file had of a record that it ended within.
    pub(super) fn put_cut_record(&mut self, bytes: &[u8]) -> Result<(), RewriteError> {
        match self {
            Self::Pcap(file) if file.is_as_it_was => file.put(bytes),
            Self::Pcap(_) | Self::PcapNg(_) => Ok(()),
        }
    }

    /// Writes the rest, and gives the output back.
    pub(super) fn finish(self) -> Result<W, RewriteError> {
        match self {
            Self::Pcap(file) => file.finish(),
            Self::PcapNg(writer) => Ok(writer.finish()?),
        }
    }
}

/// A pcap file being written.
#[derive(Debug)]
pub(super) struct PcapFile<W: Write> {
    output: BufWriter<W>,
    /// The header that the file had; until one is written, if it had none.
    header: Option<[u8; 24]>,
    shape: Shape,
    /// Whether what is written has the format that was read.
    is_as_it_was: bool,
    interfaces: u32,
}

/// What a header says of the records after it.
#[derive(Clone, Copy, Debug)]
struct Shape {
    is_big_endian: bool,
    unit_ns: u64,
    /// Files of very old libpcap have the lengths the other way round.
    is_swapped: bool,
}

impl Shape {
    const NANOS: Self = Self { is_big_endian: false, unit_ns: 1, is_swapped: false };

    /// Of a header that a reader has accepted.
    fn of(header: &[u8; 24]) -> Self {
        let [a, b, c, d, ..] = *header;
        let is_big_endian = a == 0xa1;
        let magic = if is_big_endian { [a, b, c, d] } else { [d, c, b, a] };
        let unit_ns = if magic == NANOS_MAGIC { 1 } else { 1_000 };
        let minor = [header[6], header[7]];
        let minor =
            if is_big_endian { u16::from_be_bytes(minor) } else { u16::from_le_bytes(minor) };
        Self { is_big_endian, unit_ns, is_swapped: minor < 3 }
    }

    fn number(self, number: u32) -> [u8; 4] {
        if self.is_big_endian { number.to_be_bytes() } else { number.to_le_bytes() }
    }
}

const NANOS_MAGIC: [u8; 4] = [0xa1, 0xb2, 0x3c, 0x4d];
const NANOS_PER_SECOND: u64 = 1_000_000_000;

impl<W: Write> PcapFile<W> {
    fn new(output: W, header: Option<[u8; 24]>) -> Self {
        let had = header;
        let header = had.map(without_extras);
        let shape = header.as_ref().map_or(Shape::NANOS, Shape::of);
        let is_as_it_was = had.is_some() && had == header;
        Self { output: BufWriter::new(output), header, shape, is_as_it_was, interfaces: 0 }
    }

    /// The first one makes the header; there is no second.
    fn add_interface(&mut self, interface: &Interface) -> Result<(), RewriteError> {
        if self.interfaces > 0 {
            return Err(RewriteError::NotForPcap("several interfaces"));
        }
        self.interfaces = 1;
        let header = *self.header.get_or_insert_with(|| fresh_header(interface));
        self.put(&header)
    }

    fn write(&mut self, record: &Given) -> Result<(), RewriteError> {
        let nanos = record.at.as_nanos();
        // What is later than seconds can say had an impossible fraction, and gets it back.
        let seconds = (nanos / NANOS_PER_SECOND).min(u32::MAX.into());
        let fraction = (nanos - seconds * NANOS_PER_SECOND) / self.shape.unit_ns;
        let fraction = u32::try_from(fraction)
            .map_err(|_| RewriteError::NotForPcap("a time after the year 2106"))?;
        if !record.options.is_empty() {
            return Err(RewriteError::NotForPcap("comments or other options of packets"));
        }
        if !nanos.is_multiple_of(self.shape.unit_ns) {
            return Err(RewriteError::NotForPcap("times finer than its unit"));
        }
        let (mut first, mut second) = (record.bytes.len() as u32, record.original_bytes);
        if self.shape.is_swapped {
            (first, second) = (second, first);
        }
        for number in [seconds as u32, fraction, first, second] {
            self.put(&self.shape.number(number))?;
        }
        self.put(&record.bytes)
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), RewriteError> {
        Ok(self.output.write_all(bytes).map_err(WriteError::Io)?)
    }

    fn finish(mut self) -> Result<W, RewriteError> {
        if self.interfaces == 0 {
            let nothing = Interface { link: LinkType::ETHERNET, snap_bytes: None, name: None };
            self.add_interface(&nothing)?;
        }
        let mut output =
            self.output.into_inner().map_err(|error| WriteError::Io(error.into_error()))?;
        output.flush().map_err(WriteError::Io)?;
        Ok(output)
    }
}

/// The header of a patched libpcap as one of the usual kind: what its records had beside that was
/// not read.
fn without_extras(mut header: [u8; 24]) -> [u8; 24] {
    match header {
        [0xa1, 0xb2, 0xcd, 0x34, ..] => [header[2], header[3]] = [0xc3, 0xd4],
        [0x34, 0xcd, 0xb2, 0xa1, ..] => [header[0], header[1]] = [0xd4, 0xc3],
        _ => {}
    }
    header
}

/// Version 2.4, nanoseconds, little-endian.
fn fresh_header(interface: &Interface) -> [u8; 24] {
    /// What libpcap takes for no limit.
    const NO_LIMIT: u32 = 262_144;
    let mut header = [0; 24];
    let numbers = [
        u32::from_be_bytes(NANOS_MAGIC),
        4 << 16 | 2,
        0,
        0,
        interface.snap_bytes.unwrap_or(NO_LIMIT),
        interface.link.0.into(),
    ];
    for (field, number) in header.as_chunks_mut::<4>().0.iter_mut().zip(numbers) {
        *field = number.to_le_bytes();
    }
    header
}

const APPLICATION: &str = concat!("rxo ", env!("CARGO_PKG_VERSION"));
