//! Writes a pcap file, either with its original header, or converted from a pcapng file.

use std::io::{BufWriter, Write};

use rxo_capture::{Clock, Part, WriteError};

use super::super::order::RestoredRecord;
use super::super::{RewriteError, RewriteOutput};

/// A pcap file that is being written.
#[derive(Debug)]
pub(in super::super) struct PcapFile<'w> {
    output: BufWriter<RewriteOutput<'w>>,
    /// The header of the original capture; `None` if the original is pcapng.
    header: Option<[u8; 24]>,
    shape: Shape,
    clock: Clock,
    /// `true` if the header has been written.
    has_begun: bool,
}

/// The format of records, as a pcap header determines it.
#[derive(Clone, Copy, Debug)]
struct Shape {
    is_big_endian: bool,
    unit_ns: u64,
    /// `true` if the two lengths of a record are swapped, as in files of very old versions of libpcap.
    is_swapped: bool,
}

impl Shape {
    const NANOS: Self = Self { is_big_endian: false, unit_ns: 1, is_swapped: false };

    /// Returns the format that a header determines. The capture reader must have accepted the header.
    fn of(header: &[u8; 24]) -> Self {
        let [a, b, c, d, _, _, e, f, ..] = *header;
        let is_big_endian = a == 0xa1;
        let magic = if is_big_endian { [a, b, c, d] } else { [d, c, b, a] };
        let unit_ns = if magic == NANOS_MAGIC { 1 } else { 1_000 };
        let minor =
            if is_big_endian { u16::from_be_bytes([e, f]) } else { u16::from_le_bytes([e, f]) };
        Self { is_big_endian, unit_ns, is_swapped: minor < 3 }
    }

    fn number(self, number: u32) -> [u8; 4] {
        if self.is_big_endian { number.to_be_bytes() } else { number.to_le_bytes() }
    }
}

/// Returns the clock of a pcap file with this header.
pub(super) fn clock(header: &[u8; 24]) -> Clock {
    Clock::pcap(Shape::of(header).unit_ns)
}

const NANOS_MAGIC: [u8; 4] = [0xa1, 0xb2, 0x3c, 0x4d];

impl<'w> PcapFile<'w> {
    pub(super) fn new(output: RewriteOutput<'w>, header: Option<[u8; 24]>) -> Self {
        let shape = header.as_ref().map_or(Shape::NANOS, Shape::of);
        let output = BufWriter::with_capacity(BUFFER_BYTES, output);
        Self { output, header, shape, clock: Clock::pcap(shape.unit_ns), has_begun: false }
    }

    /// Sets the fields of the pcap header from the description of the first interface.
    ///
    /// # Errors
    /// If there is a second interface, which a pcap file cannot have.
    pub(super) fn describe(&mut self, described: &Part) -> Result<(), RewriteError> {
        let Part::Interface { link, snap_bytes, .. } = described else { return Ok(()) };
        if self.has_begun {
            return Err(RewriteError::NotForPcap("several interfaces"));
        }
        let snap_bytes = if *snap_bytes == 0 { NO_LIMIT } else { *snap_bytes };
        self.begin(snap_bytes, link.0.into())
    }

    /// Writes the original header if there is one; otherwise a new pcap 2.4 header with nanosecond timestamps.
    fn begin(&mut self, snap_bytes: u32, link: u32) -> Result<(), RewriteError> {
        self.has_begun = true;
        let numbers = [u32::from_be_bytes(NANOS_MAGIC), 4 << 16 | 2, 0, 0, snap_bytes, link];
        let mut fresh = [0; 24];
        for (field, number) in fresh.as_chunks_mut::<4>().0.iter_mut().zip(numbers) {
            *field = number.to_le_bytes();
        }
        let header = self.header.unwrap_or(fresh);
        self.put(&header)
    }

    pub(super) fn write(
        &mut self,
        record: &RestoredRecord,
        ticks: Option<u64>,
    ) -> Result<(), RewriteError> {
        if !record.head.as_ref().is_empty() {
            self.put(record.head.as_ref())?;
            return self.put(record.bytes.as_ref());
        }
        let ticks = if self.header.is_some() { ticks } else { self.converted(record, ticks)? };
        let ticks = ticks.ok_or(RewriteError::NotForPcap("packets without a time"))?;
        let (mut first, mut second) = (record.bytes.as_ref().len() as u32, record.original_bytes);
        if self.shape.is_swapped {
            (first, second) = (second, first);
        }
        let mut head = [0; 16];
        let numbers = [(ticks >> 32) as u32, ticks as u32, first, second];
        for (field, number) in head.as_chunks_mut::<4>().0.iter_mut().zip(numbers) {
            *field = self.shape.number(number);
        }
        self.put(&head)?;
        self.put(record.bytes.as_ref())
    }

    /// Returns the ticks of a record in the pcap file, given its `ticks` in a pcapng file, which has another clock.
    fn converted(
        &self,
        record: &RestoredRecord,
        ticks: Option<u64>,
    ) -> Result<Option<u64>, RewriteError> {
        if !record.options.is_empty() {
            return Err(RewriteError::NotForPcap("comments or other options of packets"));
        }
        if ticks.is_some() && !record.time.is_exact() {
            return Err(RewriteError::NotForPcap("times finer than its unit, or out of its range"));
        }
        let ticks = ticks.map(|_| {
            let late = RewriteError::NotForPcap("a time after the year 2106");
            self.clock.ticks(record.at).ok_or(late)
        });
        ticks.transpose()
    }

    /// Writes a truncated last record. Only an original capture in pcap format has one.
    pub(super) fn put_cut_record(&mut self, bytes: &[u8]) -> Result<(), RewriteError> {
        if self.header.is_some() { self.put(bytes) } else { Ok(()) }
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), RewriteError> {
        Ok(self.output.write_all(bytes).map_err(WriteError::Io)?)
    }

    pub(super) fn finish(mut self) -> Result<(), RewriteError> {
        const ETHERNET: u32 = 1;
        if !self.has_begun {
            self.begin(NO_LIMIT, ETHERNET)?;
        }
        Ok(self.output.flush().map_err(WriteError::Io)?)
    }
}

/// The snap length in bytes that libpcap treats as no limit.
const NO_LIMIT: u32 = 262_144;

/// The size of the output buffer, in bytes. Longer packets are written directly to the output.
const BUFFER_BYTES: usize = 32 * 1024;
